// Velocity Verlet: everything of a step but the bond and contact forces.
#include "device/device.cuh"
#include "sim/laws.cuh"
#include "sim/layout.cuh"
#include "sim/projectile.cuh"

// v(t + dt/2) and x(t + dt) of a cluster from v(t), already damped, and a(t); bounce off the
// floor; the displacement in fixed point. Ask for new contact candidates where a particle has
// moved half the skin, halt where one ran away.
//
// `travel` is at least as far as any particle of the cluster is from its noted place. As long as
// it is below half the skin the noted places need not be read, unless `measure` says so.
DEVICE void drift_cluster(
    int64 c, const lane_d *speed, const lane_f *a, double dt, double inverse_unit,
    double floor_height, double restitution, double friction,
    double half_skin, double largest_step, int64 cluster_stride, int64 axis_stride, bool measure,
    const double *rest, const float *support, const float *largest_support, const double *noted,
    int *flag, double *travel, double *velocity, double *position, int *displacement)
{
    lane_d x[3], step2 = lane_splat(0.0);
    for (int k = 0; k < 3; ++k) {
        const int64 at = LANES * (3 * c + k);
        const lane_d v = speed[k] + lane_double(a[k]) * (0.5 * dt);
        x[k] = lane_load(position + at) + v * dt;
        lane_store(velocity + at, v);
        lane_store(position + at, x[k]);
        lane_store(displacement + c * cluster_stride + k * axis_stride,
                   lane_low_bits((x[k] - lane_load(rest + at)) * inverse_unit));
        step2 = step2 + v * v;
    }
    const double fastest2 = largest_step * largest_step / (dt * dt);
    if (!lane_all_at_most(step2, fastest2)) {
        FOR_LANES(l) {
            const Vec3d v = load_particle(velocity, LANES * c + l);
            // A comparison with NaN is false, so a NaN counts as having run away.
            if (!(dot(v, v) <= fastest2)) flag[FLAG_FAULT] = (int)(LANES * c) + l + 1;
        }
        flag[FLAG_HALT] = HALT_FAULT;
    } else if (!lane_all_at_most(floor_height - x[1], -(double)largest_support[c])) {
        const int64 up = LANES * (3 * c + 1);
        FOR_LANES(l) {
            const int64 i = LANES * c + l;
            const Vec3d v = load_particle(velocity, i);
            const double pull = lane_get(a[1], l);
            const double surface = floor_height + support[i];
            const double height = position[component(i, 1)] - surface;
            if (v.y < 0.0 && height < 0.0) {
                const Rebound after = rebound(height, v.y, pull, dt, restitution);
                position[component(i, 1)] = surface + after.height;
                store_particle(velocity, i, leave_surface(
                    v, make_vec3d(0.0, 1.0, 0.0), after.speed, friction));
            }
        }
        x[1] = lane_load(position + up);
        lane_store(displacement + c * cluster_stride + axis_stride,
                   lane_low_bits((x[1] - lane_load(rest + up)) * inverse_unit));
    }
    double far = travel[c] + sqrt(lane_highest(step2)) * dt;
    // A millionth less, for what was lost by rounding.
    if (measure || !(far <= 0.999999 * half_skin)) {
        lane_d moved2 = lane_splat(0.0);
        for (int k = 0; k < 3; ++k) {
            const lane_d moved = x[k] - lane_load(noted + LANES * (3 * c + k));
            moved2 = moved2 + moved * moved;
        }
        if (!lane_all_at_most(moved2, half_skin * half_skin)) flag[FLAG_REBUILD] = REBUILD_MOVED;
        far = sqrt(lane_highest(moved2));
    }
    lane_fence();
    travel[c] = far;
}

