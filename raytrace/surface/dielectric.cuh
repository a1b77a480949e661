// Glass: what an interface between two clear media reflects, and where the rest goes.
//
// eta is the refractive index before the interface over the one behind it. Light is unpolarised,
// and waves do not interfere: also not in the gap between two pieces that touch.
#include "device/device.cuh"

// Fresnel's reflectance, 1 from the critical angle on; cosine_behind is Snell's.
DEVICE float dielectric_reflectance(float cosine, float eta, float &cosine_behind)
{
    const float square = 1.0f - eta * eta * (1.0f - cosine * cosine);
    if (square <= 0.0f) {
        cosine_behind = 0.0f;
        return 1.0f;
    }
    cosine_behind = sqrtf(square);
    const float across = (eta * cosine - cosine_behind) / (eta * cosine + cosine_behind);
    const float along = (cosine - eta * cosine_behind) / (cosine + eta * cosine_behind);
    return 0.5f * (across * across + along * along);
}

// Two interfaces with a gap of air too thin to see: all reflections between them added up.
DEVICE float gap_reflectance(float cosine, float index_before, float index_behind)
{
    float cosine_gap, cosine_behind;
    const float first = dielectric_reflectance(cosine, index_before, cosine_gap);
    if (first >= 1.0f) return 1.0f;
    const float second = dielectric_reflectance(cosine_gap, 1.0f / index_behind, cosine_behind);
    return first + (1.0f - first) * (1.0f - first) * second / (1.0f - first * second);
}

// A direction mirrored at a normal.
DEVICE Vec3 mirrored(Vec3 direction, Vec3 normal)
{
    return normalize(direction - (2.0f * dot(direction, normal)) * normal);
}

// The direction behind the interface by Snell's law; normal faces the ray.
DEVICE Vec3 refracted(Vec3 direction, Vec3 normal, float eta, float cosine, float cosine_behind)
{
    return normalize(eta * direction + (eta * cosine - cosine_behind) * normal);
}
