// Light along rays, and what they meet: from camera rays to samples; driven by scene.py.
#include "device/device.cuh"
#include "raytrace/path.cuh"

// The distance written where there is nothing [m].
#define NO_DEPTH 1e10f

struct Samples {
    OUT float *radiance;        // (n, 3)
    OUT float *diffuse;         // (n, 3)
    OUT float *specular;        // (n, 3)
    OUT float *refraction;      // (n, 3)
    OUT float *cover;           // (n, 2): by what is in the picture; by a shadow catcher
    OUT float *shade;           // (n, 2): light on the first surface as it is, and unshadowed
};

DEVICE void store_sample(const Samples &samples, int64 i, Gathered g)
{
    // A catcher shows nothing but its shadow.
    if (g.caught > 0.0f) g.all = g.diffuse = g.specular = g.refraction = zero();
    store_vec3(samples.radiance, i, g.all);
    store_vec3(samples.diffuse, i, g.diffuse);
    store_vec3(samples.specular, i, g.specular);
    store_vec3(samples.refraction, i, g.refraction);
    samples.cover[2 * i] = g.covered;
    samples.cover[2 * i + 1] = g.caught;
    samples.shade[2 * i] = g.lit;
    samples.shade[2 * i + 1] = g.open;
}

// Light along each ray.
KERNEL void integrate(
    int n, Settings given_settings, Scene given_scene, Sky given_sky, Rays rays, Samples samples)
{
    FOR_EACH_GROUP(i, n, 64) {
        // No store below can change these.
        const Settings settings = given_settings;
        const Scene scene = given_scene;
        const Sky sky = given_sky;
        Gathered g = {zero(), zero(), zero(), zero(), 0.0f, 0.0f, 0.0f, 0.0f};
        Draw draw = {(uint32)rays.pixel[i], (uint32)rays.sample[i], settings.index_mask, 1};
        Leg leg[LEGS];
        leg[0] = camera_leg(scene, rays, i);
        leg[1].weight = leg[2].weight = zero();
        for (int number = 0; number < (rays.pixel[i] < 0 ? 0 : LEGS); ++number) {
            if (strongest(leg[number].weight) <= 0.003f) continue;
            Path path = begin_path(leg[number], number);
            for (int meeting = 0; meeting < MAX_MEETINGS; ++meeting) {
                const bool is_camera_ray = number == 0 && meeting == 0;
                const Meeting met = meet_next(scene, path, rays, i, is_camera_ray);
                if (met.kind == MET_NOTHING) {
                    gather_sky(g, settings, scene, sky, path, is_camera_ray);
                    break;
                }
                take_back_sky(g, path, leg[number]);
                path.seen += met.t;
                if (met.kind == MET_PANEL) {
                    gather_panel(g, scene, path, met, is_camera_ray);
                    break;
                }
                const Surface s = arrive(scene, path, met);
                if (is_camera_ray) g.covered = 1.0f;
                if (s.finish.kind == KIND_GLASS) {
                    if (go_on_through_glass(g, settings, scene, sky, s, draw, path,
                                            meeting + 1 == MAX_MEETINGS)) continue;
                    break;
                }
                if (met.kind == MET_FLOOR && is_first_surface(path)
                    && !cross_floor(g, settings, scene, sky, path)) break;
                Shading shading = shade(settings, s, path);
                if (shading.is_last) gather_whole_sky(g, scene, sky, s, path, shading);
                gather_lights(g, settings, scene, sky, s, path, shading, draw);
                if (shading.is_last) {
                    if (!settings.path && number == 0 && settings.occlusion)
                        prepare_legs(leg, sky, s, path, shading, draw);
                    break;
                }
                if (!go_on_scattered(scene, s, shading, draw, path)) break;
            }
        }
        store_sample(samples, i, g);
    }
}

// What the data passes hold of each pixel.
struct Described {
    INOUT float *distance;      // (pixels,): 1e10 where there is nothing
    INOUT float *normal;        // (pixels, 3): facing the ray
    INOUT float *position;      // (pixels, 3)
    INOUT float *albedo;        // (pixels, 3)
    INOUT int *identity;        // (pixels, 4): piece_id, element, material, triangle; -1: none
};

// What each ray meets first, written to its pixel: the values of the data passes.
KERNEL void describe(int n, Scene scene, Rays rays, Described described)
{
    FOR_EACH(i, n) {
        const Vec3 origin = load_vec3(rays.origin, i), direction = load_vec3(rays.direction, i);
        Meeting met = meet_fixed(scene, origin, direction);
        met = join_hit(met, rays.first_t[i], rays.first_slot[i]);
        // A shadow catcher is not in the picture.
        const bool seen = met.kind > MET_NOTHING && met.kind != MET_PANEL
                          && !(scene.is_catcher && met.kind == MET_FLOOR);
        const int64 pixel = rays.pixel[i];
        if (pixel < 0) continue;
        described.distance[pixel] = NO_DEPTH;
        store_vec3(described.normal, pixel, zero());
        store_vec3(described.position, pixel, zero());
        store_vec3(described.albedo, pixel, zero());
        int *identity = described.identity + 4 * pixel;
        for (int k = 0; k < 4; ++k) identity[k] = -1;
        if (!seen) continue;
        const Surface s = surface_at(scene, origin, direction, met, met.t);
        described.distance[pixel] = met.t;
        store_vec3(described.normal, pixel, s.normal);
        store_vec3(described.position, pixel, s.position);
        store_vec3(described.albedo, pixel,
                   s.finish.kind == KIND_GLASS ? one() : s.finish.albedo);
        identity[0] = s.piece_id;
        identity[1] = s.element;
        identity[2] = s.material;
        identity[3] = s.triangle;
    }
}
