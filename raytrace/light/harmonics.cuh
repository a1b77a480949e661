// Irradiance of an environment by spherical harmonics; symbols and tables in harmonics.py.
#include "device/device.cuh"

#define HARMONIC_DEGREE 6
// Where in the table the nine coefficients of the smooth radiance begin.
#define SMOOTH_RADIANCE ((HARMONIC_DEGREE + 1) * (HARMONIC_DEGREE + 1))

// Radiance of the smooth part of the environment along d: the nine lowest harmonics.
DEVICE Vec3 harmonic_radiance(const float *table, Vec3 d)
{
    const float basis[9] = {
        0.282095f, 0.488603f * d.y, 0.488603f * d.z, 0.488603f * d.x, 1.092548f * d.x * d.y,
        1.092548f * d.y * d.z, 0.315392f * (3.0f * d.z * d.z - 1.0f), 1.092548f * d.x * d.z,
        0.546274f * (d.x * d.x - d.y * d.y)};
    Vec3 sum = make_vec3(0.0f, 0.0f, 0.0f);
    for (int i = 0; i < 9; ++i) sum = sum + basis[i] * load_vec3(table, SMOOTH_RADIANCE + i);
    return sum;
}

// Irradiance on a surface with normal n. The table holds the factors of the polynomials
// (l - m)! P_lm(z) Re (x + iy)^m and of Im; those of odd degrees above 1 are zero.
DEVICE Vec3 harmonic_irradiance(const float *table, Vec3 n)
{
    Vec3 sum = make_vec3(0.0f, 0.0f, 0.0f);
    float real = 1.0f, imaginary = 0.0f, diagonal = 1.0f;
    UNROLL_HOST for (int m = 0; m <= HARMONIC_DEGREE; ++m) {
        float before = 0.0f, now = diagonal;
        UNROLL_HOST for (int l = m; l <= HARMONIC_DEGREE; ++l) {
            if (l > m) {
                const float next = (float)(2 * l - 1) * n.z * now
                                   - (float)((l + m - 1) * (l - m - 1)) * before;
                before = now;
                now = next;
            }
            if (l > 1 && l % 2 == 1) continue;
            const int middle = l * (l + 1);
            sum = sum + (now * real) * load_vec3(table, middle + m);
            if (m > 0) sum = sum + (now * imaginary) * load_vec3(table, middle - m);
        }
        const float turned = real * n.x - imaginary * n.y;
        imaginary = real * n.y + imaginary * n.x;
        real = turned;
        diagonal *= (float)(2 * m + 1);
    }
    return sum;
}
