// How opaque surfaces scatter: a diffuse part and one lobe; symbols in materials.py.
//
// `phong` is the normalised Blinn-Phong of levine-2014. `ggx` is Walter et al. 2007 with Smith's
// masking, sampled by visible normals (Heitz 2018), and what the single bounce loses between
// microfacets is given back (Turquin 2019). The diffuse part takes what the lobe leaves, so
// that a white surface in a white world is white.
#include "device/device.cuh"
#include "raytrace/film/sampling.cuh"

#define KIND_PHONG 0
#define KIND_GGX 1
#define KIND_GLASS 2
// Edge of the table of lobe albedos, over cosine and roughness.
#define ENERGY_SIZE 32

struct Finish {
    int kind;
    Vec3 albedo, reflectance;
    float shininess;        // Blinn-Phong exponent
    float roughness;        // GGX alpha
};

// What leaves a surface toward the viewer from one direction, times its cosine.
struct Scattering {
    Vec3 diffuse, specular;
    float pdf;              // of bsdf_sample
};

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

// Fresnel by Schlick for microfacets.
DEVICE Vec3 facet_fresnel(Vec3 at_normal, float cosine)
{
    const float c = 1.0f - clamped(cosine, 0.0f, 1.0f);
    const float rise = c * c * c * c * c;
    const float strongest = maximum(maximum(at_normal.x, at_normal.y), at_normal.z);
    const float top = minimum(50.0f * strongest, 1.0f);
    return at_normal + rise * (make_vec3(top, top, top) - at_normal);
}

// Normalised Blinn-Phong lobe: D / 4 with D = (s + 2) / (2 pi) (n.h)^s, to be times Fresnel.
DEVICE float blinn_phong(float shininess, float cosine)
{
    // Away from the highlight c^s < exp(s (c - 1)) is nothing, and not worth its power.
    if (shininess * (1.0f - cosine) > 50.0f) return 0.0f;
    return (shininess + 2.0f) / (8.0f * PI_F) * powf(maximum(cosine, 0.0f), shininess);
}

DEVICE float ggx_distribution(float alpha, float cosine)
{
    const float a2 = alpha * alpha;
    const float d = cosine * cosine * (a2 - 1.0f) + 1.0f;
    return a2 / (PI_F * d * d);
}

// Smith's lambda of a direction with this cosine.
DEVICE float ggx_lambda(float alpha, float cosine)
{
    const float c2 = maximum(cosine * cosine, 1e-12f);
    return 0.5f * (sqrtf(1.0f + alpha * alpha * (1.0f - c2) / c2) - 1.0f);
}

// Half vector in local axes, among those a viewer in local direction v sees (Heitz 2018).
DEVICE Vec3 ggx_visible_half(float alpha, Vec3 v, Point2 u)
{
    const Vec3 stretched = normalize(make_vec3(alpha * v.x, alpha * v.y, v.z));
    const float flat = stretched.x * stretched.x + stretched.y * stretched.y;
    const Vec3 t1 = flat > 0.0f ? make_vec3(-stretched.y, stretched.x, 0.0f) / sqrtf(flat)
                                : make_vec3(1.0f, 0.0f, 0.0f);
    const Vec3 t2 = cross(stretched, t1);
    const float r = sqrtf(u.x), angle = 2.0f * PI_F * u.y;
    const float a = r * cosf(angle);
    const float s = 0.5f * (1.0f + stretched.z);
    const float b = (1.0f - s) * sqrtf(maximum(0.0f, 1.0f - a * a)) + s * r * sinf(angle);
    const Vec3 h = a * t1 + b * t2 + sqrtf(maximum(0.0f, 1.0f - a * a - b * b)) * stretched;
    return normalize(make_vec3(alpha * h.x, alpha * h.y, maximum(0.0f, h.z)));
}

// Albedo of the GGX lobe: its share with reflectance 1 and that of the Fresnel rise.
DEVICE Point2 ggx_energy(const float *energy, float alpha, float cosine)
{
    const float x = clamped(cosine, 0.0f, 1.0f) * (float)(ENERGY_SIZE - 1);
    const float y = clamped(alpha, 0.0f, 1.0f) * (float)(ENERGY_SIZE - 1);
    const int i = cell_index(x, ENERGY_SIZE - 1), j = cell_index(y, ENERGY_SIZE - 1);
    const float fx = x - (float)i, fy = y - (float)j;
    const float *row = energy + 2 * (ENERGY_SIZE * j + i), *next = row + 2 * ENERGY_SIZE;
    Point2 e;
    e.x = (1.0f - fy) * ((1.0f - fx) * row[0] + fx * row[2])
          + fy * ((1.0f - fx) * next[0] + fx * next[2]);
    e.y = (1.0f - fy) * ((1.0f - fx) * row[1] + fx * row[3])
          + fy * ((1.0f - fx) * next[1] + fx * next[3]);
    return e;
}

