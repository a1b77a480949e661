// Bond forces of a body that is a whole box of cubes: neighbours stand at fixed offsets, and
// eight particles of a row meet eight of another in one vector. Layout: lattice.py.
#include "device/device.cuh"
#include "sim/matter/laws.cuh"
#include "sim/matter/layout.cuh"
#include "sim/matter/particles.cuh"

// A neighbour at a fixed offset, all float.
struct Offset {
    Vec3 xi;                    // [unit]
    float rest2, rest;          // |xi|^2, |xi| [unit]
    float length;               // |xi| [m]
    float share;                // of the neighbour's volume that counts
};

// The offsets ahead.
struct Offsets {
    int count, reach;           // cells along an axis
    const int *shift;           // (count,) lanes from a particle to its neighbour
    const float *word;          // (count,) rows of Offset
    const int *edge_offset;     // (count,) 0, 1, 2 for the three edges ahead, else -1
};

// Where a body's clusters and tiles are, and the planes that the tiles sum into.
struct Tiling {
    int first_cluster, tile_layers, n_layers, rows_b, blocks;
    int64 axis_stride;          // of the displacement
    int64 plane_start, plane_stride;    // (n_tiles, 4, plane_stride) floats from plane_start on
};

#define ROW_BITS ((1 << LANES) - 1)

// The bonds, `live` of them, of eight particles with those that are `shift` lanes further: the
// displacements of the first in `moved`, and in `from` where they lie.
DEVICE Bond bond_of_offset(
    const Offset &offset, const int *const *from, int64 shift, const lane_i *moved, int live,
    lane_f zero)
{
    const lane_f xi[3] = {
        lane_splat(offset.xi.x), lane_splat(offset.xi.y), lane_splat(offset.xi.z)};
    lane_f u[3];
    for (int k = 0; k < 3; ++k) u[k] = lane_float(lane_load(from[k] + shift) - moved[k]);
    return bond_now(xi, u, lane_splat(offset.rest2), lane_splat(offset.rest), live,
                    live == ROW_BITS, zero);
}

// How far the ends of the bonds of a cluster's particles at an offset have lost others toward each
// other. The neighbours stand in one cluster or in two.
DEVICE lane_f crossing_of_offset(const Offset &offset, const Limits &limits, int64 c, int shift)
{
    const lane_f xi[3] = {
        lane_splat(offset.xi.x), lane_splat(offset.xi.y), lane_splat(offset.xi.z)};
    lane_f own[3], other[3];
    for (int k = 0; k < 3; ++k) {
        const float *gap = limits.gap + k * limits.gap_stride + LANES * c;
        own[k] = lane_load(gap);
        other[k] = lane_load(gap + shift);
    }
    return crossing(xi, lane_splat(offset.rest), other, own);
}

