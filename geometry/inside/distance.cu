// Nearest points on a triangle mesh, and winding numbers; driven by distance.py, which tells how
// the tree is laid out.
#include "device/device.cuh"

#define TREE_WIDTH LANES
#define TREE_STACK 64             // a tree of eight levels opens at most 7 * 8 + 1 nodes

// A stack entry: the node's place within its level, and the level.
DEVICE int pack_node(int place, int level) { return place * 16 + level; }
DEVICE int node_level(int entry) { return entry & 15; }
DEVICE int node_place(int entry) { return entry >> 4; }

DEVICE int lowest_bit(int bits) { return bit_count((uint64)((bits & -bits) - 1)); }

DEVICE Vec3d vector_product(Vec3d a, Vec3d b)
{
    return make_vec3d(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

DEVICE Vec3d nearest_on_segment(Vec3d p, Vec3d a, Vec3d b)
{
    const Vec3d along = b - a;
    const double length2 = dot(along, along);
    const double t = length2 > 0.0 ? dot(p - a, along) / length2 : 0.0;
    return a + along * minimum(maximum(t, 0.0), 1.0);
}

DEVICE Vec3d nearer_of(Vec3d p, Vec3d a, Vec3d b)
{
    const Vec3d to_a = a - p, to_b = b - p;
    return dot(to_b, to_b) < dot(to_a, to_a) ? b : a;
}

// The foot of the perpendicular where it falls into the triangle, else the nearest of its sides.
DEVICE Vec3d nearest_on_triangle(Vec3d p, const double *corner)
{
    const Vec3d a = load_vec3d(corner, 0), b = load_vec3d(corner, 1), c = load_vec3d(corner, 2);
    const Vec3d ab = b - a, ac = c - a, ap = p - a;
    const Vec3d normal = vector_product(ab, ac);
    const double square = dot(normal, normal);
    const double weight_c = dot(vector_product(ab, ap), normal);
    const double weight_b = dot(vector_product(ap, ac), normal);
    if (square > 0.0 && weight_b >= 0.0 && weight_c >= 0.0 && weight_b + weight_c <= square)
        return p - normal * (dot(ap, normal) / square);
    const Vec3d side = nearer_of(p, nearest_on_segment(p, a, b), nearest_on_segment(p, b, c));
    return nearer_of(p, side, nearest_on_segment(p, c, a));
}

// Squared distances from a point to the bounds of eight children.
DEVICE lane_f distance2_of_boxes(const float *box, Vec3 p)
{
    const float at[3] = {p.x, p.y, p.z};
    lane_f sum = lane_splat(0.0f);
    for (int k = 0; k < 3; ++k) {
        const lane_f here = lane_splat(at[k]);
        const lane_f below = lane_load(box + LANES * k) - here;
        const lane_f above = here - lane_load(box + LANES * (k + 3));
        const lane_f out = lane_max(lane_max(below, above), lane_splat(0.0f));
        sum = lane_fma(out, out, sum);
    }
    return sum;
}

struct Lanes3 { lane_f x, y, z; };
DEVICE Lanes3 load_corner(const float *packet, int corner, Vec3 p)
{
    const float *at = packet + 3 * LANES * corner;
    Lanes3 v;
    v.x = lane_load(at) - lane_splat(p.x);
    v.y = lane_load(at + LANES) - lane_splat(p.y);
    v.z = lane_load(at + 2 * LANES) - lane_splat(p.z);
    return v;
}
DEVICE lane_f lanes_dot(Lanes3 a, Lanes3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
DEVICE Lanes3 lanes_less(Lanes3 a, Lanes3 b)
{
    Lanes3 v;
    v.x = a.x - b.x;
    v.y = a.y - b.y;
    v.z = a.z - b.z;
    return v;
}
DEVICE Lanes3 lanes_product(Lanes3 a, Lanes3 b)
{
    Lanes3 v;
    v.x = a.y * b.z - a.z * b.y;
    v.y = a.z * b.x - a.x * b.z;
    v.z = a.x * b.y - a.y * b.x;
    return v;
}

// Squared distance from the origin to the segments from a along `side`.
DEVICE lane_f distance2_of_segments(Lanes3 a, Lanes3 side)
{
    const lane_f length2 = lane_max(lanes_dot(side, side), lane_splat(1e-37f));
    const lane_f along = lane_splat(0.0f) - lanes_dot(a, side) / length2;
    const lane_f t = lane_min(lane_max(along, lane_splat(0.0f)), lane_splat(1.0f));
    Lanes3 v;
    v.x = lane_fma(side.x, t, a.x);
    v.y = lane_fma(side.y, t, a.y);
    v.z = lane_fma(side.z, t, a.z);
    return lanes_dot(v, v);
}

// Squared distances from a point to eight triangles, to single precision: a sieve.
DEVICE lane_f distance2_of_triangles(const float *packet, Vec3 p)
{
    const Lanes3 a = load_corner(packet, 0, p), b = load_corner(packet, 1, p);
    const Lanes3 c = load_corner(packet, 2, p);
    const Lanes3 ab = lanes_less(b, a), bc = lanes_less(c, b), ca = lanes_less(a, c);
    const Lanes3 normal = lanes_product(ab, bc);
    const lane_f square = lanes_dot(normal, normal);
    const lane_f height = lanes_dot(a, normal);
    const lane_f weight_c = lanes_dot(lanes_product(a, ab), normal);
    const lane_f weight_a = lanes_dot(lanes_product(b, bc), normal);
    const lane_f weight_b = lanes_dot(lanes_product(c, ca), normal);
    const lane_f least = lane_min(lane_min(weight_a, weight_b), weight_c);
    const lane_f sides = lane_min(lane_min(distance2_of_segments(a, ab),
                                           distance2_of_segments(b, bc)),
                                  distance2_of_segments(c, ca));
    const lane_i above = (least >= lane_splat(0.0f)) & (square > lane_splat(1e-30f));
    return lane_select(above, height * height / square, sides);
}

// What single precision may be wrong by, in squared distances of a mesh of size one.
DEVICE float sieve_limit(double best2) { return (float)(best2 * 1.001) + 1e-10f; }

// Nearest point of the mesh no farther than `reach`; the point itself and -1 where there is none.
KERNEL void find_nearest(
    int n, int n_levels,
    const int *level_start,       // (n_levels + 1,): first node of each level, the lowest first
    const float *box,             // (nodes above the lowest level, 6, 8): bounds of the children
    const float *packet,          // (nodes of the lowest level, 9, 8): corners of triangles
    const double *corner,         // (triangles, 3, 3), in the order of the tree
    const int *triangle,          // (triangles,): number in the mesh of each of the tree
    const double *point,          // (n, 3)
    const double *reach,          // (n,)
    OUT double *nearest,          // (n, 3)
    OUT int *nearest_triangle)    // (n,)
{
    FOR_EACH_GROUP(i, n, 64) {
        const Vec3d p = load_vec3d(point, i);
        const Vec3 at = make_vec3((float)p.x, (float)p.y, (float)p.z);
        double best2 = reach[i] * reach[i];
        float limit = sieve_limit(best2);
        Vec3d found = p;
        int found_slot = -1;
        int stack[TREE_STACK];
        float stack_distance[TREE_STACK];
        stack[0] = pack_node(0, n_levels - 1);
        stack_distance[0] = 0.0f;
        int depth = 1;
        while (depth > 0) {
            --depth;
            if (stack_distance[depth] > limit) continue;
            const int place = node_place(stack[depth]), level = node_level(stack[depth]);
            if (level > 0) {
                // Push the children, the nearest on top.
                const int node = level_start[level] - level_start[1] + place;
                const lane_f distance2 = distance2_of_boxes(box + 6 * LANES * (int64)node, at);
                const int first = depth;
                int bits = lane_bits(distance2 <= lane_splat(limit));
                for (; bits != 0; bits &= bits - 1) {
                    const int c = lowest_bit(bits);
                    const float far2 = lane_get(distance2, c);
                    int slot = depth++;
                    for (; slot > first && stack_distance[slot - 1] < far2; --slot) {
                        stack[slot] = stack[slot - 1];
                        stack_distance[slot] = stack_distance[slot - 1];
                    }
                    stack[slot] = pack_node(TREE_WIDTH * place + c, level - 1);
                    stack_distance[slot] = far2;
                }
                continue;
            }
            const lane_f distance2 = distance2_of_triangles(packet + 9 * LANES * (int64)place, at);
            int bits = lane_bits(distance2 <= lane_splat(limit));
            for (; bits != 0; bits &= bits - 1) {
                const int slot = TREE_WIDTH * place + lowest_bit(bits);
                const Vec3d q = nearest_on_triangle(p, corner + 9 * (int64)slot);
                const Vec3d way = q - p;
                const double far2 = dot(way, way);
                if (far2 < best2 || (found_slot < 0 && far2 <= best2)) {
                    best2 = far2;
                    limit = sieve_limit(best2);
                    found = q;
                    found_slot = slot;
                }
            }
        }
        store_vec3d(nearest, i, found);
        nearest_triangle[i] = found_slot < 0 ? -1 : triangle[found_slot];
    }
}

// atan2(y, x) of eight pairs to 1e-5, by a polynomial for the lower eighth of the circle.
DEVICE lane_f lanes_atan2(lane_f y, lane_f x)
{
    const lane_f zero = lane_splat(0.0f);
    const lane_f ay = lane_max(y, zero - y), ax = lane_max(x, zero - x);
    const lane_f q = lane_min(ax, ay) / lane_max(lane_max(ax, ay), lane_splat(1e-37f));
    const lane_f q2 = q * q;
    lane_f sum = lane_splat(-0.01172120f);
    sum = lane_fma(sum, q2, lane_splat(0.05265332f));
    sum = lane_fma(sum, q2, lane_splat(-0.11643287f));
    sum = lane_fma(sum, q2, lane_splat(0.19354346f));
    sum = lane_fma(sum, q2, lane_splat(-0.33262347f));
    sum = lane_fma(sum, q2, lane_splat(0.99997726f));
    lane_f angle = sum * q;
    angle = lane_select(ay > ax, lane_splat(0.5f * PI_F) - angle, angle);
    angle = lane_select(x < zero, lane_splat(PI_F) - angle, angle);
    return lane_select(y < zero, zero - angle, angle);
}

// Solid angles of eight triangles seen from p, over 4 pi (Van Oosterom and Strackee 1983).
DEVICE lane_f winding_of_triangles(const float *packet, Vec3 p)
{
    const Lanes3 a = load_corner(packet, 0, p), b = load_corner(packet, 1, p);
    const Lanes3 c = load_corner(packet, 2, p);
    const lane_f la = lane_sqrt(lanes_dot(a, a)), lb = lane_sqrt(lanes_dot(b, b));
    const lane_f lc = lane_sqrt(lanes_dot(c, c));
    const lane_f volume = lanes_dot(a, lanes_product(b, c));
    const lane_f spread = la * lb * lc + lanes_dot(a, b) * lc + lanes_dot(b, c) * la
                          + lanes_dot(c, a) * lb;
    return lanes_atan2(volume, spread) * lane_splat(0.5f / PI_F);
}

// Generalised winding number (Jacobson et al. 2013): near triangles exactly, far groups by the
// dipole of their area (Barill et al. 2018).
KERNEL void find_winding(
    int n, int n_levels, int n_triangles,
    const int *level_start,
    const float *packet,          // (nodes of the lowest level, 9, 8)
    const float *dipole,          // (nodes above, 7, 8): centre, area vector / 4 pi, far distance
    const double *point,          // (n, 3)
    OUT double *winding)          // (n,)
{
    FOR_EACH_GROUP(i, n, 64) {
        const Vec3 p = make_vec3((float)point[3 * i], (float)point[3 * i + 1],
                                 (float)point[3 * i + 2]);
        double sum = 0.0;
        int stack[TREE_STACK];
        stack[0] = pack_node(0, n_levels - 1);
        int depth = 1;
        while (depth > 0) {
            const int entry = stack[--depth];
            const int place = node_place(entry), level = node_level(entry);
            if (level == 0) {
                const int filled = minimum(n_triangles - TREE_WIDTH * place, TREE_WIDTH);
                const lane_f part = winding_of_triangles(packet + 9 * LANES * (int64)place, p);
                sum += (double)lane_sum(lane_select(lane_from_bits((1 << filled) - 1), part,
                                                    lane_splat(0.0f)));
                continue;
            }
            const int node = level_start[level] - level_start[1] + place;
            const float *child = dipole + 7 * LANES * (int64)node;
            const Lanes3 to = load_corner(child, 0, p);
            const lane_f far2 = lanes_dot(to, to), limit = lane_load(child + 6 * LANES);
            Lanes3 area;
            area.x = lane_load(child + 3 * LANES);
            area.y = lane_load(child + 4 * LANES);
            area.z = lane_load(child + 5 * LANES);
            const lane_i is_near = far2 <= limit * limit;
            const lane_f inverse = lane_rsqrt(lane_max(far2, lane_splat(1e-30f)));
            const lane_f part = lanes_dot(area, to) * inverse * inverse * inverse;
            sum += (double)lane_sum(lane_select(is_near, lane_splat(0.0f), part));
            for (int bits = lane_bits(is_near); bits != 0; bits &= bits - 1)
                stack[depth++] = pack_node(TREE_WIDTH * place + lowest_bit(bits), level - 1);
        }
        winding[i] = sum;
    }
}
