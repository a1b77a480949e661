// What a collider is: its constants, one row of COLLIDER_WORDS doubles, and its surface.
#include "device/device.cuh"

#define COLLIDER_WORDS 17
#define COLLIDER_KIND 0
#define COLLIDER_RESTITUTION 1
#define COLLIDER_FRICTION 2
#define COLLIDER_RADIUS 3       // of a sphere [m]
#define COLLIDER_HALF_SIZE 4    // of a box (3) [m]
#define COLLIDER_AXES 7         // of a box: its three axes (9); of a plane: its normal (3)
#define COLLIDER_BOUND 16       // radius of a sphere around it [m]; infinite for a plane
#define KIND_PLANE 0.0
#define KIND_SPHERE 1.0

struct Surface {
    Vec3d normal;       // unit, outward, at the point of the surface nearest to a place
    double distance;    // [m] of the place from it, below 0 inside
};

// The surface of a collider seen from a place `away` from its centre.
DEVICE Surface collider_surface(const double *word, Vec3d away)
{
    Surface surface;
    if (word[COLLIDER_KIND] == KIND_PLANE) {
        surface.normal = load_vec3d(word + COLLIDER_AXES, 0);
        surface.distance = dot(away, surface.normal);
        return surface;
    }
    if (word[COLLIDER_KIND] == KIND_SPHERE) {
        const double distance = norm(away);
        surface.normal = distance > 0.0 ? away * (1.0 / distance) : make_vec3d(0.0, 1.0, 0.0);
        surface.distance = distance - word[COLLIDER_RADIUS];
        return surface;
    }
    // Of a box: straight from the nearest point outside, through the nearest face inside.
    Vec3d out = make_vec3d(0.0, 0.0, 0.0), face = out;
    double highest = -INFINITY_F;
    for (int k = 0; k < 3; ++k) {
        const Vec3d axis = load_vec3d(word + COLLIDER_AXES, k);
        const double along = dot(away, axis);
        const double over = fabs(along) - word[COLLIDER_HALF_SIZE + k];
        const Vec3d side = axis * (along < 0.0 ? -1.0 : 1.0);
        if (over > 0.0) out = out + side * over;
        if (over > highest) {
            highest = over;
            face = side;
        }
    }
    const double distance = norm(out);
    surface.normal = distance > 0.0 ? out * (1.0 / distance) : face;
    surface.distance = distance > 0.0 ? distance : highest;
    return surface;
}
