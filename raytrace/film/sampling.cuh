// Well-spread sample points, each a function of (pixel, dimension, sample) alone.
//
// The first two Sobol' dimensions, Owen-scrambled by a hash as in Burley, "Practical
// hash-based Owen scrambling" (2020) and Laine and Karras, "Stratified sampling for stochastic
// transparency" (2011). Pairs of dimensions are padded: each has its own scramble.
#include "device/device.cuh"

struct Point2 {
    float x, y;     // in [0, 1)
};

DEVICE uint32 reversed_bits(uint32 v)
{
    v = ((v >> 1) & 0x55555555u) | ((v & 0x55555555u) << 1);
    v = ((v >> 2) & 0x33333333u) | ((v & 0x33333333u) << 2);
    v = ((v >> 4) & 0x0f0f0f0fu) | ((v & 0x0f0f0f0fu) << 4);
    v = ((v >> 8) & 0x00ff00ffu) | ((v & 0x00ff00ffu) << 8);
    return (v >> 16) | (v << 16);
}

// Scramble a number whose bits are reversed, so that a bit depends on itself and those of
// larger strata only: strata stay strata. Returns it in the right order.
DEVICE uint32 owen_scrambled(uint32 reversed, uint32 seed)
{
    uint32 v = reversed + seed;
    v ^= v * 0x6c50b47cu;
    v ^= v * 0xb82f1e52u;
    v ^= v * 0xc7afe638u;
    v ^= v * 0x8d22f6e6u;
    return reversed_bits(v);
}

DEVICE float unit_float(uint32 v) { return (float)(v >> 8) * (1.0f / 16777216.0f); }

// Point `sample` of a pixel's sequence for one pair of dimensions.
DEVICE Point2 sample_point(uint32 pixel, uint32 dimension, uint32 sample, uint32 index_mask)
{
    const uint32 seed = hash32(hash32(pixel) + 0x9e3779b9u * dimension);
    // Shuffle the order within strata: pairs of dimensions must not know of each other.
    const uint32 index = owen_scrambled(reversed_bits(sample), hash32(seed)) & index_mask;
    // The first dimension is the reversed index itself, the second sums direction numbers.
    uint32 y = 0;
    uint32 direction = 1u;
    for (uint32 rest = index; rest != 0; rest >>= 1) {
        if (rest & 1u) y ^= direction;
        direction ^= direction << 1;
    }
    Point2 p;
    p.x = unit_float(owen_scrambled(index, seed));
    p.y = unit_float(owen_scrambled(y, hash32(seed ^ 0x5bd1e995u)));
    return p;
}

// Point on the unit disk, squares to circles (Shirley and Chiu 1997).
DEVICE Point2 disk_point(Point2 u)
{
    const float a = 2.0f * u.x - 1.0f, b = 2.0f * u.y - 1.0f;
    Point2 p = {0.0f, 0.0f};
    if (a == 0.0f && b == 0.0f) return p;
    const bool wide = fabsf(a) > fabsf(b);
    const float radius = wide ? a : b;
    const float angle = wide ? 0.25f * PI_F * (b / a) : PI_F * (0.5f - 0.25f * (a / b));
    p.x = radius * cosf(angle);
    p.y = radius * sinf(angle);
    return p;
}

// Local (x, y, z) turned so that z runs along the unit vector n (Duff et al. 2017).
DEVICE Vec3 turned_to(Vec3 n, Vec3 local)
{
    const float sign = n.z >= 0.0f ? 1.0f : -1.0f;
    const float a = -1.0f / (sign + n.z);
    const float b = n.x * n.y * a;
    const Vec3 tangent = make_vec3(1.0f + sign * n.x * n.x * a, sign * b, -sign * n.x);
    const Vec3 bitangent = make_vec3(b, sign + n.y * n.y * a, -n.y);
    return local.x * tangent + local.y * bitangent + local.z * n;
}

// Direction about n with density cos / pi.
DEVICE Vec3 cosine_direction(Vec3 n, Point2 u)
{
    const Point2 d = disk_point(u);
    return turned_to(n, make_vec3(d.x, d.y, sqrtf(maximum(0.0f, 1.0f - d.x * d.x - d.y * d.y))));
}

// Half vector about n with density (s + 1) / (2 pi) cos^s: a Blinn-Phong lobe.
DEVICE Vec3 lobe_direction(Vec3 n, float shininess, Point2 u)
{
    const float cosine = powf(1.0f - u.x, 1.0f / (shininess + 1.0f));
    const float sine = sqrtf(maximum(0.0f, 1.0f - cosine * cosine));
    const float angle = 2.0f * PI_F * u.y;
    return turned_to(n, make_vec3(sine * cosf(angle), sine * sinf(angle), cosine));
}
