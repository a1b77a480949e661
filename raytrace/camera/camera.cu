// Camera rays, tile by tile; driven by camera.py.
#include "device/device.cuh"
#include "raytrace/film/sampling.cuh"

// Pixels come in square tiles, so that neighbours share what they read.
#define TILE 8
// Segments of `filter`, the inverse of the pixel filter's cumulative distribution.
#define FILTER_SEGMENTS 1024
// Pairs of sample dimensions; the integrator takes 1 and those that follow.
#define DIMENSION_PIXEL 0
#define DIMENSION_LENS 0x10000

DEVICE float filter_offset(const float *filter, float u)
{
    const float place = u * (float)FILTER_SEGMENTS;
    const int segment = cell_index(place, FILTER_SEGMENTS);
    const float part = place - (float)segment;
    return filter[segment] + part * (filter[segment + 1] - filter[segment]);
}

struct Camera {
    int width, height;            // of the picture [pixels]
    int window_x, window_y, window_width, window_height;
    Vec3 eye;
    Vec3 half_right, half_up, forward;  // to the middle, the edges and the top of the picture
    Vec3 right, up;               // unit
    float lens_radius, focus;     // [m]
    const float *filter;          // (1025,): pixels from the centre
    uint32 index_mask, seed;
};

// Rays through the pixels of the tiles: for each tile the samples one after the other, and for
// each sample all 64 pixels, in blocks of 4 x 2 whose rays walk the tree together. Without
// samples (n_samples = 0) one ray goes from the lens' centre through that of each pixel.
// The picture has width x height pixels; the tiles cover its window, which may be larger.
KERNEL void camera_rays(
    int n, int n_samples, int first_sample, Camera camera,
    const int *tile,              // (tiles,): n = tiles * max(n_samples, 1) * 64
    OUT int *ray_pixel,           // (n,): number for its randomness; -1 outside of the window
    OUT int *ray_sample,          // (n,)
    OUT int *ray_index,           // (n,): place of the pixel in the window; -1 outside
    OUT float *origin,            // (n, 3)
    OUT float *direction)         // (n, 3): unit
{
    FOR_EACH(i, n) {
        const int samples = maximum(n_samples, 1);
        const int inside = (int)(i % (TILE * TILE));
        const int sample = first_sample + (int)(i / (TILE * TILE) % samples);
        const int place = tile[i / (TILE * TILE * samples)];
        const int tiles_across = (camera.window_width + TILE - 1) / TILE;
        const int column = place % tiles_across * TILE + (inside & 3) + ((inside >> 3) & 1) * 4;
        const int row = place / tiles_across * TILE + ((inside >> 2) & 1) + (inside >> 4) * 2;
        const bool exists = column < camera.window_width && row < camera.window_height;
        const int column_in_picture = column + camera.window_x;
        const int row_in_picture = row + camera.window_y;
        // A pixel's randomness does not depend on the window it is rendered in.
        const uint32 pixel = hash32(camera.seed, (uint32)column_in_picture,
                                    (uint32)row_in_picture, 0) >> 1;
        float x = (float)column_in_picture + 0.5f, y = (float)row_in_picture + 0.5f;
        Vec3 shift = make_vec3(0.0f, 0.0f, 0.0f);
        if (n_samples > 0) {
            const Point2 u = sample_point(pixel, DIMENSION_PIXEL, (uint32)sample,
                                          camera.index_mask);
            x += filter_offset(camera.filter, u.x);
            y += filter_offset(camera.filter, u.y);
            if (camera.lens_radius > 0.0f) {
                const Point2 on_lens = disk_point(
                    sample_point(pixel, DIMENSION_LENS, (uint32)sample, camera.index_mask));
                shift = camera.lens_radius * (on_lens.x * camera.right + on_lens.y * camera.up);
            }
        }
        const float screen_x = 2.0f * x / (float)camera.width - 1.0f;
        const float screen_y = 1.0f - 2.0f * y / (float)camera.height;
        // All rays of a point of the film meet where it is sharp.
        const Vec3 through = screen_x * camera.half_right + screen_y * camera.half_up
                             + camera.forward;
        ray_pixel[i] = exists ? (int)pixel : -1;
        ray_sample[i] = sample;
        ray_index[i] = exists ? row * camera.window_width + column : -1;
        store_vec3(origin, i, camera.eye + shift);
        store_vec3(direction, i, normalize(
            camera.lens_radius > 0.0f ? through - shift / camera.focus : through));
    }
}
