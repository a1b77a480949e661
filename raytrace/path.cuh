// A path from the camera through the scene, step by step; integrate.cu puts the steps in order.
//
// Through glass a ray goes on, mirrored or refracted. With `path` it also goes on from opaque
// surfaces, drawn by their scattering. Without, a surface takes the whole sky from harmonics and
// blurred copies as if nothing stood before it (leg 0); then one ray of the diffuse (1) and one of
// the reflection lobe (2) put what they meet in the sky's stead.
#include "device/device.cuh"
#include "raytrace/surface/glass.cuh"
#include "raytrace/light/harmonics.cuh"
#include "raytrace/film/sampling.cuh"
#include "raytrace/scene.cuh"

#define LEGS 3
// Highlights that a reflection shows are at least this wide, and diffuse surfaces do not gather
// them: few rays would find a narrow one and turn into scattered bright pixels.
#define WIDE_SHININESS 60.0f
#define WIDE_ALPHA 0.18f
// A path whose directions were drawn less densely than this [1/sr] spreads too wide to find them.
#define WIDE_PDF 2.5f
// The blurred sky that diffuse surfaces see through glass, for the same reason.
#define WIDE_SKY 2.0f
// Faces a ray may meet, also those inside overlapping glass that do nothing to it.
#define MAX_MEETINGS 400
// A camera ray sees a reflection in glass at least this often.
#define FIRST_REFLECTION 0.25f

struct Settings {
    bool path;                  // whether light goes on from opaque surfaces
    bool occlusion;             // whether legs 1 and 2 are followed
    int bounces, depth;         // most scatterings, and most crossings of glass
    uint32 index_mask;          // one less than a power of two that holds a pixel's samples
    float fade_distance;        // where the floor runs out into the horizon [m]
    float clamp;                // the most that indirect light may bring; 0: anything
    float key_spread;           // tangent of the key light's radius
    Vec3 key_direction, key_irradiance;
};

// Rays of the camera, and what each meets first of the pieces.
struct Rays {
    const int *pixel;           // (n,): -1 for a ray that counts for nothing
    const int *sample;          // (n,)
    const float *origin;        // (n, 3)
    const float *direction;     // (n, 3)
    const float *first_t;       // (n,)
    const int *first_slot;      // (n,)
};

DEVICE Vec3 one() { return make_vec3(1.0f, 1.0f, 1.0f); }
DEVICE Vec3 zero() { return make_vec3(0.0f, 0.0f, 0.0f); }
DEVICE float brightness(Vec3 c) { return 0.2126f * c.x + 0.7152f * c.y + 0.0722f * c.z; }
DEVICE float strongest(Vec3 c) { return maximum(maximum(c.x, c.y), c.z); }

// The share of a sample's light that one of two ways to find it counts for (Veach 1997).
DEVICE float shared_weight(float own, float other)
{
    return own * own / maximum(own * own + other * other, 1e-30f);
}

// The random points of a sample, one after another.
struct Draw {
    uint32 pixel, sample, index_mask, dimension;
};
DEVICE Point2 this_point(const Draw &draw)
{
    return sample_point(draw.pixel, draw.dimension, draw.sample, draw.index_mask);
}
DEVICE Point2 next_point(Draw &draw)
{
    const Point2 point = this_point(draw);
    ++draw.dimension;
    return point;
}

// What a sample gathers, split by what the camera's ray met first.
struct Gathered {
    Vec3 all, diffuse, specular, refraction;
    float covered, caught;      // by what is in the picture; by a shadow catcher
    float lit, open;            // light on the first surface as it is, and unshadowed
};

#define GROUP_NONE 0            // the camera's ray has met no surface yet
#define GROUP_REFLECTED 1       // diffuse and specular, as `share` splits them
#define GROUP_REFRACTED 2

DEVICE void gather(Gathered &g, int group, Vec3 share, Vec3 value)
{
    g.all = g.all + value;
    if (group == GROUP_REFLECTED) {
        g.diffuse = g.diffuse + share * value;
        g.specular = g.specular + (one() - share) * value;
    } else if (group == GROUP_REFRACTED) {
        g.refraction = g.refraction + value;
    }
}

