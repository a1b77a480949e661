// Where light comes from: the environment, the key light and the panels; symbols in lights.py.
#include "device/device.cuh"
#include "raytrace/light/harmonics.cuh"
#include "raytrace/film/sampling.cuh"

// As in environment.py.
#define BLUR_LEVELS 5
// A panel: centre, half of its first and second side, radiance.
#define PANEL_FLOATS 12

struct Sky {
    int width, height;
    const float *image;         // (height, width, 3)
    const float *blurred;       // BLUR_LEVELS levels (8 * 2^k, 16 * 2^k, 3)
    const float *harmonic;      // table of harmonics.py
    float turn_cos, turn_sin;
    int rows, columns;          // of the table that directions are drawn from
    const float *row_sum;       // (rows + 1,): from 0 to 1
    const float *column_sum;    // (rows, columns + 1): from 0 to 1 each
};

// A direction toward light, and the light along it over the density of that direction.
struct LightSample {
    Vec3 direction;
    float distance;
    Vec3 light;
    float pdf;                  // per solid angle; 0 for a light that no other ray can find
};

// World directions in the frame of the environment's image.
DEVICE Vec3 sky_direction(const Sky &sky, Vec3 d)
{
    return make_vec3(sky.turn_cos * d.x - sky.turn_sin * d.z, d.y,
                     sky.turn_sin * d.x + sky.turn_cos * d.z);
}

DEVICE Vec3 world_direction(const Sky &sky, Vec3 d)
{
    return make_vec3(sky.turn_cos * d.x + sky.turn_sin * d.z, d.y,
                     -sky.turn_sin * d.x + sky.turn_cos * d.z);
}

// Where a direction of the image's own frame stands in it: both from 0 to 1.
DEVICE Point2 image_place(Vec3 d)
{
    Point2 p;
    p.x = atan2f(d.x, -d.z) * (0.5f / PI_F) + 0.5f;
    p.y = acosf(clamped(d.y, -1.0f, 1.0f)) * (1.0f / PI_F);
    return p;
}

// Bilinear lookup in an equirectangular image.
DEVICE Vec3 image_at(const float *image, int width, int height, Point2 place)
{
    const float u = place.x * (float)width - 0.5f, v = place.y * (float)height - 0.5f;
    const float left = floorf(u), top = floorf(v);
    const float right_part = u - left, bottom_part = v - top;
    const int column = left < 0.0f ? width - 1 : cell_index(left, width);
    const int next_column = column + 1 == width ? 0 : column + 1;
    const int64 row = (int64)width * cell_index(top, height);
    const int64 next_row = (int64)width * cell_index(top + 1.0f, height);
    const Vec3 upper = (1.0f - right_part) * load_vec3(image, row + column)
                       + right_part * load_vec3(image, row + next_column);
    const Vec3 lower = (1.0f - right_part) * load_vec3(image, next_row + column)
                       + right_part * load_vec3(image, next_row + next_column);
    return (1.0f - bottom_part) * upper + bottom_part * lower;
}

// Radiance of the environment along a unit direction.
DEVICE Vec3 sky_radiance(const Sky &sky, Vec3 direction)
{
    return image_at(sky.image, sky.width, sky.height, image_place(sky_direction(sky, direction)));
}

// Radiance of the environment blurred by a reflection lobe; level as blur_level_of() gives it.
DEVICE Vec3 sky_reflection(const Sky &sky, Vec3 direction, float level)
{
    const Point2 place = image_place(sky_direction(sky, direction));
    const int coarse = cell_index(level, BLUR_LEVELS);
    const float part = level - (float)coarse;
    Vec3 pair[2];
    for (int k = 0; k < 2; ++k) {
        const int at = coarse + k;
        // Level k begins after 128 (1 + 4 + ... + 4^(k-1)) pixels.
        const float *image = sky.blurred + 128 * ((1 << (2 * at)) - 1);
        pair[k] = at < BLUR_LEVELS ? image_at(image, 16 << at, 8 << at, place)
                                   : image_at(sky.image, sky.width, sky.height, place);
    }
    return (1.0f - part) * pair[0] + part * pair[1];
}

// The cell in which a running sum passes u.
DEVICE int cell_of(const float *sum, int count, float u)
{
    int low = 0, high = count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (sum[middle] <= u) low = middle; else high = middle - 1;
    }
    return low;
}

