// Bond forces on pairs of 8-particle clusters; layout and symbols in cluster_bonds.py.
#include "device/device.cuh"
#include "sim/matter/laws.cuh"
#include "sim/matter/layout.cuh"
#include "sim/matter/particles.cuh"

// Pairs of clusters, and the slots that tiles of clusters sum into.
struct Pairs {
    const int *tile_start;      // (n_tiles + 1,) first cluster of a tile
    const int *tile_slot;       // (n_tiles + 1,) first slot of a tile
    const int *own_slot;        // (n_clusters,) slot of a cluster in its own tile
    const int *pair_start;      // (n_clusters + 1,) first pair of a cluster
    const int *pair_second;     // (n_pairs,)
    const int *pair_slot;       // (n_pairs,) where the second cluster's sums go
};

// The bodies at rest.
struct RestShape {
    float edge;                 // of partial volumes, see volume_share; 0 for full ones
    const double *origin;       // (n_clusters, 3) [unit]
    const float *rest;          // (n_clusters, 3, LANES) [unit] relative to the origin
    const float *per_scale;     // (n_clusters,) unit / lambda
    const float *weight;        // (n_clusters, LANES) V sqrt(c) [N^(1/2)]
    bool is_strained;           // whether particles by themselves are larger or smaller than at rest
    const float *free;          // (n_clusters, LANES) by these strains, see prestress.py
};

#define ROW_BITS ((1 << LANES) - 1)

// Rest positions of cluster b relative to cluster a's origin [unit], one particle a lane.
DEVICE void load_rest(
    const double *origin, const float *rest, int a, int b, lane_f *position)
{
    for (int k = 0; k < 3; ++k) {
        const float offset = (float)(origin[3 * a + k] - origin[3 * b + k]);
        position[k] = lane_load(rest + LANES * (3 * (int64)b + k)) - offset;
    }
}

// The bonds, `live` of them, of particle i of a cluster, whose rest positions and displacements are
// given, with the lanes of cluster b, and their rest vectors. `free_a` and `free_b` are the strains at
// which particles are at rest; what is inlined with null knows nothing of them.
DEVICE Bond bond_of_row(
    const float *rest_a, const int *moved_a, const float *free_a, int i, int live,
    const lane_f *rest_b, const lane_i *moved_b, lane_f free_b, lane_f zero, lane_f *xi)
{
    lane_f u[3];
    for (int k = 0; k < 3; ++k) {
        xi[k] = lane_splat(rest_a[LANES * k + i]) - rest_b[k];
        u[k] = lane_float(lane_splat(moved_a[LANES * k + i]) - moved_b[k]);
    }
    const lane_f rest2 = rest_squared(xi), length = lane_sqrt(rest2);
    if (free_a == 0) return bond_now(xi, u, rest2, length, live, false, zero);
    const lane_f strain = (lane_splat(free_a[i]) + free_b) * 0.5f;
    return strained_bond_now(xi, u, rest2, length, strain, live, zero);
}

// Break what is stretched too far of the bonds of particle i of cluster a with the lanes of cluster b;
// return their bits.
DEVICE_RARE int break_row(
    const BondLaw &law, const RestShape &shape, const Limits &limits, int64 a, int i, int64 b,
    uint64 pair_weak, Bond &bond)
{
    const int weak = (int)(pair_weak >> (LANES * i)) & ROW_BITS;
    const lane_f here = lane_splat(limits.threshold[LANES * a + i]);
    const lane_f there = lane_load(limits.threshold + LANES * b);
    if (!asks_for_cracks(law)) return bond_break(law, here, there, weak, lane_splat(0.0f), bond);

    // How far the ends have lost others toward each other, and which way they lose these.
    lane_f away[3], xi[3], gap_here[3], gap_there[3];
    load_rest(shape.origin, shape.rest, (int)a, (int)b, away);
    for (int k = 0; k < 3; ++k) {
        away[k] = away[k] - lane_splat(shape.rest[LANES * (3 * a + k) + i]);
        xi[k] = lane_splat(0.0f) - away[k];
        const float *gap = limits.gap + k * limits.gap_stride;
        gap_here[k] = lane_splat(gap[LANES * a + i]);
        gap_there[k] = lane_load(gap + LANES * b);
    }
    const lane_f across = crossing(xi, lane_sqrt(rest_squared(xi)), gap_here, gap_there);
    const int torn = bond_break(law, here, there, weak, across, bond);
    if (!torn) return 0;
    FOR_LANES(j) {
        // All lanes have to ask for theirs.
        const Vec3 direction = make_vec3(
            lane_get(away[0], j), lane_get(away[1], j), lane_get(away[2], j));
        if (torn >> j & 1) note_lost(limits.lost, LANES * a + i, LANES * b + j, direction);
    }
    return torn;
}