// Where a path begins: at the camera, or at the first opaque surface.
struct Leg {
    Vec3 origin, direction, weight, share;
    Vec3 taken;                 // the sky along it, which is part of leg 0 already
    Inside inside;
    int group;
};

struct Path {
    Vec3 origin, direction;
    Vec3 weight;                // what the light from ahead counts for
    Vec3 share;                 // and which part of that is diffuse
    Inside inside;
    int leg, group;
    int channel;                // the colour that it is left with, or -1
    int crossings, bounce;
    float scatter_pdf;          // of the last scattering; 0 where no light was drawn
    float seen;                 // its length
    bool is_wide;               // whether some scattering spread it
    bool is_sky_taken;
};

DEVICE Leg camera_leg(const Scene &scene, const Rays &rays, int64 i)
{
    Leg leg;
    leg.origin = load_vec3(rays.origin, i);
    leg.direction = load_vec3(rays.direction, i);
    leg.weight = one();
    leg.share = leg.taken = zero();
    leg.inside = load_inside(scene.camera_inside);
    leg.group = GROUP_NONE;
    return leg;
}

DEVICE Path begin_path(const Leg &leg, int number)
{
    Path path;
    path.origin = leg.origin;
    path.direction = leg.direction;
    path.weight = leg.weight;
    path.share = leg.share;
    path.inside = leg.inside;
    path.leg = number;
    path.group = leg.group;
    path.channel = -1;
    path.crossings = path.bounce = 0;
    path.scatter_pdf = path.seen = 0.0f;
    path.is_wide = false;
    path.is_sky_taken = number > 0;
    return path;
}

// What the path meets next; of a camera's ray, the first hit is known.
DEVICE Meeting meet_next(const Scene &scene, const Path &path, const Rays &rays, int64 i,
                         bool is_camera_ray)
{
    const Meeting fixed = meet_fixed(scene, path.origin, path.direction);
    if (is_camera_ray) return join_hit(fixed, rays.first_t[i], rays.first_slot[i]);
    const Ray ray = {path.origin, path.direction, 0.0f, fixed.t};
    const Hit hit = closest_hit(scene.bvh, ray, path.inside);
    return join_hit(fixed, hit.t, hit.slot);
}

// What is left of indirect light that would be a scattered bright pixel.
DEVICE float clamp_factor(const Settings &settings, const Path &path, Vec3 value)
{
    if (!(settings.clamp > 0.0f && path.bounce + path.crossings > 1)) return 1.0f;
    const float top = strongest(value);
    return top > settings.clamp ? settings.clamp / top : 1.0f;
}

// Gather the sky where a path leaves the scene.
DEVICE void gather_sky(Gathered &g, const Settings &settings, const Scene &scene, const Sky &sky,
                       const Path &path, bool is_camera_ray)
{
    if (path.is_sky_taken || (is_camera_ray && scene.is_catcher)) return;
    const bool drawn = path.scatter_pdf > 0.0f;
    const float other = drawn ? sky_pdf(sky, path.direction) : 0.0f;
    const float mine = drawn ? shared_weight(path.scatter_pdf, other) : 1.0f;
    const Vec3 value = (mine * path.weight)
                       * (path.leg == 1 ? sky_reflection(sky, path.direction, WIDE_SKY)
                                        : sky_radiance(sky, path.direction));
    gather(g, path.group, path.share, clamp_factor(settings, path, value) * value);
}

// Take back the sky that leg 0 gathered where something stands before it.
DEVICE void take_back_sky(Gathered &g, Path &path, const Leg &leg)
{
    if (!path.is_sky_taken) return;
    gather(g, path.group, path.share, -leg.taken);
    if (path.leg == 1) g.lit -= brightness(leg.taken);
    path.is_sky_taken = false;
}

