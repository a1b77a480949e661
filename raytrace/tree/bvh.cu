// Build the tree over triangles, and trace plain rays; driven by bvh.py, which has the symbols.
#include "device/device.cuh"
#include "raytrace/tree/bvh.cuh"
#include "raytrace/tree/packet.cuh"

struct Box {
    float v[6];     // lower x, y, z, upper x, y, z
};

DEVICE Box load_box(const float *box, int64 i)
{
    Box b;
    for (int k = 0; k < 6; ++k) b.v[k] = box[6 * i + k];
    return b;
}

DEVICE void store_box(float *box, int64 i, Box b)
{
    for (int k = 0; k < 6; ++k) box[6 * i + k] = b.v[k];
}

DEVICE Box box_union(Box a, Box b)
{
    for (int k = 0; k < 3; ++k) {
        a.v[k] = minimum(a.v[k], b.v[k]);
        a.v[k + 3] = maximum(a.v[k + 3], b.v[k + 3]);
    }
    return a;
}

// Half the surface area [m^2].
DEVICE float box_half_area(Box b)
{
    const float x = b.v[3] - b.v[0], y = b.v[4] - b.v[1], z = b.v[5] - b.v[2];
    return x * y + y * z + z * x;
}

// Bounds of `group` consecutive triangles.
KERNEL void bound_primitives(
    int n, int group,
    const float *triangle,        // (n * group, 3, 3)
    OUT float *box)               // (n, 6)
{
    FOR_EACH(i, n) {
        Box b;
        for (int k = 0; k < 3; ++k) {
            b.v[k] = INFINITY_F;
            b.v[k + 3] = -INFINITY_F;
        }
        for (int c = 0; c < 3 * group; ++c) {
            const float *corner = triangle + (i * group * 3 + c) * 3;
            for (int k = 0; k < 3; ++k) {
                b.v[k] = minimum(b.v[k], corner[k]);
                b.v[k + 3] = maximum(b.v[k + 3], corner[k]);
            }
        }
        store_box(box, i, b);
    }
}

// Morton code of a box's centre, `bits` an axis, above the primitive's own number: keys are
// unique, so that any sort gives one order.
KERNEL void morton_keys(
    int n, int bits, int index_bits, float scale,
    const float *lower,           // (3,): corner of the scene
    const float *box,             // (n, 6)
    OUT uint64 *key)              // (n,)
{
    FOR_EACH(i, n) {
        const float top = (float)((1 << bits) - 1);
        uint64 code = 0;
        uint32 cell[3];
        for (int k = 0; k < 3; ++k) {
            const float center = 0.5f * (box[6 * i + k] + box[6 * i + 3 + k]);
            cell[k] = (uint32)clamped((center - lower[k]) * scale, 0.0f, top);
        }
        for (int b = bits - 1; b >= 0; --b)
            for (int k = 0; k < 3; ++k) code = (code << 1) | ((cell[k] >> b) & 1u);
        key[i] = (code << index_bits) | (uint64)i;
    }
}

// Put primitives in key order: the leaves of the binary tree.
KERNEL void sorted_leaves(
    int n, int index_bits,
    const uint64 *key,            // (n,)
    const float *box,             // (n, 6)
    OUT int *primitive,           // (n,)
    OUT float *leaf_box)          // (n, 6)
{
    FOR_EACH(i, n) {
        const int source = (int)(key[i] & (((uint64)1 << index_bits) - 1));
        primitive[i] = source;
        store_box(leaf_box, i, load_box(box, source));
    }
}

