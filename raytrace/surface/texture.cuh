// Textures: images, and planks of wood, concrete or checks on the floor; x and z run along it.
#include "device/device.cuh"
#include "raytrace/surface/noise.cuh"

#define TEXTURE_NONE 0
#define TEXTURE_CHECKER 1
#define TEXTURE_WOOD 2
#define TEXTURE_CONCRETE 3
#define TEXTURE_IMAGE 4
// The darker fields of a checkered floor, relative to the others.
#define CHECKER_SHADE 0.45f

struct Paint {
    Vec3 tint;          // times the albedo
    float gloss;        // times the specular reflectance
    float slope_x, slope_z;
};

// Boards `size` wide along x, in rows that are shifted against each other.
DEVICE Paint wood_paint(float x, float z, float size, float finest)
{
    const float row = floorf(z / size);
    const float across = z / size - row;
    const float shift = hash_uniform(11u, (uint32)(int)row, 0u, 0u);
    const float length = 9.0f * size;
    const float along = x / length + shift;
    const float board = floorf(along);
    const float end = along - board;
    const float own = hash_uniform(12u, (uint32)(int)row, (uint32)(int)board, 0u);
    const float warm = hash_uniform(13u, (uint32)(int)row, (uint32)(int)board, 1u);
    const Vec3 place = make_vec3(x / size, 37.0f * own, z / size);

    // Year rings: distorted cones around an axis below the board.
    const Noise bend = octave_noise(make_vec3(0.5f * place.x, place.y, 1.6f * place.z), 3,
                                    finest / size);
    const float middle = across - 0.2f - 0.6f * own;
    const float radius = 2.2f * sqrtf(middle * middle + 0.02f) + 0.08f * place.x
                         + 0.55f * bend.value + 7.0f * own;
    const float phase = 5.0f * radius - floorf(5.0f * radius);
    const float ring = phase < 0.8f ? phase / 0.8f : (1.0f - phase) / 0.2f;
    const float ring_seen = clamped(1.5f - 12.0f * finest / size, 0.0f, 1.0f);
    // Pores: short dark streaks along the board.
    const Noise fibre = octave_noise(make_vec3(3.0f * place.x, place.y, 55.0f * place.z), 2,
                                     20.0f * finest / size);
    const float streak = clamped(2.2f * fibre.value, 0.0f, 1.0f);

    Paint paint;
    const float light = 1.04f - 0.30f * ring_seen * ring * ring - 0.22f * streak
                        + 0.28f * (own - 0.5f) + 0.10f * bend.value;
    paint.tint = make_vec3(light * (1.0f + 0.05f * (warm - 0.5f)), light * light,
                           light * light * light * (1.0f - 0.12f * (warm - 0.5f)));
    paint.gloss = 1.0f - 0.6f * streak;
    paint.slope_x = 0.0f;
    paint.slope_z = 0.035f * fibre.slope.z * clamped(1.0f - 30.0f * finest / size, 0.0f, 1.0f);
    // Grooves between boards.
    const float edge = minimum(minimum(across, 1.0f - across),
                               9.0f * minimum(end, 1.0f - end));
    const float groove = 0.012f + 0.5f * finest / size;
    if (edge < groove) {
        const float deep = minimum(1.0f, 0.012f / groove) * (1.0f - edge / groove);
        paint.tint = (1.0f - 0.8f * deep) * paint.tint;
        paint.gloss *= 1.0f - deep;
    }
    return paint;
}

