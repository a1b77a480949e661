// Triangles of a surface against Voronoi cells; see clip.py.
//
// The polygon of triangle t in cell p has a label on each edge, from its corner to the next:
// -1 - j on edge j of the triangle, or the plane of the cell (counted in the cell).
#include "geometry/divide/point_grid.cuh"

#define MOST_CORNERS 24

DEVICE double distance2_to(PointGrid g, int j, Vec3d p)
{
    const Vec3d d = load_vec3d(g.point, j) - p;
    return dot(d, d);
}

// The nearest site of each point.
KERNEL void nearest_sites(
    int n, PointGrid sites,
    const double *point,          // (n, 3)
    OUT int *nearest)             // (n,)
{
    FOR_EACH(i, n) {
        const PointGrid g = sites;
        const Vec3d p = load_vec3d(point, i);
        const int cx = grid_cell_along(p.x, g.x, g.scale, g.nx);
        const int cy = grid_cell_along(p.y, g.y, g.scale, g.ny);
        const int cz = grid_cell_along(p.z, g.z, g.scale, g.nz);
        // How far the point is outside of the grid, beyond what rings account for.
        const double ox = p.x - minimum(maximum(p.x, g.x), g.x + g.nx / g.scale);
        const double oy = p.y - minimum(maximum(p.y, g.y), g.y + g.ny / g.scale);
        const double oz = p.z - minimum(maximum(p.z, g.z), g.z + g.nz / g.scale);
        const double outside = sqrt(ox * ox + oy * oy + oz * oz);
        const int rings = maximum(maximum(g.nx, g.ny), g.nz);
        double best = 1e300;
        int found = 0;
        for (int ring = 0; ring <= rings; ++ring) {
            // Every site in farther rings is at least this far away.
            const double least = (ring - 1) / g.scale - outside;
            if (least > 0.0 && least * least > best) break;
            for (int z = maximum(cz - ring, 0); z <= minimum(cz + ring, g.nz - 1); ++z)
                for (int y = maximum(cy - ring, 0); y <= minimum(cy + ring, g.ny - 1); ++y) {
                    const int64 row = ((int64)z * g.ny + y) * g.nx;
                    const bool whole = z == cz - ring || z == cz + ring || y == cy - ring
                        || y == cy + ring;
                    for (int part = 0; part < (whole ? 1 : 2); ++part) {
                        int first = cx - ring, last = cx + ring;
                        if (!whole) first = last = part == 0 ? first : last;
                        if (last < 0 || first >= g.nx) continue;
                        first = maximum(first, 0);
                        last = minimum(last, g.nx - 1);
                        for (int j = g.start[row + first]; j < g.start[row + last + 1]; ++j) {
                            const double square = distance2_to(g, j, p);
                            if (square < best) { best = square; found = j; }
                        }
                    }
                }
        }
        nearest[i] = found;
    }
}

// A polygon on its way: corners about the site, labels and sides of the plane at hand.
struct Polygon {
    int n, most;
    double *x, *y, *z, *side;
    int *label;
    double *new_x, *new_y, *new_z;
    int *new_label;
};

DEVICE bool add_corner(Polygon *poly, int *n, double x, double y, double z, int label)
{
    if (*n == poly->most) return false;
    poly->new_x[*n] = x;
    poly->new_y[*n] = y;
    poly->new_z[*n] = z;
    poly->new_label[*n] = label;
    ++*n;
    return true;
}

