// Darts, and cells that may still take one, of Poisson-disk sampling; see blue_noise.py.
#include "geometry/inside/columns.cuh"
#include "geometry/divide/point_grid.cuh"

// Length scale as a function of place: values at the nodes of a lattice, linear in between.
struct SizeField {
    int nx, ny, nz;
    double x, y, z;               // place of the first node
    double sx, sy, sz;            // nodes a unit of length along each axis
    const double *value;          // (nx, ny, nz)
};

DEVICE double size_at(SizeField f, Vec3d p)
{
    if (f.nx * f.ny * f.nz == 1) return f.value[0];
    const double u = minimum(maximum((p.x - f.x) * f.sx, 0.0), f.nx - 1.0);
    const double v = minimum(maximum((p.y - f.y) * f.sy, 0.0), f.ny - 1.0);
    const double w = minimum(maximum((p.z - f.z) * f.sz, 0.0), f.nz - 1.0);
    const int i = cell_index(u, maximum(f.nx - 1, 1)), i1 = minimum(i + 1, f.nx - 1);
    const int j = cell_index(v, maximum(f.ny - 1, 1)), j1 = minimum(j + 1, f.ny - 1);
    const int k = cell_index(w, maximum(f.nz - 1, 1)), k1 = minimum(k + 1, f.nz - 1);
    const double a = u - i, b = v - j, c = w - k;
    const double *s = f.value;
    const int n = f.nz, m = f.ny * f.nz;
    const double near_x = (s[i * m + j * n + k] * (1 - c) + s[i * m + j * n + k1] * c) * (1 - b)
        + (s[i * m + j1 * n + k] * (1 - c) + s[i * m + j1 * n + k1] * c) * b;
    const double far_x = (s[i1 * m + j * n + k] * (1 - c) + s[i1 * m + j * n + k1] * c) * (1 - b)
        + (s[i1 * m + j1 * n + k] * (1 - c) + s[i1 * m + j1 * n + k1] * c) * b;
    return near_x * (1 - a) + far_x * a;
}

// A box of equal cells that throw darts.
struct Lattice {
    int nx, ny, nz;
    Vec3d lower;                  // corner
    double scale;                 // cells a unit of length
};

// Cells of a lattice that triangles pass through: listed in key (cell * n + triangle) if it is
// given. Along the axis that a triangle faces most, it is at most a few cells thick.
DEVICE int64 triangle_cells(
    const double *corners, int64 n, int64 t, const Lattice &lattice, int64 *key)
{
    const int cells[3] = {lattice.nx, lattice.ny, lattice.nz};
    const double lower[3] = {lattice.lower.x, lattice.lower.y, lattice.lower.z};
    const double *corner = corners + 9 * t;
    const Vec3d a = load_vec3d(corner, 0);
    const Vec3d b = load_vec3d(corner, 1) - a, c = load_vec3d(corner, 2) - a;
    const double normal[3] = {b.y * c.z - b.z * c.y, b.z * c.x - b.x * c.z, b.x * c.y - b.y * c.x};
    int axis = 0;
    for (int k = 1; k < 3; ++k)
        if (fabs(normal[k]) > fabs(normal[axis])) axis = k;
    const int iu = (axis + 1) % 3, iv = (axis + 2) % 3;
    const double scale = lattice.scale, slack = 1e-6 / scale;
    const double steep = normal[axis] == 0.0 ? 0.0 : 1.0 / normal[axis];
    const double slope_u = -normal[iu] * steep, slope_v = -normal[iv] * steep;
    const double half = 0.5 * (fabs(slope_u) + fabs(slope_v)) / scale + slack;
    double u[3], v[3], low = 1e300, high = -1e300;
    load_projected(corner, axis, u, v);
    for (int k = 0; k < 3; ++k) {
        low = minimum(low, corner[3 * k + axis]);
        high = maximum(high, corner[3 * k + axis]);
    }
    int row, last_row;
    int64 total = 0;
    row_range(v, lower[iv], scale, cells[iv], &row, &last_row);
    for (; row <= last_row; ++row) {
        int first, last;
        const double below = lower[iv] + row / scale;
        row_span(u, v, below - slack, below + 1.0 / scale + slack, lower[iu], scale,
                 cells[iu], &first, &last);
        for (int column = first; column <= last; ++column) {
            const double height = corner[axis]
                + slope_u * (lower[iu] + (column + 0.5) / scale - u[0])
                + slope_v * (below + 0.5 / scale - v[0]);
            const double from = steep == 0.0 ? low : maximum(low, height - half);
            const double to = steep == 0.0 ? high : minimum(high, height + half);
            const double base = lower[axis];
            const int top = column_of(maximum(to, from) + slack, base, scale, cells[axis]);
            int w = column_of(minimum(to, from) - slack, base, scale, cells[axis]);
            for (; w <= top; ++w) {
                int place[3];
                place[axis] = w;
                place[iu] = column;
                place[iv] = row;
                if (key)
                    key[total] = (((int64)place[1] * lattice.nx + place[0]) * lattice.nz
                                  + place[2]) * n + t;
                ++total;
            }
        }
    }
    return total;
}

