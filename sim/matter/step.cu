// Velocity Verlet: everything of a step but the bond and contact forces.
#include "device/device.cuh"
#include "sim/matter/laws.cuh"
#include "sim/matter/layout.cuh"
#include "sim/matter/particles.cuh"
#include "sim/control/projectile.cuh"

// What a particle meets in flight.
struct Flight {
    double largest_step;            // [m]: what goes farther in a step has run away
    Floor floor;
    const float *support;           // (n_clusters, LANES) [m]: reach of an element downward
    const float *largest_support;   // (n_clusters,) [m]: the largest of them
    Skin skin;
    Displacement displacement;
};

// Where a layout left the forces of the bonds.
struct Slots {
    const int *source_start;        // (n_clusters + 1,)
    const int64 *source;            // (sources, 2): first float of a source, stride of components
    const float *slot;              // bond force [slot_unit] and smallest stretch, by the sources
    const float *slot_unit;         // (n_clusters,) [N]
};

// What accelerates particles, and raises their strain limits.
struct Acting {
    Vec3d gravity;                  // [m/s^2]
    double quantum;                 // unit of `contact` [N]
    Slots slots;
    Balls balls;
    const float *inverse_mass;      // (n_clusters, LANES) [1/kg], 0 for padding
    const float *inverse_density;   // (n_clusters, LANES) [m^3/kg], 0 for padding
    const float *law;               // (n_bodies,) rows of BondLaw
    const int *body;                // (n_clusters,)
    const float *base_threshold;    // (n_clusters, LANES) tau
    INOUT int *touched;             // (n_clusters,) whether `contact` is to be read
    INOUT int64 *contact;           // (n_clusters, 3, LANES) [quantum], left at zero
    OUT float *threshold;           // (n_clusters, LANES) tau'
};

// v(t + dt/2) and x(t + dt) of a cluster from v(t), already damped, and a(t); bounce off the
// floor; the displacement in fixed point. Ask for new contact candidates where a particle has
// moved half the skin, halt where one ran away.
//
// `travel` is at least as far as any particle of the cluster is from its noted place. As long as
// it is below half the skin the noted places need not be read, unless `measure` says so.
DEVICE void drift_cluster(
    int64 c, const lane_d *speed, const lane_f *a, double dt, bool measure, const Flight &flight,
    int *flag, double *velocity, double *position)
{
    const Floor &floor = flight.floor;
    const Skin &skin = flight.skin;
    const Displacement &displacement = flight.displacement;
    lane_d x[3], step2 = lane_splat(0.0);
    for (int k = 0; k < 3; ++k) {
        const int64 at = LANES * (3 * c + k);
        const lane_d v = speed[k] + lane_double(a[k]) * (0.5 * dt);
        x[k] = lane_load(position + at) + v * dt;
        lane_store(velocity + at, v);
        lane_store(position + at, x[k]);
        note_displacement(displacement, c, k, x[k]);
        step2 = step2 + v * v;
    }
    const double fastest2 = flight.largest_step * flight.largest_step / (dt * dt);
    if (!lane_all_at_most(step2, fastest2)) {
        FOR_LANES(l) {
            const Vec3d v = load_particle(velocity, LANES * c + l);
            // A comparison with NaN is false, so a NaN counts as having run away.
            if (!(dot(v, v) <= fastest2)) flag[FLAG_FAULT] = (int)(LANES * c) + l + 1;
        }
        flag[FLAG_HALT] = HALT_FAULT;
    } else if (!lane_all_at_most(floor.height - x[1], -(double)flight.largest_support[c])) {
        FOR_LANES(l) {
            const int64 i = LANES * c + l;
            const Vec3d v = load_particle(velocity, i);
            const double pull = lane_get(a[1], l);
            const double surface = floor.height + flight.support[i];
            const double height = position[component(i, 1)] - surface;
            if (v.y < 0.0 && height < 0.0) {
                const Rebound after = rebound(height, v.y, pull, dt, floor.restitution);
                position[component(i, 1)] = surface + after.height;
                store_particle(velocity, i, leave_surface(
                    v, make_vec3d(0.0, 1.0, 0.0), after.speed, floor.friction));
            }
        }
        x[1] = lane_load(position + LANES * (3 * c + 1));
        note_displacement(displacement, c, 1, x[1]);
    }
    double far = skin.travel[c] + sqrt(lane_highest(step2)) * dt;
    // A millionth less, for what was lost by rounding.
    if (measure || !(far <= 0.999999 * skin.half_skin)) {
        lane_d moved2 = lane_splat(0.0);
        for (int k = 0; k < 3; ++k) {
            const lane_d moved = x[k] - lane_load(skin.noted + LANES * (3 * c + k));
            moved2 = moved2 + moved * moved;
        }
        if (!lane_all_at_most(moved2, skin.half_skin * skin.half_skin))
            flag[FLAG_REBUILD] = REBUILD_MOVED;
        far = sqrt(lane_highest(moved2));
    }
    lane_fence();
    skin.travel[c] = far;
}

