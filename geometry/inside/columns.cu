// Where columns along z meet the triangles of a closed mesh.
#include "geometry/inside/columns.cuh"

// Column (i, j) of nx x ny stands at (x0 + i step, y0 + j step).
struct Raster {
    int nx, ny;
    double x0, y0, step;
};

struct Span { int first, last; };

// The columns from first to last - 1 that may lie among three coordinates.
DEVICE Span span_of(const double *x, double origin, double step, int n)
{
    const double low = minimum(x[0], minimum(x[1], x[2]));
    const double high = maximum(x[0], maximum(x[1], x[2]));
    Span span;
    span.first = cell_index(floor((low - origin) / step) - 1.0, n + 1);
    span.last = cell_index(floor((high - origin) / step) + 2.0, n + 1);
    return span;
}

// Number of crossings of each column.
KERNEL void count_crossings(
    int n_triangles, Raster raster,
    const double *vertex,       // (v, 3)
    const int *triangle,        // (t, 3)
    INOUT int *count)           // (nx, ny)
{
    FOR_EACH(t, n_triangles) {
        double x[3], y[3], z[3];
        load_triangle(vertex, triangle, t, ALONG_Z, x, y, z);
        const Span across = span_of(x, raster.x0, raster.step, raster.nx);
        const Span along = span_of(y, raster.y0, raster.step, raster.ny);
        for (int i = across.first; i < across.last; ++i)
            for (int j = along.first; j < along.last; ++j)
                if (triangle_covers(x, y, raster.x0 + i * raster.step,
                                    raster.y0 + j * raster.step) != 0)
                    // A sum of ones, whose order does not matter.
                    atomic_add_int(count + (int64)i * raster.ny + j, 1);
    }
}

// The crossings themselves, in any order: sort_crossings puts them in order.
KERNEL void list_crossings(
    int n_triangles, Raster raster,
    const double *vertex, const int *triangle,
    const int64 *start,         // (nx * ny + 1,) first crossing of each column
    INOUT int *filled,          // (nx, ny) zeros
    OUT double *height,         // (k,)
    OUT int *turns)             // (k,) 1: out of the solid going up, -1: into it
{
    FOR_EACH(t, n_triangles) {
        double x[3], y[3], z[3];
        load_triangle(vertex, triangle, t, ALONG_Z, x, y, z);
        const Span across = span_of(x, raster.x0, raster.step, raster.nx);
        const Span along = span_of(y, raster.y0, raster.step, raster.ny);
        for (int i = across.first; i < across.last; ++i)
            for (int j = along.first; j < along.last; ++j) {
                const double at_x = raster.x0 + i * raster.step;
                const double at_y = raster.y0 + j * raster.step;
                const int covers = triangle_covers(x, y, at_x, at_y);
                if (covers == 0) continue;
                const int64 column = (int64)i * raster.ny + j;
                // The slot depends on the order of threads; sorting removes that again.
                const int64 slot = start[column] + atomic_add_int(filled + column, 1);
                height[slot] = triangle_height(x, y, z, at_x, at_y);
                turns[slot] = covers;
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
