// Triangles of a mesh that cut through each other.
//
// Triangles are sorted along a curve, LEAF of them a leaf of a complete binary tree whose node k
// has the children 2k and 2k + 1; leaves are the nodes n_leaves .. 2 n_leaves - 1.
#include "device/device.cuh"

#define LEAF 4

DEVICE Vec3d cross(Vec3d a, Vec3d b)
{
    return make_vec3d(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
DEVICE double span(Vec3d a) { return fabs(a.x) + fabs(a.y) + fabs(a.z); }

// On which side of the plane (a, b, c) d lies: 1, -1, or 0 where rounding could decide.
DEVICE int side_of(Vec3d a, Vec3d b, Vec3d c, Vec3d d)
{
    const Vec3d u = a - d, v = b - d, w = c - d;
    const double volume = dot(u, cross(v, w));
    const double doubt = 1e-13 * span(u) * span(v) * span(w);
    return volume > doubt ? 1 : (volume < -doubt ? -1 : 0);
}

// Whether the segment (p, q), whose ends are on the given sides of it, cuts the triangle
// (a, b, c); through an edge of the triangle counts, for two triangles may share the cut there.
DEVICE bool segment_cuts(Vec3d p, Vec3d q, int side_p, int side_q, Vec3d a, Vec3d b, Vec3d c)
{
    if (side_p * side_q >= 0) return false;
    const int ab = side_of(p, q, a, b), bc = side_of(p, q, b, c), ca = side_of(p, q, c, a);
    if (ab == 0 && bc == 0 && ca == 0) return false;
    return (ab >= 0 && bc >= 0 && ca >= 0) || (ab <= 0 && bc <= 0 && ca <= 0);
}

struct Corners { Vec3d a, b, c; };

DEVICE Corners load_corners(const double *vertex, const int *triangle, int64 t)
{
    Corners r;
    r.a = load_vec3d(vertex, triangle[3 * t]);
    r.b = load_vec3d(vertex, triangle[3 * t + 1]);
    r.c = load_vec3d(vertex, triangle[3 * t + 2]);
    return r;
}

// Whether two triangles cut through each other; to touch, or to share a corner, is allowed.
DEVICE bool triangles_cut(Corners s, Corners t)
{
    const int sa = side_of(t.a, t.b, t.c, s.a), sb = side_of(t.a, t.b, t.c, s.b);
    const int sc = side_of(t.a, t.b, t.c, s.c);
    if ((sa >= 0 && sb >= 0 && sc >= 0) || (sa <= 0 && sb <= 0 && sc <= 0)) return false;
    const int ta = side_of(s.a, s.b, s.c, t.a), tb = side_of(s.a, s.b, s.c, t.b);
    const int tc = side_of(s.a, s.b, s.c, t.c);
    if ((ta >= 0 && tb >= 0 && tc >= 0) || (ta <= 0 && tb <= 0 && tc <= 0)) return false;
    return segment_cuts(s.a, s.b, sa, sb, t.a, t.b, t.c)
        || segment_cuts(s.b, s.c, sb, sc, t.a, t.b, t.c)
        || segment_cuts(s.c, s.a, sc, sa, t.a, t.b, t.c)
        || segment_cuts(t.a, t.b, ta, tb, s.a, s.b, s.c)
        || segment_cuts(t.b, t.c, tb, tc, s.a, s.b, s.c)
        || segment_cuts(t.c, t.a, tc, ta, s.a, s.b, s.c);
}

DEVICE bool boxes_meet(const double *p, const double *q)
{
    return p[0] <= q[3] && q[0] <= p[3] && p[1] <= q[4] && q[1] <= p[4] && p[2] <= q[5]
        && q[2] <= p[5];
}

// With how many later triangles each one cuts, and the first of them.
KERNEL void find_crossings(
    int n_triangles, int n_leaves,
    const double *vertex,       // (v, 3)
    const int *triangle,        // (t, 3) sorted along the curve
    const double *box,          // (t, 6) low and high of each triangle
    const double *node,         // (2 n_leaves, 6)
    OUT int *count,             // (t,)
    OUT int *partner)           // (t,) or -1
{
    FOR_EACH_CHUNKED(i, n_triangles, 64) {
        const Corners own = load_corners(vertex, triangle, i);
        const double *own_box = box + 6 * i;
        int found = 0, first = -1;
        int k = 1, width = n_leaves;
        while (k > 0) {
            // The last leaf below node k, to leave out pairs that an earlier triangle finds.
            const int64 end = ((int64)(k + 1) * width - n_leaves) * LEAF;
            if (end > i + 1 && boxes_meet(own_box, node + 6 * (int64)k)) {
                if (k < n_leaves) {
                    k *= 2;
                    width /= 2;
                    continue;
                }
                const int64 last = minimum(end, (int64)n_triangles);
                for (int64 j = maximum(end - LEAF, i + 1); j < last; ++j)
                    if (boxes_meet(own_box, box + 6 * j)
                            && triangles_cut(own, load_corners(vertex, triangle, j))) {
                        if (found == 0) first = (int)j;
                        ++found;
                    }
            }
            while (k & 1) {
                k /= 2;
                width *= 2;
            }
            if (k) ++k;
        }
        count[i] = found;
        partner[i] = first;
    }
}
