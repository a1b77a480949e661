// The CUDA language as far as device.cuh uses it, for a host compiler: with this before it, the
// CUDA half of a kernel's text runs on the host, in warps whose lanes meet as on a GPU (warp.cpp).
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

#define __CUDACC__ 1
#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))

namespace warp {

struct Index { unsigned x; };
extern thread_local Index thread_index, block_index, block_size, grid_size;

enum Operation { SHUFFLE, SHUFFLE_XOR, BALLOT, SYNC };

// Wait until all lanes of the mask have called the same operation; what it gives this lane.
uint64_t meet(Operation operation, unsigned mask, uint64_t value, int argument, int width);

// Run a kernel over `count` items with `lanes` threads each.
void launch(const char *kernel, int64_t count, int lanes, void (*body)(void **), void **argument);

template <class T>
inline T shuffle(Operation operation, unsigned mask, T value, int argument, int width)
{
    static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    bits = meet(operation, mask, bits, argument, width);
    memcpy(&value, &bits, sizeof(T));
    return value;
}

template <class To, class From>
inline To same_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "a value and its bits have one size");
    To to;
    memcpy(&to, &from, sizeof(To));
    return to;
}

template <class T>
inline T fetch_add(T *place, T value)
{
    const T before = *place;
    *place = before + value;
    return before;
}

}  // namespace warp

#define threadIdx warp::thread_index
#define blockIdx warp::block_index
#define blockDim warp::block_size
#define gridDim warp::grid_size

template <class T>
inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32)
{
    return warp::shuffle(warp::SHUFFLE, mask, value, lane, width);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int step, int width = 32)
{
    return warp::shuffle(warp::SHUFFLE_XOR, mask, value, step, width);
}
inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    return (unsigned)warp::meet(warp::BALLOT, mask, predicate != 0, 0, 32);
}
inline void __syncwarp(unsigned mask = 0xffffffffu) { warp::meet(warp::SYNC, mask, 0, 0, 32); }

// Only one lane runs at a time: an addition in one piece is atomic.
inline int atomicAdd(int *place, int value) { return warp::fetch_add(place, value); }
inline unsigned long long atomicAdd(unsigned long long *place, unsigned long long value)
{
    return warp::fetch_add(place, value);
}
inline int atomicExch(int *place, int value)
{
    const int before = *place;
    *place = value;
    return before;
}
inline void __threadfence() {}

inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
inline float __int_as_float(int v) { return warp::same_bits<float>(v); }
inline float __uint_as_float(unsigned v) { return warp::same_bits<float>(v); }
inline unsigned __float_as_uint(float v) { return warp::same_bits<unsigned>(v); }
inline long long __double_as_longlong(double v) { return warp::same_bits<long long>(v); }
inline double __longlong_as_double(long long v) { return warp::same_bits<double>(v); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
