// What stands in the picture, and what a ray meets of it; symbols in scene.py.
#include "device/device.cuh"
#include "raytrace/surface/bsdf.cuh"
#include "raytrace/tree/bvh.cuh"
#include "raytrace/surface/dielectric.cuh"
#include "raytrace/light/light.cuh"
#include "raytrace/surface/noise.cuh"
#include "raytrace/surface/texture.cuh"

// Rows of the material table (materials.py): floor, balls, surface and fracture of each body, and
// the colliders.
#define MATERIAL_FLOATS 24
#define MATERIAL_FLOOR 0
#define FIXED_MATERIALS 2
// Columns of the table.
#define M_ALBEDO 0
#define M_REFLECTANCE 3
#define M_SHININESS 6
#define M_BLUR 7
#define M_KIND 8
#define M_ROUGHNESS 9
#define M_INDEX 10              // of red, green and blue light
#define M_ABSORPTION 13         // [1/m]
#define M_THIN 16
#define M_BUMP 17               // slope
#define M_BUMP_SIZE 18          // [m]
#define M_TEXTURE 19            // row of the table of images, or -1
// Columns of the table of what a slot of the tree holds.
#define TAG_INTS 8
#define TAG_PIECE_ID 0
#define TAG_PIECE 1
#define TAG_ELEMENT 2
#define TAG_MATERIAL 3
#define TAG_PARTNER 4
#define TAG_TRIANGLE 5
#define TAG_APEX 6              // corners of the triangle on the mesh's surface: this one, the
#define TAG_NEXT 7              //   next, and the one behind that; -1 where it is plain
// Columns of the table of props, which are balls and colliders (props.py): the rotation by rows and
// the centre, as in a pose; half the edges of a box, or a radius and two zeros; row of the material.
#define PROP_FLOATS 16
#define PROP_CENTER 9
#define PROP_SIZE 12
#define PROP_MATERIAL 15
// Octaves of the bump.
#define BUMP_OCTAVES 5

#define MET_NOTHING 0
#define MET_FLOOR 1
#define MET_PROP 2
#define MET_PANEL 3
#define MET_PIECE 4

struct Scene {
    Bvh bvh;
    const int *tag;             // (slots, 8)
    const float *corner_normal; // (cs, 3): of corners on the mesh's surface, at rest
    const float *corner_uv;     // (cs, 2)
    const float *pose;          // (pieces, 12): rotation by rows, translation: rest to scene
    const float *rest_pose;     // (rows, 12): alike, to rest: of pieces, or of triangles that deform
    int rest_column;            // of the tags, which say the row: TAG_PIECE or TAG_TRIANGLE
    const int *piece_material;  // (pieces,): row of the surface
    const float *material;      // (materials, 24)
    const float *energy;        // (ENERGY_SIZE, ENERGY_SIZE, 2): what lobes reflect in all
    const int *camera_inside;   // (1 + MAX_INSIDE,): how many pieces are around the camera, which
    int n_props, n_panels;
    const float *prop;          // (props, 16)
    const float *panel;         // (panels, 12)
    bool has_floor, has_glass, has_key;
    bool is_catcher;            // whether the floor is seen by its shadow alone
    float floor_height, shift_x, shift_z;
    int floor_texture;
    float floor_size;           // of the texture [m]
    const int *image_table;     // (images, 3): first pixel, width, height; the floor's comes first
    const float *image;         // (pixels, 3): of all images
    float touch;                // partners that are no farther apart touch [m]
    float pixel_angle;          // width of a pixel at distance 1
};

// What a ray meets first.
struct Meeting {
    float t;                    // INFINITY_F: nothing
    int kind;                   // MET_...
    int number;                 // prop, panel, or slot
};

struct Surface {
    Vec3 position;
    Vec3 flat, normal;          // of the geometry and for shading; both face the ray
    int material, piece_id, piece, element, partner, triangle;
    bool enters;                // whether the ray enters the piece, or leaves it
    Finish finish;
};

// Distance along a unit direction to where a ray enters a ball (centre, radius), or INFINITY_F. The
// discriminant comes from the distance of the centre to the line, which keeps its digits far away.
DEVICE float ball_distance(const float *ball, Vec3 origin, Vec3 direction)
{
    const Vec3 to_center = make_vec3(ball[0], ball[1], ball[2]) - origin;
    const float along = dot(to_center, direction);
    const Vec3 aside = to_center - along * direction;
    const float half_square = ball[3] * ball[3] - dot(aside, aside);
    if (half_square < 0.0f || along <= 0.0f) return INFINITY_F;
    const float half = sqrtf(half_square);
    // A ray that starts on the ball and leaves it has its centre behind it.
    const float near = along - half;
    return near > 0.0f ? near : INFINITY_F;
}