KERNEL void count_triangle_cells(
    int n, Lattice lattice,
    const double *corner,         // (n, 3, 3)
    OUT int64 *count)             // (n,)
{
    FOR_EACH(t, n) {
        count[t] = triangle_cells(corner, n, t, lattice, 0);
    }
}

KERNEL void list_triangle_cells(
    int n, Lattice lattice,
    const double *corner,
    const int64 *start,           // (n,)
    OUT int64 *key)
{
    FOR_EACH(t, n) {
        triangle_cells(corner, n, t, lattice, key + start[t]);
    }
}

// Winding numbers, modulo 256, at the centres of all cells, a column along z at a time.
KERNEL void lattice_winding(
    int n, Lattice lattice, ColumnGrid grid,
    const double *corner,
    const int64 *start, const int *column_triangle,     // columns along z, of inside.cu
    OUT uint8 *winding)           // (n, nz)
{
    FOR_EACH_CHUNKED(c, n, 64) {
        const int nx = lattice.nx, nz = lattice.nz;
        const double step = 1.0 / lattice.scale;
        const double u = lattice.lower.x + (c % nx + 0.5) * step;
        const double v = lattice.lower.y + (c / nx + 0.5) * step;
        uint8 *column = winding + c * nz;
        for (int k = 0; k < nz; ++k) column[k] = 0;
        const int64 place = (int64)column_of(v, grid.lower_v, grid.scale, grid.cells_v)
            * grid.cells_u + column_of(u, grid.lower_u, grid.scale, grid.cells_u);
        for (int64 j = start[place]; j < start[place + 1]; ++j) {
            const double *t = corner + 9 * (int64)column_triangle[j];
            const double cw[3] = {t[2], t[5], t[8]};
            double cu[3], cv[3];
            load_projected(t, ALONG_Z, cu, cv);
            const int covers = triangle_covers(cu, cv, u, v);
            if (covers == 0) continue;
            const double height = triangle_height(cu, cv, cw, u, v);
            for (int k = 0; k < nz && lattice.lower.z + (k + 0.5) * step < height; ++k)
                column[k] = (uint8)(column[k] + covers);
        }
    }
}

// A dart in each cell.
KERNEL void throw_darts(
    int n, uint32 seed, int level, double step, Vec3d corner,
    const int *cell,              // (n, 3)
    OUT double *dart)             // (n, 3)
{
    FOR_EACH(i, n) {
        const double lower[3] = {corner.x, corner.y, corner.z};
        const uint32 x = cell[3 * i], y = cell[3 * i + 1], z = cell[3 * i + 2];
        for (int k = 0; k < 3; ++k) {
            const uint32 h = hash32(hash32(seed, level, k, 0x5bd1e995u), x, y, z);
            const double within = (h + 0.5) * (1.0 / 4294967296.0);
            dart[3 * i + k] = lower[k] + step * (cell[3 * i + k] + within);
        }
    }
}

