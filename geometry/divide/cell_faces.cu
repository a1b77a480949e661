// The part of each Voronoi face that is inside the surface, as convex polygons; see cell_faces.py.
#include "geometry/divide/convex.cuh"

// How often the inside of a surface that crosses itself may lie upon itself.
#define MOST_WINDING 3

// Which cell each plane belongs to.
KERNEL void mark_planes(
    int n, const int64 *plane_start, OUT int *plane_cell)
{
    FOR_EACH(p, n) {
        for (int64 a = plane_start[p]; a < plane_start[p + 1]; ++a) plane_cell[a] = (int)p;
    }
}

// Mark the vertices of some cells.
KERNEL void mark_vertices(
    int n, const int *which, const int64 *vertex_start, const int *vertex,
    INOUT uint8 *marked)          // (v,): cells that share a vertex write the same
{
    FOR_EACH(i, n) {
        for (int64 v = vertex_start[which[i]]; v < vertex_start[which[i] + 1]; ++v)
            marked[vertex[v]] = 1;
    }
}

// How many vertices of each cell are on a reach wall, and inside.
KERNEL void count_walls(
    int n, int first_wall,
    const int64 *plane_start, const int *plane, const int64 *vertex_start,
    const uint16 *vertex_plane, const int *vertex, const int *winding,
    OUT int *count)               // (n,)
{
    FOR_EACH(p, n) {
        int found = 0;
        // Neighbours are ascending: walls come first.
        if (plane_start[p] < plane_start[p + 1] && plane[plane_start[p]] <= first_wall)
            for (int64 v = vertex_start[p]; v < vertex_start[p + 1]; ++v)
                for (int k = 0; k < 3; ++k)
                    found += plane[plane_start[p] + vertex_plane[3 * v + k]] <= first_wall
                        && winding[vertex[v]] > 0;
        count[p] = found;
    }
}

// How many edges of surface polygons lie on each plane, for faces to higher neighbours; and the
// corners of the face.
KERNEL void count_segments(
    int n,
    const int64 *plane_start, const int *plane, const int64 *vertex_start,
    const uint16 *vertex_plane,
    const int64 *polygon_start,   // (n + 1,): polygons of each cell
    const int64 *corner_start, const int *label,
    OUT int *n_segments, OUT int *n_corners)    // (planes,)
{
    FOR_EACH(p, n) {
        const int64 first = plane_start[p];
        for (int64 a = first; a < plane_start[p + 1]; ++a) n_segments[a] = n_corners[a] = 0;
        for (int64 v = 3 * vertex_start[p]; v < 3 * vertex_start[p + 1]; ++v)
            if (plane[first + vertex_plane[v]] > (int)p) ++n_corners[first + vertex_plane[v]];
        for (int64 c = corner_start[polygon_start[p]]; c < corner_start[polygon_start[p + 1]]; ++c)
            if (label[c] >= 0 && plane[first + label[c]] > (int)p) ++n_segments[first + label[c]];
    }
}

// List them: from vertex, to vertex, and the third plane at either (-1: an edge of the mesh).
KERNEL void list_segments(
    int n,
    const int64 *plane_start, const int *plane,
    const int64 *polygon_start, const int64 *corner_start, const int *label,
    const int *corner_vertex,
    INOUT int64 *segment_end,     // (planes,): where the list starts; then where it ends
    OUT int *segment)             // (..., 4)
{
    FOR_EACH(p, n) {
        for (int64 i = polygon_start[p]; i < polygon_start[p + 1]; ++i) {
            const int64 first = corner_start[i], end = corner_start[i + 1];
            for (int64 c = first; c < end; ++c) {
                if (label[c] < 0 || plane[plane_start[p] + label[c]] <= (int)p) continue;
                const int64 next = c + 1 == end ? first : c + 1;
                int *s = segment + 4 * segment_end[plane_start[p] + label[c]]++;
                s[0] = corner_vertex[c];
                s[1] = corner_vertex[next];
                s[2] = label[c == first ? end - 1 : c - 1];
                s[3] = label[next];
                if (s[2] < 0) s[2] = -1;
                if (s[3] < 0) s[3] = -1;
            }
        }
    }
}

