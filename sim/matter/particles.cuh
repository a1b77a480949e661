// What kernels share of the particles, in structs. Host side: particles.py.
#include "device/device.cuh"
#include "sim/matter/layout.cuh"

// Where particles are from their rest, in fixed point, by the strides of the layout.
struct Displacement {
    double inverse_unit;            // [1/m]
    int64 cluster_stride, axis_stride;
    const double *rest;             // (n_clusters, 3, LANES) [m]
    OUT int *displacement;          // [unit], modulo 2^32
};

// Note where the particles of a cluster are along an axis.
DEVICE void note_displacement(const Displacement &to, int64 c, int axis, lane_d x)
{
    lane_store(to.displacement + c * to.cluster_stride + axis * to.axis_stride, lane_low_bits(
        (x - lane_load(to.rest + LANES * (3 * c + axis))) * to.inverse_unit));
}

// How far particles may go before contact is sought anew.
struct Skin {
    double half_skin;               // [m]
    const double *noted;            // (n_clusters, 3, LANES) [m]: where they were then
    INOUT double *travel;           // (n_clusters,) [m]: at least the way from there
};

struct Floor { double height, restitution, friction; };

// What breaks the bonds of particles; see laws.cuh.
struct Limits {
    float least_threshold;          // the smallest tau
    const float *law;               // (n_bodies,) rows of BondLaw
    const int *body;                // (n_clusters,)
    const float *threshold;         // (n_clusters, LANES) tau'
    int64 gap_stride;               // of the axes of `gap`
    const float *gap;               // (3, n_clusters, LANES), see crossing() in laws.cuh
    INOUT int64 *lost;              // (n_clusters, 3, LANES) directions of lost bonds [1 / GAP_UNIT]
};

#define GAP_UNIT 1048576.0f

// Note that particle i has lost its bond with j, which was at `rest` from it. Sums of integers do not
// depend on the order of the atomic additions.
DEVICE void note_lost(INOUT int64 *lost, int64 i, int64 j, Vec3 rest)
{
    const float length = sqrt(rest.x * rest.x + rest.y * rest.y + rest.z * rest.z);
    const float part[3] = {rest.x, rest.y, rest.z};
    for (int k = 0; k < 3; ++k) {
        const int64 whole = (int64)rint((double)(part[k] / length * GAP_UNIT));
        atomic_add_int64(lost + component(i, k), whole);
        atomic_add_int64(lost + component(j, k), -whole);
    }
}