// Density per solid angle with which sky_sample draws from a cell.
DEVICE float cell_pdf(const Sky &sky, int row, int column)
{
    const float *sum = sky.column_sum + (int64)row * (sky.columns + 1) + column;
    const float share = (sky.row_sum[row + 1] - sky.row_sum[row]) * (sum[1] - sum[0]);
    const float top = cosf(PI_F * (float)row / (float)sky.rows);
    const float bottom = cosf(PI_F * (float)(row + 1) / (float)sky.rows);
    return share * (float)sky.columns / (2.0f * PI_F * (top - bottom));
}

DEVICE float sky_pdf(const Sky &sky, Vec3 direction)
{
    const Point2 place = image_place(sky_direction(sky, direction));
    return cell_pdf(sky, cell_index(place.y * (float)sky.rows, sky.rows),
                    cell_index(place.x * (float)sky.columns, sky.columns));
}

// A direction of the environment, drawn about as it is bright.
DEVICE LightSample sky_sample(const Sky &sky, Point2 u)
{
    const int row = cell_of(sky.row_sum, sky.rows, u.y);
    const float *sum = sky.column_sum + (int64)row * (sky.columns + 1);
    const int column = cell_of(sum, sky.columns, u.x);
    const float x = (u.x - sum[column]) / maximum(sum[column + 1] - sum[column], 1e-20f);
    const float y = (u.y - sky.row_sum[row])
                    / maximum(sky.row_sum[row + 1] - sky.row_sum[row], 1e-20f);
    const float top = cosf(PI_F * (float)row / (float)sky.rows);
    const float bottom = cosf(PI_F * (float)(row + 1) / (float)sky.rows);
    const float up = top + clamped(y, 0.0f, 1.0f) * (bottom - top);
    const float out = sqrtf(maximum(0.0f, 1.0f - up * up));
    const float turn = 2.0f * PI_F
                       * (((float)column + clamped(x, 0.0f, 1.0f)) / (float)sky.columns - 0.5f);
    LightSample s;
    s.direction = world_direction(sky, make_vec3(out * sinf(turn), up, -out * cosf(turn)));
    s.distance = INFINITY_F;
    s.pdf = maximum(cell_pdf(sky, row, column), 1e-12f);
    s.light = sky_radiance(sky, s.direction) / s.pdf;
    return s;
}

// A direction toward the key light's disk; its light is an irradiance.
DEVICE LightSample key_sample(Vec3 toward, Vec3 irradiance, float spread, Point2 u)
{
    const Point2 d = disk_point(u);
    LightSample s;
    s.direction = normalize(turned_to(toward, make_vec3(spread * d.x, spread * d.y, 1.0f)));
    s.distance = INFINITY_F;
    s.light = irradiance;
    s.pdf = 0.0f;
    return s;
}

// The normal of a panel, times its area: it shines where this points.
DEVICE Vec3 panel_area(const float *panel)
{
    return 4.0f * cross(load_vec3(panel, 1), load_vec3(panel, 2));
}

// Density per solid angle with which panel_sample draws a direction from a point.
DEVICE float panel_pdf(const float *panel, float distance, Vec3 direction)
{
    const float seen = -dot(panel_area(panel), direction);
    return seen > 0.0f ? distance * distance / seen : 0.0f;
}

DEVICE LightSample panel_sample(const float *panel, Vec3 from, Point2 u)
{
    const Vec3 to = load_vec3(panel, 0) + (2.0f * u.x - 1.0f) * load_vec3(panel, 1)
                    + (2.0f * u.y - 1.0f) * load_vec3(panel, 2) - from;
    LightSample s;
    s.distance = norm(to);
    s.direction = to / maximum(s.distance, 1e-20f);
    s.pdf = panel_pdf(panel, s.distance, s.direction);
    s.light = s.pdf > 0.0f ? load_vec3(panel, 3) / s.pdf : make_vec3(0.0f, 0.0f, 0.0f);
    return s;
}

// Distance to the shining side of a panel, or INFINITY_F.
DEVICE float panel_distance(const float *panel, Vec3 origin, Vec3 direction)
{
    const Vec3 a = load_vec3(panel, 1), b = load_vec3(panel, 2);
    const Vec3 normal = cross(a, b);
    const float facing = dot(normal, direction);
    if (facing >= 0.0f) return INFINITY_F;
    const Vec3 to = load_vec3(panel, 0) - origin;
    const float t = dot(normal, to) / facing;
    if (t <= 0.0f) return INFINITY_F;
    const Vec3 p = t * direction - to;
    return fabsf(dot(p, a)) <= dot(a, a) && fabsf(dot(p, b)) <= dot(b, b) ? t : INFINITY_F;
}
