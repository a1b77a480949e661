// Irradiance at many normals: the law of harmonics.cuh as a kernel.
#include "device/device.cuh"
#include "raytrace/light/harmonics.cuh"

KERNEL void irradiance_at(
    int n,
    const float *table,           // see harmonics.py
    const float *normal,          // (n, 3)
    OUT float *irradiance)        // (n, 3)
{
    FOR_EACH(i, n) {
        store_vec3(irradiance, i, harmonic_irradiance(table, load_vec3(normal, i)));
    }
}
