// Voronoi cells, each computed on its own by clipping a box; see cells.py.
//
// A cell is kept as planes n . x <= d about its site, and vertices as triples of planes that
// turn anticlockwise seen from outside: around plane a, (a, b, c) is followed by (a, c, ...).
#include "geometry/divide/point_grid.cuh"

#define MOST_PLANES 64
#define MOST_VERTICES 128
#define MOST_WAITING 128
#define STRIDE 4
#define FIRST_REACH_WALL (-7)

struct Box { Vec3d lower, upper; };

struct Cell {
    int n_planes, n_vertices, most_planes, most_vertices;
    int tied;                     // rounding took sides that do not go together
    double radius2;               // largest squared distance of a vertex
    double *nx, *ny, *nz, *d;     // (most_planes,)
    int *neighbor;                // (most_planes,)
    double *x, *y, *z, *inner;    // (most_vertices,), a multiple of STRIDE; 0 up to the next one
    uint16 *a, *b, *c;            // (most_vertices,)
    uint16 *out;                  // (most_vertices,): what a plane cuts off
    uint16 *cut;                  // (2 most_vertices,): edges between what is kept and what is not
    uint64 *leads;                // (most_planes,): planes that edges lead to from each plane, as
                                  // bits; 0 where there are more than 64 planes
};

DEVICE void add_plane(Cell *cell, double nx, double ny, double nz, double d, int neighbor)
{
    const int p = cell->n_planes++;
    cell->nx[p] = nx;
    cell->ny[p] = ny;
    cell->nz[p] = nz;
    cell->d[p] = d;
    cell->neighbor[p] = neighbor;
}

// Put vertex v where planes a, b and c meet.
DEVICE void place_vertex(Cell *cell, int v, int a, int b, int c)
{
    const double bcx = cell->ny[b] * cell->nz[c] - cell->nz[b] * cell->ny[c];
    const double bcy = cell->nz[b] * cell->nx[c] - cell->nx[b] * cell->nz[c];
    const double bcz = cell->nx[b] * cell->ny[c] - cell->ny[b] * cell->nx[c];
    const double cax = cell->ny[c] * cell->nz[a] - cell->nz[c] * cell->ny[a];
    const double cay = cell->nz[c] * cell->nx[a] - cell->nx[c] * cell->nz[a];
    const double caz = cell->nx[c] * cell->ny[a] - cell->ny[c] * cell->nx[a];
    const double abx = cell->ny[a] * cell->nz[b] - cell->nz[a] * cell->ny[b];
    const double aby = cell->nz[a] * cell->nx[b] - cell->nx[a] * cell->nz[b];
    const double abz = cell->nx[a] * cell->ny[b] - cell->ny[a] * cell->nx[b];
    const double s = 1.0 / (cell->nx[a] * bcx + cell->ny[a] * bcy + cell->nz[a] * bcz);
    const double da = cell->d[a] * s, db = cell->d[b] * s, dc = cell->d[c] * s;
    cell->x[v] = da * bcx + db * cax + dc * abx;
    cell->y[v] = da * bcy + db * cay + dc * aby;
    cell->z[v] = da * bcz + db * caz + dc * abz;
    cell->a[v] = (uint16)a;
    cell->b[v] = (uint16)b;
    cell->c[v] = (uint16)c;
}

// The number of vertices in whole strides: loops over them need no rest.
DEVICE int padded(int n) { return (n + STRIDE - 1) / STRIDE * STRIDE; }

// Measure the radius, and put the rest of the last stride to the site, which is in every cell.
DEVICE void end_vertices(Cell *cell)
{
    const int end = padded(cell->n_vertices);
    for (int v = cell->n_vertices; v < end; ++v) cell->x[v] = cell->y[v] = cell->z[v] = 0.0;
    // Doubles above 0 are in the order of their bits, and a maximum of integers has no NaN to
    // mind: compilers make vectors of it.
    int64 most = 0;
    for (int v = 0; v < end; ++v)
        most = maximum(most, bits_from_double(cell->x[v] * cell->x[v] + cell->y[v] * cell->y[v]
                                              + cell->z[v] * cell->z[v]));
    cell->radius2 = double_from_bits(most);
}

