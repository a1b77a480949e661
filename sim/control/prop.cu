// Props: rigid things that elements run into, and that are pushed back. Host side: prop.py.
#include "device/device.cuh"
#include "sim/matter/laws.cuh"
#include "sim/matter/layout.cuh"
#include "sim/control/collider.cuh"
#include "sim/matter/particles.cuh"
#include "sim/control/prop.cuh"

// What props ask of elements.
struct Elements {
    const int *body;                // (n_clusters,)
    const double *half_edge;        // (n_bodies, 9) from an element's centre to three of its faces
    const double *inverse_mass;     // (n_clusters, LANES) [1/kg], 0 for padding
    const double *held_until;       // (n_clusters, LANES) [s]: nothing moves an element before
};

// Part of what presses an element on a prop in a step that a bounce gives back at the most.
#define MOST_KEPT 0.99

// Turn the axes of a prop by its spin during dt.
DEVICE void turn_prop(PropMotion &motion, Vec3d spin, double dt)
{
    const double rate = norm(spin), angle = rate * dt;
    if (angle <= 0.0) return;
    const Vec3d about = spin * (1.0 / rate);
    const double c = cos(angle), s = sin(angle);
    Vec3d *axis[3] = {&motion.axis_x, &motion.axis_y, &motion.axis_z};
    for (int k = 0; k < 3; ++k) {
        const Vec3d v = *axis[k];
        *axis[k] = v * c + cross(about, v) * s + about * (dot(about, v) * (1.0 - c));
    }
}

// v(t + dt/2), x(t + dt) and the turn of every prop. Balls with a mass bounce off the floor and the
// colliders. The angular momentum of what turns freely stays; its spin follows from it, here that
// of the middle of the step.
KERNEL void move_props(
    int n_props, double dt, Vec3d gravity, Floor floor, Colliders colliders, Props props,
    const int *flag)
{
    if (flag[FLAG_HALT]) return;
    FOR_EACH(q, n_props) {
        const Prop own = ((const Prop *)props.prop)[q];
        PropMotion motion = ((const PropMotion *)props.motion)[q];
        Vec3d v = motion.velocity + gravity * (0.5 * dt * own.falls);
        const Vec3d x = motion.center + v * dt;
        if (own.radius > 0.0 && own.inverse_mass > 0.0) {
            if (v.y < 0.0 && x.y - own.radius < floor.height)
                v = bounce(v, make_vec3d(0.0, 1.0, 0.0), floor.restitution, floor.friction);
            for (int m = 0; m < colliders.count; ++m) {
                const Collider other = collider_of(colliders.collider, m);
                const Surface surface =
                    collider_surface(other, x - load_vec3d(colliders.at, 2 * m));
                const Vec3d carried = load_vec3d(colliders.at, 2 * m + 1);
                if (surface.distance < own.radius && dot(v - carried, surface.normal) < 0.0)
                    v = carried + bounce(
                        v - carried, surface.normal, other.restitution, other.friction);
            }
        }
        motion.velocity = v;
        motion.center = x;
        if (own.inverse_mass > 0.0) {
            PropMotion middle = motion;
            turn_prop(middle, motion.spin, 0.5 * dt);
            turn_prop(motion, spun(own, middle, motion.turning), dt);
            motion.spin = spun(own, motion, motion.turning);
        } else {
            turn_prop(motion, motion.spin, dt);
        }
        ((PropMotion *)props.motion)[q] = motion;
    }
}

// Steps between two looks at which hulls are near; by so much of what goes on as it does now they
// are looked for farther.
#define LOOK_STEPS 32
#define LOOK_AHEAD 2.0