// Whether each dart is apart from every sample: no nearer than the smaller of their two sizes.
KERNEL void darts_apart(
    int n, SizeField field, PointGrid samples,
    const double *dart,           // (n, 3)
    OUT int *apart)               // (n,)
{
    FOR_EACH(i, n) {
        const SizeField f = field;
        const PointGrid g = samples;
        const Vec3d p = load_vec3d(dart, i);
        const double size = size_at(f, p);
        const GridRange r = grid_range(g, p, size);
        int free = 1;
        for (int z = r.lz; z <= r.hz && free; ++z)
            for (int y = r.ly; y <= r.hy && free; ++y) {
                const int64 row = ((int64)z * g.ny + y) * g.nx;
                for (int j = g.start[row + r.lx]; j < g.start[row + r.hx + 1]; ++j) {
                    const Vec3d q = load_vec3d(g.point, j);
                    const Vec3d d = q - p;
                    const double square = dot(d, d);
                    if (square >= size * size) continue;
                    const double other = size_at(f, q);
                    if (square < other * other) { free = 0; break; }
                }
            }
        apart[i] = free;
    }
}

DEVICE uint32 dart_priority(uint32 seed, Vec3d p)
{
    return hash32(seed, (uint32)bits_from_double(p.x) ^ (uint32)(bits_from_double(p.x) >> 32),
                  (uint32)bits_from_double(p.y) ^ (uint32)(bits_from_double(p.y) >> 32),
                  (uint32)bits_from_double(p.z) ^ (uint32)(bits_from_double(p.z) >> 32));
}

// Which darts come before all darts that they are too near to.
KERNEL void first_darts(
    int n, uint32 seed, SizeField field,
    PointGrid darts,              // n of them
    OUT int *first)               // (n,)
{
    FOR_EACH(i, n) {
        const SizeField f = field;
        const PointGrid g = darts;
        const Vec3d p = load_vec3d(g.point, i);
        const double size = size_at(f, p);
        const uint32 own = dart_priority(seed, p);
        const GridRange r = grid_range(g, p, size);
        int wins = 1;
        for (int z = r.lz; z <= r.hz && wins; ++z)
            for (int y = r.ly; y <= r.hy && wins; ++y) {
                const int64 row = ((int64)z * g.ny + y) * g.nx;
                for (int j = g.start[row + r.lx]; j < g.start[row + r.hx + 1]; ++j) {
                    const Vec3d q = load_vec3d(g.point, j);
                    const Vec3d d = q - p;
                    const double square = dot(d, d);
                    if (square >= size * size || j == i) continue;
                    const double other = size_at(f, q);
                    if (square >= other * other) continue;
                    const uint32 theirs = dart_priority(seed, q);
                    if (theirs < own || (theirs == own && j < i)) { wins = 0; break; }
                }
            }
        first[i] = wins;
    }
}

#define MOST_NEAR 48

// Which of the eight children of each cell are not wholly nearer to one sample than both sizes
// allow; without `split`, whether the cell itself is not.
//
// `steepest` bounds the slope of the sizes: over a cell they differ by no more than that times
// half its diagonal. Of more than MOST_NEAR samples the others are left out: an open cell that
// might be closed costs a dart, no more.
KERNEL void cells_open(
    int n, int split, double step, double steepest, Vec3d corner, SizeField field,
    PointGrid samples,
    const int *cell,              // (n, 3)
    OUT uint8 *open)              // (n,), or (n, 8) of children
{
    FOR_EACH(i, n) {
        const SizeField f = field;
        const PointGrid g = samples;
        const Vec3d p = make_vec3d(corner.x + step * (cell[3 * i] + 0.5),
                                   corner.y + step * (cell[3 * i + 1] + 0.5),
                                   corner.z + step * (cell[3 * i + 2] + 0.5));
        const double slack = steepest * step * 0.8660254037844387;
        // Samples that can cover a cell, or a child, whole.
        const double half = split ? 0.25 * step : 0.5 * step;
        const double size = size_at(f, p) + (split ? slack : -slack);
        const double reach = size - (split ? 0.0 : half);
        double near[4 * MOST_NEAR];
        int n_near = 0;
        const GridRange r = grid_range(g, p, maximum(reach, 0.0));
        for (int z = r.lz; z <= r.hz; ++z)
            for (int y = r.ly; y <= r.hy; ++y) {
                const int64 row = ((int64)z * g.ny + y) * g.nx;
                for (int j = g.start[row + r.lx]; j < g.start[row + r.hx + 1]; ++j) {
                    const Vec3d q = load_vec3d(g.point, j);
                    const Vec3d d = q - p;
                    if (dot(d, d) >= reach * reach || n_near == MOST_NEAR) continue;
                    const double other = size_at(f, q);
                    near[4 * n_near] = d.x;
                    near[4 * n_near + 1] = d.y;
                    near[4 * n_near + 2] = d.z;
                    near[4 * n_near++ + 3] = other * other;
                }
            }
        for (int child = 0; child < (split ? 8 : 1); ++child) {
            const double cx = split ? (child >> 2 & 1 ? half : -half) : 0.0;
            const double cy = split ? (child >> 1 & 1 ? half : -half) : 0.0;
            const double cz = split ? (child & 1 ? half : -half) : 0.0;
            const double own = !split ? size : size_at(f, p + make_vec3d(cx, cy, cz)) - 0.5 * slack;
            const double own2 = own > 0.0 ? own * own : 0.0;
            int is_open = 1;
            for (int k = 0; k < n_near && is_open; ++k) {
                const double x = fabs(near[4 * k] - cx) + half;
                const double y = fabs(near[4 * k + 1] - cy) + half;
                const double z = fabs(near[4 * k + 2] - cz) + half;
                is_open = x * x + y * y + z * z >= minimum(own2, near[4 * k + 3]);
            }
            open[split ? 8 * i + child : i] = (uint8)is_open;
        }
    }
}