// Number of the pair of clusters whose first is a, or -1.
DEVICE int find_pair(const int *pair_start, const int *pair_second, int64 a, int64 b)
{
    int low = pair_start[a], high = pair_start[a + 1] - 1;
    while (low <= high) {
        const int middle = (low + high) / 2;
        if (pair_second[middle] == b) return middle;
        if (pair_second[middle] < b) low = middle + 1;
        else high = middle - 1;
    }
    return -1;
}

// Find the bonds between candidate pairs of clusters: bit 8 i + j is set where particle i of
// the first and j of the second are within reach. A cluster with itself counts each pair once.
KERNEL void find_bonds(
    int n_pairs,
    const int *pair_first,      // (n_pairs,)
    const int *pair_second,     // (n_pairs,)
    const int *cluster_count,   // (n_clusters,) particles in the cluster, the rest is padding
    const double *position,     // (n_clusters, 3, LANES) [m]
    const double *half_reach,   // (n_clusters, LANES) [m]: half the horizon
    OUT uint64 *mask)           // (n_pairs,)
{
    FOR_EACH(p, n_pairs) {
        const int64 a = pair_first[p], b = pair_second[p];
        uint64 bits = 0;
        for (int i = 0; i < cluster_count[a]; ++i) {
            const Vec3d x = load_particle(position, LANES * a + i);
            for (int j = a == b ? i + 1 : 0; j < cluster_count[b]; ++j) {
                const Vec3d xi = load_particle(position, LANES * b + j) - x;
                const double reach = half_reach[LANES * a + i] + half_reach[LANES * b + j];
                if (dot(xi, xi) <= reach * reach) bits |= (uint64)1 << (LANES * i + j);
            }
        }
        mask[p] = bits;
    }
}

