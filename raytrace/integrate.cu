// Light along rays, and what they meet: from camera rays to samples; driven by scene.py.
#include "device/device.cuh"
#include "raytrace/glass.cuh"
#include "raytrace/harmonics.cuh"
#include "raytrace/sampling.cuh"
#include "raytrace/scene.cuh"

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
// The distance written where there is nothing [m].
#define NO_DEPTH 1e10f

struct Settings {
    bool path, occlusion, catcher;
    int bounces, depth;
    float fade_distance, key_spread, clamp;
    Vec3 key_direction, key_irradiance;
};

DEVICE Vec3 one() { return make_vec3(1.0f, 1.0f, 1.0f); }
DEVICE Vec3 zero() { return make_vec3(0.0f, 0.0f, 0.0f); }
DEVICE float brightness(Vec3 c) { return 0.2126f * c.x + 0.7152f * c.y + 0.0722f * c.z; }
DEVICE float strongest(Vec3 c) { return maximum(maximum(c.x, c.y), c.z); }

DEVICE Settings load_settings(const int *count, const float *constant)
{
    Settings s;
    s.path = count[0] != 0;
    s.occlusion = count[1] != 0;
    s.catcher = count[2] != 0;
    s.bounces = count[3];
    s.depth = count[4];
    s.fade_distance = constant[0];
    s.key_spread = constant[1];
    s.clamp = constant[2];
    s.key_direction = load_vec3(constant + 3, 0);
    s.key_irradiance = load_vec3(constant + 6, 0);
    return s;
}

// The share of a sample's light that one of two ways to find it counts for (Veach 1997).
DEVICE float shared_weight(float own, float other)
{
    return own * own / maximum(own * own + other * other, 1e-30f);
}

// What a sample gathers, split by what the camera's ray met first.
struct Gathered {
    Vec3 all, diffuse, specular, refraction;
};

DEVICE void gather(Gathered &g, int group, Vec3 share, Vec3 value)
{
    g.all = g.all + value;
    if (group == 1) {
        g.diffuse = g.diffuse + share * value;
        g.specular = g.specular + (one() - share) * value;
    } else if (group == 2) {
        g.refraction = g.refraction + value;
    }
}

