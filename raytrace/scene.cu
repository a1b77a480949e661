// Fill the table of what the slots of the tree hold; driven by scene.py.
#include "device/device.cuh"
#include "raytrace/scene.cuh"

// The slot of each triangle.
KERNEL void triangle_slots(
    int n,
    const int *slot_triangle,     // (n,): -1 for an empty lane
    OUT int *slot_of)             // (triangles,)
{
    FOR_EACH(i, n) {
        if (slot_triangle[i] >= 0) slot_of[slot_triangle[i]] = (int)i;
    }
}

// Whether the mesh gave a corner a normal or a place in its texture.
DEVICE bool is_dressed(const float *normal, const float *uv, int64 corner)
{
    const float *n = normal + 3 * corner;
    return n[0] != 0.0f || n[1] != 0.0f || n[2] != 0.0f || uv[2 * corner] != 0.0f
           || uv[2 * corner + 1] != 0.0f;
}

KERNEL void slot_tags(
    int n,
    const int *slot_triangle,     // (n,)
    const int *slot_of,           // (triangles,)
    const int *triangle_face,     // (triangles,)
    const int *triangle_piece,    // (triangles,)
    const int *first,             // (faces,): first triangle of each face
    const int *owner,             // (faces,): element
    const int *twin,              // (faces,): its copy on the other piece, or -1
    const int *dress,             // (faces,): first of its corners on the surface, or -1
    const float *normal,          // (cs, 3): of corners on the surface
    const float *uv,              // (cs, 2)
    const int *piece_id,          // (pieces,): ids
    const int *body,              // (elements,)
    OUT int *tag)                 // (n, 8)
{
    FOR_EACH(i, n) {
        int *own = tag + TAG_INTS * i;
        for (int k = 0; k < TAG_INTS; ++k) own[k] = -1;
        const int triangle = slot_triangle[i];
        if (triangle < 0) continue;
        const int face = triangle_face[triangle], number = triangle - first[face];
        const bool is_fracture = twin[face] >= 0;
        own[TAG_PIECE] = triangle_piece[triangle];
        own[TAG_PIECE_ID] = piece_id[own[TAG_PIECE]];
        own[TAG_ELEMENT] = owner[face];
        own[TAG_MATERIAL] = FIXED_MATERIALS + 2 * body[owner[face]] + (is_fracture ? 1 : 0);
        if (is_fracture) own[TAG_PARTNER] = slot_of[first[twin[face]] + number];
        own[TAG_TRIANGLE] = triangle;
        if (dress[face] < 0) continue;
        const int apex = dress[face], next = apex + number + 1;
        if (is_dressed(normal, uv, apex) || is_dressed(normal, uv, next)
            || is_dressed(normal, uv, next + 1)) {
            own[TAG_APEX] = apex;
            own[TAG_NEXT] = next;
        }
    }
}
