// Points in the cells of a uniform grid; see point_grid.py.
#include "device/device.cuh"

struct PointGrid {
    int nx, ny, nz;
    double x, y, z;               // lower corner
    double scale;                 // cells a unit of length
    const int *start;             // (nx ny nz + 1,): where the points of each cell start
    const double *point;          // (n, 3), cell by cell
};

DEVICE int grid_cell_along(double x, double lower, double scale, int cells)
{
    return cell_index((x - lower) * scale, cells);
}

// The range of cells along each axis that a box of half-width `reach` about p touches.
struct GridRange { int lx, hx, ly, hy, lz, hz; };
DEVICE GridRange grid_range(PointGrid g, Vec3d p, double reach)
{
    GridRange r;
    r.lx = grid_cell_along(p.x - reach, g.x, g.scale, g.nx);
    r.hx = grid_cell_along(p.x + reach, g.x, g.scale, g.nx);
    r.ly = grid_cell_along(p.y - reach, g.y, g.scale, g.ny);
    r.hy = grid_cell_along(p.y + reach, g.y, g.scale, g.ny);
    r.lz = grid_cell_along(p.z - reach, g.z, g.scale, g.nz);
    r.hz = grid_cell_along(p.z + reach, g.z, g.scale, g.nz);
    return r;
}
