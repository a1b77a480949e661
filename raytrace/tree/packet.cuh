// The first hits of eight rays that run side by side, as camera rays do; a lane is a ray.
//
// Eight rays walk the tree together: a node's eight boxes are tested at once against the interval
// of all eight rays (Reshetov, Soupikov and Hurley 2005, "Multi-level ray tracing algorithm"),
// and only a leaf is tested ray by ray. Every triangle test does the arithmetic of bvh.cuh, in
// the same order: a packet finds what its rays would find alone.
#include "device/device.cuh"
#include "raytrace/tree/bvh.cuh"

// A direction's part that is smaller counts as this, so that no box test meets infinities.
#define LEAST_DIRECTION 1e-18f

struct RayPacket {
    lane_f origin[3], direction[3];
};

// What the box and triangle tests of a packet reuse.
struct PreparedPacket {
    lane_f origin[3], inverse[3];
    lane_f shear_x, shear_y, shear_z;
    int axis_x, axis_y, axis_z;
    int near_side[3], far_side[3];
    float near_origin[3], far_origin[3];    // the ends of the origins' interval, along the rays
    float least_inverse[3], most_inverse[3];
};

DEVICE float lane_highest(lane_f v) { return -lane_lowest(-v); }

// Prepare eight rays; false where they do not run side by side.
DEVICE bool prepare_packet(const RayPacket &rays, PreparedPacket &p)
{
    const Vec3 lead = make_vec3(lane_get(rays.direction[0], 0), lane_get(rays.direction[1], 0),
                                lane_get(rays.direction[2], 0));
    const float ax = fabsf(lead.x), ay = fabsf(lead.y), az = fabsf(lead.z);
    p.axis_z = ax > ay ? (ax > az ? 0 : 2) : (ay > az ? 1 : 2);
    p.axis_x = p.axis_z == 2 ? 0 : p.axis_z + 1;
    p.axis_y = p.axis_x == 2 ? 0 : p.axis_x + 1;
    const lane_f zero = lane_splat(0.0f), one = lane_splat(1.0f);
    lane_f size[3];
    for (int axis = 0; axis < 3; ++axis) {
        const lane_f d = rays.direction[axis];
        const int downward = lane_bits(d < zero);
        if (downward != 0 && downward != 0xff) return false;
        const bool upper = downward != 0;
        size[axis] = lane_max(d, -d);
        p.origin[axis] = rays.origin[axis];
        const lane_f safe = lane_max(size[axis], lane_splat(LEAST_DIRECTION));
        p.inverse[axis] = (upper ? -one : one) / safe;
        p.near_side[axis] = (upper ? 3 + axis : axis) * LANES;
        p.far_side[axis] = (upper ? axis : 3 + axis) * LANES;
        const float lowest = lane_lowest(p.origin[axis]), highest = lane_highest(p.origin[axis]);
        p.near_origin[axis] = upper ? lowest : highest;
        p.far_origin[axis] = upper ? highest : lowest;
        p.least_inverse[axis] = lane_lowest(p.inverse[axis]);
        p.most_inverse[axis] = lane_highest(p.inverse[axis]);
    }
    // All rays must shear along the axis that each would choose alone.
    const lane_f along = size[p.axis_z];
    for (int axis = 0; axis < 3; ++axis)
        if (axis != p.axis_z && lane_bits(size[axis] >= along) != 0) return false;
    p.shear_z = one / rays.direction[p.axis_z];
    p.shear_x = rays.direction[p.axis_x] / rays.direction[p.axis_z];
    p.shear_y = rays.direction[p.axis_y] / rays.direction[p.axis_z];
    return true;
}

// Which child boxes any of the rays may enter before t_max (bits), and not before when (entry).
DEVICE int packet_boxes(const PreparedPacket &p, const float *box, float t_max, lane_f &entry)
{
    lane_f enter = lane_splat(0.0f);
    lane_f leave = lane_splat(t_max);
    for (int axis = 0; axis < 3; ++axis) {
        const lane_f least = lane_splat(p.least_inverse[axis]);
        const lane_f most = lane_splat(p.most_inverse[axis]);
        const lane_f near = lane_load(box + p.near_side[axis]) - lane_splat(p.near_origin[axis]);
        const lane_f far = lane_load(box + p.far_side[axis]) - lane_splat(p.far_origin[axis]);
        enter = lane_max(lane_min(near * least, near * most), enter);
        leave = lane_min(lane_max(far * least, far * most) * lane_splat(1.0000004f), leave);
    }
    entry = enter;
    return lane_bits(enter <= leave);
}

