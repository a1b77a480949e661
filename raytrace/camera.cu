// Camera rays, tile by tile; driven by camera.py.
#include "device/device.cuh"
#include "raytrace/sampling.cuh"

// Pixels come in square tiles, so that neighbours share what they read.
#define TILE 8
// Segments of `filter`, the inverse of the pixel filter's cumulative distribution.
#define FILTER_SEGMENTS 128

DEVICE float filter_offset(const float *filter, float u)
{
    const float place = u * (float)FILTER_SEGMENTS;
    const int segment = minimum((int)place, FILTER_SEGMENTS - 1);
    const float part = place - (float)segment;
    return filter[segment] + part * (filter[segment + 1] - filter[segment]);
}

// Rays through the pixels of the tiles: for each tile the samples one after the other, and for
// each sample all 64 pixels, in blocks of 4 x 2 whose rays walk the tree together. Without
// samples (n_samples = 0) one ray goes through the centre of each pixel.
KERNEL void camera_rays(
    int n, int width, int height, int n_samples, int first_sample, uint32 index_mask,
    const int *tile,              // (tiles,): n = tiles * max(n_samples, 1) * 64
    const float *view,            // (4, 3): eye, half right, half up, forward
    const float *filter,          // (129,): pixels from the centre
    OUT int *ray_pixel,           // (n,): -1 outside of the picture
    OUT int *ray_sample,          // (n,)
    OUT float *origin,            // (n, 3)
    OUT float *direction)         // (n, 3): unit
{
    FOR_EACH(i, n) {
        const int samples = maximum(n_samples, 1);
        const int inside = (int)(i % (TILE * TILE));
        const int sample = first_sample + (int)(i / (TILE * TILE) % samples);
        const int place = tile[i / (TILE * TILE * samples)];
        const int tiles_across = (width + TILE - 1) / TILE;
        const int column = place % tiles_across * TILE + (inside & 3) + ((inside >> 3) & 1) * 4;
        const int row = place / tiles_across * TILE + ((inside >> 2) & 1) + (inside >> 4) * 2;
        const bool exists = column < width && row < height;
        const int pixel = row * width + column;
        float x = (float)column + 0.5f, y = (float)row + 0.5f;
        if (n_samples > 0) {
            const Point2 u = sample_point((uint32)pixel, 0, (uint32)sample, index_mask);
            x += filter_offset(filter, u.x);
            y += filter_offset(filter, u.y);
        }
        const float screen_x = 2.0f * x / (float)width - 1.0f;
        const float screen_y = 1.0f - 2.0f * y / (float)height;
        ray_pixel[i] = exists ? pixel : -1;
        ray_sample[i] = sample;
        store_vec3(origin, i, load_vec3(view, 0));
        store_vec3(direction, i, normalize(screen_x * load_vec3(view, 1)
                                           + screen_y * load_vec3(view, 2) + load_vec3(view, 3)));
    }
}
