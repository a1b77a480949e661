// Winding numbers of points in closed triangle meshes, by columns along an axis; see inside.py.
#include "geometry/inside/columns.cuh"

// How many columns each triangle may touch.
KERNEL void count_columns(
    int n, ColumnGrid grid,
    const double *corner,         // (n, 3, 3): of triangles
    OUT int *count)               // (n,)
{
    FOR_EACH(t, n) {
        double u[3], v[3];
        load_projected(corner + 9 * t, grid.axis, u, v);
        int row, last_row, total = 0;
        row_range(v, grid.lower_v, grid.scale, grid.cells_v, &row, &last_row);
        for (; row <= last_row; ++row) {
            int first, last;
            const double slack = 1e-6 / grid.scale, below = grid.lower_v + row / grid.scale;
            row_span(u, v, below - slack, below + 1.0 / grid.scale + slack, grid.lower_u,
                     grid.scale, grid.cells_u, &first, &last);
            total += last - first + 1;
        }
        count[t] = total;
    }
}

// List (column, triangle) of every column a triangle may touch.
KERNEL void fill_columns(
    int n, ColumnGrid grid,
    const double *corner,         // (n, 3, 3): of triangles
    const int64 *end,             // (n,): where the list of each triangle ends
    const int *count,             // (n,)
    OUT int64 *key)               // column * n + triangle
{
    FOR_EACH(t, n) {
        double u[3], v[3];
        load_projected(corner + 9 * t, grid.axis, u, v);
        int row, last_row;
        int64 place = end[t] - count[t];
        row_range(v, grid.lower_v, grid.scale, grid.cells_v, &row, &last_row);
        for (; row <= last_row; ++row) {
            int first, last;
            const double slack = 1e-6 / grid.scale, below = grid.lower_v + row / grid.scale;
            row_span(u, v, below - slack, below + 1.0 / grid.scale + slack, grid.lower_u,
                     grid.scale, grid.cells_u, &first, &last);
            for (int c = first; c <= last; ++c)
                key[place++] = ((int64)row * grid.cells_u + c) * n + t;
        }
    }
}

// Winding number of each point: sheets that look along +axis beyond it, less those that look back.
KERNEL void column_winding(
    int n, ColumnGrid grid,
    const double *corner,         // (t, 3, 3)
    const int64 *start,           // (cells_u * cells_v + 1,)
    const int *column_triangle,
    const double *point,          // (n, 3)
    OUT int *winding)             // (n,)
{
    const int axis = grid.axis;
    FOR_EACH(i, n) {
        const double w = point[3 * i + axis];
        const double u = point[3 * i + (axis + 1) % 3], v = point[3 * i + (axis + 2) % 3];
        const int64 c = (int64)column_of(v, grid.lower_v, grid.scale, grid.cells_v) * grid.cells_u
            + column_of(u, grid.lower_u, grid.scale, grid.cells_u);
        int sum = 0;
        for (int64 j = start[c]; j < start[c + 1]; ++j) {
            const double *t = corner + 9 * (int64)column_triangle[j];
            const double cw[3] = {t[axis], t[3 + axis], t[6 + axis]};
            if (maximum(maximum(cw[0], cw[1]), cw[2]) <= w) continue;
            double cu[3], cv[3];
            load_projected(t, axis, cu, cv);
            const int covers = triangle_covers(cu, cv, u, v);
            if (covers == 0) continue;
            if (minimum(minimum(cw[0], cw[1]), cw[2]) > w
                || triangle_height(cu, cv, cw, u, v) > w) sum += covers;
        }
        winding[i] = sum;
    }
}
