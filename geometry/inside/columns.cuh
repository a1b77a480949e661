// Triangles of a mesh in columns along an axis, and whether they cover a line along it.
//
// In a column along `axis`, u and v are the two other coordinates, in cyclic order: a triangle
// that is anticlockwise in (u, v) looks along +axis.
#include "device/device.cuh"

#define ALONG_Z 2

// Columns along an axis, by the cells of a grid across it.
struct ColumnGrid {
    int axis, cells_u, cells_v;
    double lower_u, lower_v;      // corner of the grid
    double scale;                 // cells a unit of length
};

// The column of a coordinate, inside the grid.
DEVICE int column_of(double x, double lower, double scale, int cells)
{
    return cell_index((x - lower) * scale, cells);
}

// The columns from *first to *last of row `row` that a triangle may touch, a little widened.
DEVICE void row_span(
    const double *u, const double *v, double row_lower, double row_upper,
    double lower, double scale, int cells, int *first, int *last)
{
    double low = 1e300, high = -1e300;
    for (int k = 0; k < 3; ++k) {
        const int l = (k + 1) % 3;
        if (v[k] >= row_lower && v[k] <= row_upper) {
            low = minimum(low, u[k]);
            high = maximum(high, u[k]);
        }
        for (int side = 0; side < 2; ++side) {
            const double level = side ? row_upper : row_lower;
            if ((v[k] < level) != (v[l] < level)) {
                const double x = u[k] + (u[l] - u[k]) * ((level - v[k]) / (v[l] - v[k]));
                low = minimum(low, x);
                high = maximum(high, x);
            }
        }
    }
    *first = 1;
    *last = 0;
    if (low <= high) {
        const double slack = 1e-6 / scale;
        *first = column_of(low - slack, lower, scale, cells);
        *last = column_of(high + slack, lower, scale, cells);
    }
}

// The rows that a triangle may touch, a little widened.
DEVICE void row_range(
    const double *v, double lower, double scale, int cells, int *first, int *last)
{
    const double slack = 1e-6 / scale;
    *first = column_of(minimum(minimum(v[0], v[1]), v[2]) - slack, lower, scale, cells);
    *last = column_of(maximum(maximum(v[0], v[1]), v[2]) + slack, lower, scale, cells);
}

// The other two coordinates of the corners (3, 3) of a triangle.
DEVICE void load_projected(const double *corner, int axis, double *u, double *v)
{
    for (int k = 0; k < 3; ++k) {
        u[k] = corner[3 * k + (axis + 1) % 3];
        v[k] = corner[3 * k + (axis + 2) % 3];
    }
}

// The corners of triangle t of a mesh: u and v across the axis, w along it.
DEVICE void load_triangle(
    const double *vertex, const int *triangle, int64 t, int axis, double *u, double *v, double *w)
{
    for (int k = 0; k < 3; ++k) {
        const double *corner = vertex + 3 * (int64)triangle[3 * t + k];
        u[k] = corner[(axis + 1) % 3];
        v[k] = corner[(axis + 2) % 3];
        w[k] = corner[axis];
    }
}

// +1 or -1 where the triangle covers (u, v), by its orientation there; else 0.
//
// A half-line along +u meets an edge or not by comparisons that both triangles at the edge
// make with the same numbers: no point falls between two triangles, or into both, and over a
// closed mesh the sum is exactly 0, whatever the rounding.
DEVICE int triangle_covers(const double *cu, const double *cv, double u, double v)
{
    int covers = 0;
    for (int k = 0; k < 3; ++k) {
        const int l = k == 2 ? 0 : k + 1;
        if ((cv[k] <= v) == (cv[l] <= v)) continue;
        // From the lower end of the edge to the higher.
        const bool up = cv[k] <= v;
        const int a = up ? k : l, b = up ? l : k;
        const double side = (cu[b] - cu[a]) * (v - cv[a]) - (cv[b] - cv[a]) * (u - cu[a]);
        if (side > 0.0) covers += up ? 1 : -1;
    }
    return covers;
}

// Height along the axis at which a triangle that covers (u, v) does so.
DEVICE double triangle_height(
    const double *cu, const double *cv, const double *cw, double u, double v)
{
    const double low = minimum(minimum(cw[0], cw[1]), cw[2]);
    const double high = maximum(maximum(cw[0], cw[1]), cw[2]);
    const double ub = cu[1] - cu[0], vb = cv[1] - cv[0], uc = cu[2] - cu[0], vc = cv[2] - cv[0];
    const double area = ub * vc - uc * vb;
    const double b = (u - cu[0]) * vc - uc * (v - cv[0]);
    const double c = ub * (v - cv[0]) - (u - cu[0]) * vb;
    const double height = area == 0.0 ? 0.5 * (low + high)
        : cw[0] + (b * (cw[1] - cw[0]) + c * (cw[2] - cw[0])) / area;
    return minimum(maximum(height, low), high);
}
