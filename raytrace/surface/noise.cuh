// Smooth noise in space with its slope, and sums of octaves of it.
#include "device/device.cuh"

struct Noise {
    float value;    // about -1 to 1
    Vec3 slope;
};

DEVICE float lattice_value(int x, int y, int z)
{
    const uint32 h = hash32((uint32)x * 0x8da6b343u ^ (uint32)y * 0xd8163841u
                            ^ (uint32)z * 0xcb1ab31fu);
    return (float)(h >> 8) * (2.0f / 16777216.0f) - 1.0f;
}

// Random values on the integer lattice, joined by quintics (Perlin 2002, "Improving noise").
DEVICE Noise value_noise(Vec3 p)
{
    const float fx = floorf(p.x), fy = floorf(p.y), fz = floorf(p.z);
    const int x = (int)fx, y = (int)fy, z = (int)fz;
    const float u = p.x - fx, v = p.y - fy, w = p.z - fz;
    const float su = u * u * u * (u * (u * 6.0f - 15.0f) + 10.0f);
    const float sv = v * v * v * (v * (v * 6.0f - 15.0f) + 10.0f);
    const float sw = w * w * w * (w * (w * 6.0f - 15.0f) + 10.0f);
    const float du = 30.0f * u * u * (u * (u - 2.0f) + 1.0f);
    const float dv = 30.0f * v * v * (v * (v - 2.0f) + 1.0f);
    const float dw = 30.0f * w * w * (w * (w - 2.0f) + 1.0f);
    const float a = lattice_value(x, y, z), b = lattice_value(x + 1, y, z);
    const float c = lattice_value(x, y + 1, z), d = lattice_value(x + 1, y + 1, z);
    const float e = lattice_value(x, y, z + 1), f = lattice_value(x + 1, y, z + 1);
    const float g = lattice_value(x, y + 1, z + 1), h = lattice_value(x + 1, y + 1, z + 1);
    // The value as a polynomial in su, sv, sw.
    const float ku = b - a, kv = c - a, kw = e - a;
    const float kuv = a - b - c + d, kvw = a - c - e + g, kuw = a - b - e + f;
    const float kuvw = -a + b + c - d + e - f - g + h;
    Noise noise;
    noise.value = a + ku * su + kv * sv + kw * sw + kuv * su * sv + kvw * sv * sw
                  + kuw * su * sw + kuvw * su * sv * sw;
    noise.slope = make_vec3(du * (ku + kuv * sv + kuw * sw + kuvw * sv * sw),
                            dv * (kv + kuv * su + kvw * sw + kuvw * su * sw),
                            dw * (kw + kvw * sv + kuw * su + kuvw * su * sv));
    return noise;
}

// Octaves of half the size and half the height each. Those finer than `finest`, a length in the
// units of p, are faded out: a pixel would only see them as grain.
DEVICE Noise octave_noise(Vec3 p, int octaves, float finest)
{
    Noise sum;
    sum.value = 0.0f;
    sum.slope = make_vec3(0.0f, 0.0f, 0.0f);
    float height = 0.5f, scale = 1.0f;
    for (int k = 0; k < octaves; ++k) {
        const float kept = clamped(2.0f - 2.0f * finest * scale, 0.0f, 1.0f);
        if (kept <= 0.0f) break;
        // Lattices are shifted against each other, or all would be flat at the same points.
        const Vec3 shift = make_vec3(17.3f * (float)k, 5.7f * (float)k, 11.1f * (float)k);
        const Noise octave = value_noise(scale * p + shift);
        sum.value += kept * height * octave.value;
        sum.slope = sum.slope + (kept * height * scale) * octave.slope;
        height *= 0.5f;
        scale *= 2.07f;
    }
    return sum;
}