// Clip a triangle by the planes of a cell; false if there is no room.
DEVICE bool clip_triangle(
    Polygon *poly, const double *site, int p, const int *plane, int64 first, int64 end,
    const double *vertex, const int *corner, const double *reach_of)
{
    const Vec3d home = load_vec3d(site, p);
    poly->n = 3;
    for (int k = 0; k < 3; ++k) {
        const Vec3d v = load_vec3d(vertex, corner[k]) - home;
        poly->x[k] = v.x;
        poly->y[k] = v.y;
        poly->z[k] = v.z;
        poly->label[k] = -1 - k;
    }
    for (int64 a = first; a < end; ++a) {
        // The plane n . x = d about the site.
        Vec3d n;
        double d;
        const int q = plane[a];
        if (q >= 0) {
            n = load_vec3d(site, q) - home;
            d = 0.5 * dot(n, n);
        } else if (q <= -7) {
            const int wall = -7 - q;
            const double sign = wall & 1 ? 1.0 : -1.0;
            n = make_vec3d(wall / 2 == 0 ? sign : 0.0, wall / 2 == 1 ? sign : 0.0,
                           wall / 2 == 2 ? sign : 0.0);
            d = reach_of[p];
        } else continue;
        int n_out = 0;
        for (int k = 0; k < poly->n; ++k) {
            poly->side[k] = poly->x[k] * n.x + poly->y[k] * n.y + poly->z[k] * n.z - d;
            n_out += poly->side[k] > 0.0;
        }
        if (n_out == 0) continue;
        if (n_out == poly->n) { poly->n = 0; return true; }
        int count = 0;
        bool room = true;
        for (int k = 0; k < poly->n; ++k) {
            const int l = k + 1 == poly->n ? 0 : k + 1;
            const bool in = poly->side[k] <= 0.0, next_in = poly->side[l] <= 0.0;
            if (in) room = room && add_corner(poly, &count, poly->x[k], poly->y[k], poly->z[k],
                                              poly->label[k]);
            if (in == next_in) continue;
            double fx = poly->x[k], fy = poly->y[k], fz = poly->z[k], fs = poly->side[k];
            double tx = poly->x[l], ty = poly->y[l], tz = poly->z[l], ts = poly->side[l];
            if (poly->label[k] < 0) {
                // On an edge of the mesh, from the ends of the edge, the same for its triangles.
                const int j = -1 - poly->label[k], m = j == 2 ? 0 : j + 1;
                const int lo = minimum(corner[j], corner[m]), hi = maximum(corner[j], corner[m]);
                const Vec3d f = load_vec3d(vertex, lo) - home, t = load_vec3d(vertex, hi) - home;
                fx = f.x; fy = f.y; fz = f.z;
                tx = t.x; ty = t.y; tz = t.z;
                fs = dot(f, n) - d;
                ts = dot(t, n) - d;
            }
            const double s = fs / (fs - ts);
            room = room && add_corner(poly, &count, fx + s * (tx - fx), fy + s * (ty - fy),
                                      fz + s * (tz - fz), in ? (int)(a - first) : poly->label[k]);
        }
        if (!room) return false;
        double *swap;
        swap = poly->x; poly->x = poly->new_x; poly->new_x = swap;
        swap = poly->y; poly->y = poly->new_y; poly->new_y = swap;
        swap = poly->z; poly->z = poly->new_z; poly->new_z = swap;
        int *swap_label = poly->label;
        poly->label = poly->new_label;
        poly->new_label = swap_label;
        poly->n = count;
    }
    return true;
}

DEVICE void write_polygon(
    const Polygon *poly, Vec3d home, int *label, double *position)
{
    for (int k = 0; k < poly->n; ++k) {
        label[k] = poly->label[k];
        position[3 * k] = home.x + poly->x[k];
        position[3 * k + 1] = home.y + poly->y[k];
        position[3 * k + 2] = home.z + poly->z[k];
    }
}

// The polygon of each pair of a triangle and a cell; -1 corners where there is no room.
KERNEL void clip_pairs(
    int n, int64 n_sites,
    const int64 *pair,            // (n,): triangle * n_sites + cell
    const double *site, const int64 *plane_start, const int *plane, const double *reach,
    const double *vertex, const int *triangle,
    OUT int *n_corners,           // (n,)
    OUT int *label,               // (n, MOST_CORNERS)
    OUT double *position)         // (n, MOST_CORNERS, 3)
{
    FOR_EACH_CHUNKED(i, n, 128) {
        double x[2 * MOST_CORNERS], y[2 * MOST_CORNERS], z[2 * MOST_CORNERS], side[MOST_CORNERS];
        int labels[2 * MOST_CORNERS];
        Polygon poly = {0, MOST_CORNERS, x, y, z, side, labels, x + MOST_CORNERS,
                        y + MOST_CORNERS, z + MOST_CORNERS, labels + MOST_CORNERS};
        const int p = (int)(pair[i] % n_sites);
        const int64 t = pair[i] / n_sites;
        const bool room = clip_triangle(&poly, site, p, plane, plane_start[p], plane_start[p + 1],
                                        vertex, triangle + 3 * t, reach);
        n_corners[i] = room ? poly.n : -1;
        if (room)
            write_polygon(&poly, load_vec3d(site, p), label + MOST_CORNERS * i,
                          position + 3 * MOST_CORNERS * i);
    }
}

// The same for pairs with many corners, in room given by the caller.
KERNEL void clip_large_pairs(
    int n, int64 n_sites, int most,
    const int64 *pair,
    const double *site, const int64 *plane_start, const int *plane, const double *reach,
    const double *vertex, const int *triangle,
    INOUT double *number,         // (n, 7 most)
    INOUT int *labels,            // (n, 2 most)
    OUT int *n_corners, OUT int *label, OUT double *position)
{
    FOR_EACH_CHUNKED(i, n, 1) {
        double *x = number + 7 * (int64)most * i;
        int *l = labels + 2 * (int64)most * i;
        Polygon poly = {0, most, x, x + most, x + 2 * most, x + 3 * most, l, x + 4 * most,
                        x + 5 * most, x + 6 * most, l + most};
        const int p = (int)(pair[i] % n_sites);
        const int64 t = pair[i] / n_sites;
        const bool room = clip_triangle(&poly, site, p, plane, plane_start[p], plane_start[p + 1],
                                        vertex, triangle + 3 * t, reach);
        n_corners[i] = room ? poly.n : -1;
        if (room)
            write_polygon(&poly, load_vec3d(site, p), label + (int64)most * i,
                          position + 3 * (int64)most * i);
    }
}