// What bond_forces does for one tile. `free` are the strains at which particles are at rest; what is
// inlined with null knows nothing of them, so that bodies without residual stress cost no more. `zero`
// comes from outside, as bond_now wants it.
DEVICE void sum_tile(
    int64 tile, bool is_weakened, const Pairs &pairs, const RestShape &shape, const Limits &limits,
    const float *free, const int64 *step, const uint64 *pair_weak, const uint64 *pair_edge,
    const int *pair_edge_start, const int *displacement, uint64 *pair_live, int64 *edge_step,
    float *slot, lane_f zero)
{
    const float edge = shape.edge, *rest = shape.rest, *weight = shape.weight;
    const float *per_scale = shape.per_scale;
    const double *origin = shape.origin;
    const int *pair_second = pairs.pair_second, *pair_slot = pairs.pair_slot;
    for (int64 s = pairs.tile_slot[tile]; s < pairs.tile_slot[tile + 1]; ++s)
        for (int k = 0; k < 4; ++k) lane_store(slot + LANES * (4 * s + k), zero);

    for (int a = pairs.tile_start[tile]; a < pairs.tile_start[tile + 1]; ++a) {
        const BondLaw own_law = bond_law(limits.law, limits.body[a]);
        const lane_f safe = safe_stretch(own_law, limits.least_threshold, is_weakened);
        // One place each, from which rows are reached: indices would fill the registers.
        const float *rest_a = rest + LANES * 3 * (int64)a, *weight_a = weight + LANES * (int64)a;
        const int *moved_a = displacement + LANES * 3 * (int64)a;
        IN_REGISTER(rest_a);
        IN_REGISTER(weight_a);
        IN_REGISTER(moved_a);
        const float *free_a = free ? free + LANES * (int64)a : 0;
        lane_f sum[LANES][4];
        UNROLL for (int i = 0; i < LANES; ++i)
            for (int k = 0; k < 4; ++k) sum[i][k] = zero;

        for (int p = pairs.pair_start[a], last = pairs.pair_start[a + 1]; p < last; ++p) {
            uint64 live = pair_live[p];
            if (!live) continue;
            const int b = pair_second[p];
            lane_f rest_b[3];
            lane_i moved_b[3];
            load_rest(origin, rest, a, b, rest_b);
            for (int k = 0; k < 3; ++k)
                moved_b[k] = lane_load(displacement + LANES * (3 * (int64)b + k));
            const lane_f weight_b = lane_load(weight + LANES * (int64)b);
            const lane_f free_b = free ? lane_load(free + LANES * (int64)b) : zero;
            uint64 broken = 0;
            lane_f back[4] = {zero, zero, zero, zero};

            FOR_ROWS(i, live) {
                lane_f xi[3];
                const int row = (int)(live >> (LANES * i));
                Bond bond = bond_of_row(
                    rest_a, moved_a, free_a, i, row, rest_b, moved_b, free_b, zero, xi);
                if (UNLIKELY(bond_may_break(bond, safe))) {
                    // A copy: what is handed over must be in memory, and would be in all passes.
                    Bond stretched = bond;
                    const int torn =
                        break_row(own_law, shape, limits, a, i, b, pair_weak[p], stretched);
                    bond = stretched;
                    broken |= (uint64)torn << (LANES * i);
                }

                // Pull both ends together, along the bond.
                lane_f pull = bond_force(own_law, bond) * (weight_b * weight_a[i]);
                if (edge > 0.0f) pull = pull * volume_share(xi, edge, per_scale[a]);
                for (int k = 0; k < 3; ++k) {
                    sum[i][k] = lane_fnma(pull, bond.y[k], sum[i][k]);
                    back[k] = lane_fma(pull, bond.y[k], back[k]);
                }
                sum[i][3] = lane_min(sum[i][3], bond.stretch);
                back[3] = lane_min(back[3], bond.stretch);
            }

            // Note broken bonds, and the step for those between adjacent elements.
            if (broken) {
                pair_live[p] = live & ~broken;
                const uint64 edges = pair_edge[p];
                for (uint64 rest_bits = broken & edges; rest_bits; rest_bits &= rest_bits - 1) {
                    const uint64 below = (rest_bits & (0 - rest_bits)) - 1;
                    edge_step[pair_edge_start[p] + bit_count(edges & below)] = step[0] + 1;
                }
            }
            float *to = slot + LANES * 4 * (int64)pair_slot[p];
            for (int k = 0; k < 3; ++k)
                lane_store(to + LANES * k, lane_load(to + LANES * k) + back[k]);
            lane_store(to + LANES * 3, lane_min(lane_load(to + LANES * 3), back[3]));
        }

        // Add the rows' sums to the cluster's own slot.
        lane_fence();
        float *own = slot + LANES * 4 * (int64)pairs.own_slot[a];
        UNROLL for (int i = 0; i < LANES; ++i) {
            float total[4];
            for (int k = 0; k < 3; ++k) total[k] = own[LANES * k + i] + lane_sum(sum[i][k]);
            total[3] = minimum(own[LANES * 3 + i], lane_lowest(sum[i][3]));
            lane_fence();
            for (int k = 0; k < 4; ++k) own[LANES * k + i] = total[k];
        }
        lane_fence();
    }
}

// Break overstretched bonds, then sum the forces of the live ones [N] and the smallest
// stretch of each particle. Each pair is visited once and acts on both ends; sums go to the
// slots of the tile, which nobody else writes.
KERNEL void bond_forces(
    int n_tiles, bool is_weakened, Pairs pairs, RestShape shape, Limits limits,
    const int *flag,
    const int64 *step,
    const uint64 *pair_weak,    // (n_pairs,) bonds on a weakened path
    const uint64 *pair_edge,    // (n_pairs,) bonds of adjacent elements
    const int *pair_edge_start, // (n_pairs,) number of the first of them
    const int *displacement,    // (n_clusters, 3, LANES) [unit], modulo 2^32
    INOUT uint64 *pair_live,    // (n_pairs,)
    INOUT int64 *edge_step,     // (n_edges,) step at which an edge broke
    OUT float *slot)            // (n_slots, 4, LANES) force and smallest stretch
{
    if (flag[FLAG_HALT]) return;
    const lane_f zero = lane_splat(0.0f);
    FOR_EACH_GROUP(tile, n_tiles, 1)
        sum_tile(tile, is_weakened, pairs, shape, limits, 0, step, pair_weak, pair_edge,
                 pair_edge_start, displacement, pair_live, edge_step, slot, zero);
}

