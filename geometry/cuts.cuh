// How a triangle of a closed mesh is cut by a line along z.
//
// How often a triangle winds around the line is the sum of the crossings of its three directed
// edges with the ray from the line toward +x. An edge is measured from its lower vertex number
// on, so both triangles beside it add and subtract the same: over a closed mesh the cuts of a
// line cancel exactly, whatever the rounding.
#include "device/device.cuh"

// How the directed edge a -> b crosses the ray from (x, y) toward +x: 1 upward, -1 downward.
DEVICE int edge_crossing(const double *vertex, int a, int b, double x, double y)
{
    const int low = minimum(a, b), high = maximum(a, b);
    const double ax = vertex[3 * (int64)low], ay = vertex[3 * (int64)low + 1];
    const double bx = vertex[3 * (int64)high], by = vertex[3 * (int64)high + 1];
    if ((ay <= y) == (by <= y)) return 0;
    const double side = (bx - ax) * (y - ay) - (by - ay) * (x - ax);
    const bool up = by > ay;
    if ((side > 0.0) != up) return 0;
    return up == (a == low) ? 1 : -1;
}

// Turns of the triangle around the column at (x, y): 1 where its normal points to +z.
DEVICE int triangle_turns(const double *vertex, int a, int b, int c, double x, double y)
{
    return edge_crossing(vertex, a, b, x, y) + edge_crossing(vertex, b, c, x, y)
         + edge_crossing(vertex, c, a, x, y);
}

// Height at which the plane of the triangle meets the column, within the triangle's own.
DEVICE double column_height(const double *vertex, int a, int b, int c, double x, double y)
{
    const Vec3d p = load_vec3d(vertex, a), q = load_vec3d(vertex, b), r = load_vec3d(vertex, c);
    const double low = minimum(p.z, minimum(q.z, r.z)), high = maximum(p.z, maximum(q.z, r.z));
    const double qx = q.x - p.x, qy = q.y - p.y, rx = r.x - p.x, ry = r.y - p.y;
    const double area = qx * ry - qy * rx;
    const double u = ((x - p.x) * ry - (y - p.y) * rx) / area;
    const double v = (qx * (y - p.y) - qy * (x - p.x)) / area;
    const double z = p.z + u * (q.z - p.z) + v * (r.z - p.z);
    // A triangle on edge has no area; NaN compares as false.
    return z >= low ? (z <= high ? z : high) : low;
}
