// The picture: camera rays, their light, and the data passes; driven by render.py.
#include "device/device.cuh"
#include "raytrace/bvh.cuh"
#include "raytrace/harmonics.cuh"
#include "raytrace/sampling.cuh"
#include "raytrace/shade.cuh"

// Pixels are visited in square tiles, so that neighbours share what they read.
#define TILE 8
// Segments of `filter`, the inverse of the pixel filter's cumulative distribution.
#define FILTER_SEGMENTS 128
// Highlights that a reflection shows are at least this wide, and diffuse surfaces do not gather
// them: few rays would find a narrow one and turn into scattered bright pixels.
#define WIDE_SHININESS 60.0f
// The distance written where there is nothing [m].
#define NO_DEPTH 1e10f

DEVICE float filter_offset(const float *filter, float u)
{
    const float place = u * (float)FILTER_SEGMENTS;
    const int segment = minimum((int)place, FILTER_SEGMENTS - 1);
    const float part = place - (float)segment;
    return filter[segment] + part * (filter[segment + 1] - filter[segment]);
}

// Trace `samples` camera rays a pixel. Each surface seen is lit in three legs: 0 by the key
// light and by the sky, diffuse and reflected, as if nothing else were there; then a ray of
// the diffuse (1) and one of the reflection lobe (2) put what they meet in the sky's stead.
KERNEL void trace_pixels(
    int n, int first_tile, int width, int height, int samples, int occlusion,
    float floor_height, float checker, float shift_x, float shift_z, float fade_distance,
    float key_spread, float turn_cos, float turn_sin,
    int sky_width, int sky_height, int n_balls, int has_floor,
    const float *node_box, const int *node_child, const float *packet,
    const int *slot_triangle, const int *slot_fragment,
    const int *fragment,          // (triangles,)
    const int *material_of,       // (triangles,)
    const float *material,        // (materials, 8)
    const float *ball,            // (balls, 4)
    const float *view,            // (4, 3): eye, half right, half up, forward
    const float *key,             // (2, 3): unit direction, irradiance
    const float *sky_image,       // (sky_height, sky_width, 3)
    const float *sky_blurred,     // levels of environment.py
    const float *harmonic,        // (9, 3)
    const float *filter,          // (129,): pixels from the centre
    INOUT float *beauty,          // (height, width, 4)
    INOUT float *depth,           // (height, width)
    INOUT float *normal,          // (height, width, 3)
    INOUT float *position,        // (height, width, 3)
    INOUT float *fragment_id,     // (height, width)
    INOUT float *albedo_pass)     // (height, width, 3)
{
    FOR_EACH_GROUP(i, n, TILE * TILE) {
        const int tiles_across = (width + TILE - 1) / TILE;
        const int tile = first_tile + (int)(i / (TILE * TILE));
        const int inside = (int)(i % (TILE * TILE));
        const int column = tile % tiles_across * TILE + inside % TILE;
        const int row = tile / tiles_across * TILE + inside / TILE;
        if (column >= width || row >= height) continue;
        const int64 pixel = (int64)row * width + column;

        const Scene scene = {{node_box, node_child, packet, slot_fragment}, slot_triangle, fragment, material_of,
                             material, n_balls, ball, has_floor != 0, floor_height, checker,
                             shift_x, shift_z};
        const Sky sky = {sky_width, sky_height, sky_image, sky_blurred, harmonic,
                         turn_cos, turn_sin};
        const Vec3 eye = load_vec3(view, 0);
        const Vec3 forward = load_vec3(view, 3);
        const Vec3 key_direction = load_vec3(key, 0);
        const Vec3 key_irradiance = load_vec3(key, 1);
        const bool has_key = key_irradiance.x + key_irradiance.y + key_irradiance.z > 0.0f;
        const Vec3 none = make_vec3(0.0f, 0.0f, 0.0f);
        int index_mask = 1;
        while (index_mask < samples) index_mask *= 2;
        --index_mask;

        Vec3 sum = none;
        float coverage = 0.0f;
        // Sample -1 goes through the pixel's centre and gives the data passes, unfiltered.
        for (int sample = -1; sample < samples; ++sample) {
            const Point2 u = sample_point((uint32)pixel, 0, (uint32)sample, index_mask);
            const bool is_data = sample < 0;
            const float x = (float)column + 0.5f + (is_data ? 0.0f : filter_offset(filter, u.x));
            const float y = (float)row + 0.5f + (is_data ? 0.0f : filter_offset(filter, u.y));
            const float screen_x = 2.0f * x / (float)width - 1.0f;
            const float screen_y = 1.0f - 2.0f * y / (float)height;
            const Vec3 toward = normalize(
                screen_x * load_vec3(view, 1) + screen_y * load_vec3(view, 2) + forward);

            Vec3 radiance = none;
            Vec3 origin = eye;
            // Each leg replaces a part of the sky by the surface it meets.
            Vec3 leg_direction[3] = {toward, none, none};
            Vec3 leg_weight[3] = {make_vec3(1.0f, 1.0f, 1.0f), none, none};
            Vec3 leg_sky[3] = {none, none, none};
            float fade = 0.0f;
            for (int leg = 0; leg < 3; ++leg) {
                const Vec3 weight = leg_weight[leg];
                if (weight.x + weight.y + weight.z <= 0.003f) continue;
                const Vec3 direction = leg_direction[leg];
                const Surface surface = closest_surface(scene, origin, direction);
                const bool met = surface.t < INFINITY_F;
                const float *look = material + MATERIAL_FLOATS * surface.material;
                const Vec3 albedo = load_vec3(look, 0);
                const Vec3 reflectance = load_vec3(look, 1);
                const float shininess = look[6];
                if (is_data) {
                    depth[pixel] = met ? surface.t * dot(direction, forward) : NO_DEPTH;
                    store_vec3(normal, pixel, met ? surface.normal : none);
                    store_vec3(position, pixel, met ? surface.position : none);
                    store_vec3(albedo_pass, pixel, met ? albedo : none);
                    fragment_id[pixel] = (float)surface.fragment;
                    break;
                }
                if (!met && leg == 0) {
                    radiance = sky_radiance(sky, direction);
                    break;
                }
                if (!met) continue;

                // Gather the sky as if nothing stood before it.
                const Vec3 facing = surface.normal;
                const Vec3 reflected = fresnel(reflectance, shininess, -dot(facing, direction));
                const Vec3 diffuse = (make_vec3(1.0f, 1.0f, 1.0f) - reflected) * albedo;
                const Vec3 irradiance = harmonic_irradiance(harmonic, sky_direction(sky, facing));
                const Vec3 mirrored = normalize(direction - (2.0f * dot(direction, facing)) * facing);
                const Vec3 mirrored_sky = sky_reflection(sky, mirrored, look[7]);
                Vec3 leaving = diffuse * (irradiance / PI_F) + reflected * mirrored_sky;

                // Gather the key light from a point of its disk, if it is in sight.
                const Vec3 start = lifted(surface);
                const Point2 d = disk_point(
                    sample_point((uint32)pixel, 1 + leg, (uint32)sample, index_mask));
                const Vec3 light = normalize(
                    turned_to(key_direction, make_vec3(key_spread * d.x, key_spread * d.y, 1.0f)));
                const float cosine = dot(facing, light);
                if (has_key && cosine > 0.0f && !is_shadowed(scene, start, light)) {
                    const Vec3 half = normalize(light - direction);
                    const float exponent = leg == 0 ? shininess : minimum(shininess, WIDE_SHININESS);
                    const Vec3 shine = fresnel(reflectance, shininess, dot(light, half))
                                       * blinn_phong(exponent, dot(facing, half));
                    leaving = leaving + cosine * key_irradiance
                              * (leg == 1 ? diffuse / PI_F : diffuse / PI_F + shine);
                }
                radiance = radiance + weight * (leaving - leg_sky[leg]);
                if (leg > 0) continue;

                // Let the floor run out into the horizon.
                coverage += 1.0f;
                if (surface.fragment < 0 && surface.material < MATERIAL_BALL) {
                    const float far = surface.t / fade_distance;
                    fade = 1.0f - expf(-far * far * far * far);
                }
                if (!occlusion || fade > 0.998f) break;

                // Prepare the two other legs.
                origin = start;
                leg_direction[1] = cosine_direction(
                    facing, sample_point((uint32)pixel, 4, (uint32)sample, index_mask));
                leg_weight[1] = diffuse;
                leg_sky[1] = harmonic_radiance(harmonic, sky_direction(sky, leg_direction[1]));
                const Vec3 half = lobe_direction(
                    facing, shininess, sample_point((uint32)pixel, 5, (uint32)sample, index_mask));
                const Vec3 bounced = normalize(direction - (2.0f * dot(direction, half)) * half);
                leg_direction[2] = dot(bounced, facing) > 0.0f ? bounced : mirrored;
                leg_weight[2] = reflected;
                leg_sky[2] = mirrored_sky;
            }
            if (is_data) continue;

            // Let the floor run out into the horizon.
            if (fade > 0.002f) {
                const Vec3 level = make_vec3(toward.x, 0.0f, toward.z);
                const Vec3 horizon = sky_radiance(sky, normalize(level));
                radiance = (1.0f - fade) * radiance + fade * horizon;
            }
            sum = sum + radiance;
        }

        const float share = 1.0f / (float)samples;
        beauty[4 * pixel] = maximum(sum.x * share, 0.0f);
        beauty[4 * pixel + 1] = maximum(sum.y * share, 0.0f);
        beauty[4 * pixel + 2] = maximum(sum.z * share, 0.0f);
        beauty[4 * pixel + 3] = coverage * share;
    }
}