// The children of cells that are listed as 8 * cell + child.
KERNEL void make_children(
    int n,
    const int64 *which,           // (n,)
    const int *cell, const uint8 *surface,
    OUT int *child,               // (n, 3)
    OUT uint8 *child_surface)     // (n,)
{
    FOR_EACH(i, n) {
        const int64 parent = which[i] >> 3;
        for (int k = 0; k < 3; ++k)
            child[3 * i + k] = 2 * cell[3 * parent + k] + (int)(which[i] >> (2 - k) & 1);
        child_surface[i] = surface[parent];
    }
}

// Whether a triangle may pass through each cell; those of its ancestor at level 0 are tried.
KERNEL void cells_crossed(
    int n, int level, double step, Lattice lattice,
    const double *corner,
    const int64 *start,           // (cells + 1,)
    const int *cell_triangle,
    const int *cell,              // (n, 3)
    OUT int *crossed)             // (n,)
{
    FOR_EACH(i, n) {
        const int x = cell[3 * i], y = cell[3 * i + 1], z = cell[3 * i + 2];
        const Vec3d p = make_vec3d(lattice.lower.x + step * (x + 0.5),
                                   lattice.lower.y + step * (y + 0.5),
                                   lattice.lower.z + step * (z + 0.5));
        const int64 home = ((int64)(y >> level) * lattice.nx + (x >> level)) * lattice.nz
            + (z >> level);
        const double half = 0.5 * step * (1.0 + 1e-6);
        int meets = 0;
        for (int64 j = start[home]; j < start[home + 1] && !meets; ++j) {
            const double *t = corner + 9 * (int64)cell_triangle[j];
            const Vec3d a = load_vec3d(t, 0) - p, b = load_vec3d(t, 1) - p;
            const Vec3d c = load_vec3d(t, 2) - p;
            if (minimum(minimum(a.x, b.x), c.x) > half || maximum(maximum(a.x, b.x), c.x) < -half
                || minimum(minimum(a.y, b.y), c.y) > half || maximum(maximum(a.y, b.y), c.y) < -half
                || minimum(minimum(a.z, b.z), c.z) > half
                || maximum(maximum(a.z, b.z), c.z) < -half)
                continue;
            const Vec3d u = b - a, v = c - a;
            const Vec3d normal = make_vec3d(u.y * v.z - u.z * v.y, u.z * v.x - u.x * v.z,
                                            u.x * v.y - u.y * v.x);
            const double reach = half * (fabs(normal.x) + fabs(normal.y) + fabs(normal.z));
            meets = fabs(dot(normal, a)) <= reach;
        }
        crossed[i] = meets;
    }
}
