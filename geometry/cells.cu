// Voronoi cells, each computed on its own by clipping a box; see cells.py.
//
// A cell is kept as planes n . x <= d about its site, and vertices as triples of planes that
// turn anticlockwise seen from outside: around plane a, (a, b, c) is followed by (a, c, ...).
#include "geometry/point_grid.cuh"

#define MOST_PLANES 64
#define MOST_VERTICES 128
#define MOST_WAITING 128
#define FIRST_REACH_WALL (-7)

struct Cell {
    int n_planes, n_vertices, most_planes, most_vertices;
    int tied;                     // rounding took sides that do not go together
    double radius2;               // largest squared distance of a vertex
    double *nx, *ny, *nz, *d;     // (most_planes,)
    int *neighbor;                // (most_planes,)
    double *x, *y, *z, *side;     // (most_vertices,)
    uint16 *a, *b, *c;            // (most_vertices,)
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

DEVICE void measure_radius(Cell *cell)
{
    double radius2 = 0.0;
    for (int v = 0; v < cell->n_vertices; ++v)
        radius2 = maximum(radius2, cell->x[v] * cell->x[v] + cell->y[v] * cell->y[v]
                          + cell->z[v] * cell->z[v]);
    cell->radius2 = radius2;
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
    measure_radius(cell);
}

// Whether another vertex from `first` on has the edge from plane a to plane b.
DEVICE bool has_edge(const Cell *cell, int first, int a, int b)
{
    for (int v = first; v < cell->n_vertices; ++v)
        if ((cell->a[v] == a && cell->b[v] == b) || (cell->b[v] == a && cell->c[v] == b)
            || (cell->c[v] == a && cell->a[v] == b)) return true;
    return false;
}

DEVICE void swap_vertices(Cell *cell, int v, int w)
{
    const double x = cell->x[v], y = cell->y[v], z = cell->z[v], side = cell->side[v];
    const uint16 a = cell->a[v], b = cell->b[v], c = cell->c[v];
    cell->x[v] = cell->x[w]; cell->y[v] = cell->y[w]; cell->z[v] = cell->z[w];
    cell->side[v] = cell->side[w];
    cell->a[v] = cell->a[w]; cell->b[v] = cell->b[w]; cell->c[v] = cell->c[w];
    cell->x[w] = x; cell->y[w] = y; cell->z[w] = z; cell->side[w] = side;
    cell->a[w] = a; cell->b[w] = b; cell->c[w] = c;
}

// Cut off what is beyond the plane n . x = d; false if the cell has no room for it.
DEVICE bool cut_cell(Cell *cell, double nx, double ny, double nz, double d, int neighbor)
{
    const double *x = cell->x, *y = cell->y, *z = cell->z;
    double *side = cell->side;
    const int n_vertices = cell->n_vertices;
    int n_out = 0;
    for (int v = 0; v < n_vertices; ++v) side[v] = x[v] * nx + y[v] * ny + z[v] * nz - d;
    for (int v = 0; v < n_vertices; ++v) n_out += side[v] > 0.0;
    if (n_out == 0) return true;
    // Bring the vertices that stay to the front.
    int kept = 0, end = cell->n_vertices;
    while (kept < end) {
        if (cell->side[kept] <= 0.0) ++kept;
        else swap_vertices(cell, kept, --end);
    }
    int n_cut = 0;
    uint64 *leads = cell->leads;
    for (int v = kept; leads && v < n_vertices; ++v)
        leads[cell->a[v]] = leads[cell->b[v]] = leads[cell->c[v]] = 0;
    for (int v = kept; leads && v < n_vertices; ++v) {
        leads[cell->a[v]] |= (uint64)1 << cell->b[v];
        leads[cell->b[v]] |= (uint64)1 << cell->c[v];
        leads[cell->c[v]] |= (uint64)1 << cell->a[v];
    }
    for (int v = kept; v < cell->n_vertices; ++v) {
        const int a = cell->a[v], b = cell->b[v], c = cell->c[v];
        for (int k = 0; k < 3; ++k) {
            const int from = k == 0 ? a : k == 1 ? b : c, to = k == 0 ? b : k == 1 ? c : a;
            if (leads ? leads[to] >> from & 1 : has_edge(cell, kept, to, from)) continue;
            if (n_cut == cell->most_vertices) {
                cell->tied = n_cut > cell->n_vertices - kept + 2;
                return false;
            }
            cell->cut[2 * n_cut] = (uint16)from;
            cell->cut[2 * n_cut + 1] = (uint16)to;
            ++n_cut;
        }
    }
    // What is cut off is in one piece, without holes: it has two edges more than vertices.
    if (n_cut > cell->n_vertices - kept + 2 || n_cut < 3) {
        cell->tied = 1;
        return false;
    }
    if (cell->n_planes == cell->most_planes || kept + n_cut > cell->most_vertices) return false;
    add_plane(cell, nx, ny, nz, d, neighbor);
    for (int k = 0; k < n_cut; ++k)
        place_vertex(cell, kept + k, cell->cut[2 * k], cell->cut[2 * k + 1], cell->n_planes - 1);
    cell->n_vertices = kept + n_cut;
    measure_radius(cell);
    return true;
}

// Cut the cell of `site` by the waiting sites, nearest first.
DEVICE bool cut_by_waiting(
    Cell *cell, PointGrid g, Vec3d site, int n_waiting, double *distance2, int *waiting)
{
    for (int k = 1; k < n_waiting; ++k) {
        const double key = distance2[k];
        const int value = waiting[k];
        int l = k;
        for (; l > 0 && distance2[l - 1] > key; --l) {
            distance2[l] = distance2[l - 1];
            waiting[l] = waiting[l - 1];
        }
        distance2[l] = key;
        waiting[l] = value;
    }
    for (int k = 0; k < n_waiting && distance2[k] <= 4.0 * cell->radius2; ++k) {
        const Vec3d n = load_vec3d(g.point, waiting[k]) - site;
        if (!cut_cell(cell, n.x, n.y, n.z, 0.5 * distance2[k], waiting[k])) return false;
    }
    return true;
}

// Squared distance from x to the interval of grid cell c along an axis.
DEVICE double axis_distance2(double x, double lower, double scale, int c)
{
    const double below = lower + c / scale - x, above = x - (lower + (c + 1) / scale);
    const double away = maximum(maximum(below, above), 0.0);
    return away * away;
}

// Cut a cell by all sites that can touch it, ring after ring of grid cells (radius of security).
DEVICE bool cut_by_sites(Cell *cell, PointGrid g, int64 i, double *distance2, int *waiting)
{
    const Vec3d site = load_vec3d(g.point, i);
    const int cx = grid_cell_along(site.x, g.x, g.scale, g.nx);
    const int cy = grid_cell_along(site.y, g.y, g.scale, g.ny);
    const int cz = grid_cell_along(site.z, g.z, g.scale, g.nz);
    for (int ring = 1;; ++ring) {
        int n_waiting = 0;
        for (int z = maximum(cz - ring, 0); z <= minimum(cz + ring, g.nz - 1); ++z) {
            const double z2 = axis_distance2(site.z, g.z, g.scale, z);
            for (int y = maximum(cy - ring, 0); y <= minimum(cy + ring, g.ny - 1); ++y) {
                const double row2 = z2 + axis_distance2(site.y, g.y, g.scale, y);
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
                            if (!cut_by_waiting(cell, g, site, n_waiting, distance2, waiting))
                                return false;
                            n_waiting = 0;
                        }
                        distance2[n_waiting] = square;
                        waiting[n_waiting++] = j;
                    }
                }
            }
        }
        if (!cut_by_waiting(cell, g, site, n_waiting, distance2, waiting)) return false;
        // The nearest place beyond the rings where there may be sites.
        double beyond = 1e300;
        if (cx - ring > 0) beyond = minimum(beyond, site.x - (g.x + (cx - ring) / g.scale));
        if (cx + ring < g.nx - 1)
            beyond = minimum(beyond, g.x + (cx + ring + 1) / g.scale - site.x);
        if (cy - ring > 0) beyond = minimum(beyond, site.y - (g.y + (cy - ring) / g.scale));
        if (cy + ring < g.ny - 1)
            beyond = minimum(beyond, g.y + (cy + ring + 1) / g.scale - site.y);
        if (cz - ring > 0) beyond = minimum(beyond, site.z - (g.z + (cz - ring) / g.scale));
        if (cz + ring < g.nz - 1)
            beyond = minimum(beyond, g.z + (cz + ring + 1) / g.scale - site.z);
        if (beyond > 1e299 || (beyond > 0.0 && beyond * beyond > 4.0 * cell->radius2)) return true;
    }
}