// An axis of a box in the scene.
DEVICE Vec3 prop_axis(const float *prop, int axis)
{
    return make_vec3(prop[axis], prop[3 + axis], prop[6 + axis]);
}

// Distance to where a ray enters a box, or INFINITY_F, and the axis that it enters across. A ray
// that starts on the box or in it enters nowhere.
DEVICE float box_distance(const float *prop, Vec3 origin, Vec3 direction, int &axis)
{
    const Vec3 from = origin - load_vec3(prop + PROP_CENTER, 0);
    float enters = 0.0f, leaves = INFINITY_F;
    axis = -1;
    for (int k = 0; k < 3; ++k) {
        const Vec3 along = prop_axis(prop, k);
        const float start = dot(along, from), speed = dot(along, direction);
        const float safe = fabsf(speed) > 1e-20f ? speed : 1e-20f;
        const float side = safe > 0.0f ? prop[PROP_SIZE + k] : -prop[PROP_SIZE + k];
        const float first = (-side - start) / safe;
        if (first > enters) {
            enters = first;
            axis = k;
        }
        leaves = minimum(leaves, (side - start) / safe);
    }
    return axis >= 0 && enters <= leaves ? enters : INFINITY_F;
}

DEVICE bool is_box(const float *prop) { return prop[PROP_SIZE + 1] > 0.0f; }

DEVICE float prop_distance(const float *prop, Vec3 origin, Vec3 direction)
{
    int unused;
    return is_box(prop) ? box_distance(prop, origin, direction, unused)
                        : ball_distance(prop + PROP_CENTER, origin, direction);
}

DEVICE float floor_distance(const Scene &scene, Vec3 origin, Vec3 direction)
{
    if (!scene.has_floor || direction.y == 0.0f) return INFINITY_F;
    const float t = (scene.floor_height - origin.y) / direction.y;
    return t > 0.0f ? t : INFINITY_F;
}

// What a ray meets of floor, props and panels.
DEVICE Meeting meet_fixed(const Scene &scene, Vec3 origin, Vec3 direction)
{
    Meeting met;
    met.t = floor_distance(scene, origin, direction);
    met.kind = met.t < INFINITY_F ? MET_FLOOR : MET_NOTHING;
    met.number = 0;
    for (int b = 0; b < scene.n_props; ++b) {
        const float t = prop_distance(scene.prop + PROP_FLOATS * b, origin, direction);
        if (t < met.t) {
            met.t = t;
            met.kind = MET_PROP;
            met.number = b;
        }
    }
    for (int p = 0; p < scene.n_panels; ++p) {
        const float t = panel_distance(scene.panel + PANEL_FLOATS * p, origin, direction);
        if (t < met.t) {
            met.t = t;
            met.kind = MET_PANEL;
            met.number = p;
        }
    }
    return met;
}

DEVICE Meeting join_hit(Meeting fixed, float t, int slot)
{
    if (slot >= 0 && t < fixed.t) {
        fixed.t = t;
        fixed.kind = MET_PIECE;
        fixed.number = slot;
    }
    return fixed;
}

DEVICE Finish material_finish(const float *look)
{
    Finish f;
    f.kind = (int)look[M_KIND];
    f.albedo = make_vec3(look[M_ALBEDO], look[M_ALBEDO + 1], look[M_ALBEDO + 2]);
    f.reflectance = make_vec3(look[M_REFLECTANCE], look[M_REFLECTANCE + 1],
                              look[M_REFLECTANCE + 2]);
    f.shininess = look[M_SHININESS];
    f.roughness = look[M_ROUGHNESS];
    return f;
}

// An albedo times a colour: nothing gives back more light than it gets.
DEVICE Vec3 tinted(Vec3 albedo, Vec3 color)
{
    const Vec3 product = albedo * color;
    return make_vec3(minimum(product.x, 1.0f), minimum(product.y, 1.0f),
                     minimum(product.z, 1.0f));
}

// A shading normal that the ray sees from outside, as near to `wanted` as that allows.
DEVICE Vec3 visible_normal(Vec3 wanted, Vec3 flat, Vec3 direction)
{
    if (dot(wanted, flat) <= 0.0f) return flat;
    const float facing = -dot(wanted, direction);
    if (facing >= 0.02f) return wanted;
    return normalize(wanted - (0.02f - facing) * direction);
}