// List the hulls that elements of each cluster may touch before the next look.
KERNEL void list_hulls(
    int n_clusters, double dt, Props props, Elements elements,
    const int *flag,
    const int64 *step,
    const double *position,     // (n_clusters, 3, LANES)
    const double *velocity,     // (n_clusters, 3, LANES)
    INOUT int *near)            // (n_clusters, NEAR_WORDS)
{
    if (flag[FLAG_HALT]) return;
    const bool is_due = step[0] % LOOK_STEPS == 0;
    FOR_EACH(c, n_clusters) {
        int *own = near + NEAR_WORDS * c;
        if (!is_due && own[0] != NEVER_LOOKED) continue;
        // A ball around the cluster.
        Vec3d middle = make_vec3d(0.0, 0.0, 0.0);
        int n_lanes = 0;
        for (int l = 0; l < LANES; ++l) {
            if (elements.inverse_mass[LANES * c + l] <= 0.0) continue;
            middle = middle + load_particle(position, LANES * c + l);
            ++n_lanes;
        }
        own[0] = 0;
        if (n_lanes == 0) continue;
        middle = middle * (1.0 / n_lanes);
        const double *edge = elements.half_edge + 9 * elements.body[c];
        double reach2 = 0.0, radius2 = 0.0, speed2 = 0.0;
        for (int k = 0; k < 9; ++k) reach2 += edge[k] * edge[k];
        for (int l = 0; l < LANES; ++l) {
            if (elements.inverse_mass[LANES * c + l] <= 0.0) continue;
            const Vec3d arm = load_particle(position, LANES * c + l) - middle;
            const Vec3d v = load_particle(velocity, LANES * c + l);
            radius2 = maximum(radius2, dot(arm, arm));
            speed2 = maximum(speed2, dot(v, v));
        }
        const double way = LOOK_AHEAD * LOOK_STEPS * dt;
        const double radius = sqrt(radius2) + 1.5 * sqrt(reach2) + way * sqrt(speed2);
        for (int q = 0; q < props.count; ++q) {
            const Prop &prop = ((const Prop *)props.prop)[q];
            const PropMotion &motion = ((const PropMotion *)props.motion)[q];
            if (prop.radius > 0.0) continue;
            const Vec3d arm = middle - motion.center;
            const double ahead =
                radius + way * (norm(motion.velocity) + norm(motion.spin) * prop.bound);
            if (norm(arm) > prop.bound + ahead) continue;
            const Vec3d place = to_prop(motion, arm);
            for (int h = (int)prop.first_hull; h < (int)prop.end_hull; ++h) {
                const double *ball = props.hull_ball + 4 * (int64)h;
                const Vec3d gap = place - load_vec3d(ball, 0);
                const double bound = ball[3] + ahead;
                if (dot(gap, gap) > bound * bound) continue;
                if (own[0] >= MOST_NEAR) own[0] = ALL_NEAR;
                if (own[0] < 0) break;
                own[1 + own[0]] = h;
                ++own[0];
            }
            if (own[0] < 0) break;
        }
    }
}