// The first half of a step. `decay` is the damping of half a step.
KERNEL void drift(
    int n_clusters, double dt, double decay, double inverse_unit,
    double floor_height, double restitution, double friction,
    double half_skin, double largest_step, int64 cluster_stride, int64 axis_stride,
    const float *acceleration,  // (n_clusters, 3, LANES) [m/s^2]
    const double *rest,         // (n_clusters, 3, LANES) [m]
    const float *support,       // (n_clusters, LANES) [m]: reach of an element downward
    const float *largest_support, // (n_clusters,) [m]: the largest of them
    const double *noted,        // (n_clusters, 3, LANES) [m]: when last collected
    INOUT int *flag,
    INOUT double *travel,       // (n_clusters,) [m]: see drift_cluster
    INOUT double *velocity,     // (n_clusters, 3, LANES) [m/s]
    INOUT double *position,     // (n_clusters, 3, LANES) [m]
    OUT int *displacement)      // [unit], modulo 2^32, by the strides
{
    if (flag[FLAG_HALT]) return;
    FOR_EACH_GROUP(c, n_clusters, 64) {
        lane_d speed[3];
        lane_f a[3];
        for (int k = 0; k < 3; ++k) {
            const int64 at = LANES * (3 * c + k);
            speed[k] = lane_load(velocity + at) * decay;
            a[k] = lane_load(acceleration + at);
        }
        drift_cluster(c, speed, a, dt, inverse_unit, floor_height, restitution, friction,
                      half_skin, largest_step, cluster_stride, axis_stride, true, rest, support,
                      largest_support, noted, flag, travel, velocity, position, displacement);
    }
}

// Fixed-point displacement of the current positions, for a start or a resume.
KERNEL void measure_displacement(
    int n_clusters, double inverse_unit, int64 cluster_stride, int64 axis_stride,
    const double *position,     // (n_clusters, 3, LANES)
    const double *rest,         // (n_clusters, 3, LANES)
    OUT int *displacement)      // [unit], modulo 2^32, by the strides
{
    FOR_EACH_GROUP(c, n_clusters, 64) {
        for (int k = 0; k < 3; ++k) {
            const int64 at = LANES * (3 * c + k);
            lane_store(displacement + c * cluster_stride + k * axis_stride, lane_low_bits(
                (lane_load(position + at) - lane_load(rest + at)) * inverse_unit));
        }
    }
}