// Light along each ray. Through glass a ray goes on, mirrored or refracted. With `path` it also
// goes on from opaque surfaces, drawn by their scattering. Without, a surface takes the whole sky
// from harmonics and blurred copies as if nothing stood before it (leg 0); then one ray of the
// diffuse (1) and one of the reflection lobe (2) put what they meet in the sky's stead.
KERNEL void integrate(
    int n, uint32 index_mask,
    const int *count, const float *constant,
    const float *node_box, const int *node_child, const float *packet,
    const int *slot_fragment, const int *tag, const float *corner_normal, const float *corner_uv,
    const float *pose, const int *piece_material, const float *material, const float *prop,
    const float *panel, const int *image_table, const float *image, const float *sky_image,
    const float *sky_blurred, const float *harmonic, const float *row_sum,
    const float *column_sum, const float *energy,
    const int *inside_start,      // (1 + MAX_INSIDE,): pieces around the camera
    const int *ray_pixel,         // (n,): -1 for a ray that counts for nothing
    const int *ray_sample,        // (n,)
    const float *ray_origin,      // (n, 3)
    const float *ray_direction,   // (n, 3)
    const float *first_t,         // (n,)
    const int *first_slot,        // (n,)
    OUT float *radiance,          // (n, 3)
    OUT float *diffuse_part,      // (n, 3)
    OUT float *specular_part,     // (n, 3)
    OUT float *refraction_part,   // (n, 3)
    OUT float *cover,             // (n, 2): by what is in the picture; by a shadow catcher
    OUT float *shade)             // (n, 2): light on the first surface as it is, and unshadowed
{
    FOR_EACH_GROUP(i, n, 64) {
        const Settings settings = load_settings(count, constant);
        const Scene scene = {
            {node_box, node_child, packet, slot_fragment}, tag, corner_normal, corner_uv,
            pose, piece_material, material, count[5], count[6], prop, panel,
            count[7] != 0, count[8] != 0, count[9] != 0, constant[9], constant[10], constant[11],
            count[10], constant[12], image_table, image, constant[13], constant[14]};
        const Sky sky = {count[11], count[12], sky_image, sky_blurred, harmonic,
                         constant[15], constant[16], count[13], count[14], row_sum, column_sum};
        const uint32 pixel = (uint32)ray_pixel[i], sample = (uint32)ray_sample[i];
        Gathered g = {zero(), zero(), zero(), zero()};
        float covered = 0.0f, caught = 0.0f, lit = 0.0f, open = 0.0f;

        // The legs that the first opaque surface prepares.
        Vec3 leg_origin[3], leg_direction[3], leg_weight[3], leg_taken[3], leg_share[3];
        Inside leg_inside[3];
        int leg_group[3];
        for (int leg = 0; leg < 3; ++leg) leg_weight[leg] = zero();
        leg_origin[0] = load_vec3(ray_origin, i);
        leg_direction[0] = load_vec3(ray_direction, i);
        leg_weight[0] = one();
        leg_taken[0] = zero();
        leg_share[0] = zero();
        leg_group[0] = 0;
        leg_inside[0] = load_inside(inside_start);
        uint32 dimension = 1;

        for (int leg = 0; leg < (ray_pixel[i] < 0 ? 0 : 3); ++leg) {
            if (strongest(leg_weight[leg]) <= 0.003f) continue;
            Vec3 origin = leg_origin[leg], direction = leg_direction[leg];
            Vec3 weight = leg_weight[leg], share = leg_share[leg];
            Inside inside = leg_inside[leg];
            int group = leg_group[leg];
            int channel = -1, crossings = 0, bounce = 0;
            float scatter_pdf = 0.0f;       // of the last scattering; 0 where no light was drawn
            float seen = 0.0f;
            bool is_wide = false;           // whether some scattering spread the path
            bool is_sky_taken = leg > 0;    // the sky along the leg is part of leg 0 already
            for (int meeting = 0; meeting < MAX_MEETINGS; ++meeting) {
                // Find what the ray meets.
                Meeting met = meet_fixed(scene, origin, direction);
                if (leg == 0 && meeting == 0) {
                    met = join_hit(met, first_t[i], first_slot[i]);
                } else {
                    const Ray ray = {origin, direction, 0.0f, met.t};
                    const Hit hit = closest_hit(scene.bvh, ray, inside);
                    met = join_hit(met, hit.t, hit.slot);
                }
                const bool is_background = leg == 0 && meeting == 0;
                if (met.kind == MET_NOTHING) {
                    if (is_sky_taken || (is_background && settings.catcher)) break;
                    const float other = scatter_pdf > 0.0f ? sky_pdf(sky, direction) : 0.0f;
                    const float mine = scatter_pdf > 0.0f ? shared_weight(scatter_pdf, other) : 1.0f;
                    Vec3 value = (mine * weight)
                                 * (leg == 1 ? sky_reflection(sky, direction, WIDE_SKY)
                                             : sky_radiance(sky, direction));
                    if (settings.clamp > 0.0f && bounce + crossings > 1) {
                        const float top = strongest(value);
                        if (top > settings.clamp) value = (settings.clamp / top) * value;
                    }
                    gather(g, group, share, value);
                    break;
                }
                if (is_sky_taken) {
                    gather(g, group, share, -leg_taken[leg]);
                    if (leg == 1) lit -= brightness(leg_taken[leg]);
                    is_sky_taken = false;
                }
                seen += met.t;
                if (met.kind == MET_PANEL) {
                    const float *lamp = panel + PANEL_FLOATS * met.number;
                    // Surfaces have gathered panels already, unless they were found by a path.
                    if (leg > 0) break;
                    const float mine = scatter_pdf > 0.0f
                        ? shared_weight(scatter_pdf, panel_pdf(lamp, met.t, direction)) : 1.0f;
                    gather(g, group, share, (mine * weight) * load_vec3(lamp, 3));
                    if (is_background) covered = 1.0f;
                    break;
                }
                if (inside.count > 0)
                    weight = weight * medium_transmittance(scene, medium_of(scene, inside), met.t);
                Surface s = surface_at(scene, origin, direction, met, seen);
                if (is_background) covered = 1.0f;
                if (is_wide) {
                    s.finish.shininess = minimum(s.finish.shininess, WIDE_SHININESS);
                    s.finish.roughness = maximum(s.finish.roughness, WIDE_ALPHA);
                }

                if (s.finish.kind == KIND_GLASS) {
                    if (crossings >= settings.depth || meeting + 1 == MAX_MEETINGS) {
                        // Too deep: let what is left go straight on to the sky.
                        gather(g, group, share, weight * sky_radiance(sky, direction));
                        break;
                    }
                    const Point2 u = sample_point(pixel, dimension, sample, index_mask);
                    const Crossing c = cross_glass(
                        scene, s, direction, inside, channel, u.x,
                        leg == 0 && crossings == 0 ? FIRST_REFLECTION : 0.0f, u.y);
                    inside = c.inside;
                    origin = s.position;
                    if (c.passes) continue;
                    ++dimension;
                    ++crossings;
                    channel = c.channel;
                    direction = c.direction;
                    weight = weight * c.weight;
                    // What is refracted finds the light that was drawn straight through the glass;
                    // only what is mirrored finds another.
                    if (c.reflects) scatter_pdf = 0.0f;
                    if (group == 0) group = c.reflects ? 1 : 2;
                    continue;
                }

                // Let the floor run out into the horizon, and a catcher be seen by its shadow.
                const bool is_first = leg == 0 && bounce == 0;
                if (is_first && met.kind == MET_FLOOR) {
                    const float far = seen / settings.fade_distance;
                    const float fade = 1.0f - expf(-far * far * far * far);
                    if (settings.catcher && crossings > 0) {
                        gather(g, group, share, weight * sky_radiance(sky, direction));
                        break;
                    }
                    if (fade > 0.002f && !settings.catcher) {
                        const Vec3 level = normalize(make_vec3(direction.x, 0.0f, direction.z));
                        gather(g, group, share, (fade * weight) * sky_radiance(sky, level));
                    }
                    weight = (1.0f - fade) * weight;
                    if (settings.catcher) {
                        covered = 0.0f;
                        caught = 1.0f - fade;
                    }
                    if (fade > 0.998f) break;
                }
                const Vec3 view = -direction;
                const int own = group == 0 ? 1 : group;     // the group of what leaves here
                const float *look = material + MATERIAL_FLOATS * s.material;
                const Vec3 reflected = fresnel(s.finish.reflectance, s.finish.shininess,
                                               dot(s.normal, view));
                const Vec3 matt = (one() - reflected) * s.finish.albedo;
                const bool is_last = !settings.path || bounce >= settings.bounces;
                const Vec3 bounced_sky = mirrored(direction, s.normal);
                Vec3 sky_mirror = zero();
                if (is_last) {
                    // Gather the sky as if nothing stood before it.
                    const Vec3 irradiance = harmonic_irradiance(harmonic,
                                                                sky_direction(sky, s.normal));
                    const Vec3 soft = matt * (irradiance / PI_F);
                    sky_mirror = sky_reflection(sky, bounced_sky, look[M_BLUR]);
                    gather(g, own, group == 0 ? one() : share, weight * soft);
                    gather(g, own, group == 0 ? zero() : share, weight * reflected * sky_mirror);
                    if (is_first) {
                        open += brightness(weight * soft);
                        lit += brightness(weight * soft);
                    }
                }

                // Gather the lights, each from one point, if it is in sight.
                const int n_lights = (scene.has_key ? 1 : 0) + scene.n_panels
                                     + (is_last ? 0 : 1);
                for (int light = 0; light < n_lights; ++light) {
                    const Point2 u = sample_point(pixel, dimension++, sample, index_mask);
                    const int lamp = light - (scene.has_key ? 1 : 0);
                    const bool is_key = lamp < 0, is_sky = lamp >= scene.n_panels;
                    const LightSample l =
                        is_key ? key_sample(settings.key_direction, settings.key_irradiance,
                                            settings.key_spread, u)
                        : (is_sky ? sky_sample(sky, u)
                                  : panel_sample(panel + PANEL_FLOATS * lamp, s.position, u));
                    const float cosine = dot(s.normal, l.direction);
                    if (cosine <= 0.0f || dot(s.flat, l.direction) <= 0.0f) continue;
                    Vec3 soft, shine;
                    float mine = 1.0f;
                    if (is_last) {
                        const Vec3 half = normalize(l.direction + view);
                        const float exponent = leg == 0 ? s.finish.shininess
                                                        : minimum(s.finish.shininess, WIDE_SHININESS);
                        soft = (cosine / PI_F) * matt;
                        shine = (cosine * blinn_phong(exponent, dot(s.normal, half)))
                                * fresnel(s.finish.reflectance, s.finish.shininess,
                                          dot(l.direction, half));
                        if (leg == 1) shine = zero();
                    } else {
                        const Scattering f = bsdf_eval(s.finish, energy, s.normal, view, l.direction);
                        soft = f.diffuse;
                        shine = f.specular;
                        if (l.pdf > 0.0f) mine = shared_weight(l.pdf, f.pdf);
                    }
                    const Vec3 soft_light = mine * (soft * l.light), shine_light = mine * (shine * l.light);
                    const float most = strongest(weight * (soft_light + shine_light));
                    if (!(most > 0.0f)) continue;
                    const Vec3 left = light_through(scene, s.position, l.direction, l.distance, inside);
                    if (is_first) {
                        open += brightness(weight * soft_light);
                        lit += brightness(weight * soft_light * left);
                    }
                    float cut = 1.0f;
                    if (settings.clamp > 0.0f && bounce + crossings > 1) {
                        const float top = strongest(weight * (soft_light + shine_light));
                        if (top > settings.clamp) cut = settings.clamp / top;
                    }
                    gather(g, own, group == 0 ? one() : share, cut * (weight * left * soft_light));
                    gather(g, own, group == 0 ? zero() : share, cut * (weight * left * shine_light));
                }

                if (is_last) {
                    if (settings.path || leg > 0 || !settings.occlusion) break;
                    // Prepare the two other legs.
                    for (int next = 1; next < 3; ++next) {
                        leg_origin[next] = s.position;
                        leg_inside[next] = inside;
                        leg_group[next] = own;
                        leg_share[next] = group == 0 ? (next == 1 ? one() : zero()) : share;
                    }
                    leg_direction[1] = cosine_direction(
                        s.normal, sample_point(pixel, dimension++, sample, index_mask));
                    leg_weight[1] = weight * matt;
                    leg_taken[1] = leg_weight[1]
                        * harmonic_radiance(harmonic, sky_direction(sky, leg_direction[1]));
                    const Vec3 half = lobe_direction(
                        s.normal, s.finish.shininess,
                        sample_point(pixel, dimension++, sample, index_mask));
                    const Vec3 bounced = mirrored(direction, half);
                    leg_direction[2] = dot(bounced, s.flat) > 0.0f ? bounced : bounced_sky;
                    leg_weight[2] = weight * reflected;
                    leg_taken[2] = leg_weight[2] * sky_mirror;
                    // A leg that would start into its own surface is folded up.
                    for (int next = 1; next < 3; ++next) {
                        const float below = dot(leg_direction[next], s.flat);
                        if (below < 0.0f)
                            leg_direction[next] = leg_direction[next] - (2.0f * below) * s.flat;
                    }
                    break;
                }

                // Go on in a direction drawn by the scattering.
                const Point2 which = sample_point(pixel, dimension++, sample, index_mask);
                const Point2 u = sample_point(pixel, dimension++, sample, index_mask);
                Vec3 onward = bsdf_sample(s.finish, energy, s.normal, view, which.x, u);
                const Scattering f = bsdf_eval(s.finish, energy, s.normal, view, onward);
                if (!(f.pdf > 0.0f)) break;
                const Vec3 total = f.diffuse + f.specular;
                if (group == 0) {
                    group = 1;
                    share = make_vec3(f.diffuse.x / maximum(total.x, 1e-20f),
                                      f.diffuse.y / maximum(total.y, 1e-20f),
                                      f.diffuse.z / maximum(total.z, 1e-20f));
                }
                weight = weight * (total / f.pdf);
                const float below = dot(onward, s.flat);
                if (below < 0.0f) onward = onward - (2.0f * below) * s.flat;
                origin = s.position;
                direction = onward;
                scatter_pdf = f.pdf;
                is_wide |= f.pdf < WIDE_PDF;
                ++bounce;
                // End long paths by chance, the fainter the sooner.
                if (bounce > 3) {
                    const float go_on = minimum(strongest(weight), 0.95f);
                    if (which.y >= go_on) break;
                    weight = weight / go_on;
                }
                if (!(strongest(weight) > 0.0f)) break;
            }
        }
        // A catcher shows nothing but its shadow.
        if (caught > 0.0f) g.all = g.diffuse = g.specular = g.refraction = zero();
        store_vec3(radiance, i, g.all);
        store_vec3(diffuse_part, i, g.diffuse);
        store_vec3(specular_part, i, g.specular);
        store_vec3(refraction_part, i, g.refraction);
        cover[2 * i] = covered;
        cover[2 * i + 1] = caught;
        shade[2 * i] = lit;
        shade[2 * i + 1] = open;
    }
}