// Gather a panel that a path ends at.
DEVICE void gather_panel(Gathered &g, const Scene &scene, const Path &path, Meeting met,
                         bool is_camera_ray)
{
    // Surfaces have gathered panels already, unless they were found by a path.
    if (path.leg > 0) return;
    const float *lamp = scene.panel + PANEL_FLOATS * met.number;
    const float mine = path.scatter_pdf > 0.0f
        ? shared_weight(path.scatter_pdf, panel_pdf(lamp, met.t, path.direction)) : 1.0f;
    gather(g, path.group, path.share, (mine * path.weight) * load_vec3(lamp, 3));
    if (is_camera_ray) g.covered = 1.0f;
}

// Come to a surface: what the medium leaves of the light, and how the surface looks from here.
DEVICE Surface arrive(const Scene &scene, Path &path, Meeting met)
{
    if (path.inside.count > 0)
        path.weight = path.weight
                      * medium_transmittance(scene, medium_of(scene, path.inside), met.t);
    Surface s = surface_at(scene, path.origin, path.direction, met, path.seen);
    if (path.is_wide) {
        s.finish.shininess = minimum(s.finish.shininess, WIDE_SHININESS);
        s.finish.roughness = maximum(s.finish.roughness, WIDE_ALPHA);
    }
    return s;
}

// Go on behind a face of glass, or mirrored by it; false where the path ends.
DEVICE bool go_on_through_glass(Gathered &g, const Settings &settings, const Scene &scene,
                                const Sky &sky, const Surface &s, Draw &draw, Path &path,
                                bool is_last_meeting)
{
    if (path.crossings >= settings.depth || is_last_meeting) {
        // Too deep: let what is left go straight on to the sky.
        gather(g, path.group, path.share, path.weight * sky_radiance(sky, path.direction));
        return false;
    }
    const Point2 u = this_point(draw);
    const Crossing c = cross_glass(
        scene, s, path.direction, path.inside, path.channel, u.x,
        path.leg == 0 && path.crossings == 0 ? FIRST_REFLECTION : 0.0f, u.y);
    path.inside = c.inside;
    path.origin = s.position;
    if (c.passes) return true;
    ++draw.dimension;
    ++path.crossings;
    path.channel = c.channel;
    path.direction = c.direction;
    path.weight = path.weight * c.weight;
    // What is refracted finds the light that was drawn straight through the glass; only what is
    // mirrored finds another.
    if (c.reflects) path.scatter_pdf = 0.0f;
    if (path.group == GROUP_NONE) path.group = c.reflects ? GROUP_REFLECTED : GROUP_REFRACTED;
    return true;
}

// Whether light that leaves a surface here may be the camera's first.
DEVICE bool is_first_surface(const Path &path) { return path.leg == 0 && path.bounce == 0; }

// Let the floor run out into the horizon, and a catcher be seen by its shadow; false where the
// path ends.
DEVICE bool cross_floor(Gathered &g, const Settings &settings, const Scene &scene, const Sky &sky,
                        Path &path)
{
    const float far = path.seen / settings.fade_distance;
    const float fade = 1.0f - expf(-far * far * far * far);
    if (scene.is_catcher && path.crossings > 0) {
        gather(g, path.group, path.share, path.weight * sky_radiance(sky, path.direction));
        return false;
    }
    if (fade > 0.002f && !scene.is_catcher) {
        const Vec3 level = normalize(make_vec3(path.direction.x, 0.0f, path.direction.z));
        gather(g, path.group, path.share, (fade * path.weight) * sky_radiance(sky, level));
    }
    path.weight = (1.0f - fade) * path.weight;
    if (scene.is_catcher) {
        g.covered = 0.0f;
        g.caught = 1.0f - fade;
    }
    return !(fade > 0.998f);
}

// A surface as the path sees it.
struct Shading {
    Vec3 view;
    Vec3 reflected, matt;       // what it reflects, and what it scatters of the rest
    Vec3 mirror;                // the direction that it mirrors
    Vec3 mirror_sky;            // and the sky there, where it was gathered
    bool is_last;               // whether the path ends here
};