// Compute the cell of a site in the given room, and write it out; false if it has no room.
DEVICE bool compute_cell(
    Cell *cell, PointGrid g, int64 i, const double *box, double reach, double *distance2,
    int *waiting, int *n_planes, int *n_vertices, int *plane, uint16 *vertex_plane,
    double *position)
{
    const Vec3d site = load_vec3d(g.point, i);
    const double at[3] = {site.x, site.y, site.z};
    double low[3], high[3];
    int wall[6];
    for (int k = 0; k < 3; ++k) {
        low[k] = maximum(box[k] - at[k], -reach);
        high[k] = minimum(box[3 + k] - at[k], reach);
        wall[2 * k] = low[k] > -reach ? -1 - 2 * k : FIRST_REACH_WALL - 2 * k;
        wall[2 * k + 1] = high[k] < reach ? -2 - 2 * k : FIRST_REACH_WALL - 1 - 2 * k;
    }
    start_cell(cell, low, high, wall);
    *n_planes = -1;
    *n_vertices = 0;
    if (!cut_by_sites(cell, g, i, distance2, waiting)) {
        if (cell->tied) *n_planes = -2;
        return false;
    }
    // Number the planes that still have vertices.
    int used = 0;
    for (int p = 0; p < cell->n_planes; ++p) cell->d[p] = -1.0;
    for (int v = 0; v < cell->n_vertices; ++v)
        cell->d[cell->a[v]] = cell->d[cell->b[v]] = cell->d[cell->c[v]] = 1.0;
    for (int p = 0; p < cell->n_planes; ++p)
        if (cell->d[p] > 0.0) cell->d[p] = used++;
    // In ascending order of the neighbours: count those before each.
    for (int p = 0; p < cell->n_planes; ++p) {
        if (cell->d[p] < 0.0) continue;
        int rank = 0;
        for (int q = 0; q < cell->n_planes; ++q)
            rank += cell->d[q] >= 0.0 && cell->neighbor[q] < cell->neighbor[p];
        plane[rank] = cell->neighbor[p];
        cell->nx[p] = rank;
    }
    for (int v = 0; v < cell->n_vertices; ++v) {
        vertex_plane[3 * v] = (uint16)cell->nx[cell->a[v]];
        vertex_plane[3 * v + 1] = (uint16)cell->nx[cell->b[v]];
        vertex_plane[3 * v + 2] = (uint16)cell->nx[cell->c[v]];
        position[3 * v] = site.x + cell->x[v];
        position[3 * v + 1] = site.y + cell->y[v];
        position[3 * v + 2] = site.z + cell->z[v];
    }
    *n_planes = used;
    *n_vertices = cell->n_vertices;
    return true;
}

