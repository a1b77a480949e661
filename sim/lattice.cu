// Bond forces of a body that is a whole box of cubes: neighbours stand at fixed offsets, and
// eight particles of a row meet eight of another in one vector. Layout: lattice.py.
#include "device/device.cuh"
#include "sim/laws.cuh"
#include "sim/layout.cuh"

#define OFFSET_WORDS 6  // xi (3) [unit], |xi|^2, 1 / |xi|, length in metres a unit length

// The bonds of the lanes at `at` with those at `at + shift`, from the first to the second.
DEVICE Bond bond_of_offset(
    const float *word, const int *displacement, int64 axis_stride, int64 to, const lane_i *moved)
{
    lane_f xi[3], u[3];
    for (int k = 0; k < 3; ++k) {
        xi[k] = lane_splat(word[k]);
        u[k] = lane_float(lane_load(displacement + k * axis_stride + to) - moved[k]);
    }
    return bond_stretch(xi, u, lane_splat(word[3]), lane_splat(word[4]));
}

// Set the live bits of the bonds that exist: both ends are cells of the box.
KERNEL void lattice_find(
    int n_clusters, int first_cluster, int n_offsets, int rows_a, int rows_b, int row_length,
    const int *offset,          // (n_offsets, 3): along a, b and the row
    OUT uint8 *live)            // (n_clusters, n_offsets)
{
    const int blocks = (row_length + LANES - 1) / LANES;
    FOR_EACH(c, n_clusters) {
        const int block = (int)(c % blocks), row = (int)(c / blocks);
        const int a = row / rows_b, b = row % rows_b;
        for (int o = 0; o < n_offsets; ++o) {
            const int to_a = a + offset[3 * o], to_b = b + offset[3 * o + 1];
            int bits = 0;
            for (int l = 0; l < LANES; ++l) {
                const int x = LANES * block + l, to = x + offset[3 * o + 2];
                if (x < row_length && to >= 0 && to < row_length) bits |= 1 << l;
            }
            const bool inside = to_a >= 0 && to_a < rows_a && to_b >= 0 && to_b < rows_b;
            live[n_offsets * (first_cluster + c) + o] = (uint8)(inside ? bits : 0);
        }
    }
}

// Break overstretched bonds, then sum the forces of the live ones [N] and the smallest stretch
// of each particle. A bond is evaluated from both ends, with the same bits: negated vectors
// give the same stretch, so both find it broken or neither does.
KERNEL void lattice_forces(
    int n_clusters, int first_cluster, int n_offsets, int64 axis_stride, float weak_factor,
    float stiffness,
    const int *flag,
    const int64 *step,
    const int *shift,           // (n_offsets,) lanes from a particle to its neighbour
    const float *word,          // (n_offsets, OFFSET_WORDS)
    const int *edge_offset,     // (n_offsets,) 0, 1, 2 for the three edges ahead, else -1
    const int *edge,            // (n_padded, 3) number of those edges
    const uint8 *weak,          // (n_clusters, n_offsets)
    const int *weakened,        // (n_clusters,) whether any bit of `weak` is set
    const int *displacement,    // [unit], modulo 2^32
    const float *threshold,     // (n_clusters, LANES) tau'
    INOUT uint8 *live,          // (n_clusters, n_offsets)
    INOUT int64 *edge_step,     // (n_edges,)
    OUT float *slot)            // (n_clusters, 4, LANES)
{
    if (flag[FLAG_HALT]) return;
    const lane_f zero = lane_splat(0.0f);
    FOR_EACH_GROUP(item, n_clusters, 32) {
        const int64 c = first_cluster + item, at = LANES * c;
        uint8 *mine = live + n_offsets * c;
        const uint8 *soft = weak + n_offsets * c;
        const bool softened = weakened[c] != 0;
        lane_i moved[3];
        for (int k = 0; k < 3; ++k) moved[k] = lane_load(displacement + k * axis_stride + at);
        const lane_f limit_here = lane_load(threshold + at);
        lane_f sum[3] = {zero, zero, zero}, lowest = zero;

        for (int o = 0; o < n_offsets; ++o) {
            const int row = mine[o];
            if (!row) continue;
            const int64 to = at + shift[o];
            const Bond bond = bond_of_offset(
                word + OFFSET_WORDS * o, displacement, axis_stride, to, moved);

            // Break a bond stretched beyond the larger threshold of its ends.
            lane_i on = lane_from_bits(row);
            lane_f limit = lane_max(limit_here, lane_load(threshold + to));
            if (softened)
                limit = lane_select(lane_from_bits(soft[o]), limit * weak_factor, limit);
            const int torn = lane_bits(on & (bond.stretch > limit));
            if (torn) {
                mine[o] = (uint8)(row & ~torn);
                on = lane_from_bits(row & ~torn);
                if (edge_offset[o] >= 0)
                    for (int l = 0; l < LANES; ++l)
                        if (torn >> l & 1)
                            edge_step[edge[3 * (at + l) + edge_offset[o]]] = step[0] + 1;
            }

            // Pull toward the neighbour: c V^2 stretch, along the bond (eq. 3).
            const lane_f stretch = lane_select(on, bond.stretch, zero);
            const lane_f pull = stretch * bond.inverse_length;
            for (int k = 0; k < 3; ++k) sum[k] = lane_fma(pull, bond.y[k], sum[k]);
            lowest = lane_min(lowest, stretch);
        }
        float *own = slot + LANES * 4 * c;
        for (int k = 0; k < 3; ++k) lane_store(own + LANES * k, sum[k] * stiffness);
        lane_store(own + LANES * 3, lowest);
    }
}

