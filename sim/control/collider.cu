// Colliders: where they are now, and what bounces off them. Host side: collider.py.
#include "device/device.cuh"
#include "sim/matter/laws.cuh"
#include "sim/matter/layout.cuh"
#include "sim/control/collider.cuh"
#include "sim/matter/particles.cuh"

// Place and velocity of each collider at the end of the step, even between its keys.
KERNEL void move_colliders(
    int n_colliders, double dt,
    const int *flag,
    const int64 *step,
    const int *key_start,       // (n_colliders + 1,)
    const double *key,          // (n_keys, 4) time [s] and place [m]
    OUT double *collider_at)    // (n_colliders, 6)
{
    if (flag[FLAG_HALT]) return;
    const double time = (double)(step[0] + 1) * dt;
    FOR_EACH(m, n_colliders) {
        // Find the first key that is not past; between it and the one before we are.
        int low = key_start[m], high = key_start[m + 1];
        while (low < high) {
            const int middle = (low + high) / 2;
            if (key[4 * middle] < time) low = middle + 1;
            else high = middle;
        }
        Vec3d place, velocity = make_vec3d(0.0, 0.0, 0.0);
        if (low == key_start[m]) {
            place = load_vec3d(key + 4 * low + 1, 0);
        } else if (low == key_start[m + 1]) {
            place = load_vec3d(key + 4 * (low - 1) + 1, 0);
        } else {
            const double *before = key + 4 * (low - 1), *after = key + 4 * low;
            velocity = (load_vec3d(after + 1, 0) - load_vec3d(before + 1, 0))
                * (1.0 / (after[0] - before[0]));
            place = load_vec3d(before + 1, 0) + velocity * (time - before[0]);
        }
        store_vec3d(collider_at, 2 * m, place);
        store_vec3d(collider_at, 2 * m + 1, velocity);
    }
}

// Bounce the elements whose support is within a collider and that approach it. Ask for new contact
// candidates where that moves one farther than half the skin.
KERNEL void collide(
    int n_clusters, double dt, Colliders colliders, Skin skin, Displacement displacement,
    const int *body,            // (n_clusters,)
    const double *half_edge,    // (n_bodies, 9) from an element's centre to three of its faces
    const float *inverse_mass,  // (n_clusters, LANES) 0 for padding
    const float *acceleration,  // (n_clusters, 3, LANES) [m/s^2] before the step
    INOUT int *flag,
    INOUT double *velocity,     // (n_clusters, 3, LANES)
    INOUT double *position)     // (n_clusters, 3, LANES)
{
    if (flag[FLAG_HALT]) return;
    FOR_EACH_GROUP(c, n_clusters, 64) {
        const double *edge = half_edge + 9 * body[c];
        double reach2 = 0.0;
        for (int k = 0; k < 9; ++k) reach2 += edge[k] * edge[k];
        bool is_near = false;
        for (int m = 0; m < colliders.count; ++m) {
            const Collider other = collider_of(colliders.collider, m);
            const double normal[3] = {other.axis_x.x, other.axis_x.y, other.axis_x.z};
            lane_d above = lane_splat(0.0), distance2 = lane_splat(0.0);
            for (int k = 0; k < 3; ++k) {
                const lane_d away =
                    lane_load(position + LANES * (3 * c + k)) - colliders.at[6 * m + k];
                above = above + away * normal[k];
                distance2 = distance2 + away * away;
            }
            const double bound = other.bound + sqrt(reach2);
            const bool is_far = other.kind == KIND_PLANE
                ? lane_all_at_most(above * -1.0, -sqrt(reach2))
                : lane_all_at_most(distance2 * -1.0, -bound * bound);
            if (is_far) continue;
            is_near = true;
            const Vec3d place = load_vec3d(colliders.at, 2 * m);
            const Vec3d carried = load_vec3d(colliders.at, 2 * m + 1);
            FOR_LANES(l) {
                const int64 i = LANES * c + l;
                if (inverse_mass[i] <= 0.0f) continue;
                const Surface surface = collider_surface(other, load_particle(position, i) - place);
                double support = 0.0;
                for (int k = 0; k < 3; ++k)
                    support += fabs(dot(load_vec3d(edge, k), surface.normal));
                const Vec3d v = load_particle(velocity, i) - carried;
                const double speed = dot(v, surface.normal);
                const double height = surface.distance - support;
                if (height < 0.0 && speed < 0.0) {
                    const Vec3d pull = make_vec3d(
                        acceleration[component(i, 0)], acceleration[component(i, 1)],
                        acceleration[component(i, 2)]);
                    const Rebound after = rebound(height, speed, dot(pull, surface.normal), dt,
                                                  other.restitution);
                    store_particle(position, i, load_particle(position, i)
                                   + surface.normal * (after.height - height));
                    store_particle(velocity, i, carried + leave_surface(
                        v, surface.normal, after.speed, other.friction));
                }
            }
        }
        if (!is_near) continue;
        lane_d moved2 = lane_splat(0.0);
        for (int k = 0; k < 3; ++k) {
            const int64 at = LANES * (3 * c + k);
            const lane_d x = lane_load(position + at), moved = x - lane_load(skin.noted + at);
            moved2 = moved2 + moved * moved;
            note_displacement(displacement, c, k, x);
        }
        if (!lane_all_at_most(moved2, skin.half_skin * skin.half_skin))
            flag[FLAG_REBUILD] = REBUILD_MOVED;
        lane_fence();
        skin.travel[c] = sqrt(lane_highest(moved2));
    }
}