// Cells of the sites first .. first + n - 1; a cell without room has -1 planes, one
// that ties between sites spoilt -2.
KERNEL void compute_cells(
    int n, int first,
    const double *frame, const int *start,
    const double *site,           // (m, 3): sorted by the cells of the grid
    const double *box,            // (6,): lower and upper corner
    const double *reach,          // (m,): half of the box about each site
    OUT int *n_planes,            // (n,)
    OUT int *n_vertices,          // (n,)
    OUT int *plane,               // (n, MOST_PLANES): neighbours, ascending
    OUT uint16 *vertex_plane,     // (n, MOST_VERTICES, 3)
    OUT double *position)         // (n, MOST_VERTICES, 3)
{
    FOR_EACH_CHUNKED(k, n, 64) {
        double nx[MOST_PLANES], ny[MOST_PLANES], nz[MOST_PLANES], d[MOST_PLANES];
        double x[MOST_VERTICES], y[MOST_VERTICES], z[MOST_VERTICES], side[MOST_VERTICES];
        double distance2[MOST_WAITING];
        int neighbor[MOST_PLANES], waiting[MOST_WAITING];
        uint16 a[MOST_VERTICES], b[MOST_VERTICES], c[MOST_VERTICES], cut[2 * MOST_VERTICES];
        uint64 leads[MOST_PLANES];
        Cell cell = {0, 0, MOST_PLANES, MOST_VERTICES, 0, 0.0, nx, ny, nz, d, neighbor,
                     x, y, z, side, a, b, c, cut, leads};
        const PointGrid g = make_point_grid(frame, start, site);
        compute_cell(&cell, g, first + k, box, reach[first + k], distance2, waiting, n_planes + k,
                     n_vertices + k, plane + MOST_PLANES * k,
                     vertex_plane + 3 * MOST_VERTICES * k, position + 3 * MOST_VERTICES * k);
    }
}

