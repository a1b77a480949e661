// What a ray meets and the light that leaves it: laws of the surfaces; symbols in render.py.
#include "device/device.cuh"
#include "raytrace/bvh.cuh"
#include "raytrace/harmonics.cuh"

// Rows of the material table, MATERIAL_FLOATS each: albedo, reflectance at normal incidence,
// Blinn-Phong exponent, blur level of its reflections. The bodies' rows follow.
#define MATERIAL_FLOATS 8
#define MATERIAL_FLOOR 0
#define MATERIAL_CHECKER 1
#define MATERIAL_BALL 2
// As in environment.py.
#define BLUR_LEVELS 5

struct Scene {
    Bvh bvh;
    const int *slot_triangle;
    const int *fragment;        // (triangles,)
    const int *material_of;     // (triangles,)
    const float *material;      // (materials, 8)
    int n_balls;
    const float *ball;          // (balls, 4): centre, radius
    bool has_floor;
    float floor_height;
    float checker;              // edge of a checker field [m]; 0 for none
    float shift_x, shift_z;     // the checker's zero, from the scene's origin
};

struct Sky {
    int width, height;
    const float *image;         // (height, width, 3)
    const float *blurred;       // BLUR_LEVELS levels (8 * 2^k, 16 * 2^k, 3)
    const float *harmonic;      // (9, 3)
    float turn_cos, turn_sin;
};

struct Surface {
    float t;                    // INFINITY_F: nothing was met
    Vec3 position, normal;      // the normal faces the ray
    int material;
    int fragment;               // -1 for floor and balls
};

// Distance along a unit direction to a ball, or INFINITY_F. The discriminant comes from the
// distance of the centre to the line, which keeps its digits far away.
DEVICE float ball_distance(const float *ball, Vec3 origin, Vec3 direction)
{
    const Vec3 to_center = make_vec3(ball[0], ball[1], ball[2]) - origin;
    const float along = dot(to_center, direction);
    const Vec3 aside = to_center - along * direction;
    const float half_square = ball[3] * ball[3] - dot(aside, aside);
    if (half_square < 0.0f) return INFINITY_F;
    const float half = sqrtf(half_square);
    const float near = along - half, far = along + half;
    return near > 0.0f ? near : (far > 0.0f ? far : INFINITY_F);
}

DEVICE float floor_distance(const Scene &scene, Vec3 origin, Vec3 direction)
{
    if (!scene.has_floor || direction.y == 0.0f) return INFINITY_F;
    const float t = (scene.floor_height - origin.y) / direction.y;
    return t > 0.0f ? t : INFINITY_F;
}

// A point moved off its surface by more than its rounding error.
DEVICE Vec3 lifted(const Surface &surface)
{
    const Vec3 p = surface.position;
    const float size = maximum(maximum(fabsf(p.x), fabsf(p.y)), fabsf(p.z)) + surface.t;
    return p + (4e-6f * size) * surface.normal;
}

DEVICE Surface closest_surface(const Scene &scene, Vec3 origin, Vec3 direction)
{
    Surface surface;
    surface.t = INFINITY_F;
    surface.fragment = -1;
    surface.material = MATERIAL_FLOOR;

    // Meet the floor and the balls first: they shorten the walk through the tree.
    const float t_floor = floor_distance(scene, origin, direction);
    if (t_floor < surface.t) {
        surface.t = t_floor;
        surface.normal = make_vec3(0.0f, 1.0f, 0.0f);
    }
    for (int b = 0; b < scene.n_balls; ++b) {
        const float t = ball_distance(scene.ball + 4 * b, origin, direction);
        if (t < surface.t) {
            surface.t = t;
            surface.material = MATERIAL_BALL;
            const float *ball = scene.ball + 4 * b;
            const Vec3 center = make_vec3(ball[0], ball[1], ball[2]);
            surface.normal = normalize(origin + t * direction - center);
        }
    }
    const Ray ray = {origin, direction, 0.0f, surface.t};
    const Inside outside = {0, {0, 0, 0, 0}};
    const Hit hit = closest_hit(scene.bvh, ray, outside);
    if (hit.slot >= 0) {
        const int triangle = scene.slot_triangle[hit.slot];
        surface.t = hit.t;
        surface.normal = slot_normal(scene.bvh, hit.slot);
        surface.material = scene.material_of[triangle];
        surface.fragment = scene.fragment[triangle];
    }
    if (surface.t == INFINITY_F) return surface;

    surface.position = origin + surface.t * direction;
    if (surface.material == MATERIAL_FLOOR && hit.slot < 0) {
        surface.position.y = scene.floor_height;
        if (scene.checker > 0.0f) {
            const float x = floorf((surface.position.x + scene.shift_x) / scene.checker);
            const float z = floorf((surface.position.z + scene.shift_z) / scene.checker);
            const float half = 0.5f * (x + z);
            if (half != floorf(half)) surface.material = MATERIAL_CHECKER;
        }
    }
    if (dot(surface.normal, direction) > 0.0f) surface.normal = -surface.normal;
    return surface;
}