// What each ray meets first, written to its pixel: the values of the data passes.
KERNEL void describe(
    int n,
    const int *count, const float *constant,
    const float *node_box, const int *node_child, const float *packet,
    const int *slot_fragment, const int *tag, const float *corner_normal, const float *corner_uv,
    const float *pose, const int *piece_material, const float *material, const float *prop,
    const float *panel, const int *image_table, const float *image,
    const int *ray_pixel,         // (n,): -1 for none
    const float *ray_origin,      // (n, 3)
    const float *ray_direction,   // (n, 3)
    const float *first_t,         // (n,)
    const int *first_slot,        // (n,)
    INOUT float *distance,        // (pixels,): 1e10 where there is nothing
    INOUT float *normal,          // (pixels, 3): facing the ray
    INOUT float *position,        // (pixels, 3)
    INOUT float *albedo,          // (pixels, 3)
    INOUT int *identity)          // (pixels, 4): fragment, element, material, triangle; -1: none
{
    FOR_EACH(i, n) {
        const Scene scene = {
            {node_box, node_child, packet, slot_fragment}, tag, corner_normal, corner_uv,
            pose, piece_material, material, count[5], count[6], prop, panel,
            count[7] != 0, count[8] != 0, count[9] != 0, constant[9], constant[10], constant[11],
            count[10], constant[12], image_table, image, constant[13], constant[14]};
        const Vec3 origin = load_vec3(ray_origin, i), direction = load_vec3(ray_direction, i);
        Meeting met = meet_fixed(scene, origin, direction);
        met = join_hit(met, first_t[i], first_slot[i]);
        // A shadow catcher is not in the picture.
        const bool seen = met.kind > MET_NOTHING && met.kind != MET_PANEL
                          && !(count[2] != 0 && met.kind == MET_FLOOR);
        const int64 pixel = ray_pixel[i];
        if (pixel < 0) continue;
        distance[pixel] = NO_DEPTH;
        store_vec3(normal, pixel, zero());
        store_vec3(position, pixel, zero());
        store_vec3(albedo, pixel, zero());
        for (int k = 0; k < 4; ++k) identity[4 * pixel + k] = -1;
        if (!seen) continue;
        const Surface s = surface_at(scene, origin, direction, met, met.t);
        distance[pixel] = met.t;
        store_vec3(normal, pixel, s.normal);
        store_vec3(position, pixel, s.position);
        store_vec3(albedo, pixel, s.finish.kind == KIND_GLASS ? one() : s.finish.albedo);
        identity[4 * pixel] = s.fragment;
        identity[4 * pixel + 1] = s.element;
        identity[4 * pixel + 2] = s.material;
        identity[4 * pixel + 3] = s.triangle;
    }
}