// The first half of a step. `decay` is the damping of half a step.
KERNEL void drift(
    int n_clusters, double dt, double decay, Flight flight,
    const float *acceleration,  // (n_clusters, 3, LANES) [m/s^2]
    INOUT int *flag,
    INOUT double *velocity,     // (n_clusters, 3, LANES) [m/s]
    INOUT double *position)     // (n_clusters, 3, LANES) [m]
{
    if (flag[FLAG_HALT]) return;
    FOR_EACH_GROUP_WITH(c, n_clusters, 64, flight) {
        lane_d speed[3];
        lane_f a[3];
        for (int k = 0; k < 3; ++k) {
            const int64 at = LANES * (3 * c + k);
            speed[k] = lane_load(velocity + at) * decay;
            a[k] = lane_load(acceleration + at);
        }
        drift_cluster(c, speed, a, dt, true, flight, flag, velocity, position);
    }
}

// Fixed-point displacement of the current positions, for a start or a resume.
KERNEL void measure_displacement(
    int n_clusters, Displacement displacement,
    const double *position)     // (n_clusters, 3, LANES)
{
    FOR_EACH_GROUP(c, n_clusters, 64) {
        for (int k = 0; k < 3; ++k)
            note_displacement(displacement, c, k, lane_load(position + LANES * (3 * c + k)));
    }
}