// Sum the forces of a cluster: the acceleration a, and the thresholds of the next step
// (levine-2014 eq. 5). Contact and balls, which few clusters meet, are added in memory.
DEVICE void accelerate_cluster(
    int64 c, int n_projectiles, double gravity_x, double gravity_y, double gravity_z,
    double quantum, const int *source_start, const int64 *source, const float *slot,
    const float *slot_unit, const float *inverse_mass, const float *inverse_density,
    const float *base_threshold, const float *law, const int *body, const double *ball,
    const double *ball_position, const double *ball_velocity, const double *position, int *touched, int64 *contact,
    int64 *ball_force, float *acceleration, float *threshold, lane_f *a)
{
    lane_f force[3], lowest = lane_splat(0.0f);
    for (int k = 0; k < 3; ++k) force[k] = lane_splat(0.0f);
    for (int s = source_start[c]; s < source_start[c + 1]; ++s) {
        const float *from = slot + source[2 * s];
        const int64 stride = source[2 * s + 1];
        for (int k = 0; k < 3; ++k) force[k] = force[k] + lane_load(from + stride * k);
        lowest = lane_min(lowest, lane_load(from + stride * 3));
    }
    lane_store(threshold + LANES * c, strengthened(
        bond_law(law, body[c]), lane_load(base_threshold + LANES * c), lowest));

    const lane_f inverse = lane_load(inverse_mass + LANES * c);
    const lane_i real = inverse > lane_splat(0.0f);
    const float gravity[3] = {(float)gravity_x, (float)gravity_y, (float)gravity_z};
    for (int k = 0; k < 3; ++k)
        a[k] = lane_select(
            real, force[k] * slot_unit[c] * inverse + gravity[k], lane_splat(0.0f));

    if (touched[c]) {
        for (int k = 0; k < 3; ++k) lane_store(acceleration + LANES * (3 * c + k), a[k]);
        FOR_LANES(l) {
            const int64 i = LANES * c + l;
            for (int k = 0; k < 3; ++k) {
                const double push = (double)contact[component(i, k)] * quantum;
                acceleration[component(i, k)] += (float)push * inverse_mass[i];
                contact[component(i, k)] = 0;
            }
        }
        lane_fence();
        touched[c] = 0;
        for (int k = 0; k < 3; ++k) a[k] = lane_load(acceleration + LANES * (3 * c + k));
    }
    for (int q = 0; q < n_projectiles; ++q) {
        const double *word = ball + BALL_WORDS * q;
        lane_d distance2 = lane_splat(0.0);
        for (int k = 0; k < 3; ++k) {
            const lane_d away =
                lane_load(position + LANES * (3 * c + k)) - ball_position[3 * q + k];
            distance2 = distance2 + away * away;
        }
        const double reach = projectile_reach(word[BALL_RADIUS]);
        if (lane_all_at_most(distance2 * -1.0, -reach * reach)) continue;
        const Vec3d center = load_vec3d(ball_position, q);
        // A ball with a mass pushes straight away: what it takes back is then a central
        // force, which keeps energy and angular momentum too.
        const bool reacts = word[BALL_INVERSE_MASS] > 0.0;
        const Vec3d flight = load_vec3d(ball_velocity, q) * (reacts ? 0.0 : 1.0);
        for (int k = 0; k < 3; ++k) lane_store(acceleration + LANES * (3 * c + k), a[k]);
        FOR_LANES(l) {
            const int64 i = LANES * c + l;
            const Vec3d by_ball = projectile_acceleration(
                load_particle(position, i) - center, flight, word[BALL_RADIUS],
                word[BALL_STIFFNESS], inverse_density[i]);
            const double push[3] = {by_ball.x, by_ball.y, by_ball.z};
            for (int k = 0; k < 3; ++k) {
                acceleration[component(i, k)] += (float)push[k];
                // Sums of integers do not depend on the order of the atomic additions.
                if (reacts && push[k] != 0.0)
                    atomic_add_int64(ball_force + 3 * q + k, -(int64)rint(
                        push[k] / ((double)inverse_mass[i] * word[BALL_QUANTUM])));
            }
        }
        for (int k = 0; k < 3; ++k) a[k] = lane_load(acceleration + LANES * (3 * c + k));
    }
}

// Set the acceleration and end the step: v(t + dt) = v(t + dt/2) + a dt/2, damped.
KERNEL void kick(
    int n_clusters, int n_projectiles, double half_dt, double decay,
    double gravity_x, double gravity_y, double gravity_z, double quantum,
    const int *flag,
    const int *source_start,    // (n_clusters + 1,)
    const int64 *source,        // (sources, 2): first float of a source, stride of components
    const float *slot,          // bond force [slot_unit] and smallest stretch, by the sources
    const float *slot_unit,     // (n_clusters,) [N]
    const float *inverse_mass,  // (n_clusters, LANES) [1/kg], 0 for padding
    const float *inverse_density, // (n_clusters, LANES) [m^3/kg], 0 for padding
    const float *base_threshold,// (n_clusters, LANES) tau
    const float *law,           // (n_bodies,) rows of BondLaw
    const int *body,            // (n_clusters,)
    const double *ball,         // (n_projectiles, BALL_WORDS)
    const double *ball_position,// (n_projectiles, 3) [m]
    const double *ball_velocity,// (n_projectiles, 3) [m/s]
    const double *position,     // (n_clusters, 3, LANES)
    INOUT int *touched,         // (n_clusters,) whether `contact` is to be read
    INOUT int64 *contact,       // (n_clusters, 3, LANES) [quantum], left at zero
    INOUT int64 *ball_force,    // (n_projectiles, 3) reaction on those with a mass [quantum]
    INOUT double *velocity,     // (n_clusters, 3, LANES)
    OUT float *acceleration,    // (n_clusters, 3, LANES)
    OUT float *threshold)       // (n_clusters, LANES) tau'
{
    if (flag[FLAG_HALT]) return;
    FOR_EACH_GROUP(c, n_clusters, 64) {
        lane_f a[3];
        accelerate_cluster(
            c, n_projectiles, gravity_x, gravity_y, gravity_z, quantum, source_start, source, slot,
            slot_unit, inverse_mass, inverse_density, base_threshold, law, body, ball,
            ball_position, ball_velocity, position, touched, contact, ball_force, acceleration,
            threshold, a);
        for (int k = 0; k < 3; ++k) {
            const int64 at = LANES * (3 * c + k);
            lane_store(acceleration + at, a[k]);
            lane_store(velocity + at,
                       (lane_load(velocity + at) + lane_double(a[k]) * half_dt) * decay);
        }
    }
}

