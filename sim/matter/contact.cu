// Contact between particles without a live bond: candidates by a spatial hash, kept until a
// particle has moved. Why this is exact, and how a pair is counted once: contact.py.
#include "device/device.cuh"
#include "sim/matter/laws.cuh"
#include "sim/matter/layout.cuh"

struct Cell { int x, y, z; };

// How particles that touch slide on each other.
struct Sliding {
    double friction;                // 0 for none
    double stops;                   // [1/s]: rate at which friction ends sliding at the most
    const float *inverse_mass;      // (n_clusters, LANES) [1/kg]
    const double *velocity;         // (n_clusters, 3, LANES) [m/s]
};

DEVICE Cell cell_of(Vec3d x, double inverse_size)
{
    Cell cell;
    cell.x = (int)(int64)floor(x.x * inverse_size);
    cell.y = (int)(int64)floor(x.y * inverse_size);
    cell.z = (int)(int64)floor(x.z * inverse_size);
    return cell;
}
DEVICE uint32 cell_bucket(Cell cell, uint32 table_mask)
{
    return hash32((uint32)cell.x * 73856093u ^ (uint32)cell.y * 19349663u
                  ^ (uint32)cell.z * 83492791u) & table_mask;
}

// Empty the hash table.
KERNEL void contact_reset(
    int table_size,
    const int *flag,
    OUT int *head)              // (table_size,)
{
    if (flag[FLAG_HALT] || !flag[FLAG_REBUILD]) return;
    FOR_EACH_CHUNKED(h, table_size, 8192) {
        head[h] = -1;
    }
}

// Bring the noted place of the particles that moved up to date, and put every particle into
// the list of its cell's bucket. The order within a bucket depends on who came first (hence
// the atomic exchange); the collection sorts what it takes out.
KERNEL void contact_insert(
    int n_padded, double inverse_cell, double stale, uint32 table_mask, int steps_ahead,
    const int *flag,
    const int64 *step,
    const float *inverse_mass,  // (n_padded,) 0 for padding
    const double *position,     // (n_clusters, 3, LANES)
    INOUT int *head,            // (table_size,)
    INOUT double *noted,        // (n_clusters, 3, LANES) position when last collected
    INOUT int *stamp,           // (n_padded,) step of that
    OUT int *next)              // (n_padded,)
{
    if (flag[FLAG_HALT] || !flag[FLAG_REBUILD]) return;
    const bool all = flag[FLAG_REBUILD] == REBUILD_ALL;
    FOR_EACH(i, n_padded) {
        const Vec3d x = load_particle(position, i);
        Vec3d place = load_particle(noted, i);
        const Vec3d moved = x - place;
        if (all || dot(moved, moved) > stale * stale) {
            place = x;
            store_particle(noted, i, x);
            stamp[i] = (int)step[0] + steps_ahead;
        }
        if (inverse_mass[i] > 0.0f) {
            const uint32 bucket = cell_bucket(cell_of(place, inverse_cell), table_mask);
            next[i] = atomic_exchange_int(head + bucket, (int)i);
        }
    }
}

// Collect, in particle order, the particles noted within `reach` of each one that moved.
KERNEL void contact_collect(
    int n_padded, int capacity, double reach, double inverse_cell, uint32 table_mask,
    int steps_ahead,
    const int64 *step,
    const float *inverse_mass,  // (n_padded,)
    const double *noted,        // (n_clusters, 3, LANES)
    const int *stamp,           // (n_padded,)
    const int *head,            // (table_size,)
    const int *next,            // (n_padded,)
    INOUT int *flag,
    INOUT int *count,           // (n_padded,)
    INOUT int *candidate)       // (capacity, n_padded)
{
    if (flag[FLAG_HALT] || !flag[FLAG_REBUILD]) return;
    FOR_EACH(i, n_padded) {
        if (stamp[i] != (int)step[0] + steps_ahead || inverse_mass[i] <= 0.0f) continue;
        int found = 0;
        int *mine = candidate + i;
        const Vec3d x = load_particle(noted, i);
        const Cell home = cell_of(x, inverse_cell);
        for (int corner = 0; corner < 27; ++corner) {
            Cell cell = home;
            cell.x += corner % 3 - 1;
            cell.y += corner / 3 % 3 - 1;
            cell.z += corner / 9 - 1;
            for (int j = head[cell_bucket(cell, table_mask)]; j >= 0; j = next[j]) {
                const Vec3d other = load_particle(noted, j);
                const Vec3d apart = other - x;
                if (j == i || dot(apart, apart) >= reach * reach) continue;
                // Of two lists collected together, that of the lower number has the pair.
                if (j < i && stamp[j] == stamp[i]) continue;
                // Two cells may share a bucket: take a particle from its own cell only.
                const Cell its = cell_of(other, inverse_cell);
                if (its.x != cell.x || its.y != cell.y || its.z != cell.z) continue;
                if (found < capacity) {
                    int64 place = found * (int64)n_padded;
                    for (; place > 0 && mine[place - n_padded] > j; place -= n_padded)
                        mine[place] = mine[place - n_padded];
                    mine[place] = j;
                }
                ++found;
            }
        }
        if (found > capacity) {
            flag[FLAG_HALT] = HALT_CAPACITY;
            found = 0;
        }
        count[i] = found;
    }
}

