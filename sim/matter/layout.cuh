// Where a particle's values lie: clusters of LANES particles, each axis together.
#include "device/device.cuh"

// Index of the component `axis` of particle i in a (clusters, 3, LANES) array.
DEVICE int64 component(int64 i, int axis)
{
    return 3 * LANES * (i / LANES) + LANES * axis + i % LANES;
}
DEVICE Vec3d load_particle(const double *p, int64 i)
{
    return make_vec3d(p[component(i, 0)], p[component(i, 1)], p[component(i, 2)]);
}
DEVICE void store_particle(double *p, int64 i, Vec3d v)
{
    p[component(i, 0)] = v.x;
    p[component(i, 1)] = v.y;
    p[component(i, 2)] = v.z;
}

// Control flags that kernels share (an int array); names in particles.py.
#define FLAG_HALT 0       // non-zero: every kernel leaves the state alone
#define FLAG_REBUILD 1    // contact candidates must be collected anew
#define FLAG_FAULT 2      // 1 + particle that ran away or became NaN
#define HALT_FAULT 1
#define HALT_CAPACITY 2   // a list of contact candidates is too short
#define REBUILD_MOVED 1   // those of the particles that moved
#define REBUILD_ALL 2     // those of all
