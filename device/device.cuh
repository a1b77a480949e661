// The only file that knows there are two compilers: one kernel text, two processors.
//
// KERNEL        a function that is launched; its first argument is the FOR_EACH count
// DEVICE        a function that kernels call
// INOUT, OUT    mark the pointers that a kernel changes or fills
// FOR_EACH      a grid-stride loop on CUDA, an OpenMP loop on the host
// FOR_EACH_GROUP the same over groups of LANES lanes: on CUDA LANES threads of a warp run
//               the body together, on the host one thread runs it on whole vectors
// FOR_EACH_GROUP_WITH the same, and each host thread keeps copies of the structs named behind, so
//               that no store makes it read their fields again
// FOR_LANES     a loop over the lanes of a group inside FOR_EACH_GROUP, for what is not vectors
// UNROLL        unrolls a loop on CUDA, so that arrays become registers; UNROLL_HOST one on
//               the host, so that its counter becomes constants
// FOR_ROWS      a loop over the rows of a LANES x LANES bit matrix that hold a bit: unrolled on
//               CUDA, where what a row sums stays in registers; the host skips empty rows
//               without a jump for each, which no processor could foresee
// UNLIKELY      a condition that hardly ever holds
// DEVICE_RARE   a function for such a case: on the host not inlined, so that the loop around it keeps
//               its registers
// IN_REGISTER   of a pointer: on the host it gets a register of its own, where the compiler would
//               rather work it out of others again and again
// lane_f/_i/_d  one value for each lane of a group; arithmetic and comparison act lane by lane.
//               A comparison gives a mask: join masks with & and |, test them with
//               lane_select and lane_bits. A true lane is -1 on the host and 1 on CUDA, so
//               never negate (~, !) a mask or count with it: compare the other way round.
#define LANES 8

typedef long long int64;
typedef unsigned long long uint64;
typedef unsigned int uint32;
typedef unsigned short uint16;
typedef unsigned char uint8;

#define INOUT
#define OUT
#define PI_F 3.14159265358979f

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

// ------------------------------------------------------------------ CUDA
#define KERNEL extern "C" __global__
#define DEVICE __device__ __forceinline__
#define DEVICE_RARE DEVICE
#define IN_REGISTER(pointer)
#define INFINITY_F __int_as_float(0x7f800000)

#define FOR_EACH(i, n)                                                        \
    for (int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x; i < (n);     \
         i += (int64)gridDim.x * blockDim.x)
#define FOR_EACH_CHUNKED(i, n, chunk) FOR_EACH(i, n)
#define FOR_EACH_GROUP(g, n, chunk)                                           \
    for (int64 g = ((int64)blockIdx.x * blockDim.x + threadIdx.x) / LANES;    \
         g < (n); g += (int64)gridDim.x * blockDim.x / LANES)
#define FOR_EACH_GROUP_WITH(g, n, chunk, ...) FOR_EACH_GROUP(g, n, chunk)
#define FOR_LANES(l) for (int l = lane_index(), l##_end = l + 1; l < l##_end; ++l)
#define UNROLL _Pragma("unroll")
#define UNROLL_HOST
#define FOR_ROWS(i, matrix)                                                   \
    UNROLL for (int i = 0; i < LANES; ++i)                                    \
        if ((matrix) >> (LANES * i) & ((1 << LANES) - 1))
#define UNLIKELY(condition) (condition)

typedef float lane_f;
typedef int lane_i;
typedef double lane_d;