// Cast concrete: clouds, fine sand and pores.
DEVICE Paint concrete_paint(float x, float z, float size, float finest)
{
    const Vec3 place = make_vec3(x / size, 0.5f, z / size);
    const float pixel = finest / size;
    const Noise cloud = octave_noise(place, 5, pixel);
    const Noise sand = octave_noise(23.0f * place, 3, 23.0f * pixel);
    const Noise stain = octave_noise(make_vec3(0.37f * place.x, 9.0f, 0.37f * place.z), 3, pixel);
    Paint paint;
    float light = 1.0f + 0.22f * cloud.value + 0.10f * sand.value + 0.16f * stain.value;
    // Pores: where a cell of a fine lattice has one, a small dark pit.
    const float cell_x = 14.0f * place.x, cell_z = 14.0f * place.z;
    const int ix = (int)floorf(cell_x), iz = (int)floorf(cell_z);
    const float chance = hash_uniform(21u, (uint32)ix, (uint32)iz, 0u);
    const float px = cell_x - (float)ix - 0.2f - 0.6f * hash_uniform(21u, (uint32)ix, (uint32)iz, 1u);
    const float pz = cell_z - (float)iz - 0.2f - 0.6f * hash_uniform(21u, (uint32)ix, (uint32)iz, 2u);
    const float pore = 0.16f * (chance - 0.72f);
    const float distance = sqrtf(px * px + pz * pz);
    if (pore > 0.0f && distance < pore && 14.0f * pixel < 1.0f)
        light *= 1.0f - 0.45f * clamped(3.0f * (1.0f - distance / pore), 0.0f, 1.0f);
    light = maximum(light, 0.2f);
    paint.tint = make_vec3(1.0f, 0.995f, 0.985f) * light;
    paint.gloss = clamped(0.8f - 1.2f * cloud.value, 0.1f, 1.5f);
    paint.slope_x = 0.05f * sand.slope.x;
    paint.slope_z = 0.05f * sand.slope.z;
    return paint;
}

// An image at a point; it goes from 0 to 1 to the right and down, and is repeated; bilinear.
DEVICE Vec3 image_color(const float *image, int width, int height, float right, float down)
{
    const float u = (right - floorf(right)) * (float)width - 0.5f;
    const float v = (down - floorf(down)) * (float)height - 0.5f;
    const float left = floorf(u), top = floorf(v);
    const int column = left < 0.0f ? width - 1 : cell_index(left, width);
    const int row = top < 0.0f ? height - 1 : cell_index(top, height);
    const int next_column = column + 1 == width ? 0 : column + 1;
    const int next_row = row + 1 == height ? 0 : row + 1;
    const float right_part = u - left, bottom_part = v - top;
    const Vec3 upper = (1.0f - right_part) * load_vec3(image, (int64)row * width + column)
                       + right_part * load_vec3(image, (int64)row * width + next_column);
    const Vec3 lower = (1.0f - right_part) * load_vec3(image, (int64)next_row * width + column)
                       + right_part * load_vec3(image, (int64)next_row * width + next_column);
    return (1.0f - bottom_part) * upper + bottom_part * lower;
}

// An image of `size` along x.
DEVICE Paint image_paint(const float *image, int width, int height, float x, float z, float size)
{
    Paint paint;
    paint.tint = image_color(image, width, height, x / size,
                             z / (size * (float)height / (float)width));
    paint.gloss = 1.0f;
    paint.slope_x = paint.slope_z = 0.0f;
    return paint;
}

// What a point of the floor adds to its material; `finest` is the width of a pixel there [m].
DEVICE Paint floor_paint(int texture, const float *image, int width, int height, float x, float z,
                         float size, float finest)
{
    if (texture == TEXTURE_WOOD) return wood_paint(x, z, size, finest);
    if (texture == TEXTURE_CONCRETE) return concrete_paint(x, z, size, finest);
    if (texture == TEXTURE_IMAGE) return image_paint(image, width, height, x, z, size);
    Paint paint;
    const float half = 0.5f * (floorf(x / size) + floorf(z / size));
    const float shade = texture == TEXTURE_CHECKER && half != floorf(half) ? CHECKER_SHADE : 1.0f;
    paint.tint = make_vec3(shade, shade, shade);
    paint.gloss = 1.0f;
    paint.slope_x = paint.slope_z = 0.0f;
    return paint;
}
