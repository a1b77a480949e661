// Closest and any hit on triangles under a tree of eight-wide nodes.
//
// One group of lanes follows one ray: a lane tests one child box, or one triangle of a leaf.
// Boxes are widened as in Ize, "Robust BVH ray traversal" (2013), and triangles tested as in
// Woop, Benthin and Wald, "Watertight ray/triangle intersection" (2013), so that no ray slips
// between two triangles that share an edge. Without its double-precision fallback the test may
// accept a ray one rounding error outside an edge, never lose one inside.
//
// A ray knows the pieces it is inside of. It may only enter others and only leave these, so
// that the face it starts on, or a neighbour within rounding, is never met again: no offsets.
#include "device/device.cuh"

// Child boxes of a node: lower x, y, z, then upper x, y, z, eight lanes each.
#define NODE_FLOATS (6 * LANES)
// Corners of a leaf's triangles: (corner, axis), eight lanes each.
#define PACKET_FLOATS (9 * LANES)
// Seven siblings a level wait; bvh.py refuses trees deeper than STACK_ENTRIES / 7.
#define STACK_ENTRIES 160

// Pieces that a ray knows it is inside of.
#define MAX_INSIDE 8

struct Bvh {
    const float *node_box;      // (m, 6, 8)
    const int *node_child;      // (m, 8): a node, or ~packet for a leaf
    const float *packet;        // (p, 9, 8)
    const int *slot_piece;      // (p, 8): the piece that the triangle bounds
};

// The pieces that a ray is inside of; a negative count lets it meet every triangle.
struct Inside {
    int count;
    int piece[MAX_INSIDE];
};

DEVICE bool is_inside(const Inside &inside, int piece)
{
    bool found = false;
    for (int k = 0; k < MAX_INSIDE; ++k) found |= k < inside.count && inside.piece[k] == piece;
    return found;
}

// Enter a piece. If there are too many, the one entered first is forgotten, and its end not met;
// the new one must be known, or its face would be met again and again.
DEVICE void enter_piece(Inside &inside, int piece)
{
    if (inside.count == MAX_INSIDE) {
        for (int k = 1; k < MAX_INSIDE; ++k) inside.piece[k - 1] = inside.piece[k];
        --inside.count;
    }
    inside.piece[inside.count++] = piece;
}

// The pieces of a list: their number, then MAX_INSIDE of them.
DEVICE Inside load_inside(const int *list)
{
    Inside inside;
    inside.count = list[0];
    for (int k = 0; k < MAX_INSIDE; ++k) inside.piece[k] = list[1 + k];
    return inside;
}

DEVICE void leave_piece(Inside &inside, int piece)
{
    int kept = 0;
    for (int k = 0; k < inside.count; ++k)
        if (inside.piece[k] != piece) inside.piece[kept++] = inside.piece[k];
    inside.count = kept;
}

struct Ray {
    Vec3 origin, direction;
    float t_min, t_max;
};

// A ray with what the box and triangle tests reuse.
struct PreparedRay {
    float origin[3], inverse[3];
    int near_side[3], far_side[3];  // offsets into a node's floats
    int axis_x, axis_y, axis_z;     // axis_z is the direction's largest axis
    float shear_x, shear_y, shear_z;
    float t_min;
};

DEVICE PreparedRay prepare_ray(Ray ray)
{
    PreparedRay r;
    const float d[3] = {ray.direction.x, ray.direction.y, ray.direction.z};
    r.origin[0] = ray.origin.x;
    r.origin[1] = ray.origin.y;
    r.origin[2] = ray.origin.z;
    for (int axis = 0; axis < 3; ++axis) {
        r.inverse[axis] = 1.0f / d[axis];
        const int upper = r.inverse[axis] < 0.0f ? 1 : 0;
        r.near_side[axis] = (3 * upper + axis) * LANES;
        r.far_side[axis] = (3 * (1 - upper) + axis) * LANES;
    }
    const float ax = fabsf(d[0]), ay = fabsf(d[1]), az = fabsf(d[2]);
    r.axis_z = ax > ay ? (ax > az ? 0 : 2) : (ay > az ? 1 : 2);
    r.axis_x = r.axis_z == 2 ? 0 : r.axis_z + 1;
    r.axis_y = r.axis_x == 2 ? 0 : r.axis_x + 1;
    r.shear_x = d[r.axis_x] / d[r.axis_z];
    r.shear_y = d[r.axis_y] / d[r.axis_z];
    r.shear_z = 1.0f / d[r.axis_z];
    r.t_min = ray.t_min;
    return r;
}

