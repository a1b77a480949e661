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

// What the lanes compute, one operation an output; mask is a bit for each lane of a group.
KERNEL void selftest_lane_arithmetic(
    int n_groups, int mask,
    const float *a,         // (n_groups, LANES)
    const float *b,         // (n_groups, LANES)
    const int *whole,       // (n_groups, LANES)
    OUT float *fused,       // (n_groups, LANES) a b + whole
    OUT float *smaller,     // (n_groups, LANES)
    OUT float *larger,      // (n_groups, LANES)
    OUT float *chosen,      // (n_groups, LANES) a where the mask and a < b hold, else b
    OUT int *doubled)       // (n_groups, LANES)
{
    FOR_EACH_GROUP(g, n_groups, 16) {
        const int64 at = LANES * g;
        const lane_f x = lane_load(a + at);
        const lane_f y = lane_load(b + at);
        const lane_i w = lane_load(whole + at);
        lane_store(fused + at, lane_fma(x, y, lane_float(w)));
        lane_store(smaller + at, lane_min(x, y));
        lane_store(larger + at, lane_max(x, y));
        lane_store(chosen + at, lane_select(lane_from_bits(mask) & (x < y), x, y));
        lane_store(doubled + at, w + w);
    }
}

// Doubles in lanes: twice the value, its nearest integer's low bits, and whether all <= limit.
KERNEL void selftest_lane_doubles(
    int n_groups, double limit,
    const double *value,    // (n_groups, LANES)
    OUT double *doubled,    // (n_groups, LANES)
    OUT int *nearest,       // (n_groups, LANES)
    OUT int *within)        // (n_groups,)
{
    FOR_EACH_GROUP(g, n_groups, 16) {
        const lane_d v = lane_load(value + LANES * g);
        lane_store(doubled + LANES * g, v + v);
        lane_store(nearest + LANES * g, lane_low_bits(v));
        within[g] = lane_all_at_most(v, limit);
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

// Hash and bits, which both processors must agree on exactly.
KERNEL void selftest_integers(
    int n, uint32 seed,
    const uint64 *word,     // (n,)
    OUT float *uniform,     // (n,) in [0, 1)
    OUT int *ones,          // (n,)
    OUT int *zeros)         // (n,) leading zeros
{
    FOR_EACH(i, n) {
        uniform[i] = hash_uniform(seed, (uint32)i, 0u, 0u);
        ones[i] = bit_count(word[i]);
        zeros[i] = leading_zeros(word[i]);
    }
}

// cross(a, b) and the norm of a.
KERNEL void selftest_vectors(
    int n,
    const float *a,         // (n, 3)
    const float *b,         // (n, 3)
    OUT float *product,     // (n, 3)
    OUT float *length)      // (n,)
{
    FOR_EACH(i, n) {
        store_vec3(product, i, cross(load_vec3(a, i), load_vec3(b, i)));
        length[i] = norm(load_vec3(a, i));
    }
}

// Fields of every kind, in an order that leaves gaps between them.
struct SelftestPair {
    uint8 small;
    double wide;
};
struct SelftestFields {
    bool flag;
    uint16 half;
    SelftestPair pair;
    uint8 byte;
    Vec3 shift;
    const float *x;             // (n,)
    uint32 word;
    INOUT float *y;             // (n,)
    int64 whole, large;
};

// y = word x + y, and the numbers as the kernel finds them.
KERNEL void selftest_struct(
    int n, SelftestFields fields,
    OUT double *found)          // (n, 10)
{
    FOR_EACH(i, n) {
        fields.y[i] = (float)fields.word * fields.x[i] + fields.y[i];
        const double number[10] = {
            fields.flag ? 1.0 : 0.0, (double)fields.half, (double)fields.pair.small,
            fields.pair.wide, (double)fields.byte, fields.shift.x, fields.shift.y, fields.shift.z,
            (double)fields.whole, (double)fields.large};
        for (int k = 0; k < 10; ++k) found[10 * i + k] = number[k];
    }
}