// What the lobe reflects altogether toward a viewer at this cosine, and the factor that gives
// back what the single bounce loses.
DEVICE Vec3 lobe_albedo(const Finish &f, const float *energy, float cosine, Vec3 &gain)
{
    gain = make_vec3(1.0f, 1.0f, 1.0f);
    if (f.kind != KIND_GGX) return fresnel(f.reflectance, f.shininess, cosine);
    const Point2 e = ggx_energy(energy, f.roughness, cosine);
    const float strongest = maximum(maximum(f.reflectance.x, f.reflectance.y), f.reflectance.z);
    const float top = minimum(50.0f * strongest, 1.0f);
    const float lost = 1.0f / maximum(e.x, 1e-3f) - 1.0f;
    gain = gain + lost * f.reflectance;
    const Vec3 once = f.reflectance * (e.x - e.y) + make_vec3(top, top, top) * e.y;
    return once * gain;
}

// Density of the phong lobe's directions l about the mirrored view: half vectors are drawn, and
// directions below the surface are folded up.
DEVICE float phong_pdf(float shininess, Vec3 n, Vec3 v, Vec3 l)
{
    float sum = 0.0f;
    for (int fold = 0; fold < 2; ++fold) {
        const Vec3 from = fold ? l - (2.0f * dot(l, n)) * n : l;
        const Vec3 h = normalize(v + from);
        const float along = dot(v, h), cosine = dot(n, h);
        if (along > 1e-6f && cosine > 0.0f)
            sum += (shininess + 1.0f) / (2.0f * PI_F) * powf(cosine, shininess) / (4.0f * along);
    }
    return sum;
}

// How often the lobe is drawn rather than the diffuse part.
DEVICE float lobe_share(Vec3 lobe, Vec3 diffuse)
{
    const float a = lobe.x + lobe.y + lobe.z, b = diffuse.x + diffuse.y + diffuse.z;
    return a <= 0.0f ? 0.0f : (b <= 0.0f ? 1.0f : clamped(a / (a + b), 0.1f, 0.9f));
}

// Scattering from l to v, both away from the surface; n is the shading normal.
DEVICE Scattering bsdf_eval(const Finish &f, const float *energy, Vec3 n, Vec3 v, Vec3 l)
{
    Scattering s;
    const float cosine = dot(n, l), facing = maximum(dot(n, v), 1e-4f);
    Vec3 gain;
    const Vec3 lobe = lobe_albedo(f, energy, facing, gain);
    const Vec3 rest = (make_vec3(1.0f, 1.0f, 1.0f) - lobe) * f.albedo;
    const Vec3 left = make_vec3(maximum(rest.x, 0.0f), maximum(rest.y, 0.0f),
                                maximum(rest.z, 0.0f));
    s.diffuse = s.specular = make_vec3(0.0f, 0.0f, 0.0f);
    s.pdf = 0.0f;
    if (cosine <= 0.0f) return s;
    s.diffuse = (cosine / PI_F) * left;
    float pdf = 0.0f;
    if (f.kind == KIND_GGX) {
        const Vec3 h = normalize(v + l);
        const float d = ggx_distribution(f.roughness, dot(n, h));
        const float lambda_v = ggx_lambda(f.roughness, facing);
        const float lambda_l = ggx_lambda(f.roughness, cosine);
        s.specular = (d / (4.0f * facing * (1.0f + lambda_v + lambda_l)))
                     * facet_fresnel(f.reflectance, dot(v, h)) * gain;
        pdf = d / (4.0f * facing * (1.0f + lambda_v));
    } else {
        pdf = phong_pdf(f.shininess, n, v, l);
        s.specular = pdf * lobe;
    }
    const float share = lobe_share(lobe, left);
    s.pdf = share * pdf + (1.0f - share) * cosine / PI_F;
    return s;
}

// A direction in which light comes to v, drawn about as bsdf_eval is large.
DEVICE Vec3 bsdf_sample(const Finish &f, const float *energy, Vec3 n, Vec3 v, float choice, Point2 u)
{
    Vec3 gain;
    const Vec3 lobe = lobe_albedo(f, energy, maximum(dot(n, v), 1e-4f), gain);
    const Vec3 rest = (make_vec3(1.0f, 1.0f, 1.0f) - lobe) * f.albedo;
    const Vec3 left = make_vec3(maximum(rest.x, 0.0f), maximum(rest.y, 0.0f),
                                maximum(rest.z, 0.0f));
    if (choice >= lobe_share(lobe, left)) return cosine_direction(n, u);
    Vec3 h;
    if (f.kind == KIND_GGX) {
        const Vec3 t = turned_to(n, make_vec3(1.0f, 0.0f, 0.0f));
        const Vec3 b = turned_to(n, make_vec3(0.0f, 1.0f, 0.0f));
        const Vec3 local = make_vec3(dot(v, t), dot(v, b), maximum(dot(v, n), 1e-4f));
        const Vec3 half = ggx_visible_half(f.roughness, normalize(local), u);
        h = half.x * t + half.y * b + half.z * n;
        return normalize((2.0f * dot(v, h)) * h - v);
    }
    h = lobe_direction(n, f.shininess, u);
    const Vec3 l = normalize((2.0f * dot(v, h)) * h - v);
    const float below = dot(l, n);
    return below < 0.0f ? l - (2.0f * below) * n : l;
}