// For each cluster, the one within `radius` places whose union with it is smallest. Ties go to
// the smallest i xor j: the order of pairs is the same from both ends, so that the best pair of
// all is always mutual, and equal boxes pair up evenly.
KERNEL void nearest_clusters(
    int n, int radius,
    const float *box,             // (n, 6)
    OUT int *nearest)             // (n,)
{
    FOR_EACH(i, n) {
        const Box own = load_box(box, i);
        const int first = maximum((int)i - radius, 0);
        const int last = minimum((int)i + radius, n - 1);
        float best = INFINITY_F;
        int found = -1;
        for (int j = first; j <= last; ++j) {
            if (j == (int)i) continue;
            const float area = box_half_area(box_union(own, load_box(box, j)));
            if (area < best || found < 0
                || (area == best && ((int)i ^ j) < ((int)i ^ found))) {
                best = area;
                found = j;
            }
        }
        nearest[i] = found;
    }
}

// Whether a cluster stays in the list (itself, or as the merged pair), and whether it merges.
KERNEL void mark_merges(
    int n,
    const int *nearest,           // (n,)
    OUT int *stays,               // (n,)
    OUT int *merges)              // (n,)
{
    FOR_EACH(i, n) {
        const int other = nearest[i];
        const bool mutual = other >= 0 && other < n && nearest[other] == (int)i;
        merges[i] = mutual && (int)i < other;
        stays[i] = !mutual || (int)i < other;
    }
}

// Merge mutual pairs into nodes first_node, first_node + 1, ... and close the gaps.
KERNEL void merge_clusters(
    int n, int first_node,
    const int *nearest,           // (n,)
    const int *stays_sum,         // (n,): inclusive sums of mark_merges
    const int *merges_sum,        // (n,)
    const int *cluster,           // (n,): binary node of each cluster
    const float *box,             // (n, 6)
    INOUT int *node_child,        // (2 * primitives - 1, 2)
    INOUT int *node_count,        // (2 * primitives - 1,): primitives below
    INOUT float *node_box,        // (2 * primitives - 1, 6)
    OUT int *next_cluster,        // (number that stay,)
    OUT float *next_box)          // (number that stay, 6)
{
    FOR_EACH(i, n) {
        const int stays_before = i > 0 ? stays_sum[i - 1] : 0;
        const int merges_before = i > 0 ? merges_sum[i - 1] : 0;
        if (stays_sum[i] == stays_before) continue;
        Box b = load_box(box, i);
        int node = cluster[i];
        if (merges_sum[i] != merges_before) {
            const int other = nearest[i];
            const int left = node, right = cluster[other];
            b = box_union(b, load_box(box, other));
            node = first_node + merges_before;
            node_child[2 * node] = left;
            node_child[2 * node + 1] = right;
            node_count[node] = node_count[left] + node_count[right];
            store_box(node_box, node, b);
        }
        next_cluster[stays_before] = node;
        store_box(next_box, stays_before, b);
    }
}

// Gather the children of wide nodes: open the largest below the binary node until eight are
// found or all are leaves of at most `leaf_size` primitives.
KERNEL void open_nodes(
    int n, int leaf_size,
    const int *frontier,          // (n,): binary node of each wide node
    const int *node_child,        // (b, 2)
    const int *node_count,        // (b,)
    const float *node_box,        // (b, 6)
    OUT int *opened,              // (n, 8): binary nodes, -1 for none
    OUT int *n_inner,             // (n,)
    OUT int *n_leaf)              // (n,)
{
    FOR_EACH(i, n) {
        int child[LANES];
        float area[LANES];
        int count = 1;
        child[0] = frontier[i];
        area[0] = 0.0f;
        for (;;) {
            int largest = -1;
            for (int c = 0; c < count; ++c) {
                if (node_count[child[c]] <= leaf_size) continue;
                if (largest < 0 || area[c] > area[largest]
                    || (area[c] == area[largest]
                        && node_count[child[c]] > node_count[child[largest]]))
                    largest = c;
            }
            if (largest < 0 || count == LANES) break;
            const int node = child[largest];
            child[largest] = node_child[2 * node];
            area[largest] = box_half_area(load_box(node_box, child[largest]));
            child[count] = node_child[2 * node + 1];
            area[count] = box_half_area(load_box(node_box, child[count]));
            ++count;
        }
        int inner = 0;
        for (int c = 0; c < LANES; ++c) {
            opened[LANES * i + c] = c < count ? child[c] : -1;
            inner += c < count && node_count[child[c]] > leaf_size;
        }
        n_inner[i] = inner;
        n_leaf[i] = count - inner;
    }
}