DEVICE int lane_index() { return threadIdx.x & (LANES - 1); }
DEVICE unsigned lane_group_mask() { return 0xffu << (threadIdx.x & 31 & ~(LANES - 1)); }
DEVICE lane_f lane_load(const float *p) { return p[lane_index()]; }
DEVICE lane_i lane_load(const int *p) { return p[lane_index()]; }
DEVICE lane_d lane_load(const double *p) { return p[lane_index()]; }
// Lane l loads p[stride * l].
DEVICE lane_f lane_load_strided(const float *p, int stride) { return p[stride * lane_index()]; }
DEVICE void lane_store(double *p, lane_d v) { p[lane_index()] = v; }
DEVICE void lane_store(float *p, lane_f v) { p[lane_index()] = v; }
DEVICE void lane_store(int *p, lane_i v) { p[lane_index()] = v; }
DEVICE float lane_get(lane_f v, int lane)
{
    return __shfl_sync(lane_group_mask(), v, lane, LANES);
}
DEVICE lane_f lane_splat(float v) { return v; }
DEVICE lane_i lane_splat(int v) { return v; }
DEVICE lane_d lane_splat(double v) { return v; }
DEVICE lane_f lane_float(lane_i v) { return (float)v; }
DEVICE lane_d lane_double(lane_f v) { return (double)v; }
DEVICE lane_f lane_select(lane_i m, lane_f a, lane_f b) { return m ? a : b; }
DEVICE lane_i lane_select(lane_i m, lane_i a, lane_i b) { return m ? a : b; }
DEVICE lane_f lane_fma(lane_f a, lane_f b, lane_f c) { return fmaf(a, b, c); }
// c - a b.
DEVICE lane_f lane_fnma(lane_f a, lane_f b, lane_f c) { return fmaf(-a, b, c); }
DEVICE lane_f lane_min(lane_f a, lane_f b) { return a < b ? a : b; }
DEVICE lane_f lane_max(lane_f a, lane_f b) { return a > b ? a : b; }
DEVICE lane_f lane_rsqrt(lane_f x) { return rsqrtf(x); }
DEVICE lane_f lane_sqrt(lane_f x) { return sqrtf(x); }
// The low 32 bits of round(v), |v| < 2^51: the integer falls out of the mantissa.
DEVICE lane_i lane_low_bits(lane_d v)
{
    return (int)__double_as_longlong(v + 6755399441055744.0);
}
// The mask of the lanes whose bit is set; the word may hold other bits above.
DEVICE lane_i lane_from_bits(int bits) { return (bits >> lane_index()) & 1; }
DEVICE int lane_bits(lane_i m)
{
    const unsigned group = lane_group_mask();
    return (int)(__ballot_sync(group, m) >> (threadIdx.x & 31 & ~(LANES - 1))) & 0xff;
}
// Whether v <= limit in every lane; false where one is NaN.
DEVICE bool lane_all_at_most(lane_d v, double limit)
{
    return lane_bits(v <= limit) == 0xff;
}
DEVICE float lane_sum(lane_f v)
{
    for (int step = LANES / 2; step > 0; step /= 2)
        v += __shfl_xor_sync(lane_group_mask(), v, step);
    return v;
}
DEVICE float lane_lowest(lane_f v)
{
    for (int step = LANES / 2; step > 0; step /= 2)
        v = lane_min(v, __shfl_xor_sync(lane_group_mask(), v, step));
    return v;
}
DEVICE double lane_highest(lane_d v)
{
    for (int step = LANES / 2; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(lane_group_mask(), v, step);
        v = v > other ? v : other;
    }
    return v;
}
// Order what the lanes of a group wrote before what they read next.
DEVICE void lane_fence() { __syncwarp(lane_group_mask()); }

DEVICE int atomic_add_int(int *p, int v) { return atomicAdd(p, v); }
DEVICE int atomic_exchange_int(int *p, int v) { return atomicExch(p, v); }
DEVICE void atomic_add_int64(int64 *p, int64 v) { atomicAdd((uint64 *)p, (uint64)v); }
// Make what this thread wrote visible before what it writes next.
DEVICE void memory_fence() { __threadfence(); }
DEVICE int bit_count(uint64 v) { return __popcll(v); }
DEVICE int leading_zeros(uint64 v) { return __clzll((int64)v); }
DEVICE float float_from_bits(uint32 v) { return __uint_as_float(v); }
DEVICE uint32 bits_from_float(float v) { return __float_as_uint(v); }
DEVICE int64 bits_from_double(double v) { return __double_as_longlong(v); }
DEVICE double double_from_bits(int64 v) { return __longlong_as_double(v); }

#else

// ------------------------------------------------------------------ host
#include <math.h>
#include <string.h>
#if defined(__SSE__)
#include <immintrin.h>
#endif

#define KERNEL extern "C"
#define DEVICE static inline __attribute__((always_inline))
#define DEVICE_RARE static __attribute__((noinline, cold))
#define IN_REGISTER(pointer) __asm__("" : "+r"(pointer))
#define INFINITY_F __builtin_inff()
#define VFX_PRAGMA(text) _Pragma(#text)