// The box from (lx, ly, lz) to (hx, hy, hz) about the site.
DEVICE void start_cell(Cell *cell, const double *low, const double *high, const int *wall)
{
    cell->n_planes = 0;
    for (int k = 0; k < 3; ++k) {
        add_plane(cell, k == 0 ? -1.0 : 0.0, k == 1 ? -1.0 : 0.0, k == 2 ? -1.0 : 0.0, -low[k],
                  wall[2 * k]);
        add_plane(cell, k == 0, k == 1, k == 2, high[k], wall[2 * k + 1]);
    }
    cell->n_vertices = 8;
    for (int v = 0; v < 8; ++v) {
        const int x = v & 1, y = v >> 1 & 1, z = v >> 2;
        // Turn the triple round where the corner is a mirror image.
        if ((x + y + z) & 1) place_vertex(cell, v, x, 2 + y, 4 + z);
        else place_vertex(cell, v, x, 4 + z, 2 + y);
    }
    end_vertices(cell);
}

// Whether a vertex from `first` to `end` - 1 has the edge from plane a to plane b.
DEVICE bool has_edge(const Cell *cell, int first, int end, int a, int b)
{
    for (int v = first; v < end; ++v)
        if ((cell->a[v] == a && cell->b[v] == b) || (cell->b[v] == a && cell->c[v] == b)
            || (cell->c[v] == a && cell->a[v] == b)) return true;
    return false;
}

// Take vertex v out: the last comes to its place, and its planes behind the last.
DEVICE void take_out(Cell *cell, int v)
{
    const int last = --cell->n_vertices;
    const uint16 a = cell->a[v], b = cell->b[v], c = cell->c[v];
    cell->x[v] = cell->x[last]; cell->y[v] = cell->y[last]; cell->z[v] = cell->z[last];
    cell->a[v] = cell->a[last]; cell->b[v] = cell->b[last]; cell->c[v] = cell->c[last];
    cell->a[last] = a; cell->b[last] = b; cell->c[last] = c;
}

// Cut off what is beyond the plane n . x = d; false if the cell has no room for it.
DEVICE bool cut_cell(Cell *cell, double nx, double ny, double nz, double d, int neighbor)
{
    const double *x = cell->x, *y = cell->y, *z = cell->z;
    double *inner = cell->inner;
    const int n_vertices = cell->n_vertices;
    // How far inside the vertices are; the sign bits tell whether one is outside.
    int64 signs = 0;
    for (int v = 0, end = padded(n_vertices); v < end; ++v) {
        inner[v] = d - (x[v] * nx + y[v] * ny + z[v] * nz);
        signs |= bits_from_double(inner[v]);
    }
    if (signs >= 0) return true;
    int n_out = 0;
    for (int v = 0; v < n_vertices; ++v) {
        cell->out[n_out] = (uint16)v;
        n_out += inner[v] < 0.0;
    }
    for (int k = n_out - 1; k >= 0; --k) take_out(cell, cell->out[k]);
    const int kept = cell->n_vertices;
    uint64 *leads = cell->leads;
    for (int v = kept; leads && v < n_vertices; ++v)
        leads[cell->a[v]] = leads[cell->b[v]] = leads[cell->c[v]] = 0;
    for (int v = kept; leads && v < n_vertices; ++v) {
        leads[cell->a[v]] |= (uint64)1 << cell->b[v];
        leads[cell->b[v]] |= (uint64)1 << cell->c[v];
        leads[cell->c[v]] |= (uint64)1 << cell->a[v];
    }
    int n_cut = 0;
    for (int v = kept; v < n_vertices; ++v) {
        if (n_cut + 3 > cell->most_vertices) {
            cell->tied = n_cut > n_out + 2;
            return false;
        }
        const uint16 plane[4] = {cell->a[v], cell->b[v], cell->c[v], cell->a[v]};
        for (int k = 0; k < 3; ++k) {
            const int from = plane[k], to = plane[k + 1];
            cell->cut[2 * n_cut] = (uint16)from;
            cell->cut[2 * n_cut + 1] = (uint16)to;
            n_cut += leads ? !(leads[to] >> from & 1) : !has_edge(cell, kept, n_vertices, to, from);
        }
    }
    // What is cut off is in one piece, without holes: it has two edges more than vertices.
    if (n_cut > n_out + 2 || n_cut < 3) {
        cell->tied = 1;
        return false;
    }
    if (cell->n_planes == cell->most_planes || kept + n_cut > cell->most_vertices) return false;
    add_plane(cell, nx, ny, nz, d, neighbor);
    for (int k = 0; k < n_cut; ++k)
        place_vertex(cell, kept + k, cell->cut[2 * k], cell->cut[2 * k + 1], cell->n_planes - 1);
    cell->n_vertices = kept + n_cut;
    end_vertices(cell);
    return true;
}