// The end of a step and the beginning of the next in one pass: `kick`, then `drift`, bit for
// bit. The acceleration in memory is left as it may be; only `kick` completes it.
KERNEL void kick_and_drift(
    int n_clusters, int n_projectiles, double dt, double decay,
    double gravity_x, double gravity_y, double gravity_z, double quantum,
    double inverse_unit, double floor_height, double restitution, double friction,
    double half_skin, double largest_step, int64 cluster_stride, int64 axis_stride,
    const int *source_start,    // the arrays of kick
    const int64 *source,
    const float *slot,
    const float *slot_unit,
    const float *inverse_mass,
    const float *inverse_density,
    const float *base_threshold,
    const float *law,
    const int *body,
    const double *ball,
    const double *ball_position,
    const double *ball_velocity,
    const double *rest,         // those of drift
    const float *support,
    const float *largest_support,
    const double *noted,
    INOUT int *flag,
    INOUT double *travel,
    INOUT int *touched,
    INOUT int64 *contact,
    INOUT int64 *ball_force,
    INOUT double *velocity,
    INOUT double *position,
    INOUT float *acceleration,
    OUT float *threshold,
    OUT int *displacement)
{
    if (flag[FLAG_HALT]) return;
    FOR_EACH_GROUP(c, n_clusters, 64) {
        lane_f a[3];
        accelerate_cluster(
            c, n_projectiles, gravity_x, gravity_y, gravity_z, quantum, source_start, source, slot,
            slot_unit, inverse_mass, inverse_density, base_threshold, law, body, ball,
            ball_position, ball_velocity, position, touched, contact, ball_force, acceleration,
            threshold, a);
        lane_d speed[3];
        for (int k = 0; k < 3; ++k) {
            const lane_d v = lane_load(velocity + LANES * (3 * c + k));
            speed[k] = (v + lane_double(a[k]) * (0.5 * dt)) * decay * decay;
        }
        drift_cluster(c, speed, a, dt, inverse_unit, floor_height, restitution, friction,
                      half_skin, largest_step, cluster_stride, axis_stride, false, rest, support,
                      largest_support, noted, flag, travel, velocity, position, displacement);
    }
}

// Add up the slots of each cluster, in the order of the layout.
KERNEL void gather_slots(
    int n_clusters,
    const int *source_start,    // (n_clusters + 1,)
    const int64 *source,        // (sources, 2)
    const float *slot,
    OUT float *total)           // (n_clusters, 4, LANES)
{
    FOR_EACH_GROUP(c, n_clusters, 64) {
        for (int k = 0; k < 4; ++k) {
            lane_f sum = lane_splat(0.0f);
            for (int s = source_start[c]; s < source_start[c + 1]; ++s)
                sum = sum + lane_load(slot + source[2 * s] + source[2 * s + 1] * k);
            lane_store(total + LANES * (4 * c + k), sum);
        }
    }
}

// Count the step that has just ended.
KERNEL void end_step(
    int n,
    INOUT int *flag,
    INOUT int64 *step)
{
    FOR_EACH(i, n) {
        if (!flag[FLAG_HALT]) {
            step[i] += 1;
            flag[FLAG_REBUILD] = 0;
        }
    }
}