// Repel the candidates without a live bond. Forces are summed as integers, whose sum does not
// depend on the order: that is what the atomic additions rely on.
KERNEL void contact_forces(
    int n_padded, double stiffness, double inverse_quantum,
    const int *flag,
    const int *count,           // (n_padded,)
    const int *candidate,       // (capacity, n_padded)
    const int64 *candidate_bit, // (capacity, n_padded) place of the bond's live bit, or -1
    const int *stamp,           // (n_padded,)
    const uint8 *live,          // live bits of all bonds
    const float *contact_radius,// (n_padded,) a quarter of lambda [m]
    const float *share,         // (n_padded,) of the stiffness; below 1 for splinters
    const double *rest_position,// (n_clusters, 3, LANES) [m]
    const double *position,     // (n_clusters, 3, LANES) [m]
    Sliding sliding,
    INOUT int *touched,         // (n_clusters,) whether a cluster's sums are to be read
    INOUT int64 *contact)       // (n_clusters, 3, LANES) force [quantum]
{
    if (flag[FLAG_HALT]) return;
    FOR_EACH_CHUNKED(i, n_padded, 2048) {
        for (int64 k = i; k < i + count[i] * (int64)n_padded; k += n_padded) {
            const int64 j = candidate[k];
            const int64 bit = candidate_bit[k];
            if (bit >= 0 && (live[bit / 8] >> bit % 8 & 1)) continue;
            // The pair belongs to the list that was collected last.
            if (stamp[i] < stamp[j]) continue;
            const Vec3d apart = load_particle(position, i) - load_particle(position, j);
            const double within = (double)contact_radius[i] + (double)contact_radius[j];
            const double distance2 = dot(apart, apart);
            if (distance2 >= within * within) continue;
            const double rest = norm(
                load_particle(rest_position, i) - load_particle(rest_position, j));
            const double reach = contact_reach(within, rest);
            const double distance = sqrt(distance2);
            if (distance >= reach || distance <= 0.0) continue;
            const double part = minimum((double)share[i], (double)share[j]);
            const double push = part * contact_force(stiffness, distance, reach) / distance;
            double along[3] = {push * apart.x, push * apart.y, push * apart.z};
            if (sliding.friction > 0.0) {
                // Coulomb friction, against what slides across the line between the two.
                const Vec3d speed =
                    load_particle(sliding.velocity, i) - load_particle(sliding.velocity, j);
                const Vec3d slide = speed - apart * (dot(speed, apart) / distance2);
                const double inverse =
                    (double)sliding.inverse_mass[i] + (double)sliding.inverse_mass[j];
                const double drag = friction_drag(
                    sliding.friction * push * distance, norm(slide), sliding.stops / inverse);
                along[0] -= drag * slide.x;
                along[1] -= drag * slide.y;
                along[2] -= drag * slide.z;
            }
            for (int axis = 0; axis < 3; ++axis) {
                const int64 force = (int64)rint(along[axis] * inverse_quantum);
                atomic_add_int64(contact + component(i, axis), force);
                atomic_add_int64(contact + component(j, axis), -force);
            }
            touched[i / LANES] = 1;
            touched[j / LANES] = 1;
        }
    }
}