// Cut the cell of `site` by the waiting sites, nearest first: each is the bits of its squared
// distance as a float, and its number.
DEVICE bool cut_by_waiting(Cell *cell, PointGrid g, Vec3d site, int n_waiting, uint64 *waiting)
{
    for (int k = 1; k < n_waiting; ++k) {
        const uint64 key = waiting[k];
        int l = k;
        for (; l > 0 && waiting[l - 1] > key; --l) waiting[l] = waiting[l - 1];
        waiting[l] = key;
    }
    for (int k = 0; k < n_waiting; ++k) {
        const int j = (int)(waiting[k] & 0xffffffffu);
        const Vec3d n = load_vec3d(g.point, j) - site;
        const double distance2 = dot(n, n);
        if (distance2 > 4.0 * cell->radius2) continue;
        if (!cut_cell(cell, n.x, n.y, n.z, 0.5 * distance2, j)) return false;
    }
    return true;
}

// Squared distance from x to the interval of grid cell c, of width `edge`, along an axis.
DEVICE double axis_distance2(double x, double lower, double edge, int c)
{
    const double below = lower + c * edge - x, above = x - (lower + (c + 1) * edge);
    const double away = maximum(maximum(below, above), 0.0);
    return away * away;
}

// Cut a cell by all sites that can touch it, ring after ring of grid cells (radius of security).
DEVICE bool cut_by_sites(Cell *cell, PointGrid g, int64 i, uint64 *waiting)
{
    const Vec3d site = load_vec3d(g.point, i);
    const int cx = grid_cell_along(site.x, g.x, g.scale, g.nx);
    const int cy = grid_cell_along(site.y, g.y, g.scale, g.ny);
    const int cz = grid_cell_along(site.z, g.z, g.scale, g.nz);
    const double edge = 1.0 / g.scale;
    for (int ring = 1;; ++ring) {
        int n_waiting = 0;
        for (int z = maximum(cz - ring, 0); z <= minimum(cz + ring, g.nz - 1); ++z) {
            const double z2 = axis_distance2(site.z, g.z, edge, z);
            for (int y = maximum(cy - ring, 0); y <= minimum(cy + ring, g.ny - 1); ++y) {
                const double row2 = z2 + axis_distance2(site.y, g.y, edge, y);
                if (row2 > 4.0 * cell->radius2) continue;
                const int64 row = ((int64)z * g.ny + y) * g.nx;
                // The first two rings together; of others the rim only.
                const bool whole = ring == 1 || z == cz - ring || z == cz + ring
                    || y == cy - ring || y == cy + ring;
                for (int part = 0; part < (whole ? 1 : 2); ++part) {
                    int first = cx - ring, last = cx + ring;
                    if (!whole) first = last = part == 0 ? first : last;
                    if (last < 0 || first >= g.nx) continue;
                    first = maximum(first, 0);
                    last = minimum(last, g.nx - 1);
                    for (int j = g.start[row + first]; j < g.start[row + last + 1]; ++j) {
                        const Vec3d n = load_vec3d(g.point, j) - site;
                        const double square = dot(n, n);
                        if (square > 4.0 * cell->radius2 || j == i || square == 0.0) continue;
                        if (n_waiting == MOST_WAITING) {
                            if (!cut_by_waiting(cell, g, site, n_waiting, waiting)) return false;
                            n_waiting = 0;
                        }
                        waiting[n_waiting++] = (uint64)bits_from_float((float)square) << 32
                            | (uint32)j;
                    }
                }
            }
        }
        if (!cut_by_waiting(cell, g, site, n_waiting, waiting)) return false;
        // The nearest place beyond the rings where there may be sites.
        double beyond = 1e300;
        if (cx - ring > 0) beyond = minimum(beyond, site.x - (g.x + (cx - ring) * edge));
        if (cx + ring < g.nx - 1)
            beyond = minimum(beyond, g.x + (cx + ring + 1) * edge - site.x);
        if (cy - ring > 0) beyond = minimum(beyond, site.y - (g.y + (cy - ring) * edge));
        if (cy + ring < g.ny - 1)
            beyond = minimum(beyond, g.y + (cy + ring + 1) * edge - site.y);
        if (cz - ring > 0) beyond = minimum(beyond, site.z - (g.z + (cz - ring) * edge));
        if (cz + ring < g.nz - 1)
            beyond = minimum(beyond, g.z + (cz + ring + 1) * edge - site.z);
        if (beyond > 1e299 || (beyond > 0.0 && beyond * beyond > 4.0 * cell->radius2)) return true;
    }
}

