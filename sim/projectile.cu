// The balls: at constant velocity, or with a mass by velocity Verlet. Host side: projectile.py.
#include "device/device.cuh"
#include "sim/laws.cuh"
#include "sim/layout.cuh"
#include "sim/collider.cuh"
#include "sim/projectile.cuh"

// x(t + dt) of every ball, and v(t + dt/2) of those with a mass, which bounce off the floor and
// the colliders; their own surface touches.
KERNEL void move_projectiles(
    int n_projectiles, int n_colliders, double dt,
    double floor_height, double floor_restitution, double floor_friction,
    const int *flag,
    const int64 *step,
    const double *ball,         // (n_projectiles, BALL_WORDS)
    const double *collider,     // (n_colliders, COLLIDER_WORDS)
    const double *collider_at,  // (n_colliders, 6) place and velocity
    const double *acceleration, // (n_projectiles, 3)
    INOUT double *velocity,     // (n_projectiles, 3)
    INOUT double *position)     // (n_projectiles, 3)
{
    if (flag[FLAG_HALT]) return;
    const double time = (double)(step[0] + 1) * dt;
    FOR_EACH(q, n_projectiles) {
        const double *word = ball + BALL_WORDS * q;
        if (word[BALL_INVERSE_MASS] <= 0.0) {
            store_vec3d(position, q, load_vec3d(word + BALL_START, 0)
                + load_vec3d(word + BALL_FLIGHT, 0) * time);
            continue;
        }
        Vec3d v = load_vec3d(velocity, q) + load_vec3d(acceleration, q) * (0.5 * dt);
        const Vec3d x = load_vec3d(position, q) + v * dt;
        if (v.y < 0.0 && x.y - word[BALL_RADIUS] < floor_height)
            v = bounce(v, make_vec3d(0.0, 1.0, 0.0), floor_restitution, floor_friction);
        for (int m = 0; m < n_colliders; ++m) {
            const double *other = collider + COLLIDER_WORDS * m;
            const Surface surface =
                collider_surface(other, x - load_vec3d(collider_at, 2 * m));
            const Vec3d carried = load_vec3d(collider_at, 2 * m + 1);
            if (surface.distance < word[BALL_RADIUS] && dot(v - carried, surface.normal) < 0.0)
                v = carried + bounce(v - carried, surface.normal, other[COLLIDER_RESTITUTION],
                                     other[COLLIDER_FRICTION]);
        }
        store_vec3d(velocity, q, v);
        store_vec3d(position, q, x);
    }
}

// Take the reaction that the step's forces summed up: a(t + dt), and v(t + dt) of balls with a
// mass.
KERNEL void push_projectiles(
    int n_projectiles, double half_dt, double gravity_x, double gravity_y, double gravity_z,
    const int *flag,
    const double *ball,         // (n_projectiles, BALL_WORDS)
    INOUT int64 *force,         // (n_projectiles, 3) [quantum], left at zero
    INOUT double *velocity,     // (n_projectiles, 3)
    OUT double *acceleration)   // (n_projectiles, 3)
{
    if (flag[FLAG_HALT]) return;
    FOR_EACH(q, n_projectiles) {
        const double *word = ball + BALL_WORDS * q;
        if (word[BALL_INVERSE_MASS] <= 0.0) continue;
        const double gravity[3] = {gravity_x, gravity_y, gravity_z};
        for (int k = 0; k < 3; ++k) {
            const double push = (double)force[3 * q + k] * word[BALL_QUANTUM];
            const double a = push * word[BALL_INVERSE_MASS] + gravity[k] * word[BALL_FALLS];
            acceleration[3 * q + k] = a;
            velocity[3 * q + k] += a * half_dt;
            force[3 * q + k] = 0;
        }
    }
}
