// Damping between neighbours, along the line between them. Host side: damping.py.
#include "device/device.cuh"
#include "sim/matter/layout.cuh"

// Whether the step to come is one that damps.
DEVICE bool is_calming(const int *flag, const int64 *step, int every)
{
    return !flag[FLAG_HALT] && (step[0] + 1) % every == 0;
}

// Add up the impulses of the pairs whose bond holds. Sums of integers do not depend on the order of the
// atomic additions.
KERNEL void pair_impulses(
    int n_pairs, int every, double share, double inverse_quantum,
    const int *flag,
    const int64 *step,
    const int *pair,            // (n_pairs, 2) particles
    const int64 *bit,           // (n_pairs,) place of the bond's live bit
    const uint8 *live,          // live bits of all bonds
    const double *inverse_mass, // (n_clusters, LANES) [1/kg]
    const double *position,     // (n_clusters, 3, LANES)
    const double *velocity,     // (n_clusters, 3, LANES)
    INOUT int64 *impulse)       // (n_clusters, 3, LANES) [quantum]
{
    if (!is_calming(flag, step, every)) return;
    FOR_EACH_CHUNKED(p, n_pairs, 2048) {
        if (!(live[bit[p] / 8] >> bit[p] % 8 & 1)) continue;
        const int64 i = pair[2 * p], j = pair[2 * p + 1];
        const Vec3d apart = load_particle(position, i) - load_particle(position, j);
        const double length2 = dot(apart, apart);
        if (!(length2 > 0.0)) continue;
        const Vec3d speed = load_particle(velocity, i) - load_particle(velocity, j);
        const double parting = dot(speed, apart) / length2;
        const Vec3d given =
            apart * (-share * parting / (inverse_mass[i] + inverse_mass[j]) * inverse_quantum);
        const double part[3] = {given.x, given.y, given.z};
        for (int axis = 0; axis < 3; ++axis) {
            const int64 whole = (int64)rint(part[axis]);
            atomic_add_int64(impulse + component(i, axis), whole);
            atomic_add_int64(impulse + component(j, axis), -whole);
        }
    }
}

// Give the particles their impulses, and leave the sums at zero.
KERNEL void give_impulses(
    int n_clusters, int every, double quantum,
    const int *flag,
    const int64 *step,
    const double *inverse_mass, // (n_clusters, LANES) [1/kg], 0 for padding
    INOUT int64 *impulse,       // (n_clusters, 3, LANES) [quantum]
    INOUT double *velocity)     // (n_clusters, 3, LANES)
{
    if (!is_calming(flag, step, every)) return;
    FOR_EACH_CHUNKED(c, n_clusters, 64) {
        for (int l = 0; l < LANES; ++l) {
            const int64 i = LANES * c + l;
            for (int axis = 0; axis < 3; ++axis) {
                const int64 at = component(i, axis);
                velocity[at] += (double)impulse[at] * quantum * inverse_mass[i];
                impulse[at] = 0;
            }
        }
    }
}