// The weights of a triangle's corners at a point of it.
DEVICE Vec3 corner_weights(const Scene &scene, int slot, Vec3 position)
{
    const Vec3 a = slot_corner(scene.bvh, slot, 0);
    const Vec3 ab = slot_corner(scene.bvh, slot, 1) - a, ac = slot_corner(scene.bvh, slot, 2) - a;
    const Vec3 ap = position - a;
    const Vec3 area = cross(ab, ac);
    const float scale = 1.0f / maximum(dot(area, area), 1e-38f);
    const float v = clamped(dot(cross(ap, ac), area) * scale, 0.0f, 1.0f);
    const float w = clamped(dot(cross(ab, ap), area) * scale, 0.0f, 1.0f - v);
    return make_vec3(1.0f - v - w, v, w);
}

// The shading normal of a mesh, turned with its piece.
DEVICE Vec3 smooth_normal(const Scene &scene, const float *pose, const int *tag, Vec3 weight,
                          Vec3 flat)
{
    const float *normal = scene.corner_normal;
    const int next = tag[TAG_NEXT];
    const Vec3 rest = weight.x * load_vec3(normal, tag[TAG_APEX])
                      + weight.y * load_vec3(normal, next) + weight.z * load_vec3(normal, next + 1);
    const Vec3 turned = make_vec3(dot(load_vec3(pose, 0), rest), dot(load_vec3(pose, 1), rest),
                                  dot(load_vec3(pose, 2), rest));
    const float length = norm(turned);
    return length > 1e-6f ? turned / length : flat;
}

// The colour of an image where the uv of a mesh put it; v runs upward.
DEVICE Vec3 texture_color(const Scene &scene, int texture, const int *tag, Vec3 weight)
{
    const float *apex = scene.corner_uv + 2 * (int64)tag[TAG_APEX];
    const float *next = scene.corner_uv + 2 * (int64)tag[TAG_NEXT];
    const float u = weight.x * apex[0] + weight.y * next[0] + weight.z * next[2];
    const float v = weight.x * apex[1] + weight.y * next[1] + weight.z * next[3];
    const int *row = scene.image_table + 3 * texture;
    return image_color(scene.image + 3 * (int64)row[0], row[1], row[2], u, 1.0f - v);
}

// A scene position at rest: where the noise of broken faces is read, so that it sticks to them.
DEVICE Vec3 rest_position(const float *pose, Vec3 position)
{
    const Vec3 d = position - load_vec3(pose, 3);
    return d.x * load_vec3(pose, 0) + d.y * load_vec3(pose, 1) + d.z * load_vec3(pose, 2);
}

// The normal tilted by a rough surface: the slope of noise at rest, turned into the scene. A pose
// that deforms holds M and p with X = M^T (x - p): M takes slopes at rest to those of the scene.
DEVICE Vec3 bumped_normal(const float *look, const float *pose, Vec3 position, Vec3 normal,
                          float finest)
{
    const float size = look[M_BUMP_SIZE];
    const Noise noise = octave_noise(rest_position(pose, position) / size, BUMP_OCTAVES,
                                     finest / size);
    const Vec3 slope = make_vec3(dot(load_vec3(pose, 0), noise.slope),
                                 dot(load_vec3(pose, 1), noise.slope),
                                 dot(load_vec3(pose, 2), noise.slope));
    const Vec3 along = slope - dot(slope, normal) * normal;
    return normalize(normal - look[M_BUMP] * along);
}