// Which child boxes the ray enters before t_max (bits), and where (entry).
DEVICE int hit_boxes(const PreparedRay &r, const float *box, float t_max, lane_f &entry)
{
    lane_f enter = lane_splat(r.t_min);
    lane_f leave = lane_splat(INFINITY_F);
    // A ray in the plane of a side gives 0 * inf = NaN: min and max keep their second operand.
    for (int axis = 0; axis < 3; ++axis) {
        const lane_f origin = lane_splat(r.origin[axis]);
        const lane_f inverse = lane_splat(r.inverse[axis]);
        enter = lane_max((lane_load(box + r.near_side[axis]) - origin) * inverse, enter);
        leave = lane_min((lane_load(box + r.far_side[axis]) - origin) * inverse, leave);
    }
    entry = enter;
    const lane_f end = lane_min(leave * lane_splat(1.0000004f), lane_splat(t_max));
    return lane_bits(enter <= end);
}

// Which triangles of a packet the ray meets in (t_min, t_max) (bits), where (t), and which of all
// face it (entered).
DEVICE int hit_triangles(const PreparedRay &r, const float *packet, float t_max, lane_f &t,
                         int &entered)
{
    const float *corner_x = packet + r.axis_x * LANES;
    const float *corner_y = packet + r.axis_y * LANES;
    const float *corner_z = packet + r.axis_z * LANES;
    const lane_f origin_x = lane_splat(r.origin[r.axis_x]);
    const lane_f origin_y = lane_splat(r.origin[r.axis_y]);
    const lane_f origin_z = lane_splat(r.origin[r.axis_z]);
    const lane_f shear_x = lane_splat(r.shear_x), shear_y = lane_splat(r.shear_y);

    // Shear the corners so that the ray runs along z from the origin.
    const lane_f az = lane_load(corner_z) - origin_z;
    const lane_f bz = lane_load(corner_z + 3 * LANES) - origin_z;
    const lane_f cz = lane_load(corner_z + 6 * LANES) - origin_z;
    const lane_f ax = lane_load(corner_x) - origin_x - shear_x * az;
    const lane_f ay = lane_load(corner_y) - origin_y - shear_y * az;
    const lane_f bx = lane_load(corner_x + 3 * LANES) - origin_x - shear_x * bz;
    const lane_f by = lane_load(corner_y + 3 * LANES) - origin_y - shear_y * bz;
    const lane_f cx = lane_load(corner_x + 6 * LANES) - origin_x - shear_x * cz;
    const lane_f cy = lane_load(corner_y + 6 * LANES) - origin_y - shear_y * cz;

    // The origin is inside when the three edge functions agree in sign.
    const lane_f u = cx * by - cy * bx;
    const lane_f v = ax * cy - ay * cx;
    const lane_f w = bx * ay - by * ax;
    const lane_f zero = lane_splat(0.0f);
    const lane_f lowest = lane_min(lane_min(u, v), w);
    const lane_f highest = lane_max(lane_max(u, v), w);
    const lane_f det = u + v + w;
    const lane_f shear_z = lane_splat(r.shear_z);
    t = (u * az + v * bz + w * cz) * shear_z / det;
    // The normal's part along the ray is -det / shear_z.
    entered = lane_bits(det * shear_z > zero);
    return lane_bits(((lowest >= zero) | (highest <= zero)) & (det != zero)
                     & (t > lane_splat(r.t_min)) & (t < lane_splat(t_max)));
}

DEVICE int lowest_bit(int bits) { return bit_count((uint64)((bits & -bits) - 1)); }

struct Hit {
    float t;       // INFINITY_F: nothing
    int slot;      // 8 * packet + lane
};

// Whether a ray may meet a triangle that it enters or leaves its piece by.
DEVICE bool is_met(const Inside &inside, bool enters, int piece)
{
    return inside.count < 0 || enters != is_inside(inside, piece);
}

