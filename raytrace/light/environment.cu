// Blur an environment by a reflection lobe; driven by environment.py.
#include "device/device.cuh"

// One blurred level: the mean of the source, weighted by cos^exponent about each direction.
// Directions whose weight is below cos^exponent = 1e-3 are left out.
KERNEL void blur_level(
    int n, int width, int height, float exponent, int source_width, int source_height,
    const float *source,          // (source_height, source_width, 3)
    OUT float *blurred)           // (height, width, 3), n = height * width
{
    FOR_EACH_CHUNKED(i, n, 16) {
        const float polar = PI_F * ((float)(i / width) + 0.5f) / (float)height;
        const float azimuth = 2.0f * PI_F * ((float)(i % width) + 0.5f) / (float)width;
        const float axis_up = cosf(polar), axis_out = sinf(polar);
        const float edge = powf(1e-3f, 1.0f / exponent);
        const float rows = (float)source_height / PI_F;
        const float columns = (float)source_width / (2.0f * PI_F);
        const int first = maximum((int)((polar - acosf(edge)) * rows), 0);
        const int last = minimum((int)((polar + acosf(edge)) * rows), source_height - 1);
        Vec3 sum = make_vec3(0.0f, 0.0f, 0.0f);
        float weight_sum = 0.0f;
        for (int row = first; row <= last; ++row) {
            const float angle = PI_F * ((float)row + 0.5f) / (float)source_height;
            const float up = cosf(angle), out = sinf(angle);
            // Visit the columns where the cosine exceeds the edge.
            const float turn_edge = (edge - up * axis_up) / (out * axis_out);
            if (turn_edge >= 1.0f) continue;
            const float turn = acosf(maximum(turn_edge, -1.0f));
            const int left = (int)floorf((azimuth - turn) * columns);
            const int count = minimum((int)(2.0f * turn * columns) + 2, source_width);
            for (int c = left; c < left + count; ++c) {
                const float away = ((float)c + 0.5f) / columns - azimuth;
                const float cosine = up * axis_up + out * axis_out * cosf(away);
                if (cosine <= edge) continue;
                const float weight = powf(cosine, exponent) * out;
                const int column = (c + source_width) % source_width;
                sum = sum + weight * load_vec3(source, (int64)row * source_width + column);
                weight_sum += weight;
            }
        }
        store_vec3(blurred, i, sum / maximum(weight_sum, 1e-20f));
    }
}
