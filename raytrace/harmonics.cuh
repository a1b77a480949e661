// Irradiance of an environment by nine spherical-harmonic coefficients; symbols in harmonics.py.
#include "device/device.cuh"

// The nine real basis functions of a unit direction.
DEVICE void harmonic_basis(Vec3 d, float *basis)
{
    basis[0] = 0.282095f;
    basis[1] = 0.488603f * d.y;
    basis[2] = 0.488603f * d.z;
    basis[3] = 0.488603f * d.x;
    basis[4] = 1.092548f * d.x * d.y;
    basis[5] = 1.092548f * d.y * d.z;
    basis[6] = 0.315392f * (3.0f * d.z * d.z - 1.0f);
    basis[7] = 1.092548f * d.x * d.z;
    basis[8] = 0.546274f * (d.x * d.x - d.y * d.y);
}

DEVICE Vec3 harmonic_sum(const float *coefficient, const float *basis)
{
    Vec3 sum = make_vec3(0.0f, 0.0f, 0.0f);
    for (int i = 0; i < 9; ++i) sum = sum + basis[i] * load_vec3(coefficient, i);
    return sum;
}

// Radiance of the smooth part of the environment along d.
DEVICE Vec3 harmonic_radiance(const float *coefficient, Vec3 d)
{
    float basis[9];
    harmonic_basis(d, basis);
    return harmonic_sum(coefficient, basis);
}

// Irradiance on a surface with normal n, with the clamped cosine's A_0 = pi, A_1 = 2 pi / 3, A_2 = pi / 4.
DEVICE Vec3 harmonic_irradiance(const float *coefficient, Vec3 n)
{
    float basis[9];
    harmonic_basis(n, basis);
    basis[0] *= PI_F;
    for (int i = 1; i < 4; ++i) basis[i] *= 2.0f / 3.0f * PI_F;
    for (int i = 4; i < 9; ++i) basis[i] *= 0.25f * PI_F;
    return harmonic_sum(coefficient, basis);
}