// The sites at a vertex: the lowest, whose cell owns it, and the others and walls, ascending.
struct VertexSites { int owner, other[3]; };

// Of a vertex of cell i that is at three of the planes from `plane` on. A reach wall is the
// cell's alone, and so are its vertices.
DEVICE VertexSites vertex_sites(int i, const int *plane, const uint16 *at)
{
    const int a = plane[at[0]], b = plane[at[1]], c = plane[at[2]];
    const int low = minimum(minimum(a, b), c), high = maximum(maximum(a, b), c);
    const int middle = maximum(minimum(a, b), minimum(maximum(a, b), c));
    const int lowest = low >= 0 ? low : middle >= 0 ? middle : high;
    VertexSites s = {i, {low, middle, high}};
    if (low <= FIRST_REACH_WALL || lowest < 0 || lowest > i) return s;
    // The cell itself is among the others, in the place of the owner: bring it to its own.
    s.owner = lowest;
    int k = low >= 0 ? 0 : middle >= 0 ? 1 : 2;
    for (; k < 2 && s.other[k + 1] < i; ++k) s.other[k] = s.other[k + 1];
    s.other[k] = i;
    return s;
}

// Compute the cell of a site in the given room, and write it out; false if it has no room.
DEVICE bool compute_cell(
    Cell *cell, PointGrid g, int64 i, const Box &box, double reach, uint64 *waiting,
    int *n_planes, int *n_vertices, int *n_own, int *plane, uint16 *vertex_plane, double *position)
{
    const Vec3d site = load_vec3d(g.point, i);
    const double center[3] = {site.x, site.y, site.z};
    const double lower[3] = {box.lower.x, box.lower.y, box.lower.z};
    const double upper[3] = {box.upper.x, box.upper.y, box.upper.z};
    double low[3], high[3];
    int wall[6];
    for (int k = 0; k < 3; ++k) {
        low[k] = maximum(lower[k] - center[k], -reach);
        high[k] = minimum(upper[k] - center[k], reach);
        wall[2 * k] = low[k] > -reach ? -1 - 2 * k : FIRST_REACH_WALL - 2 * k;
        wall[2 * k + 1] = high[k] < reach ? -2 - 2 * k : FIRST_REACH_WALL - 1 - 2 * k;
    }
    start_cell(cell, low, high, wall);
    *n_planes = -1;
    *n_vertices = *n_own = 0;
    if (!cut_by_sites(cell, g, i, waiting)) {
        if (cell->tied) *n_planes = -2;
        return false;
    }
    // Bring the planes that still have vertices to the front.
    int used = 0, *neighbor = cell->neighbor;
    for (int p = 0; p < cell->n_planes; ++p) cell->d[p] = 0.0;
    for (int v = 0; v < cell->n_vertices; ++v)
        cell->d[cell->a[v]] = cell->d[cell->b[v]] = cell->d[cell->c[v]] = 1.0;
    for (int p = 0; p < cell->n_planes; ++p) {
        const bool kept = cell->d[p] > 0.0;
        neighbor[used] = neighbor[p];
        cell->d[p] = used;
        used += kept;
    }
    // In ascending order of the neighbours: count those before each.
    for (int p = 0; p < used; ++p) {
        int rank = 0;
        for (int q = 0; q < used; ++q) rank += neighbor[q] < neighbor[p];
        plane[rank] = neighbor[p];
        cell->nx[p] = rank;
    }
    for (int v = 0; v < cell->n_vertices; ++v) {
        uint16 *at = vertex_plane + 3 * v;
        at[0] = (uint16)cell->nx[(int)cell->d[cell->a[v]]];
        at[1] = (uint16)cell->nx[(int)cell->d[cell->b[v]]];
        at[2] = (uint16)cell->nx[(int)cell->d[cell->c[v]]];
        *n_own += vertex_sites((int)i, plane, at).owner == (int)i;
        position[3 * v] = site.x + cell->x[v];
        position[3 * v + 1] = site.y + cell->y[v];
        position[3 * v + 2] = site.z + cell->z[v];
    }
    *n_planes = used;
    *n_vertices = cell->n_vertices;
    return true;
}

