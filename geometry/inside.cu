// Winding numbers of points in closed triangle meshes, by columns along an axis; see inside.py.
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

// How many columns each triangle may touch.
KERNEL void count_columns(
    int n, int axis, int cells_u, int cells_v,
    double lower_u, double lower_v, double scale,
    const double *vertex,         // (v, 3)
    const int *triangle,          // (n, 3)
    OUT int *count)               // (n,)
{
    FOR_EACH(t, n) {
        double u[3], v[3];
        load_projected(vertex, triangle, t, axis, u, v);
        int row, last_row, total = 0;
        row_range(v, lower_v, scale, cells_v, &row, &last_row);
        for (; row <= last_row; ++row) {
            int first, last;
            const double slack = 1e-6 / scale, below = lower_v + row / scale;
            row_span(u, v, below - slack, below + 1.0 / scale + slack, lower_u, scale, cells_u,
                     &first, &last);
            total += last - first + 1;
        }
        count[t] = total;
    }
}

// List (column, triangle) of every column a triangle may touch.
KERNEL void fill_columns(
    int n, int axis, int cells_u, int cells_v,
    double lower_u, double lower_v, double scale,
    const double *vertex,         // (v, 3)
    const int *triangle,          // (n, 3)
    const int64 *end,             // (n,): where the list of each triangle ends
    const int *count,             // (n,)
    OUT int64 *key)               // column * n + triangle
{
    FOR_EACH(t, n) {
        double u[3], v[3];
        load_projected(vertex, triangle, t, axis, u, v);
        int row, last_row;
        int64 place = end[t] - count[t];
        row_range(v, lower_v, scale, cells_v, &row, &last_row);
        for (; row <= last_row; ++row) {
            int first, last;
            const double slack = 1e-6 / scale, below = lower_v + row / scale;
            row_span(u, v, below - slack, below + 1.0 / scale + slack, lower_u, scale, cells_u,
                     &first, &last);
            for (int c = first; c <= last; ++c)
                key[place++] = ((int64)row * cells_u + c) * n + t;
        }
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

// Winding number of each point: sheets that look along +axis beyond it, less those that look back.
KERNEL void column_winding(
    int n, int axis, int cells_u, int cells_v,
    double lower_u, double lower_v, double scale,
    const double *vertex,         // (v, 3)
    const int *triangle,          // (t, 3)
    const int64 *start,           // (cells_u * cells_v + 1,)
    const int *column_triangle,
    const double *point,          // (n, 3)
    OUT int *winding)             // (n,)
{
    FOR_EACH(i, n) {
        const double u = coordinate(point, i, axis + 1), v = coordinate(point, i, axis + 2);
        const double w = coordinate(point, i, axis);
        const int64 c = (int64)column_of(v, lower_v, scale, cells_v) * cells_u
            + column_of(u, lower_u, scale, cells_u);
        int sum = 0;
        for (int64 j = start[c]; j < start[c + 1]; ++j) {
            const int *corner = triangle + 3 * (int64)column_triangle[j];
            const double wa = coordinate(vertex, corner[0], axis);
            const double wb = coordinate(vertex, corner[1], axis);
            const double wc = coordinate(vertex, corner[2], axis);
            const double low = minimum(minimum(wa, wb), wc);
            const double high = maximum(maximum(wa, wb), wc);
            if (high <= w) continue;
            const int covers = triangle_covers(vertex, corner, axis, u, v);
            if (covers == 0) continue;
            if (low <= w) {
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
                if (minimum(maximum(height, low), high) <= w) continue;
            }
            sum += covers;
        }
        winding[i] = sum;
    }
}
