// Turn faces into fans of triangles at the places of their pieces; driven by visible.py.
#include "device/device.cuh"

// A corner moved by its piece, relative to an origin. Every face computes a corner that it shares
// with others by this one function, so that they meet exactly.
DEVICE Vec3 moved_corner(const double *corner, const double *rotation, const double *translation,
                         const double *origin)
{
    float moved[3];
    for (int axis = 0; axis < 3; ++axis) {
        const double *row = rotation + 3 * axis;
        moved[axis] = (float)(row[0] * corner[0] + row[1] * corner[1] + row[2] * corner[2]
                              + translation[axis] - origin[axis]);
    }
    return make_vec3(moved[0], moved[1], moved[2]);
}

KERNEL void fan_faces(
    int n,
    const double *origin,         // (3,) [m]
    const int64 *start,           // (n,): first corner of each face
    const int *count,             // (n,): its corners
    const int *first,             // (n,): its first triangle
    const int *piece,             // (n,)
    const int *reverse,           // (n,): 1 where its corners must be turned around
    const int *corner,            // (c,): vertices of all faces
    const double *vertex,         // (v, 3) [m]: at rest
    const double *rotation,       // (pieces, 3, 3)
    const double *translation,    // (pieces, 3) [m]
    OUT float *triangle,          // (t, 3, 3) [m]
    OUT int *triangle_piece,      // (t,)
    OUT int *triangle_face)       // (t,)
{
    FOR_EACH(i, n) {
        const double *turn = rotation + 9 * (int64)piece[i];
        const double *shift = translation + 3 * (int64)piece[i];
        const int *own = corner + start[i];
        Vec3 apex = make_vec3(0.0f, 0.0f, 0.0f), last = apex;
        for (int c = 0; c < count[i]; ++c) {
            const Vec3 next = moved_corner(vertex + 3 * (int64)own[c], turn, shift, origin);
            if (c == 0) apex = next;
            if (c >= 2) {
                const int64 t = first[i] + c - 2;
                store_vec3(triangle, 3 * t, apex);
                store_vec3(triangle, 3 * t + 1, reverse[i] ? next : last);
                store_vec3(triangle, 3 * t + 2, reverse[i] ? last : next);
                triangle_piece[t] = piece[i];
                triangle_face[t] = (int)i;
            }
            last = next;
        }
    }
}
