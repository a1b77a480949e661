// Spread points evenly over the layers of a shell; driven by layers.py, which has the law.
#include "device/device.cuh"

#define HALF_PI_D 1.57079632679489662

struct Cell { int x, y, z; };

DEVICE Cell cell_of(Vec3d p, double edge)
{
    Cell c;
    c.x = (int)floor(p.x / edge);
    c.y = (int)floor(p.y / edge);
    c.z = (int)floor(p.z / edge);
    return c;
}

// Cells of one block of 8 x 8 x 8 have buckets next to each other, blocks stand anywhere.
DEVICE uint32 bucket_of(Cell c, int layer, uint32 mask)
{
    const uint32 block = hash32((uint32)layer, (uint32)(c.x >> 3), (uint32)(c.y >> 3),
                                (uint32)(c.z >> 3));
    const uint32 within = (uint32)((c.x & 7) * 64 + (c.y & 7) * 8 + (c.z & 7));
    return ((block << 9) | within) & mask;
}

// Whether two points are on two sides of a wall or a gap; without a normal they are not.
DEVICE bool are_opposite(Vec3d a, Vec3d b) { return dot(a, b) < -0.3; }

// Sort keys: the bucket of each point's cell above its number.
KERNEL void bucket_points(
    int n, int n_buckets, double edge,
    const double *point,          // (n, 3)
    const int *layer,             // (n,)
    OUT int64 *key)               // (n,)
{
    FOR_EACH(i, n) {
        const Cell c = cell_of(load_vec3d(point, i), edge);
        key[i] = ((int64)bucket_of(c, layer[i], (uint32)n_buckets - 1) << 32) | i;
    }
}

// Decide which points stay so that no two of a layer are nearer than `edge`: the first in rank
// among its undecided neighbours stays, the neighbours of one that stays go.
KERNEL void thin_points(
    int n_undecided, int n_buckets, int is_first_round, double edge,
    const int *undecided,         // (n_undecided,)
    const double *point,          // (n, 3), in the order of the buckets
    const double *normal,         // (n, 3)
    const int *layer,             // (n,)
    const int *start,             // (n_buckets + 1,)
    const int64 *rank,            // (n,): all different, the lowest goes first
    const uint8 *state,           // (n,): 0 undecided, 1 stays, 2 goes
    INOUT uint8 *next)            // (n,): the state after this round
{
    FOR_EACH(u, n_undecided) {
        const int i = undecided[u];
        const Vec3d p = load_vec3d(point, i);
        const Vec3d up = load_vec3d(normal, i);
        const Cell own = cell_of(p, edge);
        bool goes = false, is_first = true;
        // In the first round none stays yet: one of lower rank is enough to know.
        for (int neighbor = 0; neighbor < 27 && !goes; ++neighbor) {
            if (is_first_round && !is_first) break;
            Cell c = own;
            c.x += (neighbor + 1) % 3 - 1;
            c.y += (neighbor / 3 + 1) % 3 - 1;
            c.z += (neighbor / 9 + 1) % 3 - 1;
            const uint32 bucket = bucket_of(c, layer[i], (uint32)n_buckets - 1);
            for (int j = start[bucket]; j < start[bucket + 1]; ++j) {
                if (j == i || layer[j] != layer[i] || state[j] == 2) continue;
                const Vec3d apart = p - load_vec3d(point, j);
                if (dot(apart, apart) >= edge * edge) continue;
                if (are_opposite(up, load_vec3d(normal, j))) continue;
                if (state[j] == 1) goes = true;
                else if (rank[j] < rank[i]) is_first = false;
            }
        }
        next[i] = (uint8)(goes ? 2 : is_first ? 1 : 0);
    }
}

// One step down the energy of Meyer et al., each point by the curvature of its own energy.
KERNEL void spread_points(
    int n, int n_buckets, double edge, double most, double rate,
    const double *point,          // (n, 3), in the order of the buckets
    const double *normal,         // (n, 3)
    const int *layer,             // (n,)
    const int *start,             // (n_buckets + 1,)
    const uint8 *fixed,           // (n,)
    OUT double *moved)            // (n, 3)
{
    FOR_EACH(i, n) {
        const Vec3d p = load_vec3d(point, i);
        const Vec3d up = load_vec3d(normal, i);
        const Cell own = cell_of(p, edge);
        Vec3d push = make_vec3d(0.0, 0.0, 0.0);
        double bend = 0.0;
        for (int neighbor = 0; neighbor < 27 && !fixed[i]; ++neighbor) {
            Cell c = own;
            c.x += neighbor % 3 - 1;
            c.y += neighbor / 3 % 3 - 1;
            c.z += neighbor / 9 - 1;
            const uint32 bucket = bucket_of(c, layer[i], (uint32)n_buckets - 1);
            for (int j = start[bucket]; j < start[bucket + 1]; ++j) {
                if (j == i || layer[j] != layer[i]) continue;
                const Vec3d q = load_vec3d(point, j);
                const Vec3d apart = p - q;
                const double far2 = dot(apart, apart);
                if (far2 >= edge * edge) continue;
                if (are_opposite(up, load_vec3d(normal, j))) continue;
                // Cells that share a bucket must not be seen twice.
                const Cell other = cell_of(q, edge);
                if (other.x != c.x || other.y != c.y || other.z != c.z) continue;
                const double far = sqrt(maximum(far2, 1e-6 * edge * edge));
                const double x = HALF_PI_D * far / edge;
                const double sine = sin(x), cotangent = cos(x) / sine;
                push = push + apart * (cotangent * cotangent / far);
                bend += cotangent / (sine * sine);
            }
        }
        Vec3d step = push * (bend > 0.0 ? rate * edge / (HALF_PI_D * bend) : 0.0);
        const double length = norm(step);
        if (length > most) step = step * (most / length);
        store_vec3d(moved, i, p + step);
    }
}

// Put points at the depth of their layers, away from the nearest point of the surface.
KERNEL void land_points(
    int n, double spacing,
    const int *layer,             // (n,)
    const double *nearest,        // (n, 3)
    const uint8 *fixed,           // (n,)
    INOUT double *point)          // (n, 3)
{
    FOR_EACH(i, n) {
        if (fixed[i]) continue;
        const Vec3d foot = load_vec3d(nearest, i);
        const Vec3d way = load_vec3d(point, i) - foot;
        const double length = norm(way);
        store_vec3d(point, i, foot + way * (length > 0.0 ? spacing * layer[i] / length : 0.0));
    }
}