// Sums over each particle's live bonds: V |xi|, V / |xi|, their number, half their energy [J].
KERNEL void lattice_sums(
    int n_clusters, int first_cluster, int n_offsets, int64 axis_stride, float volume,
    float stiffness,
    const int *shift,           // (n_offsets,)
    const float *word,          // (n_offsets, OFFSET_WORDS)
    const uint8 *live,          // (n_clusters, n_offsets)
    const int *displacement,
    OUT float *slot)            // (n_clusters, 4, LANES)
{
    const lane_f zero = lane_splat(0.0f);
    FOR_EACH_GROUP(item, n_clusters, 32) {
        const int64 c = first_cluster + item, at = LANES * c;
        lane_i moved[3];
        for (int k = 0; k < 3; ++k) moved[k] = lane_load(displacement + k * axis_stride + at);
        lane_f sum[4] = {zero, zero, zero, zero};
        for (int o = 0; o < n_offsets; ++o) {
            const int row = live[n_offsets * c + o];
            if (!row) continue;
            const float *constant = word + OFFSET_WORDS * o;
            const Bond bond = bond_of_offset(
                constant, displacement, axis_stride, at + shift[o], moved);
            const lane_i on = lane_from_bits(row);
            const float length = constant[5];
            const float term[4] = {volume * length, volume / length, 1.0f, 0.0f};
            const lane_f stretch = lane_select(on, bond.stretch, zero);
            for (int k = 0; k < 3; ++k)
                sum[k] = sum[k] + lane_select(on, lane_splat(term[k]), zero);
            sum[3] = sum[3] + stretch * stretch * (0.25f * stiffness * length);
        }
        for (int k = 0; k < 4; ++k) lane_store(slot + LANES * (4 * c + k), sum[k]);
    }
}

// Note where the live bit of each new contact candidate's bond is, -1 if never bonded.
KERNEL void lattice_contact_bonds(
    int n_padded, int capacity, int steps_ahead, int reach, int n_offsets,
    const int *flag,
    const int64 *step,
    const int *stamp,           // (n_padded,)
    const int *count,           // (n_padded,)
    const int *candidate,       // (n_padded, capacity)
    const int *cell,            // (n_padded, 4): body, then place along a, b and the row
    const int *offset_number,   // (2 reach + 1)^3: number of the offset, or -1
    INOUT int64 *candidate_bit) // (n_padded, capacity)
{
    if (flag[FLAG_HALT] || !flag[FLAG_REBUILD]) return;
    const int side = 2 * reach + 1;
    FOR_EACH(i, n_padded) {
        if (stamp[i] != (int)step[0] + steps_ahead) continue;
        for (int64 k = capacity * i; k < capacity * i + count[i]; ++k) {
            const int *here = cell + 4 * i, *there = cell + 4 * (int64)candidate[k];
            int place = 0;
            bool near = here[0] == there[0];
            for (int axis = 1; axis < 4; ++axis) {
                const int apart = there[axis] - here[axis] + reach;
                near = near && apart >= 0 && apart < side;
                place = side * place + apart;
            }
            const int number = near ? offset_number[place] : -1;
            candidate_bit[k] =
                number < 0 ? -1 : LANES * (n_offsets * (i / LANES) + number) + i % LANES;
        }
    }
}

// Mark the bonds that cross a wall: a segment in the plane, extruded along its normal.
KERNEL void lattice_weaken(
    int n_clusters, int first_cluster, int n_offsets, int n_segments, float reach,
    const int *shift,           // (n_offsets,)
    const float *planar,        // (n_padded, 2) place in the plane [m]
    const float *segment,       // (n_segments, 4) [m]
    const uint8 *live,          // (n_clusters, n_offsets)
    INOUT uint8 *weak,          // (n_clusters, n_offsets)
    INOUT int *weakened)        // (n_clusters,)
{
    FOR_EACH_CHUNKED(item, n_clusters, 16) {
        const int64 c = first_cluster + item;
        float low[2] = {INFINITY_F, INFINITY_F}, high[2] = {-INFINITY_F, -INFINITY_F};
        for (int l = 0; l < LANES; ++l)
            for (int k = 0; k < 2; ++k) {
                low[k] = minimum(low[k], planar[2 * (LANES * c + l) + k] - reach);
                high[k] = maximum(high[k], planar[2 * (LANES * c + l) + k] + reach);
            }
        for (int s = 0; s < n_segments; ++s) {
            const float *wall = segment + 4 * s;
            if (maximum(wall[0], wall[2]) < low[0] || minimum(wall[0], wall[2]) > high[0]) continue;
            if (maximum(wall[1], wall[3]) < low[1] || minimum(wall[1], wall[3]) > high[1]) continue;
            for (int bit = 0; bit < LANES * n_offsets; ++bit) {
                const int64 byte = n_offsets * c + bit / LANES;
                if (!(live[byte] >> bit % LANES & 1)) continue;
                // Both ends must find the same: always look from the lower particle.
                const int64 here = LANES * c + bit % LANES, there = here + shift[bit / LANES];
                const float *from = planar + 2 * minimum(here, there);
                const float *to = planar + 2 * maximum(here, there);
                if (crosses(wall, from[0], from[1], to[0], to[1])) {
                    weak[byte] = (uint8)(weak[byte] | 1 << bit % LANES);
                    weakened[c] = 1;
                }
            }
        }
    }
}
