// What kernels share of the particles, in structs. Host side: particles.py.
#include "device/device.cuh"

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
};
