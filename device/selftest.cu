// Small kernels that show what the launcher promises; `vfx doctor` and the tests run them.
#include "device/device.cuh"

// y = a x + y.
KERNEL void selftest_axpy(
    int n, float a,
    const float *x,
    INOUT float *y)
{
    FOR_EACH(i, n) {
        y[i] = a * x[i] + y[i];
    }
}

// Sum, smallest value and bits of the positive values of each group of LANES values.
KERNEL void selftest_lanes(
    int n_groups,
    const float *value,     // (n_groups, LANES)
    OUT float *sum,         // (n_groups,)
    OUT float *lowest,      // (n_groups,)
    OUT int *positive)      // (n_groups,)
{
    FOR_EACH_GROUP(g, n_groups, 16) {
        const lane_f v = lane_load(value + LANES * g);
        sum[g] = lane_sum(v);
        lowest[g] = lane_lowest(v);
        positive[g] = lane_bits(v > lane_splat(0.0f));
    }
}

// 1/sqrt by the lanes' own approximation, and in the language's arithmetic.
KERNEL void selftest_rsqrt(
    int n_groups,
    const float *value,     // (n_groups, LANES)
    OUT float *approximate, // (n_groups, LANES)
    OUT float *precise)     // (n_groups, LANES)
{
    FOR_EACH_GROUP(g, n_groups, 16) {
        const lane_f v = lane_load(value + LANES * g);
        lane_store(approximate + LANES * g, lane_rsqrt(v));
        for (int l = 0; l < LANES; ++l)
            precise[LANES * g + l] = 1.0f / sqrtf(value[LANES * g + l]);
    }
}

// Count rounds until a limit is reached, then ask for a halt.
KERNEL void selftest_count(
    int n, int limit,
    INOUT int *counter,
    INOUT int *halt)
{
    FOR_EACH(i, n) {
        if (!halt[0]) {
            counter[i] += 1;
            if (counter[i] >= limit) halt[0] = 1;
        }
    }
}