#define FOR_EACH(i, n) FOR_EACH_CHUNKED(i, n, 512)
#define FOR_EACH_CHUNKED(i, n, chunk)                                         \
    VFX_PRAGMA(omp parallel for schedule(dynamic, chunk) if ((n) > (chunk)))  \
    for (int64 i = 0; i < (int64)(n); ++i)
#define FOR_EACH_GROUP(g, n, chunk) FOR_EACH_CHUNKED(g, n, chunk)
#define FOR_EACH_GROUP_WITH(g, n, chunk, ...)                                 \
    VFX_PRAGMA(omp parallel for schedule(dynamic, chunk) if ((n) > (chunk))   \
               firstprivate(__VA_ARGS__))                                     \
    for (int64 g = 0; g < (int64)(n); ++g)
#define FOR_LANES(l) for (int l = 0; l < LANES; ++l)
#define UNROLL
#define UNROLL_HOST VFX_PRAGMA(GCC unroll 16)
#define FOR_ROWS(i, matrix)                                                   \
    for (uint64 i, i##_left = rows_with_bits(matrix);                         \
         i##_left && (i = __builtin_ctzll(i##_left) / LANES, true); i##_left &= i##_left - 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

typedef float lane_f __attribute__((vector_size(4 * LANES)));
typedef int lane_i __attribute__((vector_size(4 * LANES)));
typedef double lane_d __attribute__((vector_size(8 * LANES)));
typedef int64 lane_l __attribute__((vector_size(8 * LANES)));

DEVICE lane_f lane_load(const float *p) { lane_f v; memcpy(&v, p, sizeof v); return v; }
DEVICE lane_i lane_load(const int *p) { lane_i v; memcpy(&v, p, sizeof v); return v; }
DEVICE lane_d lane_load(const double *p) { lane_d v; memcpy(&v, p, sizeof v); return v; }
DEVICE lane_f lane_load_strided(const float *p, int stride)
{
    return (lane_f){p[0], p[stride], p[2 * stride], p[3 * stride],
                    p[4 * stride], p[5 * stride], p[6 * stride], p[7 * stride]};
}
DEVICE void lane_store(double *p, lane_d v) { memcpy(p, &v, sizeof v); }
DEVICE void lane_store(float *p, lane_f v) { memcpy(p, &v, sizeof v); }
DEVICE void lane_store(int *p, lane_i v) { memcpy(p, &v, sizeof v); }
DEVICE float lane_get(lane_f v, int lane) { return v[lane]; }
DEVICE lane_f lane_splat(float v) { return (lane_f){v, v, v, v, v, v, v, v}; }
DEVICE lane_i lane_splat(int v) { return (lane_i){v, v, v, v, v, v, v, v}; }
DEVICE lane_d lane_splat(double v) { return (lane_d){v, v, v, v, v, v, v, v}; }
DEVICE lane_f lane_float(lane_i v) { return __builtin_convertvector(v, lane_f); }
DEVICE lane_d lane_double(lane_f v) { return __builtin_convertvector(v, lane_d); }
DEVICE lane_i lane_low_bits(lane_d v)
{
    return __builtin_convertvector((lane_l)(v + 6755399441055744.0), lane_i);
}
#if defined(__AVX2__) && defined(__FMA__)
// A mask is the sign bit of each lane: shift the lane's bit there.
DEVICE lane_i lane_from_bits(int bits)
{
    const lane_i each = {31, 30, 29, 28, 27, 26, 25, 24};
    return (lane_i)_mm256_sllv_epi32((__m256i)lane_splat(bits), (__m256i)each);
}
DEVICE lane_f lane_select(lane_i m, lane_f a, lane_f b)
{
    return _mm256_blendv_ps(b, a, (__m256)m);
}
DEVICE lane_i lane_select(lane_i m, lane_i a, lane_i b)
{
    return (lane_i)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)m);
}
DEVICE lane_f lane_min(lane_f a, lane_f b) { return _mm256_min_ps(a, b); }
DEVICE lane_f lane_max(lane_f a, lane_f b) { return _mm256_max_ps(a, b); }
DEVICE lane_f lane_fma(lane_f a, lane_f b, lane_f c) { return _mm256_fmadd_ps(a, b, c); }
DEVICE lane_f lane_fnma(lane_f a, lane_f b, lane_f c) { return _mm256_fnmadd_ps(a, b, c); }
DEVICE int lane_bits(lane_i m) { return _mm256_movemask_ps((__m256)m); }
DEVICE lane_f lane_sqrt(lane_f x) { return _mm256_sqrt_ps(x); }
// The 12-bit estimate and one Newton step: relative error below 3e-7 for positive normal x.
DEVICE lane_f lane_rsqrt(lane_f x)
{
    const lane_f y = _mm256_rsqrt_ps(x);
    return y * lane_fma(x * -0.5f, y * y, lane_splat(1.5f));
}
#else
DEVICE lane_i lane_from_bits(int bits)
{
    const lane_i each = {1, 2, 4, 8, 16, 32, 64, 128};
    return (lane_splat(bits) & each) == each;
}
DEVICE lane_f lane_select(lane_i m, lane_f a, lane_f b) { return m ? a : b; }
DEVICE lane_i lane_select(lane_i m, lane_i a, lane_i b) { return m ? a : b; }
DEVICE lane_f lane_min(lane_f a, lane_f b) { return a < b ? a : b; }
DEVICE lane_f lane_max(lane_f a, lane_f b) { return a > b ? a : b; }
DEVICE lane_f lane_fma(lane_f a, lane_f b, lane_f c) { return a * b + c; }
DEVICE lane_f lane_fnma(lane_f a, lane_f b, lane_f c) { return c - a * b; }
DEVICE int lane_bits(lane_i m)
{
    int bits = 0;
    for (int l = 0; l < LANES; ++l) bits |= (m[l] != 0) << l;
    return bits;
}
DEVICE lane_f lane_sqrt(lane_f x)
{
    lane_f y;
    for (int l = 0; l < LANES; ++l) y[l] = sqrtf(x[l]);
    return y;
}
DEVICE lane_f lane_rsqrt(lane_f x) { return 1.0f / lane_sqrt(x); }
#endif
DEVICE bool lane_all_at_most(lane_d v, double limit)
{
    return lane_bits(__builtin_convertvector(v <= lane_splat(limit), lane_i)) == 0xff;
}
DEVICE float lane_sum(lane_f v)
{
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}
DEVICE float lane_lowest(lane_f v)
{
    float lowest = v[0];
    for (int l = 1; l < LANES; ++l) lowest = v[l] < lowest ? v[l] : lowest;
    return lowest;
}
DEVICE double lane_highest(lane_d v)
{
    double highest = v[0];
    for (int l = 1; l < LANES; ++l) highest = v[l] > highest ? v[l] : highest;
    return highest;
}
DEVICE void lane_fence() {}

