// What a collider is, and its surface. Written by collider.py.
#include "device/device.cuh"

#define KIND_PLANE 0.0
#define KIND_SPHERE 1.0

// The constants of a collider, all double.
struct Collider {
    double kind;                    // KIND_PLANE, KIND_SPHERE or, else, a box
    double restitution, friction;
    double radius;                  // of a sphere [m]
    Vec3d half_size;                // of a box [m]
    Vec3d axis_x, axis_y, axis_z;   // of a box, in the world; axis_x is the normal of a plane
    double bound;                   // radius of a sphere around it [m]; infinite for a plane
};
DEVICE Collider collider_of(const double *collider, int64 m)
{
    return ((const Collider *)collider)[m];
}

// The colliders, and where they are now.
struct Colliders {
    int count;
    const double *collider;         // (count,) rows of Collider
    const double *at;               // (count, 6) place and velocity
};

struct Surface {
    Vec3d normal;       // unit, outward, at the point of the surface nearest to a place
    double distance;    // [m] of the place from it, below 0 inside
};

// The surface of a collider seen from a place `away` from its centre.
DEVICE Surface collider_surface(const Collider &collider, Vec3d away)
{
    Surface surface;
    if (collider.kind == KIND_PLANE) {
        surface.normal = collider.axis_x;
        surface.distance = dot(away, surface.normal);
        return surface;
    }
    if (collider.kind == KIND_SPHERE) {
        const double distance = norm(away);
        surface.normal = distance > 0.0 ? away * (1.0 / distance) : make_vec3d(0.0, 1.0, 0.0);
        surface.distance = distance - collider.radius;
        return surface;
    }
    // Of a box: straight from the nearest point outside, through the nearest face inside.
    const Vec3d axes[3] = {collider.axis_x, collider.axis_y, collider.axis_z};
    const double half_size[3] = {
        collider.half_size.x, collider.half_size.y, collider.half_size.z};
    Vec3d out = make_vec3d(0.0, 0.0, 0.0), face = out;
    double highest = -INFINITY_F;
    for (int k = 0; k < 3; ++k) {
        const double along = dot(away, axes[k]);
        const double over = fabs(along) - half_size[k];
        const Vec3d side = axes[k] * (along < 0.0 ? -1.0 : 1.0);
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