// Break what is stretched too far of the bonds of a cluster at an offset; return their bits.
DEVICE_RARE int break_offset(
    const BondLaw &law, const Offset &offset, const Limits &limits, int64 c, int shift, int weak,
    Bond &bond)
{
    const float *limit = limits.threshold + LANES * c;
    const bool asks = asks_for_cracks(law);
    const lane_f across =
        asks ? crossing_of_offset(offset, limits, c, shift) : lane_splat(0.0f);
    const int torn = bond_break(law, lane_load(limit), lane_load(limit + shift), weak, across, bond);
    if (asks) {
        FOR_LANES(l) {
            if (torn >> l & 1)
                note_lost(limits.lost, LANES * c + l, LANES * c + l + shift, offset.xi);
        }
    }
    return torn;
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

// Clear some rows and blocks of a tile's planes in all its layers. The first LANES of a plane are
// slack for lanes that stand outside of their row; what they get is zero, or never read.
DEVICE void clear_ahead(
    float *plane, int64 plane_stride, int layers, int rows_b, int blocks, int from_row, int to_row,
    int from_block, int to_block)
{
    for (int k = 0; k < 4; ++k)
        for (int layer = 0; layer < layers; ++layer)
            for (int row = from_row; row < to_row; ++row) {
                float *own = plane + k * plane_stride + LANES
                             + LANES * blocks * ((int64)layer * rows_b + row);
                for (int64 p = LANES * from_block; p < LANES * to_block; p += LANES)
                    lane_store(own + p, lane_splat(0.0f));
            }
    lane_fence();
}

// Break overstretched bonds, then sum the forces of the live ones [c V^2] and the smallest
// stretch of each particle. Each bond is visited once and acts on both ends. A tile is some
// layers of rows; it sums into four planes of its own, which reach a horizon further than its rows.
//
// A tile is swept row by row through all layers, so that what a row needs of those within the
// horizon is still in the cache; long rows are cut into segments. Planes are cleared just ahead of
// the sweep. The offsets are sorted so that neighbouring stores do not overlap.
//
// `weight`, where it is not null, holds a factor of each particle: a bond has that of both its ends.
// What is inlined with null knows nothing of it. `zero` comes from outside, as bond_now wants it.
DEVICE void sweep_tile(
    int64 tile, const Tiling &tiling, const Offsets &offsets, int segment, bool partial,
    const Limits &limits, const float *weight, const int64 *step, const int *edge,
    const uint8 *weak, const int *weakened, const int *displacement, uint8 *live, int64 *edge_step,
    float *slot, lane_f zero)
{
    const BondLaw own_law = bond_law(limits.law, limits.body[tiling.first_cluster]);
    const float *word = offsets.word;
    const int *shift = offsets.shift, *edge_offset = offsets.edge_offset;
    const int n_offsets = offsets.count, reach = offsets.reach;
    const int rows_b = tiling.rows_b, blocks = tiling.blocks;
    const int64 plane_stride = tiling.plane_stride;
    float *plane = slot + tiling.plane_start + 4 * plane_stride * tile;
    const int first_layer = (int)tile * tiling.tile_layers;
    const int layers = minimum(tiling.tile_layers, tiling.n_layers - first_layer);
    const int n_segments = (blocks + segment - 1) / segment;

    for (int sweep = 0; sweep < n_segments * rows_b; ++sweep) {
        const int b = sweep % rows_b;
        const int from_block = segment * (sweep / rows_b);
        const int to_block = minimum(from_block + segment, blocks);
        clear_ahead(plane, plane_stride, tiling.tile_layers + reach, rows_b, blocks,
                    b ? b + reach : 0, minimum(b + reach + 1, rows_b),
                    from_block ? from_block + 1 : 0, minimum(to_block + 1, blocks));
        for (int item = 0; item < layers * (to_block - from_block); ++item) {
            const int64 local = ((int64)(item % layers) * rows_b + b) * blocks
                                + from_block + item / layers;
            const int64 c =
                tiling.first_cluster + (int64)first_layer * rows_b * blocks + local;
            const int64 at = LANES * c;
            float *own = plane + LANES + LANES * local;
            uint8 *mine = live + n_offsets * c;
            const bool softened = weakened[c] != 0;
            const lane_f safe = safe_stretch(own_law, limits.least_threshold, softened);
            const int *from[3];
            lane_i moved[3];
            for (int k = 0; k < 3; ++k) {
                from[k] = displacement + k * tiling.axis_stride + at;
                moved[k] = lane_load(from[k]);
            }
            const lane_f weight_here = weight ? lane_load(weight + at) : zero;
            lane_f sum[3] = {zero, zero, zero}, lowest = zero;

            for (int o = 0; o < n_offsets; ++o) {
                const int row = mine[o];
                if (!row) continue;
                const Offset &offset = ((const Offset *)word)[o];
                Bond bond = bond_of_offset(offset, from, shift[o], moved, row, zero);
                if (UNLIKELY(bond_may_break(bond, safe))) {
                    // A copy: what is handed over must be in memory, and would be in all passes.
                    Bond stretched = bond;
                    const int torn = break_offset(
                        own_law, offset, limits, c, shift[o],
                        softened ? weak[n_offsets * c + o] : 0, stretched);
                    bond = stretched;
                    if (torn) {
                        mine[o] = (uint8)(row & ~torn);
                        for (int l = 0; l < LANES && edge_offset[o] >= 0; ++l)
                            if (torn >> l & 1)
                                edge_step[edge[3 * (at + l) + edge_offset[o]]] = step[0] + 1;
                    }
                }

                // Pull both ends together, along the bond.
                lane_f pull = bond_force(own_law, bond);
                if (partial) pull = pull * offset.share;
                if (weight) pull = pull * (weight_here * lane_load(weight + at + shift[o]));
                float *other = own + shift[o];
                for (int k = 0; k < 3; ++k) {
                    sum[k] = lane_fma(pull, bond.y[k], sum[k]);
                    lane_store(other + k * plane_stride, lane_fnma(
                        pull, bond.y[k], lane_load(other + k * plane_stride)));
                }
                lowest = lane_min(lowest, bond.stretch);
                lane_store(other + 3 * plane_stride,
                           lane_min(lane_load(other + 3 * plane_stride), bond.stretch));
                lane_fence();
            }
            for (int k = 0; k < 3; ++k)
                lane_store(own + k * plane_stride, lane_load(own + k * plane_stride) + sum[k]);
            lane_store(own + 3 * plane_stride,
                       lane_min(lane_load(own + 3 * plane_stride), lowest));
            lane_fence();
        }
    }
}

// The forces of bodies whose bonds are all alike.
KERNEL void lattice_forces(
    int n_tiles, Tiling tiling, Offsets offsets, int segment, bool partial, Limits limits,
    const int *flag,
    const int64 *step,
    const int *edge,            // (n_padded, 3) number of the edges ahead
    const uint8 *weak,          // (n_clusters, offsets)
    const int *weakened,        // (n_clusters,) whether any bit of `weak` is set
    const int *displacement,    // [unit], modulo 2^32
    INOUT uint8 *live,          // (n_clusters, offsets)
    INOUT int64 *edge_step,     // (n_edges,)
    OUT float *slot)            // see Tiling
{
    if (flag[FLAG_HALT]) return;
    const lane_f zero = lane_splat(0.0f);
    FOR_EACH_GROUP(tile, n_tiles, 1)
        sweep_tile(tile, tiling, offsets, segment, partial, limits, 0, step, edge, weak, weakened,
                   displacement, live, edge_step, slot, zero);
}

// The forces of bodies whose particles have a factor each (surface.py).
KERNEL void lattice_weighted_forces(
    int n_tiles, Tiling tiling, Offsets offsets, int segment, bool partial, Limits limits,
    const float *weight,        // (n_clusters, LANES)
    const int *flag,
    const int64 *step,
    const int *edge,            // (n_padded, 3)
    const uint8 *weak,          // (n_clusters, offsets)
    const int *weakened,        // (n_clusters,)
    const int *displacement,    // [unit], modulo 2^32
    INOUT uint8 *live,          // (n_clusters, offsets)
    INOUT int64 *edge_step,     // (n_edges,)
    OUT float *slot)            // see Tiling
{
    if (flag[FLAG_HALT]) return;
    const lane_f zero = lane_splat(0.0f);
    FOR_EACH_GROUP(tile, n_tiles, 1)
        sweep_tile(tile, tiling, offsets, segment, partial, limits, weight, step, edge, weak,
                   weakened, displacement, live, edge_step, slot, zero);
}

// Sums over each particle's live bonds: V |xi|, V / |xi|, their number, half their energy [J]. A
// neighbour, and the energy of a bond, count by the factors of their particles.
KERNEL void lattice_sums(
    int n_tiles, Tiling tiling, Offsets offsets, float volume, float stiffness,
    const float *law,           // (n_bodies,) rows of BondLaw
    const int *body,            // (n_clusters,)
    const float *weight,        // (n_clusters, LANES) factor of each particle
    const uint8 *live,          // (n_clusters, offsets)
    const int *displacement,
    OUT float *slot)            // see Tiling
{
    const lane_f zero = lane_splat(0.0f);
    FOR_EACH_GROUP(tile, n_tiles, 1) {
        const int64 plane_stride = tiling.plane_stride;
        float *plane = slot + tiling.plane_start + 4 * plane_stride * tile;
        for (int64 p = 0; p < 4 * plane_stride; p += LANES) lane_store(plane + p, zero);
        lane_fence();
        const int first_layer = (int)tile * tiling.tile_layers;
        const BondLaw own_law = bond_law(law, body[tiling.first_cluster]);
        const int rows_b = tiling.rows_b, blocks = tiling.blocks, n_offsets = offsets.count;
        const int n_rows = rows_b * minimum(tiling.tile_layers, tiling.n_layers - first_layer);
        for (int64 local = 0; local < (int64)n_rows * blocks; ++local) {
            const int64 c = tiling.first_cluster + (int64)first_layer * rows_b * blocks + local;
            float *own = plane + LANES + LANES * local;
            const int *from[3];
            lane_i moved[3];
            for (int k = 0; k < 3; ++k) {
                from[k] = displacement + k * tiling.axis_stride + LANES * c;
                moved[k] = lane_load(from[k]);
            }
            const lane_f weight_here = lane_load(weight + LANES * c);
            for (int o = 0; o < n_offsets; ++o) {
                const int row = live[n_offsets * c + o];
                if (!row) continue;
                const Offset &offset = ((const Offset *)offsets.word)[o];
                const int64 shift = offsets.shift[o];
                const Bond bond = bond_of_offset(offset, from, shift, moved, row, zero);
                const lane_i on = lane_from_bits(row);
                const float length = offset.length, share = offset.share;
                const lane_f weight_there = lane_load(weight + LANES * c + shift);
                const lane_f both = weight_here * weight_there;
                const lane_f term[4] = {
                    lane_select(on, lane_splat(share * volume * length), zero),
                    lane_select(on, lane_splat(share * volume / length), zero),
                    lane_select(on, lane_splat(1.0f), zero),
                    lane_select(on, bond_energy(own_law, bond), zero)
                        * (0.5f * share * stiffness * length)};
                for (int k = 0; k < 4; ++k) {
                    // The neighbour's volume counts, the bond's energy, the bond.
                    lane_f mine = term[k], theirs = term[k];
                    if (k < 2) mine = term[k] * weight_there, theirs = term[k] * weight_here;
                    if (k == 3) mine = theirs = term[k] * both;
                    float *here = own + k * plane_stride, *there = here + shift;
                    lane_store(here, lane_load(here) + mine);
                    lane_fence();
                    lane_store(there, lane_load(there) + theirs);
                    lane_fence();
                }
            }
        }
    }
}

// Note where the live bit of each new contact candidate's bond is, -1 if never bonded.
KERNEL void lattice_contact_bonds(
    int n_padded, int steps_ahead, int reach, int n_offsets,
    const int *flag,
    const int64 *step,
    const int *stamp,           // (n_padded,)
    const int *count,           // (n_padded,)
    const int *candidate,       // (capacity, n_padded)
    const int *cell,            // (n_padded, 4): body, then place along a, b and the row
    const int *offset_number,   // (2 reach + 1)^3: number of the offset ahead, or -1
    INOUT int64 *candidate_bit) // (capacity, n_padded)
{
    if (flag[FLAG_HALT] || !flag[FLAG_REBUILD]) return;
    const int side = 2 * reach + 1;
    FOR_EACH(i, n_padded) {
        if (stamp[i] != (int)step[0] + steps_ahead) continue;
        for (int64 k = i; k < i + count[i] * (int64)n_padded; k += n_padded) {
            // The bit stands with the particle from which the other is ahead.
            int64 found = -1;
            for (int turn = 0; turn < 2; ++turn) {
                const int64 from = turn ? candidate[k] : i, to = turn ? i : candidate[k];
                const int *here = cell + 4 * from, *there = cell + 4 * to;
                int place = 0;
                bool near = here[0] == there[0];
                for (int axis = 1; axis < 4; ++axis) {
                    const int apart = there[axis] - here[axis] + reach;
                    near = near && apart >= 0 && apart < side;
                    place = side * place + apart;
                }
                const int number = near ? offset_number[place] : -1;
                if (number >= 0)
                    found = LANES * (n_offsets * (from / LANES) + number) + from % LANES;
            }
            candidate_bit[k] = found;
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
                const float *from = planar + 2 * (LANES * c + bit % LANES);
                const float *to = from + 2 * (int64)shift[bit / LANES];
                if (crosses(wall, from[0], from[1], to[0], to[1])) {
                    weak[byte] = (uint8)(weak[byte] | 1 << bit % LANES);
                    weakened[c] = 1;
                }
            }
        }
    }
}