// The same for bodies under residual stress.
KERNEL void strained_bond_forces(
    int n_tiles, bool is_weakened, Pairs pairs, RestShape shape, Limits limits,
    const int *flag,
    const int64 *step,
    const uint64 *pair_weak,
    const uint64 *pair_edge,
    const int *pair_edge_start,
    const int *displacement,
    INOUT uint64 *pair_live,
    INOUT int64 *edge_step,
    OUT float *slot)
{
    if (flag[FLAG_HALT]) return;
    const lane_f zero = lane_splat(0.0f);
    FOR_EACH_GROUP(tile, n_tiles, 1)
        sum_tile(tile, is_weakened, pairs, shape, limits, shape.free, step, pair_weak, pair_edge,
                 pair_edge_start, displacement, pair_live, edge_step, slot, zero);
}

// Note where the live bit of each new contact candidate's bond is, -1 if never bonded.
KERNEL void contact_bonds(
    int n_padded, int steps_ahead,
    const int *flag,
    const int64 *step,
    const int *stamp,           // (n_padded,)
    const int *count,           // (n_padded,)
    const int *candidate,       // (capacity, n_padded)
    const int *pair_start,      // (n_clusters + 1,)
    const int *pair_second,     // (n_pairs,)
    INOUT int64 *candidate_bit) // (capacity, n_padded)
{
    if (flag[FLAG_HALT] || !flag[FLAG_REBUILD]) return;
    FOR_EACH(i, n_padded) {
        if (stamp[i] != (int)step[0] + steps_ahead) continue;
        for (int64 k = i; k < i + count[i] * (int64)n_padded; k += n_padded) {
            // Within a cluster the lower lane is the row.
            int64 first = minimum(i, (int64)candidate[k]);
            int64 second = maximum(i, (int64)candidate[k]);
            int pair = find_pair(pair_start, pair_second, first / LANES, second / LANES);
            if (pair < 0) {
                const int64 other = first;
                first = second;
                second = other;
                pair = find_pair(pair_start, pair_second, first / LANES, second / LANES);
            }
            const int64 bit = LANES * (first % LANES) + second % LANES;
            candidate_bit[k] = pair < 0 ? -1 : LANES * LANES * (int64)pair + bit;
        }
    }
}