// Room for n cells.
struct CellRoom {
    int most_planes, most_vertices;
    INOUT int *n_planes;          // (n,): -1 without room, -2 where ties between sites spoilt it
    INOUT int *n_vertices;        // (n,)
    INOUT int *n_own;             // (n,): vertices that no cell of a lower site has
    INOUT int *plane;             // (n, most_planes): neighbours, ascending
    INOUT uint16 *vertex_plane;   // (n, most_vertices, 3)
    INOUT double *position;       // (n, most_vertices, 3)
};

// The lists of all cells; see Cells in cells.py.
struct CellLists {
    const int64 *plane_start;     // (m + 1,)
    const int64 *vertex_start;    // (m + 1,)
    const int64 *own_start;       // (m + 1,)
    INOUT int *plane;
    INOUT uint16 *vertex_plane;
    INOUT int *vertex;            // number of each vertex of a cell; -1 where it is not known yet
    INOUT int *other;             // (own, 3): sites and walls at an own vertex, ascending
    INOUT double *position;       // (own, 3)
};

// Cells of the sites first .. first + n - 1; a cell without room has -1 planes, one
// that ties between sites spoilt -2.
KERNEL void compute_cells(
    int n, int first, PointGrid sites, Box box,
    const double *reach,          // (m,): half of the box about each site
    CellRoom room)                // of MOST_PLANES and MOST_VERTICES
{
    FOR_EACH_CHUNKED(k, n, 64) {
        double nx[MOST_PLANES], ny[MOST_PLANES], nz[MOST_PLANES], d[MOST_PLANES];
        double x[MOST_VERTICES], y[MOST_VERTICES], z[MOST_VERTICES], inner[MOST_VERTICES];
        int neighbor[MOST_PLANES];
        uint16 a[MOST_VERTICES], b[MOST_VERTICES], c[MOST_VERTICES];
        uint16 out[MOST_VERTICES], cut[2 * MOST_VERTICES];
        uint64 leads[MOST_PLANES], waiting[MOST_WAITING];
        Cell cell = {0, 0, MOST_PLANES, MOST_VERTICES, 0, 0.0, nx, ny, nz, d, neighbor,
                     x, y, z, inner, a, b, c, out, cut, leads};
        compute_cell(&cell, sites, first + k, box, reach[first + k], waiting, room.n_planes + k,
                     room.n_vertices + k, room.n_own + k, room.plane + MOST_PLANES * k,
                     room.vertex_plane + 3 * MOST_VERTICES * k,
                     room.position + 3 * MOST_VERTICES * k);
    }
}

