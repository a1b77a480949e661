// Rays through glass: the union of pieces that touch, overlap, or have air between them.
//
// A ray carries the pieces it is inside of. Glass begins where it enters the first of them and
// ends where it leaves the last: pieces that overlap are one body. Two pieces that still touch
// along a crack are crossed at once, with a gap of air between them.
#include "device/device.cuh"
#include "raytrace/scene.cuh"

// Interfaces that a shadow ray may cross.
#define SHADOW_CROSSINGS 64

struct Crossing {
    bool passes;            // no interface here: the ray goes on as it was
    bool reflects;
    Vec3 direction;
    Vec3 weight;
    Inside inside;          // behind the interface
    int channel;            // the colour that the ray is left with, or -1
};

// Cross a face of glass, or be mirrored by it. `choice` in [0, 1) decides; either has at least
// the chance `least` where both are possible. `hue` in [0, 1) picks a colour where they part.
DEVICE Crossing cross_glass(const Scene &scene, const Surface &s, Vec3 direction,
                            const Inside &inside, int channel, float choice, float least, float hue)
{
    Crossing c;
    c.passes = c.reflects = false;
    c.direction = direction;
    c.weight = make_vec3(1.0f, 1.0f, 1.0f);
    c.inside = inside;
    c.channel = channel;
    const int other = touching_piece(scene, s);
    bool gap = other >= 0 && is_inside(inside, other) == s.enters;
    Inside between = inside;
    leave_piece(between, s.piece);
    if (gap) leave_piece(between, other);
    if (s.enters) enter_piece(c.inside, s.piece); else leave_piece(c.inside, s.piece);
    if (gap) {
        if (s.enters) leave_piece(c.inside, other); else enter_piece(c.inside, other);
    }
    const int before = medium_of(scene, inside), behind = medium_of(scene, c.inside);
    if (medium_of(scene, between) >= 0) gap = false;    // a third piece fills the gap

    // Let a ray of all colours keep one where they are refracted differently.
    const int row = behind >= 0 ? behind : before;
    const float *look = scene.material + MATERIAL_FLOATS * maximum(row, 0);
    if (row >= 0 && channel < 0 && look[M_INDEX] != look[M_INDEX + 2]) {
        c.channel = minimum((int)(3.0f * hue), 2);
        c.weight = make_vec3(c.channel == 0 ? 3.0f : 0.0f, c.channel == 1 ? 3.0f : 0.0f,
                             c.channel == 2 ? 3.0f : 0.0f);
    }
    const int color = c.channel < 0 ? 1 : c.channel;
    const float index_before = medium_index(scene, before, color);
    const float index_behind = medium_index(scene, behind, color);
    if (!gap && index_before == index_behind) {
        c.passes = true;
        c.channel = channel;
        c.weight = make_vec3(1.0f, 1.0f, 1.0f);
        return c;
    }

    // In thin glass rays are not bent: an interface is as seen from the air.
    const bool is_thin = row >= 0 && look[M_THIN] != 0.0f;
    const float eta = is_thin ? 1.0f : index_before / index_behind;
    Vec3 normal = s.normal;
    float reflectance = 1.0f, cosine = 1.0f, cosine_behind = 1.0f;
    // With a shading normal a ray can be bent to the wrong side: then the flat one decides.
    for (int attempt = 0; attempt < 2; ++attempt) {
        cosine = minimum(-dot(direction, normal), 1.0f);
        reflectance = dielectric_reflectance(cosine, eta, cosine_behind);
        if (is_thin) {
            float unused;
            reflectance = dielectric_reflectance(
                cosine, 1.0f / maximum(index_before, index_behind), unused);
            if (gap) reflectance = 2.0f * reflectance / (1.0f + reflectance);
        } else if (gap) {
            reflectance = gap_reflectance(cosine, index_before, index_behind);
        }
        if (reflectance >= 1.0f) break;
        c.direction = refracted(direction, normal, eta, cosine, cosine_behind);
        if (dot(c.direction, s.flat) < 0.0f) break;
        normal = s.flat;
    }

    const float share = reflectance >= 1.0f ? 1.0f : clamped(reflectance, least, 1.0f - least);
    c.reflects = choice < share;
    const float weight = c.reflects ? reflectance / share : (1.0f - reflectance) / (1.0f - share);
    c.weight = weight * c.weight;
    if (c.reflects) {
        c.inside = inside;
        c.direction = mirrored(direction, normal);
        if (dot(c.direction, s.flat) <= 0.0f) c.direction = mirrored(direction, s.flat);
    }
    return c;
}

// How much light comes to a point from a direction, out to a distance: none past opaque things,
// what interfaces and absorption leave past glass, which does not bend shadow rays.
DEVICE Vec3 light_through(const Scene &scene, Vec3 origin, Vec3 direction, float distance,
                          Inside inside)
{
    const Vec3 none = make_vec3(0.0f, 0.0f, 0.0f);
    Vec3 left = make_vec3(1.0f, 1.0f, 1.0f);
    if (floor_distance(scene, origin, direction) < distance) return none;
    for (int b = 0; b < scene.n_props; ++b)
        if (prop_distance(scene.prop + PROP_FLOATS * b, origin, direction) < distance) return none;
    if (!scene.has_glass) {
        const Ray ray = {origin, direction, 0.0f, distance};
        return any_hit(scene.bvh, ray, inside) ? none : left;
    }
    float walked = 0.0f;
    for (int crossing = 0; crossing < SHADOW_CROSSINGS; ++crossing) {
        const Ray ray = {origin, direction, walked * 0.999999f, distance};
        const Hit hit = closest_hit(scene.bvh, ray, inside);
        if (hit.slot < 0) return left;
        const int *tag = scene.tag + TAG_INTS * (int64)hit.slot;
        if ((int)scene.material[MATERIAL_FLOATS * tag[TAG_MATERIAL] + M_KIND] != KIND_GLASS)
            return none;
        const int before = medium_of(scene, inside);
        left = left * medium_transmittance(scene, before, hit.t - walked);
        walked = hit.t;
        if (is_inside(inside, tag[TAG_PIECE])) leave_piece(inside, tag[TAG_PIECE]);
        else enter_piece(inside, tag[TAG_PIECE]);
        const int behind = medium_of(scene, inside);
        const float index = maximum(medium_index(scene, before, 1), medium_index(scene, behind, 1));
        if ((before < 0) != (behind < 0)) {
            const float cosine = minimum(fabsf(dot(slot_normal(scene.bvh, hit.slot), direction)), 1.0f);
            float unused;
            left = (1.0f - dielectric_reflectance(cosine, 1.0f / index, unused)) * left;
        }
    }
    return left;
}