// The first triangle along the ray; of two at one distance, the one that the tree visits first.
DEVICE Hit closest_hit(const Bvh &bvh, Ray ray, const Inside &inside)
{
    const PreparedRay r = prepare_ray(ray);
    int stack_node[STACK_ENTRIES];
    float stack_entry[STACK_ENTRIES];
    int waiting = 0;
    int node = 0;
    float t_best = ray.t_max;
    Hit hit;
    hit.slot = -1;
    for (;;) {
        if (node >= 0) {
            lane_f entry;
            const float *box = bvh.node_box + (int64)node * NODE_FLOATS;
            const int *child = bvh.node_child + (int64)node * LANES;
            int bits = hit_boxes(r, box, t_best, entry);

            // Push the children that are met, the nearest on top.
            const int floor = waiting;
            for (; bits != 0; bits &= bits - 1) {
                const int lane = lowest_bit(bits);
                const float t = lane_get(entry, lane);
                int place = waiting++;
                for (; place > floor && stack_entry[place - 1] < t; --place) {
                    stack_entry[place] = stack_entry[place - 1];
                    stack_node[place] = stack_node[place - 1];
                }
                stack_entry[place] = t;
                stack_node[place] = child[lane];
            }
        } else {
            lane_f t;
            int entered;
            const float *packet = bvh.packet + (int64)(~node) * PACKET_FLOATS;
            int bits = hit_triangles(r, packet, t_best, t, entered);
            for (; bits != 0; bits &= bits - 1) {
                const int lane = lowest_bit(bits);
                const int slot = ~node * LANES + lane;
                const float t_lane = lane_get(t, lane);
                if (t_lane < t_best
                    && is_met(inside, (entered >> lane) & 1, bvh.slot_piece[slot])) {
                    t_best = t_lane;
                    hit.slot = slot;
                }
            }
        }
        // Go on with the nearest box that begins before the best hit.
        do {
            if (waiting == 0) {
                hit.t = hit.slot < 0 ? INFINITY_F : t_best;
                return hit;
            }
            --waiting;
        } while (stack_entry[waiting] > t_best);
        node = stack_node[waiting];
    }
}

// Whether a ray meets any triangle between t_min and t_max.
DEVICE bool any_hit(const Bvh &bvh, Ray ray, const Inside &inside)
{
    const PreparedRay r = prepare_ray(ray);
    int stack_node[STACK_ENTRIES];
    int waiting = 0;
    int node = 0;
    for (;;) {
        lane_f t;
        if (node >= 0) {
            const int *child = bvh.node_child + (int64)node * LANES;
            int bits = hit_boxes(r, bvh.node_box + (int64)node * NODE_FLOATS, ray.t_max, t);
            if (bits != 0) {
                // Go on with one child at once: only the others have to wait.
                node = child[lowest_bit(bits)];
                for (bits &= bits - 1; bits != 0; bits &= bits - 1)
                    stack_node[waiting++] = child[lowest_bit(bits)];
                continue;
            }
        } else {
            int entered;
            int bits = hit_triangles(r, bvh.packet + (int64)(~node) * PACKET_FLOATS, ray.t_max, t,
                                     entered);
            for (; bits != 0; bits &= bits - 1) {
                const int lane = lowest_bit(bits);
                const int piece = bvh.slot_piece[~node * LANES + lane];
                if (is_met(inside, (entered >> lane) & 1, piece)) return true;
            }
        }
        if (waiting == 0) return false;
        node = stack_node[--waiting];
    }
}

// Corner 0, 1 or 2 of the triangle in a slot.
DEVICE Vec3 slot_corner(const Bvh &bvh, int slot, int corner)
{
    const float *p = bvh.packet + (int64)(slot / LANES) * PACKET_FLOATS
                     + 3 * corner * LANES + slot % LANES;
    return make_vec3(p[0], p[LANES], p[2 * LANES]);
}

// Unit normal of the triangle in a slot: its corners run anticlockwise seen from outside.
DEVICE Vec3 slot_normal(const Bvh &bvh, int slot)
{
    const Vec3 a = slot_corner(bvh, slot, 0);
    return normalize(cross(slot_corner(bvh, slot, 1) - a, slot_corner(bvh, slot, 2) - a));
}