// Write wide nodes; their inner children become the next level, their leaves packets.
KERNEL void write_nodes(
    int n, int leaf_size, int first_node, int first_packet,
    const int *opened,            // (n, 8)
    const int *inner_sum,         // (n,): inclusive sums of open_nodes
    const int *leaf_sum,          // (n,)
    const int *node_count,        // (b,)
    const float *node_box,        // (b, 6)
    OUT float *wide_box,          // (n, 6, 8)
    OUT int *wide_child,          // (n, 8)
    OUT int *next_frontier,       // (inner,)
    OUT int *leaf)                // (leaves,): binary node of each packet
{
    FOR_EACH(i, n) {
        int inner = i > 0 ? inner_sum[i - 1] : 0;
        int leaves = i > 0 ? leaf_sum[i - 1] : 0;
        for (int c = 0; c < LANES; ++c) {
            const int node = opened[LANES * i + c];
            float *side = wide_box + NODE_FLOATS * i + c;
            for (int k = 0; k < 6; ++k) {
                const float nowhere = k < 3 ? INFINITY_F : -INFINITY_F;
                side[LANES * k] = node < 0 ? nowhere : node_box[6 * (int64)node + k];
            }
            int link = 0;
            if (node >= 0 && node_count[node] > leaf_size) {
                next_frontier[inner] = node;
                link = first_node + inner++;
            } else if (node >= 0) {
                leaf[leaves] = node;
                link = ~(first_packet + leaves++);
            }
            wide_child[LANES * i + c] = link;
        }
    }
}

// Fill packets with the triangles below their leaves; empty lanes hold a point, never hit.
KERNEL void fill_packets(
    int n, int group,
    const int *leaf,              // (n,)
    const int *node_child,        // (b, 2)
    const int *primitive,         // (primitives,): of each binary leaf
    const float *triangle,        // (triangles, 3, 3)
    const int *piece,             // (triangles,)
    OUT float *packet,            // (n, 9, 8)
    OUT int *slot_triangle,       // (n, 8): -1 for an empty lane
    OUT int *slot_piece)          // (n, 8): -1 for an empty lane
{
    FOR_EACH(i, n) {
        int waiting[LANES];
        int depth = 1;
        int lane = 0;
        waiting[0] = leaf[i];
        while (depth > 0) {
            const int node = waiting[--depth];
            if (node_child[2 * node] >= 0) {
                waiting[depth++] = node_child[2 * node + 1];
                waiting[depth++] = node_child[2 * node];
                continue;
            }
            for (int g = 0; g < group; ++g, ++lane) {
                const int64 source = (int64)primitive[node] * group + g;
                slot_triangle[LANES * i + lane] = (int)source;
                slot_piece[LANES * i + lane] = piece[source];
                for (int k = 0; k < 9; ++k)
                    packet[PACKET_FLOATS * i + LANES * k + lane] = triangle[9 * source + k];
            }
        }
        for (; lane < LANES; ++lane) {
            slot_triangle[LANES * i + lane] = -1;
            slot_piece[LANES * i + lane] = -1;
            for (int k = 0; k < 9; ++k) packet[PACKET_FLOATS * i + LANES * k + lane] = 0.0f;
        }
    }
}