// Count the elements of which each prop has to share its mass, those that touch and approach it,
// and note the clusters that have one.
KERNEL void count_touches(
    int n_clusters, Props given_props, Elements given_elements,
    const int *flag,
    const double *position,     // (n_clusters, 3, LANES)
    const double *velocity,     // (n_clusters, 3, LANES)
    const int *near,            // (n_clusters, NEAR_WORDS)
    OUT int *touching)          // (n_clusters,)
{
    if (flag[FLAG_HALT]) return;
    FOR_EACH_GROUP(c, n_clusters, 64) {
        const Props props = given_props;
        const Elements elements = given_elements;
        const double *edge = elements.half_edge + 9 * elements.body[c];
        double reach2 = 0.0;
        for (int k = 0; k < 9; ++k) reach2 += edge[k] * edge[k];
        lane_d place[3];
        for (int k = 0; k < 3; ++k) place[k] = lane_load(position + LANES * (3 * c + k));
        bool is_near = false;
        for (int q = 0; q < props.count; ++q) {
            const Prop &prop = ((const Prop *)props.prop)[q];
            const PropMotion &motion = ((const PropMotion *)props.motion)[q];
            if (prop.radius <= 0.0 && near[NEAR_WORDS * c] == 0) continue;
            const lane_d x = place[0] - motion.center.x, y = place[1] - motion.center.y;
            const lane_d z = place[2] - motion.center.z;
            const double bound = prop.bound + sqrt(reach2);
            if (lane_all_at_most((x * x + y * y + z * z) * -1.0, -bound * bound)) continue;
            is_near = true;
            FOR_LANES(l) {
                const int64 i = LANES * c + l;
                if (elements.inverse_mass[i] <= 0.0) continue;
                const Vec3d arm = load_particle(position, i) - motion.center;
                const Meeting meeting =
                    meet_prop(prop, motion, props, near + NEAR_WORDS * c, edge, arm);
                const Vec3d apart = load_particle(velocity, i) - carried_along(motion, arm);
                // Sums of integers do not depend on the order of the atomic additions.
                if (meeting.height < 0.0 && dot(apart, meeting.normal) < 0.0)
                    atomic_add_int64(props.sum + SUM_WORDS * q + SUM_TOUCHES, 1);
            }
        }
        lane_fence();
        touching[c] = is_near;
    }
}

// Impulse [N s] on an element that meets a prop at `arm` from its centre, its velocity seen from
// there being `apart`. The prop is taken for `n_touches` equal ones, each of a share of its mass
// and met by one element. A blow of any of these pairs gains no energy, nor does joining the props
// again; the impulses of all act on the whole.
DEVICE Vec3d prop_impulse(
    const Prop &prop, const PropMotion &motion, const Meeting &meeting, Vec3d arm, Vec3d apart,
    double inverse_mass, double n_touches, double pressed)
{
    const Vec3d normal = meeting.normal;
    const double own = inverse_mass + n_touches * prop.inverse_mass;
    const Vec3d lever = cross(arm, normal), turned = spun(prop, motion, lever);
    const double yields = own + n_touches * dot(lever, turned);
    const double approach = -dot(apart, normal);
    if (!(approach > 0.0 && yields > 0.0)) return make_vec3d(0.0, 0.0, 0.0);
    // What presses the element on the prop all the time is given back, or it would sink in.
    const double kept = maximum(
        prop.restitution * approach, MOST_KEPT * minimum(approach, pressed));
    const double push = (approach + kept) / yields;

    // Friction acts on what slides after that blow, and stops it at the most.
    const Vec3d after =
        apart + normal * (push * own) + cross(turned, arm) * (push * n_touches);
    const Vec3d slide = after - normal * dot(after, normal);
    const double size = norm(slide);
    if (!(size > 0.0 && prop.friction > 0.0)) return normal * push;
    const Vec3d ahead = slide * (1.0 / size), side = cross(arm, ahead);
    const double slips = own + n_touches * dot(side, spun(prop, motion, side));
    return normal * push - ahead * minimum(prop.friction * push, size / slips);
}