// The corners of face a of a cell, anticlockwise from outside: cell vertices, and the plane
// beyond the edge to the next corner.
DEVICE int face_loop(
    const uint16 *vertex_plane, int64 first, int64 end, int a, int *corner, int *edge_plane,
    int most)
{
    // Any vertex of the face to start with.
    int64 v = first;
    int n = 0, next = -1, goal = -1;
    for (; v < end; ++v) {
        const uint16 *t = vertex_plane + 3 * v;
        if (t[0] == a || t[1] == a || t[2] == a) break;
    }
    while (v < end && n < most) {
        const uint16 *t = vertex_plane + 3 * v;
        const int before = t[0] == a ? t[1] : t[1] == a ? t[2] : t[0];
        next = t[0] == a ? t[2] : t[1] == a ? t[0] : t[1];
        if (n == 0) goal = before;
        corner[n] = (int)v;
        edge_plane[n++] = next;
        if (next == goal) return n;
        for (v = first; v < end; ++v) {
            const uint16 *s = vertex_plane + 3 * v;
            if ((s[0] == a && s[1] == next) || (s[1] == a && s[2] == next)
                || (s[2] == a && s[0] == next)) break;
        }
    }
    return 0;
}

// How often each face that no surface polygon touches is inside: once, or not at all; more often
// where a surface crosses itself and its inside lies upon itself.
KERNEL void whole_faces(
    int n,
    const int *plane_cell, const int64 *plane_start,
    const int64 *vertex_start, const uint16 *vertex_plane, const int *vertex,
    const int *winding,           // (v,)
    const int *n_segments, const int *n_corners,
    OUT int *copies,              // (n,)
    OUT int *mixed)               // (n,): 1 where the corners differ
{
    FOR_EACH(f, n) {
        copies[f] = mixed[f] = 0;
        if (n_segments[f] > 0 || n_corners[f] == 0) continue;
        const int p = plane_cell[f], a = (int)(f - plane_start[p]);
        int least = 1 << 30, most = 0;
        for (int64 v = vertex_start[p]; v < vertex_start[p + 1]; ++v) {
            const uint16 *t = vertex_plane + 3 * v;
            if (t[0] != a && t[1] != a && t[2] != a) continue;
            const int count = minimum(maximum(winding[vertex[v]], 0), MOST_WINDING);
            least = minimum(least, count);
            most = maximum(most, count);
        }
        copies[f] = least;
        mixed[f] = least < most;
    }
}

// Write the corners of whole faces.
KERNEL void write_whole_faces(
    int n,
    const int *plane_cell, const int64 *plane_start, const int64 *vertex_start,
    const uint16 *vertex_plane, const int *vertex,
    const int *copies, const int *n_corners,
    const int64 *polygon_start, const int64 *corner_start,
    OUT int64 *corner_end,        // (polygons,)
    OUT int *corner)
{
    FOR_EACH(f, n) {
        if (copies[f] == 0) continue;
        const int p = plane_cell[f], a = (int)(f - plane_start[p]);
        const int64 first = vertex_start[p], end = vertex_start[p + 1];
        int64 place = corner_start[f];
        // Follow the corners around the face, one search for each.
        int next = -1;
        for (int64 v = first; v < end && next < 0; ++v) {
            const uint16 *t = vertex_plane + 3 * v;
            if (t[0] == a || t[1] == a || t[2] == a)
                next = t[0] == a ? t[1] : t[1] == a ? t[2] : t[0];
        }
        for (int k = 0; k < n_corners[f]; ++k) {
            for (int64 v = first; v < end; ++v) {
                const uint16 *s = vertex_plane + 3 * v;
                const int turn = s[0] == a && s[1] == next ? s[2]
                    : s[1] == a && s[2] == next ? s[0] : s[2] == a && s[0] == next ? s[1] : -1;
                if (turn < 0) continue;
                corner[place++] = vertex[v];
                next = turn;
                break;
            }
        }
        for (int k = 0; k < copies[f]; ++k) {
            for (int c = 0; k > 0 && c < n_corners[f]; ++c, ++place)
                corner[place] = corner[place - n_corners[f]];
            corner_end[polygon_start[f] + k] = place;
        }
    }
}

// Room of one face while its outline is put together.
struct Assembly {
    int n_edges, most, failed;
    int *from, *to;               // (most,): directed edges of the outline
    int *order, *stack;           // (most,)
};

DEVICE void add_edge(Assembly *s, int from, int to)
{
    if (s->n_edges == s->most) { s->failed = 1; return; }
    s->from[s->n_edges] = from;
    s->to[s->n_edges++] = to;
}