// Which rays enter the box of child `lane` of a node before their t_max.
DEVICE int rays_in_box(const PreparedPacket &p, const float *box, int lane, lane_f t_max)
{
    lane_f enter = lane_splat(0.0f);
    lane_f leave = lane_splat(INFINITY_F);
    for (int axis = 0; axis < 3; ++axis) {
        const lane_f near = lane_splat(box[p.near_side[axis] + lane]) - p.origin[axis];
        const lane_f far = lane_splat(box[p.far_side[axis] + lane]) - p.origin[axis];
        enter = lane_max(near * p.inverse[axis], enter);
        leave = lane_min(far * p.inverse[axis], leave);
    }
    return lane_bits(enter <= lane_min(leave * lane_splat(1.0000004f), t_max));
}

// Which rays enter the triangle in a lane of a packet before t_max (mask), and where (t).
DEVICE lane_i rays_on_triangle(const PreparedPacket &p, const float *corner, lane_f t_max,
                               lane_f &t)
{
    const float *corner_x = corner + p.axis_x * LANES;
    const float *corner_y = corner + p.axis_y * LANES;
    const float *corner_z = corner + p.axis_z * LANES;
    const lane_f origin_x = p.origin[p.axis_x];
    const lane_f origin_y = p.origin[p.axis_y];
    const lane_f origin_z = p.origin[p.axis_z];
    const lane_f az = lane_splat(corner_z[0]) - origin_z;
    const lane_f bz = lane_splat(corner_z[3 * LANES]) - origin_z;
    const lane_f cz = lane_splat(corner_z[6 * LANES]) - origin_z;
    const lane_f ax = lane_splat(corner_x[0]) - origin_x - p.shear_x * az;
    const lane_f ay = lane_splat(corner_y[0]) - origin_y - p.shear_y * az;
    const lane_f bx = lane_splat(corner_x[3 * LANES]) - origin_x - p.shear_x * bz;
    const lane_f by = lane_splat(corner_y[3 * LANES]) - origin_y - p.shear_y * bz;
    const lane_f cx = lane_splat(corner_x[6 * LANES]) - origin_x - p.shear_x * cz;
    const lane_f cy = lane_splat(corner_y[6 * LANES]) - origin_y - p.shear_y * cz;
    const lane_f u = cx * by - cy * bx;
    const lane_f v = ax * cy - ay * cx;
    const lane_f w = bx * ay - by * ax;
    const lane_f zero = lane_splat(0.0f);
    const lane_f lowest = lane_min(lane_min(u, v), w);
    const lane_f highest = lane_max(lane_max(u, v), w);
    const lane_f det = u + v + w;
    t = (u * az + v * bz + w * cz) * p.shear_z / det;
    return ((lowest >= zero) | (highest <= zero)) & (det * p.shear_z > zero) & (t > zero)
           & (t < t_max);
}

// The first triangle that each ray enters: t (INFINITY_F: none) and slot. The rays start outside
// of everything and run side by side.
DEVICE void packet_hits(const Bvh &bvh, const PreparedPacket &p, lane_f &t_best, lane_i &slot)
{
    int stack_node[STACK_ENTRIES];
    int stack_box[STACK_ENTRIES];       // where its box stands in its parent: 8 * parent + lane
    float stack_entry[STACK_ENTRIES];
    int waiting = 0;
    int node = 0, box_of = 0;
    float t_last = lane_highest(t_best);
    slot = lane_splat(-1);
    for (;;) {
        if (node >= 0) {
            lane_f entry;
            const int *child = bvh.node_child + (int64)node * LANES;
            int bits = packet_boxes(p, bvh.node_box + (int64)node * NODE_FLOATS, t_last, entry);
            const int floor = waiting;
            for (; bits != 0; bits &= bits - 1) {
                const int lane = lowest_bit(bits);
                const float t = lane_get(entry, lane);
                int place = waiting++;
                for (; place > floor && stack_entry[place - 1] < t; --place) {
                    stack_entry[place] = stack_entry[place - 1];
                    stack_node[place] = stack_node[place - 1];
                    stack_box[place] = stack_box[place - 1];
                }
                stack_entry[place] = t;
                stack_node[place] = child[lane];
                stack_box[place] = node * LANES + lane;
            }
        } else {
            const float *box = bvh.node_box + (int64)(box_of / LANES) * NODE_FLOATS;
            if (rays_in_box(p, box, box_of % LANES, t_best) != 0) {
                const float *packet = bvh.packet + (int64)(~node) * PACKET_FLOATS;
                const int first = ~node * LANES;
                for (int lane = 0; lane < LANES && bvh.slot_piece[first + lane] >= 0; ++lane) {
                    lane_f t;
                    const lane_i nearer = rays_on_triangle(p, packet + lane, t_best, t);
                    t_best = lane_select(nearer, t, t_best);
                    slot = lane_select(nearer, lane_splat(first + lane), slot);
                }
                t_last = lane_highest(t_best);
            }
        }
        do {
            if (waiting == 0) return;
            --waiting;
        } while (stack_entry[waiting] > t_last);
        node = stack_node[waiting];
        box_of = stack_box[waiting];
    }
}
