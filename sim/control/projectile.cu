// The balls: at constant velocity, or with a mass by velocity Verlet. Host side: projectile.py.
#include "device/device.cuh"
#include "sim/matter/laws.cuh"
#include "sim/matter/layout.cuh"
#include "sim/control/collider.cuh"
#include "sim/matter/particles.cuh"
#include "sim/control/projectile.cuh"

// x(t + dt) of every ball, and v(t + dt/2) of those with a mass, which bounce off the floor and
// the colliders; their own surface touches.
KERNEL void move_projectiles(
    int n_projectiles, double dt, Floor floor, Colliders colliders,
    const int *flag,
    const int64 *step,
    const double *ball,         // (n_projectiles,) rows of Ball
    const double *acceleration, // (n_projectiles, 3)
    INOUT double *velocity,     // (n_projectiles, 3)
    INOUT double *position)     // (n_projectiles, 3)
{
    if (flag[FLAG_HALT]) return;
    const double time = (double)(step[0] + 1) * dt;
    FOR_EACH(q, n_projectiles) {
        const Ball own = ball_of(ball, q);
        if (own.inverse_mass <= 0.0) {
            store_vec3d(position, q, own.start + own.flight * time);
            continue;
        }
        Vec3d v = load_vec3d(velocity, q) + load_vec3d(acceleration, q) * (0.5 * dt);
        const Vec3d x = load_vec3d(position, q) + v * dt;
        if (v.y < 0.0 && x.y - own.radius < floor.height)
            v = bounce(v, make_vec3d(0.0, 1.0, 0.0), floor.restitution, floor.friction);
        for (int m = 0; m < colliders.count; ++m) {
            const Collider other = collider_of(colliders.collider, m);
            const Surface surface = collider_surface(other, x - load_vec3d(colliders.at, 2 * m));
            const Vec3d carried = load_vec3d(colliders.at, 2 * m + 1);
            if (surface.distance < own.radius && dot(v - carried, surface.normal) < 0.0)
                v = carried + bounce(
                    v - carried, surface.normal, other.restitution, other.friction);
        }
        store_vec3d(velocity, q, v);
        store_vec3d(position, q, x);
    }
}

// Take the reaction that the step's forces summed up: a(t + dt), and v(t + dt) of balls with a
// mass.
KERNEL void push_projectiles(
    int n_projectiles, double half_dt, Vec3d gravity,
    const int *flag,
    const double *ball,         // (n_projectiles,) rows of Ball
    INOUT int64 *force,         // (n_projectiles, 3) [quantum], left at zero
    INOUT double *velocity,     // (n_projectiles, 3)
    OUT double *acceleration)   // (n_projectiles, 3)
{
    if (flag[FLAG_HALT]) return;
    FOR_EACH(q, n_projectiles) {
        const Ball own = ball_of(ball, q);
        if (own.inverse_mass <= 0.0) continue;
        const double down[3] = {gravity.x, gravity.y, gravity.z};
        for (int k = 0; k < 3; ++k) {
            const double push = (double)force[3 * q + k] * own.quantum;
            const double a = push * own.inverse_mass + down[k] * own.falls;
            acceleration[3 * q + k] = a;
            velocity[3 * q + k] += a * half_dt;
            force[3 * q + k] = 0;
        }
    }
}