// Cells of some sites with many neighbours, in room given by the caller.
KERNEL void compute_large_cells(
    int n,
    const int *which,             // (n,): the sites
    PointGrid sites, Box box,
    const double *reach,
    INOUT double *number,         // (n, 4 most_planes + 4 most_vertices)
    INOUT int *neighbor,          // (n, most_planes)
    INOUT uint16 *triple,         // (n, 6 most_vertices)
    CellRoom room)
{
    FOR_EACH_CHUNKED(k, n, 1) {
        const int most_planes = room.most_planes, most_vertices = room.most_vertices;
        uint64 waiting[MOST_WAITING];
        double *p = number + (4 * (int64)most_planes + 4 * (int64)most_vertices) * k;
        double *v = p + 4 * most_planes;
        uint16 *t = triple + 6 * (int64)most_vertices * k;
        Cell cell = {0, 0, most_planes, most_vertices, 0, 0.0,
                     p, p + most_planes, p + 2 * most_planes, p + 3 * most_planes,
                     neighbor + (int64)most_planes * k,
                     v, v + most_vertices, v + 2 * most_vertices, v + 3 * most_vertices,
                     t, t + most_vertices, t + 2 * most_vertices, t + 3 * most_vertices,
                     t + 4 * most_vertices, 0};
        compute_cell(&cell, sites, which[k], box, reach[which[k]], waiting, room.n_planes + k,
                     room.n_vertices + k, room.n_own + k, room.plane + (int64)most_planes * k,
                     room.vertex_plane + 3 * (int64)most_vertices * k,
                     room.position + 3 * (int64)most_vertices * k);
    }
}

// Copy cells from their room to where their lists start; of the positions their own only.
KERNEL void pack_cells(
    int n, int first,
    const int *which,             // (n,): the sites, counted from `first`
    CellRoom room, CellLists lists)
{
    FOR_EACH(k, n) {
        const int i = first + which[k];
        const int64 to_plane = lists.plane_start[i], to_vertex = lists.vertex_start[i];
        const int *from_plane = room.plane + (int64)room.most_planes * k;
        const uint16 *from = room.vertex_plane + 3 * (int64)room.most_vertices * k;
        const double *at = room.position + 3 * (int64)room.most_vertices * k;
        const int n_planes = room.n_planes[k], n_vertices = room.n_vertices[k];
        int64 own = lists.own_start[i];
        for (int p = 0; p < n_planes; ++p) lists.plane[to_plane + p] = from_plane[p];
        for (int v = 0; v < 3 * n_vertices; ++v) lists.vertex_plane[3 * to_vertex + v] = from[v];
        for (int v = 0; v < n_vertices; ++v) {
            const VertexSites sites = vertex_sites(i, from_plane, from + 3 * v);
            lists.vertex[to_vertex + v] = -1;
            if (sites.owner != i) continue;
            lists.vertex[to_vertex + v] = (int)own;
            for (int axis = 0; axis < 3; ++axis) {
                lists.other[3 * own + axis] = sites.other[axis];
                lists.position[3 * own + axis] = at[3 * v + axis];
            }
            ++own;
        }
    }
}

// Find the vertices that the cell of a lower site owns; those that it does not know stay -1.
KERNEL void link_vertices(int n, int first, CellLists lists)
{
    FOR_EACH(k, n) {
        const int i = first + (int)k;
        for (int64 v = lists.vertex_start[i]; v < lists.vertex_start[i + 1]; ++v) {
            if (lists.vertex[v] >= 0) continue;
            const VertexSites sites = vertex_sites(i, lists.plane + lists.plane_start[i],
                                                   lists.vertex_plane + 3 * v);
            for (int64 w = lists.own_start[sites.owner]; w < lists.own_start[sites.owner + 1]; ++w)
                if (lists.other[3 * w] == sites.other[0] && lists.other[3 * w + 1] == sites.other[1]
                    && lists.other[3 * w + 2] == sites.other[2]) {
                    lists.vertex[v] = (int)w;
                    break;
                }
        }
    }
}
