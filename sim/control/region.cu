// Particles of fixed and driven regions: where they are is known. Host side: region.py.
#include "device/device.cuh"
#include "sim/matter/layout.cuh"

// Put the held particles where they belong at the end of the step: start + velocity * time.
KERNEL void hold_positions(
    int n_held, double dt, double inverse_unit, int64 cluster_stride, int64 axis_stride,
    const int *flag,
    const int64 *step,
    const int *held,            // (n_held,) particles
    const int *held_region,     // (n_held,)
    const double *drive,        // (n_regions, 4) velocity [m/s], time of release [s]
    const double *start,        // (n_held, 3) [m]
    const double *rest,         // (n_clusters, 3, LANES) [m]
    INOUT double *velocity,     // (n_clusters, 3, LANES)
    INOUT double *position,     // (n_clusters, 3, LANES)
    INOUT int *displacement)    // [unit], modulo 2^32, by the strides
{
    if (flag[FLAG_HALT]) return;
    const double time = (double)(step[0] + 1) * dt;
    FOR_EACH(h, n_held) {
        const double *word = drive + 4 * held_region[h];
        if (time > word[3]) continue;
        const int64 i = held[h];
        for (int k = 0; k < 3; ++k) {
            const double x = start[3 * h + k] + word[k] * time;
            position[component(i, k)] = x;
            velocity[component(i, k)] = word[k];
            displacement[i / LANES * cluster_stride + k * axis_stride + i % LANES] = (int)(uint32)
                (int64)rint((x - rest[component(i, k)]) * inverse_unit);
        }
    }
}

// No force moves the held particles.
KERNEL void hold_velocities(
    int n_held, double dt, int steps_ahead,
    const int *flag,
    const int64 *step,
    const int *held,            // (n_held,)
    const int *held_region,     // (n_held,)
    const double *drive,        // (n_regions, 4)
    INOUT double *velocity,     // (n_clusters, 3, LANES)
    INOUT float *acceleration)  // (n_clusters, 3, LANES)
{
    if (flag[FLAG_HALT]) return;
    const double time = (double)(step[0] + steps_ahead) * dt;
    FOR_EACH(h, n_held) {
        const double *word = drive + 4 * held_region[h];
        if (time > word[3]) continue;
        const int64 i = held[h];
        for (int k = 0; k < 3; ++k) {
            velocity[component(i, k)] = word[k];
            acceleration[component(i, k)] = 0.0f;
        }
    }
}