// Sum the forces of a cluster: the acceleration a, and the thresholds of the next step
// (levine-2014 eq. 5). Contact and balls, which few clusters meet, are added in memory.
DEVICE void accelerate_cluster(
    int64 c, const Acting &acting, const double *position, float *acceleration, lane_f *a)
{
    const Slots &slots = acting.slots;
    const Balls &balls = acting.balls;
    const float *inverse_mass = acting.inverse_mass;
    lane_f force[3], lowest = lane_splat(0.0f);
    for (int k = 0; k < 3; ++k) force[k] = lane_splat(0.0f);
    for (int s = slots.source_start[c]; s < slots.source_start[c + 1]; ++s) {
        const float *from = slots.slot + slots.source[2 * s];
        const int64 stride = slots.source[2 * s + 1];
        for (int k = 0; k < 3; ++k) force[k] = force[k] + lane_load(from + stride * k);
        lowest = lane_min(lowest, lane_load(from + stride * 3));
    }
    lane_store(acting.threshold + LANES * c, strengthened(
        bond_law(acting.law, acting.body[c]), lane_load(acting.base_threshold + LANES * c),
        lowest));

    const lane_f inverse = lane_load(inverse_mass + LANES * c);
    const lane_i real = inverse > lane_splat(0.0f);
    const float gravity[3] = {
        (float)acting.gravity.x, (float)acting.gravity.y, (float)acting.gravity.z};
    for (int k = 0; k < 3; ++k)
        a[k] = lane_select(
            real, force[k] * slots.slot_unit[c] * inverse + gravity[k], lane_splat(0.0f));

    if (acting.touched[c]) {
        for (int k = 0; k < 3; ++k) lane_store(acceleration + LANES * (3 * c + k), a[k]);
        FOR_LANES(l) {
            const int64 i = LANES * c + l;
            for (int k = 0; k < 3; ++k) {
                const double push = (double)acting.contact[component(i, k)] * acting.quantum;
                acceleration[component(i, k)] += (float)push * inverse_mass[i];
                acting.contact[component(i, k)] = 0;
            }
        }
        lane_fence();
        acting.touched[c] = 0;
        for (int k = 0; k < 3; ++k) a[k] = lane_load(acceleration + LANES * (3 * c + k));
    }
    for (int q = 0; q < balls.count; ++q) {
        const Ball ball = ball_of(balls.ball, q);
        lane_d distance2 = lane_splat(0.0);
        for (int k = 0; k < 3; ++k) {
            const lane_d away =
                lane_load(position + LANES * (3 * c + k)) - balls.position[3 * q + k];
            distance2 = distance2 + away * away;
        }
        const double reach = projectile_reach(ball.radius);
        if (lane_all_at_most(distance2 * -1.0, -reach * reach)) continue;
        const Vec3d center = load_vec3d(balls.position, q);
        // A ball with a mass pushes straight away: what it takes back is then a central
        // force, which keeps energy and angular momentum too.
        const bool reacts = ball.inverse_mass > 0.0;
        const Vec3d flight = load_vec3d(balls.velocity, q) * (reacts ? 0.0 : 1.0);
        for (int k = 0; k < 3; ++k) lane_store(acceleration + LANES * (3 * c + k), a[k]);
        FOR_LANES(l) {
            const int64 i = LANES * c + l;
            const Vec3d by_ball = projectile_acceleration(
                load_particle(position, i) - center, flight, ball.radius, ball.stiffness,
                acting.inverse_density[i]);
            const double push[3] = {by_ball.x, by_ball.y, by_ball.z};
            for (int k = 0; k < 3; ++k) {
                acceleration[component(i, k)] += (float)push[k];
                // Sums of integers do not depend on the order of the atomic additions.
                if (reacts && push[k] != 0.0)
                    atomic_add_int64(balls.force + 3 * q + k, -(int64)rint(
                        push[k] / ((double)inverse_mass[i] * ball.quantum)));
            }
        }
        for (int k = 0; k < 3; ++k) a[k] = lane_load(acceleration + LANES * (3 * c + k));
    }
}

// Set the acceleration and end the step: v(t + dt) = v(t + dt/2) + a dt/2, damped.
KERNEL void kick(
    int n_clusters, double half_dt, double decay, Acting acting,
    const int *flag,
    const double *position,     // (n_clusters, 3, LANES)
    INOUT double *velocity,     // (n_clusters, 3, LANES)
    OUT float *acceleration)    // (n_clusters, 3, LANES)
{
    if (flag[FLAG_HALT]) return;
    FOR_EACH_GROUP_WITH(c, n_clusters, 64, acting) {
        lane_f a[3];
        accelerate_cluster(c, acting, position, acceleration, a);
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
    int n_clusters, double dt, double decay, Acting acting, Flight flight,
    INOUT int *flag,
    INOUT double *velocity,     // (n_clusters, 3, LANES)
    INOUT double *position,     // (n_clusters, 3, LANES)
    INOUT float *acceleration)  // (n_clusters, 3, LANES)
{
    if (flag[FLAG_HALT]) return;
    FOR_EACH_GROUP_WITH(c, n_clusters, 64, acting, flight) {
        lane_f a[3];
        accelerate_cluster(c, acting, position, acceleration, a);
        lane_d speed[3];
        for (int k = 0; k < 3; ++k) {
            const lane_d v = lane_load(velocity + LANES * (3 * c + k));
            speed[k] = (v + lane_double(a[k]) * (0.5 * dt)) * decay * decay;
        }
        drift_cluster(c, speed, a, dt, false, flight, flag, velocity, position);
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