DEVICE Shading shade(const Settings &settings, const Surface &s, const Path &path)
{
    Shading shading;
    shading.view = -path.direction;
    shading.reflected = fresnel(s.finish.reflectance, s.finish.shininess,
                                dot(s.normal, shading.view));
    shading.matt = (one() - shading.reflected) * s.finish.albedo;
    shading.mirror = mirrored(path.direction, s.normal);
    shading.mirror_sky = zero();
    shading.is_last = !settings.path || path.bounce >= settings.bounces;
    return shading;
}

// Gather what an opaque surface scatters and what it reflects.
DEVICE void gather_surface(Gathered &g, const Path &path, Vec3 soft, Vec3 shine)
{
    const bool is_none = path.group == GROUP_NONE;
    const int own = is_none ? GROUP_REFLECTED : path.group;
    gather(g, own, is_none ? one() : path.share, soft);
    gather(g, own, is_none ? zero() : path.share, shine);
}

// Gather the sky at a last surface as if nothing stood before it.
DEVICE void gather_whole_sky(Gathered &g, const Scene &scene, const Sky &sky, const Surface &s,
                             const Path &path, Shading &shading)
{
    const float *look = scene.material + MATERIAL_FLOATS * s.material;
    const Vec3 irradiance = harmonic_irradiance(sky.harmonic, sky_direction(sky, s.normal));
    const Vec3 soft = shading.matt * (irradiance / PI_F);
    shading.mirror_sky = sky_reflection(sky, shading.mirror, look[M_BLUR]);
    gather_surface(g, path, path.weight * soft,
                   path.weight * shading.reflected * shading.mirror_sky);
    if (is_first_surface(path)) {
        g.open += brightness(path.weight * soft);
        g.lit += brightness(path.weight * soft);
    }
}

// What a surface scatters and reflects of a light's sample, times what that sample counts for.
DEVICE void scatter_light(const Scene &scene, const Surface &s, const Path &path,
                          const Shading &shading, const LightSample &l, float cosine,
                          Vec3 &soft_light, Vec3 &shine_light)
{
    Vec3 soft, shine;
    float mine = 1.0f;
    if (shading.is_last) {
        const Vec3 half = normalize(l.direction + shading.view);
        const float exponent = path.leg == 0 ? s.finish.shininess
                                             : minimum(s.finish.shininess, WIDE_SHININESS);
        soft = (cosine / PI_F) * shading.matt;
        shine = (cosine * blinn_phong(exponent, dot(s.normal, half)))
                * fresnel(s.finish.reflectance, s.finish.shininess, dot(l.direction, half));
        if (path.leg == 1) shine = zero();
    } else {
        const Scattering f = bsdf_eval(s.finish, scene.energy, s.normal, shading.view,
                                       l.direction);
        soft = f.diffuse;
        shine = f.specular;
        if (l.pdf > 0.0f) mine = shared_weight(l.pdf, f.pdf);
    }
    soft_light = mine * (soft * l.light);
    shine_light = mine * (shine * l.light);
}

// The lights that a surface gathers from: the key, the panels, and where a path goes on the sky.
DEVICE LightSample sample_light(const Settings &settings, const Scene &scene, const Sky &sky,
                                Vec3 position, int light, Point2 u)
{
    const int lamp = light - (scene.has_key ? 1 : 0);
    if (lamp < 0)
        return key_sample(settings.key_direction, settings.key_irradiance, settings.key_spread, u);
    if (lamp >= scene.n_panels) return sky_sample(sky, u);
    return panel_sample(scene.panel + PANEL_FLOATS * lamp, position, u);
}

