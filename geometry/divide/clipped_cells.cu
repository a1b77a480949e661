// Connected lumps of clipped cells, and the volume within polygons; see clipped_cells.py.
#include "device/device.cuh"

// The plane under which the face between a cell and the neighbour beyond plane f is stored: that
// of the lower of the two; -1 for none.
DEVICE int64 stored_plane(const int64 *plane_start, const int *plane, int p, int64 f)
{
    const int q = plane[f];
    if (q < 0) return -1;
    if (q > p) return f;
    int64 first = plane_start[q], end = plane_start[q + 1];
    const int64 last = end;
    while (first < end) {
        const int64 middle = (first + end) / 2;
        if (plane[middle] < p) first = middle + 1;
        else end = middle;
    }
    return first < last && plane[first] == p ? first : -1;
}

// Polygons and corners of some cells.
KERNEL void count_cell_polygons(
    int n,
    const int *which,
    const int64 *plane_start, const int *plane,
    const int64 *surface_start, const int64 *surface_corner,    // polygons of cells, their corners
    const int64 *inner_start, const int64 *inner_corner,        // polygons of planes, their corners
    OUT int *n_polygons, OUT int *n_corners)
{
    FOR_EACH(i, n) {
        const int p = which[i];
        const int64 first = surface_start[p], end = surface_start[p + 1];
        int64 polygons = end - first, corners = surface_corner[end] - surface_corner[first];
        for (int64 f = plane_start[p]; f < plane_start[p + 1]; ++f) {
            const int64 s = stored_plane(plane_start, plane, p, f);
            if (s < 0) continue;
            polygons += inner_start[s + 1] - inner_start[s];
            corners += inner_corner[inner_start[s + 1]] - inner_corner[inner_start[s]];
        }
        n_polygons[i] = (int)polygons;
        n_corners[i] = (int)corners;
    }
}

DEVICE int find_root(int *parent, int a)
{
    while (parent[a] != a) {
        parent[a] = parent[parent[a]];
        a = parent[a];
    }
    return a;
}

// Unite the polygon `node` with those that were seen at its corners.
DEVICE void visit_corners(
    int *parent, int *key, int *value, int64 room, int node, const int *corner, int64 first,
    int64 end)
{
    parent[node] = node;
    for (int64 c = first; c < end; ++c) {
        const int vertex = corner[c];
        int64 place = hash32((uint32)vertex) % room;
        while (key[place] != -1 && key[place] != vertex) place = place + 1 == room ? 0 : place + 1;
        if (key[place] == -1) {
            key[place] = vertex;
            value[place] = node;
            continue;
        }
        const int a = find_root(parent, node), b = find_root(parent, value[place]);
        if (a < b) parent[b] = a;
        else parent[a] = b;
    }
}

// Polygons of some groups.
struct Polygons {
    const int64 *start;           // (groups + 1,): first polygon of each group
    const int64 *corner;          // (polygons + 1,): first corner of each polygon
    const int *vertex;            // (corners,)
};

// Number the connected lumps of each cell's border: polygons that share a vertex are connected.
KERNEL void label_lumps(
    int n,
    const int *which,
    const int64 *plane_start, const int *plane,
    Polygons surface,             // of each cell
    Polygons inner,               // of each plane
    const int64 *polygon_room,    // (n + 1,)
    const int64 *corner_room,     // (n + 1,)
    INOUT int *parent,            // (polygon_room[n],)
    INOUT int *table,             // (4 corner_room[n],)
    OUT int *surface_lump,        // (surface polygons,)
    OUT int *inner_lump,          // (inner polygons, 2): in the lower and in the higher cell
    OUT int *n_lumps)             // (n,)
{
    FOR_EACH_CHUNKED(i, n, 32) {
        const int p = which[i];
        const int64 room = 2 * (corner_room[i + 1] - corner_room[i]) + 1;
        int *up = parent + polygon_room[i];
        int *key = table + 4 * corner_room[i] + 2 * i, *value = key + room;
        for (int64 k = 0; k < room; ++k) key[k] = -1;
        int node = 0;
        for (int64 s = surface.start[p]; s < surface.start[p + 1]; ++s)
            visit_corners(up, key, value, room, node++, surface.vertex, surface.corner[s],
                          surface.corner[s + 1]);
        for (int64 f = plane_start[p]; f < plane_start[p + 1]; ++f) {
            const int64 stored = stored_plane(plane_start, plane, p, f);
            if (stored < 0) continue;
            for (int64 s = inner.start[stored]; s < inner.start[stored + 1]; ++s)
                visit_corners(up, key, value, room, node++, inner.vertex, inner.corner[s],
                              inner.corner[s + 1]);
        }
        // Roots are the lowest polygons of their lumps: number them in order, as -1 - number.
        int lumps = 0;
        for (int k = 0; k < node; ++k) {
            const int root = find_root(up, k);
            key[k] = root == k ? lumps++ : key[root];
        }
        node = 0;
        for (int64 s = surface.start[p]; s < surface.start[p + 1]; ++s)
            surface_lump[s] = key[node++];
        for (int64 f = plane_start[p]; f < plane_start[p + 1]; ++f) {
            const int64 stored = stored_plane(plane_start, plane, p, f);
            if (stored < 0) continue;
            for (int64 s = inner.start[stored]; s < inner.start[stored + 1]; ++s)
                inner_lump[2 * s + (stored == f ? 0 : 1)] = key[node++];
        }
        n_lumps[i] = lumps;
    }
}

