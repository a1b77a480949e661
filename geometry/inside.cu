// Winding numbers of points in closed triangle meshes, by columns along an axis; see inside.py.
#include "geometry/columns.cuh"

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
            if (low <= w && triangle_height(vertex, corner, axis, u, v) <= w) continue;
            sum += covers;
        }
        winding[i] = sum;
    }
}