// Cells of some sites with many neighbours, in room given by the caller.
KERNEL void compute_large_cells(
    int n, int most_planes, int most_vertices,
    const int *which,             // (n,): the sites
    const double *frame, const int *start, const double *site, const double *box,
    const double *reach,
    INOUT double *number,         // (n, 4 most_planes + 4 most_vertices)
    INOUT int *neighbor,          // (n, most_planes)
    INOUT uint16 *triple,         // (n, 5 most_vertices)
    OUT int *n_planes, OUT int *n_vertices,
    OUT int *plane,               // (n, most_planes)
    OUT uint16 *vertex_plane,     // (n, most_vertices, 3)
    OUT double *position)         // (n, most_vertices, 3)
{
    FOR_EACH_CHUNKED(k, n, 1) {
        double distance2[MOST_WAITING];
        int waiting[MOST_WAITING];
        double *p = number + (4 * (int64)most_planes + 4 * (int64)most_vertices) * k;
        double *v = p + 4 * most_planes;
        uint16 *t = triple + 5 * (int64)most_vertices * k;
        Cell cell = {0, 0, most_planes, most_vertices, 0, 0.0,
                     p, p + most_planes, p + 2 * most_planes, p + 3 * most_planes,
                     neighbor + (int64)most_planes * k,
                     v, v + most_vertices, v + 2 * most_vertices, v + 3 * most_vertices,
                     t, t + most_vertices, t + 2 * most_vertices, t + 3 * most_vertices, 0};
        const PointGrid g = make_point_grid(frame, start, site);
        compute_cell(&cell, g, which[k], box, reach[which[k]], distance2, waiting, n_planes + k,
                     n_vertices + k, plane + (int64)most_planes * k,
                     vertex_plane + 3 * (int64)most_vertices * k,
                     position + 3 * (int64)most_vertices * k);
    }
}

// Copy cells from their room to where their lists start.
KERNEL void pack_cells(
    int n, int most_planes, int most_vertices,
    const int *which,             // (n,): the sites
    const int *n_planes, const int *n_vertices, const int *plane, const uint16 *vertex_plane,
    const double *position,
    const int64 *plane_start,     // (m + 1,)
    const int64 *vertex_start,    // (m + 1,)
    OUT int *packed_plane, OUT uint16 *packed_vertex_plane, OUT double *packed_position)
{
    FOR_EACH(k, n) {
        const int64 to_plane = plane_start[which[k]], to_vertex = vertex_start[which[k]];
        for (int p = 0; p < n_planes[k]; ++p)
            packed_plane[to_plane + p] = plane[(int64)most_planes * k + p];
        for (int v = 0; v < 3 * n_vertices[k]; ++v) {
            packed_vertex_plane[3 * to_vertex + v] = vertex_plane[3 * (int64)most_vertices * k + v];
            packed_position[3 * to_vertex + v] = position[3 * (int64)most_vertices * k + v];
        }
    }
}

// Where the neighbour `wanted` stands in an ascending list of planes, or -1.
DEVICE int find_plane(const int *plane, int64 first, int64 end, int wanted)
{
    while (first < end) {
        const int64 middle = (first + end) / 2;
        if (plane[middle] < wanted) first = middle + 1;
        else end = middle;
    }
    return (int)first;
}

// The same vertex in the cell of the lowest site at it; itself if that is here, or not found.
KERNEL void link_vertices(
    int n,
    const int64 *plane_start, const int64 *vertex_start, const int *plane,
    const uint16 *vertex_plane,
    OUT int *link)                // (v,)
{
    FOR_EACH(i, n) {
        for (int64 v = vertex_start[i]; v < vertex_start[i + 1]; ++v) {
            int site[4], owner = (int)i;
            site[0] = (int)i;
            bool own = false;
            for (int k = 0; k < 3; ++k) {
                site[k + 1] = plane[plane_start[i] + vertex_plane[3 * v + k]];
                if (site[k + 1] >= 0) owner = minimum(owner, site[k + 1]);
                own = own || site[k + 1] <= FIRST_REACH_WALL;
            }
            link[v] = (int)v;
            if (own || owner == (int)i) continue;
            // The three others as planes of the owner's cell.
            const int64 first = plane_start[owner], end = plane_start[owner + 1];
            int wanted[3], n_wanted = 0;
            bool all = true;
            for (int k = 0; k < 4; ++k) {
                if (site[k] == owner) continue;
                const int place = find_plane(plane, first, end, site[k]);
                all = all && place < end && plane[place] == site[k];
                wanted[n_wanted++] = place - (int)first;
            }
            for (int64 w = vertex_start[owner]; all && w < vertex_start[owner + 1]; ++w) {
                const int a = vertex_plane[3 * w], b = vertex_plane[3 * w + 1];
                const int c = vertex_plane[3 * w + 2];
                if ((a == wanted[0] || b == wanted[0] || c == wanted[0])
                    && (a == wanted[1] || b == wanted[1] || c == wanted[1])
                    && (a == wanted[2] || b == wanted[2] || c == wanted[2])) {
                    link[v] = (int)w;
                    break;
                }
            }
        }
    }
}