// Sums over each particle's live bonds, for set-up and diagnostics: V_j |xi|, V_j / |xi|,
// the number of bonds, and half their energy [J].
KERNEL void bond_sums(
    int n_tiles, float unit, Pairs pairs, RestShape shape,
    const float *law,           // (n_bodies,) rows of BondLaw
    const int *body,            // (n_clusters,)
    const uint64 *pair_live,    // (n_pairs,)
    const int *displacement,    // (n_clusters, 3, LANES)
    const float *volume,        // (n_clusters, LANES)
    OUT float *slot)            // (n_slots, 4, LANES)
{
    const lane_f zero = lane_splat(0.0f);
    const lane_f one = lane_splat(1.0f);
    FOR_EACH_GROUP(tile, n_tiles, 1) {
        const float edge = shape.edge, *rest = shape.rest, *weight = shape.weight;
        const float *free = shape.is_strained ? shape.free : 0;
        for (int64 s = pairs.tile_slot[tile]; s < pairs.tile_slot[tile + 1]; ++s)
            for (int k = 0; k < 4; ++k) lane_store(slot + LANES * (4 * s + k), zero);
        for (int a = pairs.tile_start[tile]; a < pairs.tile_start[tile + 1]; ++a) {
            const BondLaw own_law = bond_law(law, body[a]);
            float *own = slot + LANES * 4 * (int64)pairs.own_slot[a];
            for (int p = pairs.pair_start[a]; p < pairs.pair_start[a + 1]; ++p) {
                const int b = pairs.pair_second[p];
                lane_f rest_b[3];
                lane_i moved_b[3];
                load_rest(shape.origin, rest, a, b, rest_b);
                for (int k = 0; k < 3; ++k)
                    moved_b[k] = lane_load(displacement + LANES * (3 * (int64)b + k));
                const lane_f weight_b = lane_load(weight + LANES * (int64)b);
                const lane_f volume_b = lane_load(volume + LANES * (int64)b);
                const lane_f free_b = free ? lane_load(free + LANES * (int64)b) : zero;
                lane_f back[4] = {zero, zero, zero, zero};
                const uint64 live = pair_live[p];
                FOR_ROWS(i, live) {
                    lane_f xi[3];
                    const int row = (int)(live >> (LANES * i));
                    const Bond bond = bond_of_row(
                        rest + LANES * 3 * (int64)a, displacement + LANES * 3 * (int64)a,
                        free ? free + LANES * (int64)a : 0, i, row, rest_b, moved_b, free_b, zero,
                        xi);
                    const lane_i on = lane_from_bits(row);
                    const lane_f rest_length = lane_sqrt(rest_squared(xi)) * unit;
                    const lane_f share = lane_select(
                        on, edge > 0.0f ? volume_share(xi, edge, shape.per_scale[a]) : one, zero);
                    const lane_f length = rest_length * share;
                    const lane_f inverse = share / rest_length;
                    const int64 at = LANES * (int64)a + i;
                    const lane_f energy = lane_select(on, bond_energy(own_law, bond), zero)
                        * 0.5f * length * weight_b * weight[at];
                    const lane_f count = lane_select(on, one, zero);
                    const float mine[4] = {
                        lane_sum(length * volume_b), lane_sum(inverse * volume_b),
                        lane_sum(count), lane_sum(energy)};
                    lane_fence();
                    for (int k = 0; k < 4; ++k) {
                        const float total = own[LANES * k + i] + mine[k];
                        lane_fence();
                        own[LANES * k + i] = total;
                    }
                    lane_fence();
                    back[0] = back[0] + length * volume[at];
                    back[1] = back[1] + inverse * volume[at];
                    back[2] = back[2] + count;
                    back[3] = back[3] + energy;
                }
                float *to = slot + LANES * 4 * (int64)pairs.pair_slot[p];
                for (int k = 0; k < 4; ++k)
                    lane_store(to + LANES * k, lane_load(to + LANES * k) + back[k]);
                lane_fence();
            }
        }
    }
}

// Mark the bonds that cross a wall: a segment in the plane of two axes, extruded along the
// third direction. Both are given in that plane's coordinates.
KERNEL void weaken_bonds(
    int n_pairs, int n_segments,
    const int *pair_first,      // (n_pairs,)
    const int *pair_second,     // (n_pairs,)
    const uint64 *pair_live,    // (n_pairs,)
    const float *planar,        // (n_clusters, 2, LANES) [m]
    const float *segment,       // (n_segments, 4): start and end [m]
    INOUT uint64 *pair_weak)    // (n_pairs,)
{
    FOR_EACH(p, n_pairs) {
        const float *first = planar + 2 * LANES * (int64)pair_first[p];
        const float *second = planar + 2 * LANES * (int64)pair_second[p];
        float low[2] = {INFINITY_F, INFINITY_F}, high[2] = {-INFINITY_F, -INFINITY_F};
        for (int k = 0; k < 2; ++k)
            for (int l = 0; l < LANES; ++l) {
                low[k] = minimum(low[k], minimum(first[LANES * k + l], second[LANES * k + l]));
                high[k] = maximum(high[k], maximum(first[LANES * k + l], second[LANES * k + l]));
            }
        uint64 weak = pair_weak[p];
        for (int s = 0; s < n_segments; ++s) {
            const float *q = segment + 4 * s;
            if (maximum(q[0], q[2]) < low[0] || minimum(q[0], q[2]) > high[0]) continue;
            if (maximum(q[1], q[3]) < low[1] || minimum(q[1], q[3]) > high[1]) continue;
            for (uint64 bits = pair_live[p] & ~weak; bits; bits &= bits - 1) {
                const int bit = bit_count((bits & (0 - bits)) - 1);
                const float *from = first + bit / LANES, *to = second + bit % LANES;
                if (crosses(q, from[0], from[LANES], to[0], to[LANES]))
                    weak |= bits & (0 - bits);
            }
        }
        pair_weak[p] = weak;
    }
}