// Closest hit of each ray: distance in units of its direction, and triangle. Rays meet triangles
// from both sides.
KERNEL void trace_closest(
    int n, Bvh tree,
    const int *slot_triangle,     // (p, 8)
    const float *origin,          // (n, 3)
    const float *direction,       // (n, 3)
    const float *t_max,           // (n,)
    OUT float *t,                 // (n,): inf for a miss
    OUT int *triangle)            // (n,): -1 for a miss
{
    FOR_EACH_GROUP(i, n, 64) {
        const Bvh bvh = tree;   // no store below can change it
        const Ray ray = {load_vec3(origin, i), load_vec3(direction, i), 0.0f, t_max[i]};
        const Inside anywhere = {-1, {0}};
        const Hit hit = closest_hit(bvh, ray, anywhere);
        t[i] = hit.t;
        triangle[i] = hit.slot < 0 ? -1 : slot_triangle[hit.slot];
    }
}

// Whether each ray meets anything before t_max, from either side.
KERNEL void trace_any(
    int n, Bvh tree,
    const float *origin,          // (n, 3)
    const float *direction,       // (n, 3)
    const float *t_max,           // (n,)
    OUT int *blocked)             // (n,)
{
    FOR_EACH_GROUP(i, n, 64) {
        const Bvh bvh = tree;   // no store below can change it
        const Ray ray = {load_vec3(origin, i), load_vec3(direction, i), 0.0f, t_max[i]};
        const Inside anywhere = {-1, {0}};
        blocked[i] = any_hit(bvh, ray, anywhere);
    }
}

// The first slot that each ray enters, or leaves where it starts inside. Groups of eight rays that
// run side by side, as those of a tile of pixels do, walk together.
KERNEL void first_hits(
    int n, Bvh tree,
    const float *origin,          // (8 n, 3)
    const float *direction,       // (8 n, 3)
    const int *inside,            // (1 + MAX_INSIDE,): count and pieces, of all rays
    OUT float *t,                 // (8 n,): inf for a miss
    OUT int *slot)                // (8 n,): -1 for a miss
{
    FOR_EACH_GROUP(i, n, 16) {
        const Bvh bvh = tree;   // no store below can change it
        const int64 first = LANES * i;
        RayPacket rays;
        for (int axis = 0; axis < 3; ++axis) {
            rays.origin[axis] = lane_load_strided(origin + 3 * first + axis, 3);
            rays.direction[axis] = lane_load_strided(direction + 3 * first + axis, 3);
        }
        PreparedPacket prepared;
        lane_f t_best = lane_splat(INFINITY_F);
        lane_i slot_best;
        if (inside[0] == 0 && prepare_packet(rays, prepared)) {
            packet_hits(bvh, prepared, t_best, slot_best);
            lane_store(t + first, t_best);
            lane_store(slot + first, slot_best);
            continue;
        }
        const Inside start = load_inside(inside);
        for (int64 k = first; k < first + LANES; ++k) {
            const Ray ray = {load_vec3(origin, k), load_vec3(direction, k), 0.0f, INFINITY_F};
            const Hit hit = closest_hit(bvh, ray, start);
            t[k] = hit.t;
            slot[k] = hit.slot;
        }
    }
}

// Whether a triangle encloses a point, seen along a direction: +1 where the ray leaves through it,
// -1 where it enters. Summed over a piece this is 1 inside it.
KERNEL void crossing_signs(
    int n, Vec3 origin, Vec3 direction,
    const float *triangle,        // (n, 3, 3)
    OUT int *sign)                // (n,)
{
    FOR_EACH(i, n) {
        const Vec3 d = direction;
        const Vec3 a = load_vec3(triangle, 3 * i) - origin;
        const Vec3 b = load_vec3(triangle, 3 * i + 1) - origin;
        const Vec3 c = load_vec3(triangle, 3 * i + 2) - origin;
        const float u = dot(d, cross(b, c)), v = dot(d, cross(c, a)), w = dot(d, cross(a, b));
        const bool leaves = u > 0.0f && v > 0.0f && w > 0.0f;
        const bool enters = u < 0.0f && v < 0.0f && w < 0.0f;
        // The plane lies ahead where its distance along the ray is positive.
        const float volume = dot(a, cross(b, c));
        sign[i] = leaves && volume > 0.0f ? 1 : (enters && volume < 0.0f ? -1 : 0);
    }
}
