// The triangles straight above points, found in a tree over the triangles (see crossings.cu).
#include "geometry/inside/columns.cuh"

#define LEAF 4

DEVICE bool is_below(const double *box, Vec3d p)
{
    return p.x >= box[0] && p.x <= box[3] && p.y >= box[1] && p.y <= box[4] && p.z <= box[5];
}

// Number of cuts above each point; with a list, the triangles and how they turn as well.
DEVICE int visit_above(
    int n_triangles, int n_leaves, Vec3d p, const double *vertex, const int *triangle,
    const double *box, const double *node, int *found, int *turns)
{
    int n = 0;
    int k = 1;
    while (k > 0) {
        if (is_below(node + 6 * (int64)k, p)) {
            if (k < n_leaves) {
                k *= 2;
                continue;
            }
            const int first = (k - n_leaves) * LEAF;
            for (int t = first; t < minimum(first + LEAF, n_triangles); ++t) {
                if (!is_below(box + 6 * (int64)t, p)) continue;
                double x[3], y[3], z[3];
                load_triangle(vertex, triangle, t, ALONG_Z, x, y, z);
                const int covers = triangle_covers(x, y, p.x, p.y);
                if (covers == 0 || !(triangle_height(x, y, z, p.x, p.y) > p.z)) continue;
                if (found) {
                    found[n] = t;
                    turns[n] = covers;
                }
                ++n;
            }
        }
        while (k & 1) k /= 2;
        if (k) ++k;
    }
    return n;
}

KERNEL void count_above(
    int n_points, int n_triangles, int n_leaves,
    const double *point,        // (n, 3)
    const double *vertex,       // (v, 3)
    const int *triangle,        // (t, 3) sorted as the tree is
    const double *box,          // (t, 6)
    const double *node,         // (2 n_leaves, 6)
    OUT int *count)             // (n,)
{
    FOR_EACH_CHUNKED(i, n_points, 16) {
        count[i] = visit_above(n_triangles, n_leaves, load_vec3d(point, i), vertex, triangle, box,
                               node, 0, 0);
    }
}

KERNEL void list_above(
    int n_points, int n_triangles, int n_leaves,
    const double *point, const double *vertex, const int *triangle, const double *box,
    const double *node,
    const int64 *start,         // (n + 1,)
    OUT int *found,             // (k,) triangles
    OUT int *turns)             // (k,) 1 where the normal points up, -1 where down
{
    FOR_EACH_CHUNKED(i, n_points, 16) {
        visit_above(n_triangles, n_leaves, load_vec3d(point, i), vertex, triangle, box, node,
                    found + start[i], turns + start[i]);
    }
}