DEVICE int atomic_add_int(int *p, int v) { return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL); }
DEVICE int atomic_exchange_int(int *p, int v) { return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL); }
DEVICE void atomic_add_int64(int64 *p, int64 v) { __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
DEVICE void memory_fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
DEVICE int bit_count(uint64 v) { return __builtin_popcountll(v); }
DEVICE int leading_zeros(uint64 v) { return v ? __builtin_clzll(v) : 64; }
// The lowest bit of each byte that is not zero.
DEVICE uint64 rows_with_bits(uint64 v)
{
    v |= v >> 4;
    v |= v >> 2;
    v |= v >> 1;
    return v & 0x0101010101010101ull;
}
DEVICE float float_from_bits(uint32 v) { float f; memcpy(&f, &v, sizeof f); return f; }
DEVICE uint32 bits_from_float(float v) { uint32 u; memcpy(&u, &v, sizeof u); return u; }
DEVICE int64 bits_from_double(double v) { int64 i; memcpy(&i, &v, sizeof i); return i; }
DEVICE double double_from_bits(int64 v) { double d; memcpy(&d, &v, sizeof d); return d; }

#endif

// ------------------------------------------------------------------ both
DEVICE int minimum(int a, int b) { return a < b ? a : b; }
DEVICE int maximum(int a, int b) { return a > b ? a : b; }
DEVICE int64 minimum(int64 a, int64 b) { return a < b ? a : b; }
DEVICE int64 maximum(int64 a, int64 b) { return a > b ? a : b; }
DEVICE float minimum(float a, float b) { return a < b ? a : b; }
DEVICE float maximum(float a, float b) { return a > b ? a : b; }
DEVICE double minimum(double a, double b) { return a < b ? a : b; }
DEVICE double maximum(double a, double b) { return a > b ? a : b; }
// What is not a number becomes the lower bound: of a comparison that fails, the second is taken.
DEVICE float clamped(float x, float low, float high) { return minimum(maximum(x, low), high); }
// The cell of 0 .. n - 1 that a place is in, or is nearest to: any float gives an index, whatever
// went wrong before; what is not a number gives the first.
DEVICE int cell_index(float place, int n)
{
    return minimum((int)minimum(maximum(place, 0.0f), 2.0e9f), n - 1);
}
DEVICE int cell_index(double place, int n)
{
    return minimum((int)minimum(maximum(place, 0.0), 2.0e9), n - 1);
}

struct Vec3 { float x, y, z; };
DEVICE Vec3 make_vec3(float x, float y, float z) { Vec3 v; v.x = x; v.y = y; v.z = z; return v; }
DEVICE Vec3 operator+(Vec3 a, Vec3 b) { return make_vec3(a.x + b.x, a.y + b.y, a.z + b.z); }
DEVICE Vec3 operator-(Vec3 a, Vec3 b) { return make_vec3(a.x - b.x, a.y - b.y, a.z - b.z); }
DEVICE Vec3 operator-(Vec3 a) { return make_vec3(-a.x, -a.y, -a.z); }
DEVICE Vec3 operator*(Vec3 a, Vec3 b) { return make_vec3(a.x * b.x, a.y * b.y, a.z * b.z); }
DEVICE Vec3 operator*(Vec3 a, float s) { return make_vec3(a.x * s, a.y * s, a.z * s); }
DEVICE Vec3 operator*(float s, Vec3 a) { return a * s; }
DEVICE Vec3 operator/(Vec3 a, float s) { return make_vec3(a.x / s, a.y / s, a.z / s); }
DEVICE float dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
DEVICE Vec3 cross(Vec3 a, Vec3 b)
{
    return make_vec3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
DEVICE float norm(Vec3 a) { return sqrtf(dot(a, a)); }
DEVICE Vec3 normalize(Vec3 a) { return a / norm(a); }
DEVICE Vec3 load_vec3(const float *p, int64 i)
{
    return make_vec3(p[3 * i], p[3 * i + 1], p[3 * i + 2]);
}
DEVICE void store_vec3(float *p, int64 i, Vec3 v)
{
    p[3 * i] = v.x;
    p[3 * i + 1] = v.y;
    p[3 * i + 2] = v.z;
}

struct Vec3d { double x, y, z; };
DEVICE Vec3d make_vec3d(double x, double y, double z) { Vec3d v; v.x = x; v.y = y; v.z = z; return v; }
DEVICE Vec3d operator+(Vec3d a, Vec3d b) { return make_vec3d(a.x + b.x, a.y + b.y, a.z + b.z); }
DEVICE Vec3d operator-(Vec3d a, Vec3d b) { return make_vec3d(a.x - b.x, a.y - b.y, a.z - b.z); }
DEVICE Vec3d operator*(Vec3d a, double s) { return make_vec3d(a.x * s, a.y * s, a.z * s); }
DEVICE Vec3d operator*(double s, Vec3d a) { return a * s; }
DEVICE double dot(Vec3d a, Vec3d b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
DEVICE double norm(Vec3d a) { return sqrt(dot(a, a)); }
DEVICE Vec3d load_vec3d(const double *p, int64 i)
{
    return make_vec3d(p[3 * i], p[3 * i + 1], p[3 * i + 2]);
}
DEVICE void store_vec3d(double *p, int64 i, Vec3d v)
{
    p[3 * i] = v.x;
    p[3 * i + 1] = v.y;
    p[3 * i + 2] = v.z;
}

// A well mixed 32-bit integer hash (xor-shift-multiply).
DEVICE uint32 hash32(uint32 v)
{
    v ^= v >> 16;
    v *= 0x7feb352du;
    v ^= v >> 15;
    v *= 0x846ca68bu;
    v ^= v >> 16;
    return v;
}
DEVICE uint32 hash32(uint32 seed, uint32 a, uint32 b, uint32 c)
{
    return hash32(hash32(hash32(hash32(seed) + a) + 0x9e3779b9u * b) + 0x85ebca6bu * c);
}
// Uniform in [0, 1), a function of its arguments alone.
DEVICE float hash_uniform(uint32 seed, uint32 a, uint32 b, uint32 c)
{
    return (float)(hash32(seed, a, b, c) >> 8) * (1.0f / 16777216.0f);
}