// Cut the bonds that cross a rectangle, before the first step.
KERNEL void lattice_cut(
    int n_clusters, int first_cluster, int n_offsets, int n_cracks,
    const int *shift,           // (n_offsets,)
    const double *crack,        // (n_cracks,) rows of Rectangle
    const double *rest_position,// (n_clusters, 3, LANES) [m]
    const int *edge_offset,     // (n_offsets,)
    const int *edge,            // (n_padded, 3)
    INOUT uint8 *live,          // (n_clusters, n_offsets)
    INOUT int64 *edge_step)     // (n_edges,) 0 where an edge was cut
{
    FOR_EACH_CHUNKED(item, n_clusters, 16) {
        const int64 c = first_cluster + item;
        for (int bit = 0; bit < LANES * n_offsets; ++bit) {
            const int o = bit / LANES, lane = bit % LANES;
            const int64 byte = n_offsets * c + o;
            if (!(live[byte] >> lane & 1)) continue;
            const int64 here = LANES * c + lane;
            const Vec3d a = load_particle(rest_position, here);
            const Vec3d b = load_particle(rest_position, here + shift[o]);
            bool cut = false;
            for (int q = 0; q < n_cracks; ++q)
                cut = cut || crosses_rectangle(((const Rectangle *)crack)[q], a, b);
            if (!cut) continue;
            live[byte] = (uint8)(live[byte] & ~(1 << lane));
            if (edge_offset[o] >= 0) edge_step[edge[3 * here + edge_offset[o]]] = 0;
        }
    }
}