// Add the parts inside of the Voronoi edge from vertex a to vertex b, on plane c of the cell.
//
// Three faces share it: all go from its lower vertex to its higher, in the same order, so that
// they find the same parts. An event is where a segment of the surface begins or ends.
DEVICE void add_inside_parts(
    Assembly *s, const double *position, const int *winding, const int *segment, int64 first,
    int64 end, int a, int b, int c)
{
    const bool along = a < b;
    const int low = minimum(a, b), high = maximum(a, b);
    const Vec3d origin = load_vec3d(position, low);
    const Vec3d direction = load_vec3d(position, high) - origin;
    int n_open = 0;
    // Open parts wait on a stack; each is the vertex that it starts at.
    for (int k = 0; k < winding[low] && k < MOST_WINDING; ++k) s->stack[n_open++] = low;
    double last = -1e300;
    int last_vertex = -1;
    for (;;) {
        // The next event along the edge.
        double best = 1e300;
        int vertex = -1, role = 0;
        for (int64 e = first; e < end; ++e)
            for (int k = 0; k < 2; ++k) {
                if (segment[4 * e + 2 + k] != c) continue;
                const int w = segment[4 * e + k];
                const double t = dot(load_vec3d(position, w) - origin, direction);
                if (t < last || (t == last && w <= last_vertex)) continue;
                if (t < best || (t == best && w < vertex)) {
                    best = t;
                    vertex = w;
                    // The border runs against the segment: where that starts, the border arrives,
                    // and goes on along the edge.
                    role = (k == 0) == along ? 1 : -1;
                }
            }
        if (vertex < 0) break;
        last = best;
        last_vertex = vertex;
        if (role > 0) {
            if (n_open < s->most) s->stack[n_open++] = vertex;
            else s->failed = 1;
        } else if (n_open > 0) {
            const int start = s->stack[--n_open];
            add_edge(s, along ? start : vertex, along ? vertex : start);
        } else s->failed = 1;
    }
    if (n_open != maximum(minimum(winding[high], MOST_WINDING), 0)) s->failed = 1;
    while (n_open > 0) {
        const int start = s->stack[--n_open];
        add_edge(s, along ? start : high, along ? high : start);
    }
}

// Sort the edges by where they start (Shell sort: lists are short).
DEVICE void sort_edges(Assembly *s)
{
    for (int k = 0; k < s->n_edges; ++k) s->order[k] = k;
    int gap = 1;
    while (gap < s->n_edges / 3) gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (int k = gap; k < s->n_edges; ++k) {
            const int value = s->order[k];
            int l = k;
            for (; l >= gap && (s->from[s->order[l - gap]] > s->from[value]
                                || (s->from[s->order[l - gap]] == s->from[value]
                                    && s->order[l - gap] > value)); l -= gap)
                s->order[l] = s->order[l - gap];
            s->order[l] = value;
        }
}

// The first edge from a vertex that is not taken yet, or -1.
DEVICE int find_edge(const Assembly *s, int vertex, const int *taken)
{
    int first = 0, end = s->n_edges;
    while (first < end) {
        const int middle = (first + end) / 2;
        if (s->from[s->order[middle]] < vertex) first = middle + 1;
        else end = middle;
    }
    for (; first < s->n_edges && s->from[s->order[first]] == vertex; ++first)
        if (!taken[s->order[first]]) return s->order[first];
    return -1;
}

// Faces of Voronoi cells; see Cells in cells.py.
struct Faces {
    const int *cell;              // (planes,): the cell that each plane belongs to
    const int64 *plane_start;     // (cells + 1,)
    const int *plane;             // (planes,): the neighbour beyond
    const double *site;           // (cells, 3)
    const int64 *vertex_start;    // (cells + 1,)
    const uint16 *vertex_plane;   // (..., 3)
    const int *vertex;
    const int *winding;           // (v,)
};

// Edges of surface polygons on the planes.
struct Segments {
    const int *count;             // (planes,)
    const int64 *end;             // (planes,): where the list of each plane ends
    const int *segment;           // (..., 4): as list_segments writes them
};

// Room for the outlines of n faces, `room` edges in all, and what is put there.
struct RegionRoom {
    const int64 *start;           // (n + 1,): room of each face, in edges
    INOUT int *scratch;           // (9 room,)
    INOUT double *plane_place;    // (2 room,)
    OUT int *corner;              // (6 room,)
    OUT int *length;              // (2 room,)
    OUT int *n_cut;               // (n,)
    OUT int *n_cut_corners;       // (n,)
    OUT int *failed;              // (n,)
};