// Cut the bonds that cross a rectangle, before the first step.
KERNEL void cut_bonds(
    int n_pairs, int n_cracks,
    const int *pair_first,      // (n_pairs,)
    const int *pair_second,     // (n_pairs,)
    const double *crack,        // (n_cracks,) rows of Rectangle
    const double *rest_position,// (n_clusters, 3, LANES) [m]
    const uint64 *pair_edge,    // (n_pairs,)
    const int *pair_edge_start, // (n_pairs,)
    INOUT uint64 *pair_live,    // (n_pairs,)
    INOUT int64 *edge_step)     // (n_edges,) 0 where an edge was cut
{
    FOR_EACH(p, n_pairs) {
        uint64 cut = 0;
        for (uint64 bits = pair_live[p]; bits; bits &= bits - 1) {
            const int bit = bit_count((bits & (0 - bits)) - 1);
            const int64 first = LANES * (int64)pair_first[p] + bit / LANES;
            const int64 second = LANES * (int64)pair_second[p] + bit % LANES;
            const Vec3d a = load_particle(rest_position, first);
            const Vec3d b = load_particle(rest_position, second);
            for (int q = 0; q < n_cracks; ++q)
                if (crosses_rectangle(((const Rectangle *)crack)[q], a, b)) cut |= bits & (0 - bits);
        }
        if (!cut) continue;
        pair_live[p] &= ~cut;
        for (uint64 bits = cut & pair_edge[p]; bits; bits &= bits - 1) {
            const uint64 below = (bits & (0 - bits)) - 1;
            edge_step[pair_edge_start[p] + bit_count(pair_edge[p] & below)] = 0;
        }
    }
}

// Of some bonds those between particles of different labels.
KERNEL void bonds_across(
    int n_pairs,
    const int *pair_first,      // (n_pairs,)
    const int *pair_second,     // (n_pairs,)
    const int *label,           // (n_clusters, LANES)
    const uint64 *some,         // (n_pairs,)
    OUT uint64 *across)         // (n_pairs,)
{
    FOR_EACH(p, n_pairs) {
        uint64 found = 0;
        for (uint64 bits = some[p]; bits; bits &= bits - 1) {
            const int bit = bit_count((bits & (0 - bits)) - 1);
            if (label[LANES * (int64)pair_first[p] + bit / LANES]
                != label[LANES * (int64)pair_second[p] + bit % LANES]) found |= bits & (0 - bits);
        }
        across[p] = found;
    }
}

// Cut the bonds of given bits and those between particles of different labels.
KERNEL void clear_bonds(
    int n_pairs,
    const int *pair_first,      // (n_pairs,)
    const int *pair_second,     // (n_pairs,)
    const int *label,           // (n_clusters, LANES)
    const uint64 *gone,         // (n_pairs,)
    const uint64 *pair_edge,    // (n_pairs,)
    const int *pair_edge_start, // (n_pairs,)
    INOUT uint64 *pair_live,    // (n_pairs,)
    INOUT int64 *edge_step)     // (n_edges,) 0 where an edge was cut
{
    FOR_EACH(p, n_pairs) {
        uint64 cut = pair_live[p] & gone[p];
        for (uint64 bits = pair_live[p] & ~cut; bits; bits &= bits - 1) {
            const int bit = bit_count((bits & (0 - bits)) - 1);
            if (label[LANES * (int64)pair_first[p] + bit / LANES]
                != label[LANES * (int64)pair_second[p] + bit % LANES]) cut |= bits & (0 - bits);
        }
        if (!cut) continue;
        pair_live[p] &= ~cut;
        for (uint64 bits = cut & pair_edge[p]; bits; bits &= bits - 1) {
            const uint64 below = (bits & (0 - bits)) - 1;
            edge_step[pair_edge_start[p] + bit_count(pair_edge[p] & below)] = 0;
        }
    }
}