// Of some bonds those between particles of different labels.
KERNEL void lattice_across(
    int n_clusters, int first_cluster, int n_offsets,
    const int *shift,           // (n_offsets,)
    const int *label,           // (n_padded,)
    const uint8 *some,          // (n_clusters, n_offsets)
    OUT uint8 *across)          // (n_clusters, n_offsets)
{
    FOR_EACH_CHUNKED(item, n_clusters, 64) {
        const int64 c = first_cluster + item;
        for (int64 byte = n_offsets * c; byte < n_offsets * (c + 1); ++byte) {
            const int bits = some[byte];
            int found = 0;
            for (int l = 0; bits && l < LANES; ++l) {
                const int64 here = LANES * c + l;
                if ((bits >> l & 1) && label[here] != label[here + shift[byte - n_offsets * c]])
                    found |= 1 << l;
            }
            across[byte] = (uint8)found;
        }
    }
}

// Cut the bonds of given bits and those between particles of different labels.
KERNEL void lattice_clear(
    int n_clusters, int first_cluster, int n_offsets,
    const int *shift,           // (n_offsets,)
    const int *label,           // (n_padded,)
    const uint8 *gone,          // (n_clusters, n_offsets)
    const int *edge_offset,     // (n_offsets,)
    const int *edge,            // (n_padded, 3)
    INOUT uint8 *live,          // (n_clusters, n_offsets)
    INOUT int64 *edge_step)     // (n_edges,) 0 where an edge was cut
{
    FOR_EACH_CHUNKED(item, n_clusters, 64) {
        const int64 c = first_cluster + item;
        for (int o = 0; o < n_offsets; ++o) {
            const int64 byte = n_offsets * c + o;
            int cut = live[byte] & gone[byte];
            for (int l = 0; l < LANES; ++l) {
                const int64 here = LANES * c + l;
                if ((live[byte] >> l & 1) && label[here] != label[here + shift[o]]) cut |= 1 << l;
            }
            if (!cut) continue;
            live[byte] = (uint8)(live[byte] & ~cut);
            for (int l = 0; l < LANES && edge_offset[o] >= 0; ++l)
                if (cut >> l & 1) edge_step[edge[3 * (LANES * c + l) + edge_offset[o]]] = 0;
        }
    }
}