// Push the elements that touch a prop and approach it, and add up what that does to the prop:
// the opposite impulse, at the element's centre, which has no spin to take a moment. Elements that
// are held do not give way.
KERNEL void meet_props(
    int n_clusters, double dt, Props given_props, Elements given_elements,
    const int *flag,
    const int64 *step,
    const int *near,            // (n_clusters, NEAR_WORDS)
    const int *touching,        // (n_clusters,)
    const double *position,     // (n_clusters, 3, LANES)
    const float *acceleration,  // (n_clusters, 3, LANES) [m/s^2] before the step
    INOUT double *velocity)     // (n_clusters, 3, LANES)
{
    if (flag[FLAG_HALT]) return;
    const double time = (double)(step[0] + 1) * dt;
    FOR_EACH_GROUP(c, n_clusters, 64) {
        if (!touching[c]) continue;
        const Props props = given_props;
        const Elements elements = given_elements;
        const double *edge = elements.half_edge + 9 * elements.body[c];
        double reach2 = 0.0;
        for (int k = 0; k < 9; ++k) reach2 += edge[k] * edge[k];
        FOR_LANES(l) {
            const int64 i = LANES * c + l;
            if (elements.inverse_mass[i] <= 0.0) continue;
            const double inverse = time <= elements.held_until[i] ? 0.0 : elements.inverse_mass[i];
            const Vec3d x = load_particle(position, i), before = load_particle(velocity, i);
            const Vec3d pull = make_vec3d(
                acceleration[component(i, 0)], acceleration[component(i, 1)],
                acceleration[component(i, 2)]);
            Vec3d v = before;
            for (int q = 0; q < props.count; ++q) {
                const Prop &prop = ((const Prop *)props.prop)[q];
                const PropMotion &motion = ((const PropMotion *)props.motion)[q];
                int64 *sum = props.sum + SUM_WORDS * q;
                const Vec3d arm = x - motion.center;
                const double bound = prop.bound + sqrt(reach2);
                if (dot(arm, arm) > bound * bound) continue;
                const Meeting meeting =
                    meet_prop(prop, motion, props, near + NEAR_WORDS * c, edge, arm);
                const Vec3d carried = carried_along(motion, arm);
                // Only those that were counted, whatever other props did to them meanwhile.
                if (!(meeting.height < 0.0 && dot(before - carried, meeting.normal) < 0.0)) continue;
                const Vec3d impulse = prop_impulse(
                    prop, motion, meeting, arm, v - carried, inverse,
                    (double)sum[SUM_TOUCHES], -dot(pull, meeting.normal) * dt);
                const double part[3] = {impulse.x, impulse.y, impulse.z};
                double given[3];
                for (int k = 0; k < 3; ++k) {
                    const int64 whole = (int64)rint(part[k] / prop.quantum);
                    given[k] = (double)whole * prop.quantum;
                    atomic_add_int64(sum + SUM_IMPULSE + k, -whole);
                }
                const Vec3d taken = make_vec3d(given[0], given[1], given[2]);
                const Vec3d moment = cross(arm, taken);
                const double turn[3] = {moment.x, moment.y, moment.z};
                for (int k = 0; k < 3; ++k)
                    atomic_add_int64(sum + SUM_MOMENT + k,
                                     -(int64)rint(turn[k] / prop.moment_quantum));
                v = v + taken * inverse;
            }
            store_particle(velocity, i, v);
        }
    }
}

// Give the props what elements pushed back: v(t + dt) and the spin.
KERNEL void push_props(
    int n_props, double half_dt, Vec3d gravity, Props props,
    const int *flag)
{
    if (flag[FLAG_HALT]) return;
    FOR_EACH(q, n_props) {
        const Prop own = ((const Prop *)props.prop)[q];
        PropMotion motion = ((const PropMotion *)props.motion)[q];
        int64 *sum = props.sum + SUM_WORDS * q;
        if (own.inverse_mass > 0.0) {
            const Vec3d impulse = make_vec3d(
                (double)sum[SUM_IMPULSE], (double)sum[SUM_IMPULSE + 1],
                (double)sum[SUM_IMPULSE + 2]) * own.quantum;
            const Vec3d moment = make_vec3d(
                (double)sum[SUM_MOMENT], (double)sum[SUM_MOMENT + 1],
                (double)sum[SUM_MOMENT + 2]) * own.moment_quantum;
            motion.velocity = motion.velocity + impulse * own.inverse_mass
                + gravity * (half_dt * own.falls);
            motion.turning = motion.turning + moment;
            motion.spin = spun(own, motion, motion.turning);
            ((PropMotion *)props.motion)[q] = motion;
        }
        for (int k = 0; k < SUM_WORDS; ++k) sum[k] = 0;
    }
}