// Copy polygons from their room to where they start, and list the pairs beyond their edges.
KERNEL void pack_polygons(
    int n, int64 n_sites, int most,
    const int64 *pair, const int64 *plane_start, const int *plane,
    const int *n_corners, const int *label, const double *position,
    const int64 *start,           // (n + 1,)
    OUT int *packed_label, OUT double *packed_position,
    OUT int64 *beyond)            // a pair for each corner: -1 where its edge is of the mesh
{
    FOR_EACH(i, n) {
        const int64 p = pair[i] % n_sites, t = pair[i] / n_sites;
        for (int k = 0; k < n_corners[i]; ++k) {
            const int64 to = start[i] + k, from = (int64)most * i + k;
            packed_label[to] = label[from];
            for (int x = 0; x < 3; ++x) packed_position[3 * to + x] = position[3 * from + x];
            const int q = label[from] < 0 ? -1 : plane[plane_start[p] + label[from]];
            beyond[to] = q < 0 ? -1 : t * n_sites + q;
        }
    }
}

// Reorder lists: list i of the output is list which[i] of the input.
KERNEL void gather_polygons(
    int n,
    const int *which, const int64 *from_start, const int64 *to_start,
    const int *label, const double *position,
    OUT int *new_label, OUT double *new_position)
{
    FOR_EACH(i, n) {
        const int64 from = from_start[which[i]], count = to_start[i + 1] - to_start[i];
        for (int64 k = 0; k < count; ++k) {
            new_label[to_start[i] + k] = label[from + k];
            for (int x = 0; x < 3; ++x)
                new_position[3 * (to_start[i] + k) + x] = position[3 * (from + k) + x];
        }
    }
}

// The polygon of a triangle in a cell, or -1: those of a triangle are sorted by cell.
DEVICE int64 find_polygon(
    const int64 *triangle_start, const int *polygon, const int *cell, int64 t, int p)
{
    int64 first = triangle_start[t], end = triangle_start[t + 1];
    const int64 last = end;
    while (first < end) {
        const int64 middle = (first + end) / 2;
        if (cell[polygon[middle]] < p) first = middle + 1;
        else end = middle;
    }
    return first < last && cell[polygon[first]] == p ? polygon[first] : -1;
}

// The neighbour beyond an edge's plane; edges of the mesh stay negative labels, -1 to -3.
DEVICE int beyond_edge(const int64 *plane_start, const int *plane, int p, int label)
{
    return label < 0 ? label : plane[plane_start[p] + label] + 4;
}

// Each corner's place in the polygon that owns it: of the lowest triangle at an edge, and of
// the lowest cell. A corner that is a vertex v of the mesh has -1 - v; one that its owner does
// not know, itself.
KERNEL void link_corners(
    int n,
    const int *cell,              // (n,)
    const int *triangle_of,       // (n,)
    const int64 *start,           // (n + 1,)
    const int *label,
    const int64 *triangle_start, const int *polygon,
    const int *triangle,          // (t, 3)
    const int *edge_owner,        // (t, 3): 3 * triangle + side of the lowest triangle at an edge
    const int64 *plane_start, const int *plane,
    OUT int64 *link,              // (corners,)
    OUT int *lost)                // (n,): corners whose owner does not know them
{
    FOR_EACH(i, n) {
        const int p = cell[i];
        const int64 t = triangle_of[i], count = start[i + 1] - start[i];
        int missing = 0;
        for (int64 k = 0; k < count; ++k) {
            const int64 c = start[i] + k;
            const int before = label[k == 0 ? start[i + 1] - 1 : c - 1], after = label[c];
            link[c] = c;
            if (before < 0 && after < 0) {
                // A vertex of the mesh: where edge j ends and edge j + 1 starts.
                link[c] = -1 - (int64)triangle[3 * t - 1 - after];
                continue;
            }
            // What lies beyond the two edges, in the words of the owner.
            int first = beyond_edge(plane_start, plane, p, before);
            int second = beyond_edge(plane_start, plane, p, after);
            int64 owner_triangle = t;
            int owner = p + 4;
            if (first < 0 || second < 0) {
                const int side = -1 - minimum(first, second);
                const int other = maximum(first, second);
                const int edge = edge_owner[3 * t + side];
                owner_triangle = edge / 3;
                owner = minimum(owner, other);
                first = -1 - edge % 3;
                second = maximum(p + 4, other);
            } else {
                if (first < owner && first < second) {
                    const int was = owner;
                    owner = first;
                    first = was;
                } else if (second < owner) {
                    const int was = owner;
                    owner = second;
                    second = was;
                }
            }
            if (owner_triangle == t && owner == p + 4) continue;
            const int64 other = owner < 4 ? -1
                : find_polygon(triangle_start, polygon, cell, owner_triangle, owner - 4);
            bool found = false;
            if (other >= 0) {
                const int64 from = start[other], end = start[other + 1];
                for (int64 d = from; d < end && !found; ++d) {
                    const int one = beyond_edge(plane_start, plane, owner - 4,
                                                label[d == from ? end - 1 : d - 1]);
                    const int two = beyond_edge(plane_start, plane, owner - 4, label[d]);
                    if ((one == first && two == second) || (one == second && two == first)) {
                        link[c] = d;
                        found = true;
                    }
                }
            }
            missing += !found;
        }
        lost[i] = missing;
    }
}
