// Rays against trimtopes as levine-2014 section 5 does it; driven by trimtope.py.
#include "device/device.cuh"

struct TriangleHit {
    double t;
    bool is_front;      // the triangle faces the ray's origin
};

// The first triangle of a list that a ray meets between t_min and t_max; t < 0 for none.
DEVICE TriangleHit first_triangle(const double *corner, int first, int last, Vec3d origin,
                                  Vec3d direction, double t_min, double t_max)
{
    TriangleHit hit;
    hit.t = -1.0;
    hit.is_front = false;
    for (int k = first; k < last; ++k) {
        const Vec3d a = load_vec3d(corner, 3 * (int64)k);
        const Vec3d b = load_vec3d(corner, 3 * (int64)k + 1) - a;
        const Vec3d c = load_vec3d(corner, 3 * (int64)k + 2) - a;
        const Vec3d normal = make_vec3d(b.y * c.z - b.z * c.y, b.z * c.x - b.x * c.z,
                                        b.x * c.y - b.y * c.x);
        const double facing = dot(normal, direction);
        if (facing == 0.0) continue;
        const double t = dot(normal, a - origin) / facing;
        if (!(t > t_min && t < t_max)) continue;
        const Vec3d p = origin + direction * t - a;
        // Barycentric coordinates by the areas of the parts.
        const double bb = dot(b, b), bc = dot(b, c), cc = dot(c, c);
        const double pb = dot(p, b), pc = dot(p, c);
        const double scale = bb * cc - bc * bc;
        const double v = (cc * pb - bc * pc) / scale, w = (bb * pc - bc * pb) / scale;
        if (v < 0.0 || w < 0.0 || v + w > 1.0) continue;
        hit.t = t;
        hit.is_front = facing < 0.0;
        t_max = t;
    }
    return hit;
}

// For each ray the first point of the union of trimtopes: all cells are tried.
KERNEL void trimtope_hits(
    int n, int n_cells,
    const double *site,           // (cells, 3): inside of the object
    const int *plane_start,       // (cells + 1,)
    const double *plane,          // (planes, 4): normal . x <= offset inside
    const int *triangle_start,    // (cells + 1,)
    const double *triangle,       // (triangles, 3, 3): of the mesh, those that cross each cell
    const double *origin,         // (n, 3)
    const double *direction,      // (n, 3)
    OUT double *t,                // (n,): inf for a miss
    OUT int *cell,                // (n,): -1 for a miss
    OUT int *on_mesh)             // (n,): 1 where the mesh is hit, 0 where a plane is
{
    FOR_EACH_CHUNKED(i, n, 16) {
        const Vec3d o = load_vec3d(origin, i), d = load_vec3d(direction, i);
        double t_best = (double)INFINITY_F;
        int cell_best = -1, mesh_best = 0;
        for (int c = 0; c < n_cells; ++c) {
            // Clip the ray by the polytope's planes.
            double enter = 0.0, leave = t_best;
            for (int p = plane_start[c]; p < plane_start[c + 1] && enter < leave; ++p) {
                const Vec3d normal = make_vec3d(plane[4 * p], plane[4 * p + 1], plane[4 * p + 2]);
                const double facing = dot(normal, d);
                const double ahead = plane[4 * p + 3] - dot(normal, o);
                if (facing == 0.0) {
                    if (ahead < 0.0) leave = -1.0;
                    continue;
                }
                const double at = ahead / facing;
                if (facing < 0.0) enter = maximum(enter, at); else leave = minimum(leave, at);
            }
            if (!(enter < leave)) continue;

            // C: a triangle that faces the ray is the hit. D: one that does not, is where the ray
            // comes out again, and the entry is the hit.
            const int first = triangle_start[c], last = triangle_start[c + 1];
            const TriangleHit hit = first_triangle(triangle, first, last, o, d, enter, leave);
            double at = enter;
            int is_mesh = 0;
            if (hit.t >= 0.0) {
                if (hit.is_front) {
                    at = hit.t;
                    is_mesh = 1;
                }
            } else {
                // A, B: look from the entry to the site, which is inside.
                const Vec3d entry = o + d * enter;
                const Vec3d to_site = load_vec3d(site, c) - entry;
                const TriangleHit between = first_triangle(triangle, first, last, entry, to_site,
                                                           0.0, 1.0);
                if (between.t >= 0.0 && between.is_front) continue;
            }
            t_best = at;
            cell_best = c;
            mesh_best = is_mesh;
        }
        t[i] = t_best;
        cell[i] = cell_best;
        on_mesh[i] = mesh_best;
    }
}
