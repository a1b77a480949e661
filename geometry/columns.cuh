// Triangles of a mesh in columns along an axis, and whether they cover a line along it.
//
// In a column along `axis`, u and v are the two other coordinates, in cyclic order: a triangle
// that is anticlockwise in (u, v) looks along +axis.
#include "device/device.cuh"

DEVICE double coordinate(const double *point, int64 i, int axis) { return point[3 * i + axis % 3]; }

// The column of a coordinate, inside the grid.
DEVICE int column_of(double x, double lower, double scale, int cells)
{
    const double c = (x - lower) * scale;
    return c <= 0.0 ? 0 : c >= cells ? cells - 1 : (int)c;
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

DEVICE void load_projected(
    const double *vertex, const int *triangle, int64 t, int axis, double *u, double *v)
{
    for (int k = 0; k < 3; ++k) {
        u[k] = coordinate(vertex, triangle[3 * t + k], axis + 1);
        v[k] = coordinate(vertex, triangle[3 * t + k], axis + 2);
    }
}

// +1 or -1 where the triangle covers (u, v), by its orientation there; else 0.
//
// A half-line along +u meets an edge or not by comparisons that both triangles at the edge
// make with the same numbers: no point falls between two triangles, or into both.
DEVICE int triangle_covers(
    const double *vertex, const int *corner, int axis, double u, double v)
{
    int covers = 0;
    for (int k = 0; k < 3; ++k) {
        const int from = corner[k], to = corner[k == 2 ? 0 : k + 1];
        const int a = minimum(from, to), b = maximum(from, to);
        const double va = coordinate(vertex, a, axis + 2), vb = coordinate(vertex, b, axis + 2);
        if ((va <= v) == (vb <= v)) continue;
        const double ua = coordinate(vertex, a, axis + 1), ub = coordinate(vertex, b, axis + 1);
        const double side = (ub - ua) * (v - va) - (vb - va) * (u - ua);
        if ((side > 0.0) != (vb > va) || side == 0.0) continue;
        covers += (vb > va) == (from == a) ? 1 : -1;
    }
    return covers;
}

// Height along the axis at which a triangle that covers (u, v) does so.
DEVICE double triangle_height(
    const double *vertex, const int *corner, int axis, double u, double v)
{
    const double wa = coordinate(vertex, corner[0], axis);
    const double wb = coordinate(vertex, corner[1], axis);
    const double wc = coordinate(vertex, corner[2], axis);
    const double low = minimum(minimum(wa, wb), wc);
    const double high = maximum(maximum(wa, wb), wc);
    const double ua = coordinate(vertex, corner[0], axis + 1);
    const double va = coordinate(vertex, corner[0], axis + 2);
    const double ub = coordinate(vertex, corner[1], axis + 1) - ua;
    const double vb = coordinate(vertex, corner[1], axis + 2) - va;
    const double uc = coordinate(vertex, corner[2], axis + 1) - ua;
    const double vc = coordinate(vertex, corner[2], axis + 2) - va;
    const double area = ub * vc - uc * vb;
    const double b = (u - ua) * vc - uc * (v - va);
    const double a = ub * (v - va) - (u - ua) * vb;
    const double height = area == 0.0 ? 0.5 * (low + high)
        : wa + (b * (wb - wa) + a * (wc - wa)) / area;
    return minimum(maximum(height, low), high);
}