// Put together the outlines of faces that the surface crosses, and cut them into convex polygons.
KERNEL void assemble_regions(
    int n,
    const int *face,              // (n,): planes
    Faces faces, Segments segments,
    const double *position,       // of all vertices: Voronoi, mesh, cut
    RegionRoom rooms)
{
    FOR_EACH_CHUNKED(i, n, 32) {
        const int64 f = face[i], room = rooms.start[i];
        const int most = (int)(rooms.start[i + 1] - room);
        int *base = rooms.scratch + 9 * room;
        Assembly s = {0, most, 0, base, base + most, base + 2 * most, base + 3 * most};
        int *taken = base + 3 * most;       // after the edges are known
        int *loop_vertex = base + 4 * most, *loop = base + 5 * most, *outer = base + 6 * most;
        int *ring = base + 7 * most;
        const int p = faces.cell[f], a = (int)(f - faces.plane_start[p]);
        const int *segment = segments.segment;
        const int64 first = segments.end[f] - segments.count[f], end = segments.end[f];
        for (int64 e = first; e < end; ++e) add_edge(&s, segment[4 * e + 1], segment[4 * e]);

        // The loop of the face, kept in the room for loops meanwhile.
        const int n_corners = face_loop(faces.vertex_plane, faces.vertex_start[p],
                                        faces.vertex_start[p + 1], a, loop_vertex, ring, most);
        if (n_corners == 0) s.failed = 1;
        for (int k = 0; k < n_corners; ++k)
            add_inside_parts(&s, position, faces.winding, segment, first, end,
                             faces.vertex[loop_vertex[k]],
                             faces.vertex[loop_vertex[k + 1 == n_corners ? 0 : k + 1]], ring[k]);

        // Follow the edges into loops.
        sort_edges(&s);
        for (int k = 0; k < s.n_edges; ++k) taken[k] = 0;
        int n_loops = 0, n_placed = 0;
        for (int k = 0; k < s.n_edges; ++k) {
            if (taken[k]) continue;
            loop[n_loops++] = n_placed;
            int e = k;
            while (e >= 0) {
                taken[e] = 1;
                loop_vertex[n_placed++] = s.from[e];
                if (s.to[e] == s.from[k]) break;
                e = find_edge(&s, s.to[e], taken);
            }
            if (e < 0) s.failed = 1;
        }

        // Place the corners in the plane of the face.
        const Vec3d home = load_vec3d(faces.site, p);
        const Vec3d normal = load_vec3d(faces.site, faces.plane[f]) - home;
        const double ax = fabs(normal.x), ay = fabs(normal.y), az = fabs(normal.z);
        Vec3d u = ax <= ay && ax <= az ? make_vec3d(0.0, normal.z, -normal.y)
            : ay <= az ? make_vec3d(-normal.z, 0.0, normal.x)
            : make_vec3d(normal.y, -normal.x, 0.0);
        u = u * (1.0 / norm(u));
        Vec3d v = make_vec3d(normal.y * u.z - normal.z * u.y, normal.z * u.x - normal.x * u.z,
                             normal.x * u.y - normal.y * u.x);
        v = v * (1.0 / norm(v));
        double *place_u = rooms.plane_place + 2 * room, *place_v = place_u + most;
        double extent = 0.0;
        for (int k = 0; k < n_placed; ++k) {
            const Vec3d x = load_vec3d(position, loop_vertex[k]) - home;
            place_u[k] = dot(x, u);
            place_v[k] = dot(x, v);
            extent = maximum(extent, maximum(fabs(place_u[k] - place_u[0]),
                                             fabs(place_v[k] - place_v[0])));
        }
        Outline outline = {n_placed, 1e-11 * extent * extent, loop_vertex, place_u, place_v, ring, 0,
                         rooms.corner + 6 * room, rooms.length + 2 * room, 0, 0, 6 * most,
                         2 * most};
        if (n_loops < most) {
            loop[n_loops] = n_placed;
            cut_outline(&outline, n_loops, loop, outer);
        } else s.failed = 1;
        for (int k = 0; k < outline.n_corners; ++k)
            outline.corner[k] = loop_vertex[outline.corner[k]];
        rooms.n_cut[i] = outline.n_polygons;
        rooms.n_cut_corners[i] = outline.n_corners;
        rooms.failed[i] = s.failed;
    }
}

// Copy the polygons of faces to where they go.
KERNEL void write_polygons(
    int n,
    const int *face, const int64 *room_start, const int *corner, const int *length,
    const int *n_cut,
    const int64 *polygon_start, const int64 *corner_start,      // by plane
    OUT int64 *corner_end, OUT int *packed)
{
    FOR_EACH(i, n) {
        int64 place = corner_start[face[i]], from = 6 * room_start[i];
        for (int k = 0; k < n_cut[i]; ++k) {
            const int count = length[2 * room_start[i] + k];
            for (int c = 0; c < count; ++c) packed[place++] = corner[from++];
            corner_end[polygon_start[face[i]] + k] = place;
        }
    }
}
