// The machine's own memory bandwidth; see bandwidth.py.
#include "device/device.cuh"

// a = b + s c: two reads and a write an item.
KERNEL void bandwidth_triad(
    int n, double s,
    const double *b,        // (n,)
    const double *c,        // (n,)
    OUT double *a)          // (n,)
{
    FOR_EACH_CHUNKED(i, n, 65536) {
        a[i] = b[i] + s * c[i];
    }
}
