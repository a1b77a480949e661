// Where columns along z meet the triangles of a closed mesh.
//
// Column (i, j) of nx x ny stands at (x0 + i step, y0 + j step).
#include "geometry/cuts.cuh"

struct Span { int first, last; };

// The columns from first to last - 1 that may lie between low and high.
DEVICE Span columns_between(double low, double high, double origin, double step, int n)
{
    Span span;
    span.first = (int)maximum(0.0, minimum((double)n, floor((low - origin) / step) - 1.0));
    span.last = (int)maximum(0.0, minimum((double)n, floor((high - origin) / step) + 2.0));
    return span;
}

DEVICE Span span_of(const double *vertex, int axis, int a, int b, int c, double origin,
                    double step, int n)
{
    const double p = vertex[3 * (int64)a + axis], q = vertex[3 * (int64)b + axis];
    const double r = vertex[3 * (int64)c + axis];
    return columns_between(minimum(p, minimum(q, r)), maximum(p, maximum(q, r)), origin, step, n);
}

// Number of crossings of each column.
KERNEL void count_crossings(
    int n_triangles, int nx, int ny, double x0, double y0, double step,
    const double *vertex,       // (v, 3)
    const int *triangle,        // (t, 3)
    INOUT int *count)           // (nx, ny)
{
    FOR_EACH(t, n_triangles) {
        const int a = triangle[3 * t], b = triangle[3 * t + 1], c = triangle[3 * t + 2];
        const Span across = span_of(vertex, 0, a, b, c, x0, step, nx);
        const Span along = span_of(vertex, 1, a, b, c, y0, step, ny);
        for (int i = across.first; i < across.last; ++i)
            for (int j = along.first; j < along.last; ++j)
                if (triangle_turns(vertex, a, b, c, x0 + i * step, y0 + j * step) != 0)
                    // A sum of ones, whose order does not matter.
                    atomic_add_int(count + (int64)i * ny + j, 1);
    }
}

// The crossings themselves, in any order: sort_crossings puts them in order.
KERNEL void list_crossings(
    int n_triangles, int nx, int ny, double x0, double y0, double step,
    const double *vertex, const int *triangle,
    const int64 *start,         // (nx * ny + 1,) first crossing of each column
    INOUT int *filled,          // (nx, ny) zeros
    OUT double *height,         // (k,)
    OUT int *turns)             // (k,) 1: out of the solid going up, -1: into it
{
    FOR_EACH(t, n_triangles) {
        const int a = triangle[3 * t], b = triangle[3 * t + 1], c = triangle[3 * t + 2];
        const Span across = span_of(vertex, 0, a, b, c, x0, step, nx);
        const Span along = span_of(vertex, 1, a, b, c, y0, step, ny);
        for (int i = across.first; i < across.last; ++i)
            for (int j = along.first; j < along.last; ++j) {
                const double x = x0 + i * step, y = y0 + j * step;
                const int around = triangle_turns(vertex, a, b, c, x, y);
                if (around == 0) continue;
                const int64 column = (int64)i * ny + j;
                // The slot depends on the order of threads; sorting removes that again.
                const int64 slot = start[column] + atomic_add_int(filled + column, 1);
                height[slot] = column_height(vertex, a, b, c, x, y);
                turns[slot] = around;
            }
    }
}

// Sort the crossings of each column by height; those at one height into the solid first.
KERNEL void sort_crossings(
    int n_columns,
    const int64 *start,
    INOUT double *height, INOUT int *turns)
{
    FOR_EACH(column, n_columns) {
        const int64 first = start[column], n = start[column + 1] - first;
        // Heap sort: columns along a wall can be long.
        for (int64 phase = n / 2 + n; phase-- > 1;) {
            int64 root = phase - n, end = n;
            if (phase < n) {
                const double h = height[first]; height[first] = height[first + phase];
                height[first + phase] = h;
                const int s = turns[first]; turns[first] = turns[first + phase];
                turns[first + phase] = s;
                root = 0;
                end = phase;
            }
            for (;;) {
                int64 child = 2 * root + 1;
                if (child >= end) break;
                const int64 l = first + child, r = l + 1;
                if (child + 1 < end && (height[l] < height[r]
                        || (height[l] == height[r] && turns[l] < turns[r]))) ++child;
                const int64 p = first + root, q = first + child;
                if (!(height[p] < height[q]
                        || (height[p] == height[q] && turns[p] < turns[q]))) break;
                const double h = height[p]; height[p] = height[q]; height[q] = h;
                const int s = turns[p]; turns[p] = turns[q]; turns[q] = s;
                root = child;
            }
        }
    }
}

// Length of each column in the solid once, outside of it (turned inside out), and in it twice.
KERNEL void column_lengths(
    int n_columns,
    const int64 *start, const double *height, const int *turns,
    OUT double *once,           // (n,) where the winding number is 1
    OUT double *wrong)          // (n,) where it is below 0 or above 1
{
    FOR_EACH(column, n_columns) {
        double in = 0.0, out = 0.0;
        int winding = 0;
        for (int64 k = start[column]; k < start[column + 1]; ++k) {
            if (k > start[column]) {
                const double length = height[k] - height[k - 1];
                if (winding == 1) in += length;
                else if (winding != 0) out += length;
            }
            winding -= turns[k];
        }
        once[column] = in;
        wrong[column] = out;
    }
}

// Which of the nz places z0 + k step of each column lie inside: winding number above 0.
KERNEL void fill_cuts(
    int n_columns, int nz, double z0, double step,
    const int64 *start, const double *height, const int *turns,
    OUT uint8 *inside)          // (n_columns, nz)
{
    FOR_EACH(column, n_columns) {
        int64 k = start[column];
        int winding = 0;
        for (int z = 0; z < nz; ++z) {
            while (k < start[column + 1] && height[k] <= z0 + z * step) winding -= turns[k++];
            inside[column * nz + z] = winding > 0;
        }
    }
}