// The surface of a meeting. `seen` is the length of the whole path to it, for the scale of detail.
DEVICE Surface surface_at(const Scene &scene, Vec3 origin, Vec3 direction, Meeting met, float seen)
{
    Surface s;
    s.position = origin + met.t * direction;
    s.piece_id = s.piece = s.element = s.partner = s.triangle = -1;
    s.enters = true;
    const float finest = seen * scene.pixel_angle;
    if (met.kind == MET_FLOOR) {
        s.material = MATERIAL_FLOOR;
        s.position.y = scene.floor_height;
        s.finish = material_finish(scene.material);
        s.flat = s.normal = make_vec3(0.0f, direction.y < 0.0f ? 1.0f : -1.0f, 0.0f);
        if (scene.floor_texture != TEXTURE_NONE && direction.y < 0.0f) {
            // A pixel is longer along the floor than across it: take the mean of both.
            const float stretched = finest / sqrtf(maximum(-direction.y, 0.01f));
            const Paint paint = floor_paint(
                scene.floor_texture, scene.image, scene.image_table[1], scene.image_table[2],
                s.position.x + scene.shift_x, s.position.z + scene.shift_z, scene.floor_size,
                stretched);
            s.finish.albedo = tinted(s.finish.albedo, paint.tint);
            s.finish.reflectance = minimum(paint.gloss, 1.0f) * s.finish.reflectance;
            s.normal = visible_normal(
                normalize(make_vec3(-paint.slope_x, 1.0f, -paint.slope_z)), s.flat, direction);
        }
        return s;
    }
    if (met.kind == MET_PROP) {
        const float *prop = scene.prop + PROP_FLOATS * met.number;
        s.material = (int)prop[PROP_MATERIAL];
        const float *look = scene.material + MATERIAL_FLOATS * s.material;
        s.finish = material_finish(look);
        const Vec3 out = s.position - load_vec3(prop + PROP_CENTER, 0);
        if (is_box(prop)) {
            int axis;
            box_distance(prop, origin, direction, axis);
            const Vec3 along = prop_axis(prop, maximum(axis, 0));
            s.flat = dot(along, direction) < 0.0f ? along : -along;
            // Put the point on the face: the next ray starts there.
            s.position = s.position
                         + (prop[PROP_SIZE + maximum(axis, 0)] - dot(out, s.flat)) * s.flat;
        } else {
            s.flat = normalize(out);
        }
        s.normal = s.flat;
        if (look[M_BUMP] > 0.0f)
            s.normal = visible_normal(bumped_normal(look, prop, s.position, s.flat, finest), s.flat,
                                      direction);
        return s;
    }
    const int *tag = scene.tag + TAG_INTS * (int64)met.number;
    const float *pose = scene.pose + 12 * (int64)tag[TAG_PIECE];
    s.piece_id = tag[TAG_PIECE_ID];
    s.piece = tag[TAG_PIECE];
    s.element = tag[TAG_ELEMENT];
    s.material = tag[TAG_MATERIAL];
    s.partner = tag[TAG_PARTNER];
    s.triangle = tag[TAG_TRIANGLE];
    const float *look = scene.material + MATERIAL_FLOATS * s.material;
    s.finish = material_finish(look);
    const Vec3 a = slot_corner(scene.bvh, met.number, 0);
    const Vec3 outward = slot_normal(scene.bvh, met.number);
    s.enters = dot(outward, direction) < 0.0f;
    s.flat = s.enters ? outward : -outward;
    // Put the point on the plane of its triangle: the next ray starts there.
    s.position = s.position - dot(s.position - a, outward) * outward;
    Vec3 normal = outward;
    if (tag[TAG_APEX] >= 0) {
        const Vec3 weight = corner_weights(scene, met.number, s.position);
        normal = smooth_normal(scene, pose, tag, weight, outward);
        if (look[M_TEXTURE] >= 0.0f)
            s.finish.albedo = tinted(
                s.finish.albedo, texture_color(scene, (int)look[M_TEXTURE], tag, weight));
    }
    if (look[M_BUMP] > 0.0f) {
        const float *rest_pose = scene.rest_pose + 12 * (int64)tag[scene.rest_column];
        normal = bumped_normal(look, rest_pose, s.position, normal, finest);
    }
    s.normal = visible_normal(s.enters ? normal : -normal, s.flat, direction);
    return s;
}

// The row of the clear medium that a ray is in, or -1 for air: of several, the first in the table.
DEVICE int medium_of(const Scene &scene, const Inside &inside)
{
    int lowest = -1;
    for (int k = 0; k < inside.count; ++k) {
        const int row = scene.piece_material[inside.piece[k]];
        if (lowest < 0 || row < lowest) lowest = row;
    }
    return lowest;
}

DEVICE float medium_index(const Scene &scene, int medium, int channel)
{
    return medium < 0 ? 1.0f : scene.material[MATERIAL_FLOATS * medium + M_INDEX + channel];
}

// What is left of light after a way through a medium (Beer's law).
DEVICE Vec3 medium_transmittance(const Scene &scene, int medium, float distance)
{
    if (medium < 0) return make_vec3(1.0f, 1.0f, 1.0f);
    const float *absorption = scene.material + MATERIAL_FLOATS * medium + M_ABSORPTION;
    return make_vec3(expf(-absorption[0] * distance), expf(-absorption[1] * distance),
                     expf(-absorption[2] * distance));
}

// The piece on the other side of a face, if its own face lies within `touch`; else -1.
DEVICE int touching_piece(const Scene &scene, const Surface &s)
{
    if (s.partner < 0) return -1;
    const Vec3 normal = slot_normal(scene.bvh, s.partner);
    if (fabsf(dot(s.position - slot_corner(scene.bvh, s.partner, 0), normal)) > scene.touch) return -1;
    if (fabsf(dot(normal, s.flat)) < 0.999f) return -1;
    return scene.tag[TAG_INTS * (int64)s.partner + TAG_PIECE];
}