// Volume and first moments of the pyramids from the origin to each polygon (yan-2023 eq. 9).
KERNEL void polygon_moments(
    int n,
    const int64 *start,           // (n + 1,)
    const int *corner,
    const double *position,
    OUT double *moment)           // (n, 4): volume, and volume times centroid
{
    FOR_EACH(i, n) {
        const Vec3d a = load_vec3d(position, corner[start[i]]);
        double volume = 0.0;
        Vec3d sum = make_vec3d(0.0, 0.0, 0.0);
        for (int64 k = start[i] + 1; k + 1 < start[i + 1]; ++k) {
            const Vec3d b = load_vec3d(position, corner[k]);
            const Vec3d c = load_vec3d(position, corner[k + 1]);
            const Vec3d u = b - a, v = c - a;
            const Vec3d normal = make_vec3d(u.y * v.z - u.z * v.y, u.z * v.x - u.x * v.z,
                                            u.x * v.y - u.y * v.x);
            const double part = dot(a, normal) * (1.0 / 6.0);
            volume += part;
            sum = sum + (0.25 * part) * (a + b + c);
        }
        moment[4 * i] = volume;
        moment[4 * i + 1] = sum.x;
        moment[4 * i + 2] = sum.y;
        moment[4 * i + 3] = sum.z;
    }
}

// Shading normal and texture coordinates at the corners of surface polygons.
KERNEL void corner_attributes(
    int n,
    const int64 *start, const int *corner,
    const int *triangle_of,       // (n,)
    const double *position, const double *vertex, const int *triangle,
    const float *normal,          // (t, 3, 3)
    const float *uv,              // (t, 3, 2)
    OUT float *corner_normal,     // (corners, 3)
    OUT float *corner_uv)         // (corners, 2)
{
    FOR_EACH(i, n) {
        const int64 t = triangle_of[i];
        const Vec3d a = load_vec3d(vertex, triangle[3 * t]);
        const Vec3d u = load_vec3d(vertex, triangle[3 * t + 1]) - a;
        const Vec3d v = load_vec3d(vertex, triangle[3 * t + 2]) - a;
        const double uu = dot(u, u), uv_ = dot(u, v), vv = dot(v, v);
        const double area = uu * vv - uv_ * uv_;
        for (int64 k = start[i]; k < start[i + 1]; ++k) {
            // Barycentric coordinates; a triangle without area is as good as its first edge.
            const Vec3d x = load_vec3d(position, corner[k]) - a;
            const double xu = dot(x, u), xv = dot(x, v);
            double b = area > 0.0 ? (vv * xu - uv_ * xv) / area : uu > 0.0 ? xu / uu : 0.0;
            double c = area > 0.0 ? (uu * xv - uv_ * xu) / area : 0.0;
            b = minimum(maximum(b, 0.0), 1.0);
            c = minimum(maximum(c, 0.0), 1.0 - b);
            const float weight[3] = {(float)(1.0 - b - c), (float)b, (float)c};
            Vec3 sum = make_vec3(0.0f, 0.0f, 0.0f);
            float s = 0.0f, r = 0.0f;
            for (int m = 0; m < 3; ++m) {
                sum = sum + weight[m] * load_vec3(normal, 3 * t + m);
                s += weight[m] * uv[6 * t + 2 * m];
                r += weight[m] * uv[6 * t + 2 * m + 1];
            }
            const float length = norm(sum);
            store_vec3(corner_normal, k, length > 0.0f ? sum / length : load_vec3(normal, 3 * t));
            corner_uv[2 * k] = s;
            corner_uv[2 * k + 1] = r;
        }
    }
}
