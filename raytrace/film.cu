// Add samples to the film; driven by film.py.
#include "device/device.cuh"

#define TILE 8
// Columns of the film, as in film.py.
#define FILM_FLOATS 16

// Add the samples of each pixel in their order, whatever thread made them.
KERNEL void add_samples(
    int n, int n_samples,         // n = tiles * 64
    const int *ray_pixel,         // (tiles, n_samples, 64): -1 outside of the picture
    const float *radiance,        // (tiles, n_samples, 64, 3), as all that follow
    const float *diffuse, const float *specular, const float *refraction,
    const float *cover,           // (..., 2)
    const float *shade,           // (..., 2)
    INOUT float *film)            // (pixels, 16): sums
{
    FOR_EACH(i, n) {
        const int64 first = i / (TILE * TILE) * n_samples * (TILE * TILE) + i % (TILE * TILE);
        const int64 pixel = ray_pixel[first];
        if (pixel < 0) continue;
        float *sum = film + FILM_FLOATS * pixel;
        for (int sample = 0; sample < n_samples; ++sample) {
            const int64 ray = first + (int64)sample * (TILE * TILE);
            for (int k = 0; k < 3; ++k) {
                sum[k] += radiance[3 * ray + k];
                sum[3 + k] += diffuse[3 * ray + k];
                sum[6 + k] += specular[3 * ray + k];
                sum[9 + k] += refraction[3 * ray + k];
            }
            for (int k = 0; k < 2; ++k) {
                sum[12 + k] += cover[2 * ray + k];
                sum[14 + k] += shade[2 * ray + k];
            }
        }
    }
}
