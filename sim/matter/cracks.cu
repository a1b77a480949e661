// Where cracks are: which way particles have lost their bonds. Host side: cracks.py.
#include "device/device.cuh"
#include "sim/matter/layout.cuh"
#include "sim/matter/particles.cuh"

// Let the gaps of all particles catch up with the bonds they have lost, every so many steps. A crack
// that opened in this very step is not yet one: it would run on faster than any wave.
KERNEL void open_gaps(
    int n_clusters, int every, int64 gap_stride,
    const int *flag,
    const int64 *step,
    const int64 *lost,          // (n_clusters, 3, LANES) [1 / GAP_UNIT]
    const float *per_bond,      // (n_clusters, LANES) one over the bonds of a particle at first
    OUT float *gap)             // (3, n_clusters, LANES)
{
    if (flag[FLAG_HALT] || (step[0] + 1) % every != 0) return;
    FOR_EACH_CHUNKED(c, n_clusters, 64) {
        for (int l = 0; l < LANES; ++l)
            for (int k = 0; k < 3; ++k) {
                const int64 sum = lost[component(LANES * c + l, k)];
                gap[k * gap_stride + LANES * c + l] =
                    (float)sum * (1.0f / GAP_UNIT) * per_bond[LANES * c + l];
            }
    }
}