// Whether anything stands between a point and the light that comes from `direction`.
DEVICE bool is_shadowed(const Scene &scene, Vec3 origin, Vec3 direction)
{
    if (floor_distance(scene, origin, direction) < INFINITY_F) return true;
    for (int b = 0; b < scene.n_balls; ++b)
        if (ball_distance(scene.ball + 4 * b, origin, direction) < INFINITY_F) return true;
    const Ray ray = {origin, direction, 0.0f, INFINITY_F};
    const Inside outside = {0, {0, 0, 0, 0}};
    return any_hit(scene.bvh, ray, outside);
}

// World directions in the frame of the environment's image.
DEVICE Vec3 sky_direction(const Sky &sky, Vec3 d)
{
    return make_vec3(sky.turn_cos * d.x - sky.turn_sin * d.z, d.y,
                     sky.turn_sin * d.x + sky.turn_cos * d.z);
}

// Bilinear lookup in an equirectangular image along a direction of its own frame.
DEVICE Vec3 image_along(const float *image, int width, int height, Vec3 d)
{
    const float u = (atan2f(d.x, -d.z) * (0.5f / PI_F) + 0.5f) * (float)width - 0.5f;
    const float v = acosf(clamped(d.y, -1.0f, 1.0f)) * (1.0f / PI_F) * (float)height - 0.5f;
    const float left = floorf(u), top = floorf(v);
    const float right_part = u - left, bottom_part = v - top;
    const int column = ((int)left + width) % width;
    const int next_column = (column + 1) % width;
    const int64 row = (int64)width * maximum((int)top, 0);
    const int64 next_row = (int64)width * minimum((int)top + 1, height - 1);
    const Vec3 upper = (1.0f - right_part) * load_vec3(image, row + column)
                       + right_part * load_vec3(image, row + next_column);
    const Vec3 lower = (1.0f - right_part) * load_vec3(image, next_row + column)
                       + right_part * load_vec3(image, next_row + next_column);
    return (1.0f - bottom_part) * upper + bottom_part * lower;
}

// Radiance of the environment along a unit direction.
DEVICE Vec3 sky_radiance(const Sky &sky, Vec3 direction)
{
    return image_along(sky.image, sky.width, sky.height, sky_direction(sky, direction));
}

// Radiance of the environment blurred by a reflection lobe; level as blur_level_of() gives it.
DEVICE Vec3 sky_reflection(const Sky &sky, Vec3 direction, float level)
{
    const Vec3 d = sky_direction(sky, direction);
    const int coarse = minimum((int)level, BLUR_LEVELS - 1);
    const float part = level - (float)coarse;
    Vec3 pair[2];
    for (int k = 0; k < 2; ++k) {
        const int at = coarse + k;
        // Level k begins after 128 (1 + 4 + ... + 4^(k-1)) pixels.
        const float *image = sky.blurred + 128 * ((1 << (2 * at)) - 1);
        pair[k] = at < BLUR_LEVELS ? image_along(image, 16 << at, 8 << at, d)
                                   : image_along(sky.image, sky.width, sky.height, d);
    }
    return (1.0f - part) * pair[0] + part * pair[1];
}

// Fresnel by Schlick (1994). A rough surface does not become a mirror at grazing angles, and one
// that reflects less than any real dielectric (2 %) less still, down to nothing.
DEVICE Vec3 fresnel(Vec3 at_normal, float shininess, float cosine)
{
    const float c = 1.0f - clamped(cosine, 0.0f, 1.0f);
    const float rise = c * c * c * c * c;
    const float smooth = 1.0f - sqrtf(2.0f / (shininess + 2.0f));
    const float strongest = maximum(maximum(at_normal.x, at_normal.y), at_normal.z);
    const float top = smooth * minimum(50.0f * strongest, 1.0f);
    return make_vec3(at_normal.x + rise * (maximum(top, at_normal.x) - at_normal.x),
                     at_normal.y + rise * (maximum(top, at_normal.y) - at_normal.y),
                     at_normal.z + rise * (maximum(top, at_normal.z) - at_normal.z));
}

// Normalised Blinn-Phong lobe: D / 4 with D = (s + 2) / (2 pi) (n.h)^s, to be times Fresnel.
DEVICE float blinn_phong(float shininess, float cosine)
{
    return (shininess + 2.0f) / (8.0f * PI_F) * powf(maximum(cosine, 0.0f), shininess);
}