// Gather the lights, each from one point, if it is in sight.
DEVICE void gather_lights(Gathered &g, const Settings &settings, const Scene &scene,
                          const Sky &sky, const Surface &s, const Path &path,
                          const Shading &shading, Draw &draw)
{
    const int n_lights = (scene.has_key ? 1 : 0) + scene.n_panels + (shading.is_last ? 0 : 1);
    for (int light = 0; light < n_lights; ++light) {
        const LightSample l = sample_light(settings, scene, sky, s.position, light,
                                           next_point(draw));
        const float cosine = dot(s.normal, l.direction);
        if (cosine <= 0.0f || dot(s.flat, l.direction) <= 0.0f) continue;
        Vec3 soft_light, shine_light;
        scatter_light(scene, s, path, shading, l, cosine, soft_light, shine_light);
        const Vec3 unshadowed = path.weight * (soft_light + shine_light);
        if (!(strongest(unshadowed) > 0.0f)) continue;
        const Vec3 left = light_through(scene, s.position, l.direction, l.distance, path.inside);
        if (is_first_surface(path)) {
            g.open += brightness(path.weight * soft_light);
            g.lit += brightness(path.weight * soft_light * left);
        }
        const float cut = clamp_factor(settings, path, unshadowed);
        gather_surface(g, path, cut * (path.weight * left * soft_light),
                       cut * (path.weight * left * shine_light));
    }
}

// A direction that would start into its own surface is folded up.
DEVICE Vec3 folded_up(Vec3 direction, Vec3 flat)
{
    const float below = dot(direction, flat);
    return below < 0.0f ? direction - (2.0f * below) * flat : direction;
}

// Prepare the two other legs at the first opaque surface.
DEVICE void prepare_legs(Leg *leg, const Sky &sky, const Surface &s, const Path &path,
                         const Shading &shading, Draw &draw)
{
    const bool is_none = path.group == GROUP_NONE;
    for (int next = 1; next < LEGS; ++next) {
        leg[next].origin = s.position;
        leg[next].inside = path.inside;
        leg[next].group = is_none ? GROUP_REFLECTED : path.group;
        leg[next].share = is_none ? (next == 1 ? one() : zero()) : path.share;
    }
    const Vec3 scattered = cosine_direction(s.normal, next_point(draw));
    leg[1].weight = path.weight * shading.matt;
    leg[1].taken = leg[1].weight * harmonic_radiance(sky.harmonic, sky_direction(sky, scattered));
    leg[1].direction = folded_up(scattered, s.flat);
    const Vec3 half = lobe_direction(s.normal, s.finish.shininess, next_point(draw));
    const Vec3 bounced = mirrored(path.direction, half);
    leg[2].weight = path.weight * shading.reflected;
    leg[2].taken = leg[2].weight * shading.mirror_sky;
    leg[2].direction = folded_up(dot(bounced, s.flat) > 0.0f ? bounced : shading.mirror, s.flat);
}

// Go on in a direction drawn by the scattering; false where the path ends.
DEVICE bool go_on_scattered(const Scene &scene, const Surface &s, const Shading &shading,
                            Draw &draw, Path &path)
{
    const Point2 which = next_point(draw);
    const Point2 u = next_point(draw);
    const Vec3 onward = bsdf_sample(s.finish, scene.energy, s.normal, shading.view, which.x, u);
    const Scattering f = bsdf_eval(s.finish, scene.energy, s.normal, shading.view, onward);
    if (!(f.pdf > 0.0f)) return false;
    const Vec3 total = f.diffuse + f.specular;
    if (path.group == GROUP_NONE) {
        path.group = GROUP_REFLECTED;
        path.share = make_vec3(f.diffuse.x / maximum(total.x, 1e-20f),
                               f.diffuse.y / maximum(total.y, 1e-20f),
                               f.diffuse.z / maximum(total.z, 1e-20f));
    }
    path.weight = path.weight * (total / f.pdf);
    path.origin = s.position;
    path.direction = folded_up(onward, s.flat);
    path.scatter_pdf = f.pdf;
    path.is_wide |= f.pdf < WIDE_PDF;
    ++path.bounce;
    // End long paths by chance, the fainter the sooner.
    if (path.bounce > 3) {
        const float go_on = minimum(strongest(path.weight), 0.95f);
        if (which.y >= go_on) return false;
        path.weight = path.weight / go_on;
    }
    return strongest(path.weight) > 0.0f;
}
