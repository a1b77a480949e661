// Add samples to the film; driven by film.py. One thread adds the samples of a pixel, in their
// order, whatever thread made them and however they were shared out.
#include "device/device.cuh"

#define TILE 8
// Columns of the film, as in film.py.
#define FILM_FLOATS 22
// Pieces that a pixel remembers.
#define MATTE_SLOTS 12
// Rows of the material table before those of bodies: floor, balls.
#define FIXED_MATERIALS 2

// The most that a sample counts for, up or down: its square, summed, is still a float. What is not
// a number counts for nothing; it would spread over all that comp makes of the pixel.
#define MOST_LIGHT 1e15f
DEVICE float kept(float x)
{
    return x == x ? clamped(x, -MOST_LIGHT, MOST_LIGHT) : 0.0f;
}

// Sum light: radiance, its three parts, cover, shade, and the square of the brightness.
KERNEL void add_samples(
    int n, int n_samples, int has_background,   // n = tiles * 64
    const int *ray_index,         // (tiles, n_samples, 64): -1 outside of the picture
    const float *radiance,        // (tiles, n_samples, 64, 3), as all that follow
    const float *diffuse, const float *specular, const float *refraction,
    const float *cover,           // (..., 2)
    const float *shade,           // (..., 2)
    INOUT float *film,            // (pixels, 22): sums
    INOUT int *count)             // (pixels,)
{
    FOR_EACH(i, n) {
        const int64 first = i / (TILE * TILE) * n_samples * (TILE * TILE) + i % (TILE * TILE);
        const int64 pixel = ray_index[first];
        if (pixel < 0) continue;
        float *sum = film + FILM_FLOATS * pixel;
        for (int sample = 0; sample < n_samples; ++sample) {
            const int64 ray = first + (int64)sample * (TILE * TILE);
            const bool is_seen = has_background != 0 || cover[2 * ray] > 0.0f;
            Vec3 light = make_vec3(0.0f, 0.0f, 0.0f);
            if (is_seen)
                light = make_vec3(kept(radiance[3 * ray]), kept(radiance[3 * ray + 1]),
                                  kept(radiance[3 * ray + 2]));
            sum[0] += light.x;
            sum[1] += light.y;
            sum[2] += light.z;
            for (int k = 0; k < 3; ++k) {
                sum[3 + k] += kept(diffuse[3 * ray + k]);
                sum[6 + k] += kept(specular[3 * ray + k]);
                sum[9 + k] += kept(refraction[3 * ray + k]);
            }
            for (int k = 0; k < 2; ++k) {
                sum[12 + k] += kept(cover[2 * ray + k]);
                sum[14 + k] += kept(shade[2 * ray + k]);
            }
            const float bright = 0.2126f * light.x + 0.7152f * light.y + 0.0722f * light.z;
            sum[16] += bright * bright;
        }
        count[pixel] += n_samples;
    }
}

// Sum what the camera rays meet first: albedo, surface and fracture, and how often which piece.
KERNEL void add_features(
    int n, int n_samples,         // n = tiles * 64
    const int *ray_index,         // (tiles, n_samples, 64)
    const float *albedo,          // (tiles, n_samples, 64, 3)
    const int *identity,          // (tiles, n_samples, 64, 4): piece_id, element, material, ...
    INOUT float *film,            // (pixels, 22)
    INOUT int *matte_key,         // (pixels, 12)
    INOUT uint16 *matte_count)    // (pixels, 12): 0 for a free slot
{
    FOR_EACH(i, n) {
        const int64 first = i / (TILE * TILE) * n_samples * (TILE * TILE) + i % (TILE * TILE);
        const int64 pixel = ray_index[first];
        if (pixel < 0) continue;
        float *sum = film + FILM_FLOATS * pixel;
        int *key = matte_key + MATTE_SLOTS * pixel;
        uint16 *count = matte_count + MATTE_SLOTS * pixel;
        for (int sample = 0; sample < n_samples; ++sample) {
            const int64 ray = first + (int64)sample * (TILE * TILE);
            const int material = identity[4 * ray + 2];
            if (material < 0) continue;
            for (int k = 0; k < 3; ++k) sum[17 + k] += kept(albedo[3 * ray + k]);
            const bool is_piece = identity[4 * ray] >= 0;
            const int side = (material - FIXED_MATERIALS) & 1;
            if (is_piece) sum[20 + side] += 1.0f;
            // Floor and balls have the keys -1 and -2, colliders less, pieces two each.
            const int wanted = is_piece ? 2 * identity[4 * ray] + side : -1 - material;
            int slot = 0;
            while (slot < MATTE_SLOTS && count[slot] > 0 && key[slot] != wanted) ++slot;
            if (slot == MATTE_SLOTS) continue;
            key[slot] = wanted;
            count[slot] = (uint16)(count[slot] + 1);
        }
    }
}
