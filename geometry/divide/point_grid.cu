// Sort points into the cells of a uniform grid; see point_grid.py.
#include "geometry/divide/point_grid.cuh"

// cell * n + i: sorting it sorts the points by cell, and within a cell by index.
KERNEL void point_cell_keys(
    int n, PointGrid g,           // of which `start` is not read
    const double *point,          // (n, 3)
    OUT int64 *key)               // (n,)
{
    FOR_EACH(i, n) {
        const Vec3d p = load_vec3d(point, i);
        const int64 cx = grid_cell_along(p.x, g.x, g.scale, g.nx);
        const int64 cy = grid_cell_along(p.y, g.y, g.scale, g.ny);
        const int64 cz = grid_cell_along(p.z, g.z, g.scale, g.nz);
        key[i] = ((cz * g.ny + cy) * g.nx + cx) * n + i;
    }
}

// Lay points out cell by cell, and mark where each cell starts.
//
// Item i writes the starts of the cells after that of point i - 1 up to that of point i, and
// item n - 1 those after the last: each start has one writer.
KERNEL void point_cell_starts(
    int n, int64 n_cells,
    const int64 *key,             // (n,), ascending
    const double *point,          // (n, 3)
    OUT int *order,               // (n,): index of the point at each place
    OUT double *sorted,           // (n, 3)
    OUT int *start)               // (n_cells + 1,)
{
    FOR_EACH(i, n) {
        const int64 cell = key[i] / n;
        const int index = (int)(key[i] % n);
        order[i] = index;
        store_vec3d(sorted, i, load_vec3d(point, index));
        for (int64 c = i == 0 ? 0 : key[i - 1] / n + 1; c <= cell; ++c) start[c] = (int)i;
        if (i == n - 1)
            for (int64 c = cell + 1; c <= n_cells; ++c) start[c] = n;
    }
}
