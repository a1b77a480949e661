// Cut plane outlines, bounded by loops of edges, into convex polygons.
//
// All arrays are room given by the caller; an outline of E edges needs E places for loops and 2 E
// for a ring. Corners are places in the list of loop vertices, with coordinates u and v.
#include "device/device.cuh"

struct Outline {
    int n;                        // loop vertices
    double tolerance;             // an area below it is nothing
    const int *id;                // (n,): equal for vertices at one place
    const double *u, *v;          // (n,)
    int *ring;                    // (2 n,)
    int ring_length;
    int *corner;                  // corners of the polygons, one after the other
    int *length;                  // corners of each polygon
    int n_corners, n_polygons, most_corners, most_polygons;
};

// Twice the area of the triangle a, b, c; above 0 where it is anticlockwise.
DEVICE double turn(const Outline *r, int a, int b, int c)
{
    return (r->u[b] - r->u[a]) * (r->v[c] - r->v[a]) - (r->v[b] - r->v[a]) * (r->u[c] - r->u[a]);
}

// Whether a vertex of the ring is in the triangle a, b, c, other than at its corners.
DEVICE bool holds_a_vertex(const Outline *r, int a, int b, int c)
{
    for (int k = 0; k < r->ring_length; ++k) {
        const int w = r->ring[k];
        if (r->id[w] == r->id[a] || r->id[w] == r->id[b] || r->id[w] == r->id[c]) continue;
        if (turn(r, a, b, w) > -r->tolerance && turn(r, b, c, w) > -r->tolerance
            && turn(r, c, a, w) > -r->tolerance) return true;
    }
    return false;
}

// Take `count` vertices of the ring from place i on as a polygon; its inner ones leave the ring.
DEVICE void take_polygon(Outline *r, int i, int count)
{
    if (r->n_polygons < r->most_polygons && r->n_corners + count <= r->most_corners) {
        for (int k = 0; k < count; ++k)
            r->corner[r->n_corners++] = r->ring[(i + k) % r->ring_length];
        r->length[r->n_polygons++] = count;
    }
    const int m = r->ring_length;
    // Keep from the last vertex of the polygon on, around to its first.
    int removed = count - 2;
    if (i + count - 1 < m) {
        for (int k = i + count - 1; k < m; ++k) r->ring[k - removed] = r->ring[k];
    } else {
        const int last = (i + count - 1) % m;
        for (int k = last; k <= i; ++k) r->ring[k - last] = r->ring[k];
        r->ring_length = i - last + 1;
        return;
    }
    r->ring_length = m - removed;
}

DEVICE bool ring_is_convex(const Outline *r)
{
    const int m = r->ring_length;
    for (int k = 0; k < m; ++k)
        if (turn(r, r->ring[k], r->ring[(k + 1) % m], r->ring[(k + 2) % m]) < -r->tolerance)
            return false;
    return true;
}

// How many vertices from place i on make a convex polygon that holds no others; 0 for none.
DEVICE int convex_run(const Outline *r, int i)
{
    const int m = r->ring_length;
    const int first = r->ring[i], second = r->ring[(i + 1) % m];
    int last = r->ring[(i + 2) % m];
    if (turn(r, first, second, last) <= r->tolerance || holds_a_vertex(r, first, second, last))
        return 0;
    int count = 3, before = second;
    while (count < m) {
        const int next = r->ring[(i + count) % m];
        if (turn(r, before, last, next) < -r->tolerance
            || turn(r, last, next, first) < -r->tolerance
            || turn(r, next, first, second) < -r->tolerance
            || holds_a_vertex(r, first, last, next)) break;
        before = last;
        last = next;
        ++count;
    }
    return count;
}

// Cut the ring into convex polygons.
DEVICE void cut_ring(Outline *r)
{
    int i = 0;
    while (r->ring_length >= 3) {
        const int m = r->ring_length;
        if (m == 3 || ring_is_convex(r)) {
            take_polygon(r, 0, m);
            return;
        }
        int tried = 0, count = 0;
        for (; tried < m && count == 0; ++tried) {
            i = i + 1 >= m ? 0 : i + 1;
            count = convex_run(r, i);
        }
        // Where rounding leaves no good polygon, any corner will do: it is as thin as rounding is.
        for (tried = 0; tried < m && count == 0; ++tried)
            if (turn(r, r->ring[tried], r->ring[(tried + 1) % m], r->ring[(tried + 2) % m]) > 0.0) {
                i = tried;
                count = 3;
            }
        if (count == 0) {
            i = 0;
            count = 3;
        }
        take_polygon(r, i, count);
        if (i >= r->ring_length) i = 0;
    }
}

// Whether the segments a b and c d cross, not counting common ends.
DEVICE bool segments_cross(const Outline *r, int a, int b, int c, int d)
{
    if (r->id[a] == r->id[c] || r->id[a] == r->id[d] || r->id[b] == r->id[c]
        || r->id[b] == r->id[d]) return false;
    return (turn(r, a, b, c) > 0.0) != (turn(r, a, b, d) > 0.0)
        && (turn(r, c, d, a) > 0.0) != (turn(r, c, d, b) > 0.0);
}

// Join a hole, the vertices from `first` to `end` - 1, to the ring by a bridge.
DEVICE void join_hole(Outline *r, int first, int end)
{
    int from = first;
    for (int k = first; k < end; ++k)
        if (r->u[k] > r->u[from]) from = k;
    int best = -1;
    double best2 = 0.0;
    // The nearest vertex of the ring that is seen from the hole; else the nearest.
    for (int blind = 0; blind < 2 && best < 0; ++blind)
        for (int k = 0; k < r->ring_length; ++k) {
            const int w = r->ring[k];
            const double du = r->u[w] - r->u[from], dv = r->v[w] - r->v[from];
            const double square = du * du + dv * dv;
            if (best >= 0 && square >= best2) continue;
            bool seen = true;
            for (int l = 0; l < r->ring_length && seen && !blind; ++l)
                seen = !segments_cross(r, from, w, r->ring[l], r->ring[(l + 1) % r->ring_length]);
            // The bridge must leave the ring's vertex to the inside of its corner.
            if (seen && !blind) {
                const int p = r->ring[k == 0 ? r->ring_length - 1 : k - 1];
                const int n = r->ring[(k + 1) % r->ring_length];
                const bool left = turn(r, w, n, from) > 0.0, right = turn(r, p, w, from) > 0.0;
                seen = turn(r, p, w, n) >= 0.0 ? left && right : left || right;
            }
            if (seen) {
                best = k;
                best2 = square;
            }
        }
    const int added = end - first + 2;
    for (int k = r->ring_length - 1; k > best; --k) r->ring[k + added] = r->ring[k];
    int place = best + 1;
    for (int k = from; k < end; ++k) r->ring[place++] = k;
    for (int k = first; k <= from; ++k) r->ring[place++] = k;
    r->ring[place] = r->ring[best];
    r->ring_length += added;
}

DEVICE double loop_area(const Outline *r, int first, int end)
{
    double area = 0.0;
    for (int k = first + 1; k + 1 < end; ++k) area += turn(r, first, k, k + 1);
    return area;
}

// Whether vertex w is in the loop from `first` to `end` - 1.
DEVICE bool loop_holds(const Outline *r, int first, int end, int w)
{
    bool inside = false;
    for (int k = first, l = end - 1; k < end; l = k++) {
        if ((r->v[k] <= r->v[w]) == (r->v[l] <= r->v[w])) continue;
        const double at = r->u[l]
            + (r->u[k] - r->u[l]) * ((r->v[w] - r->v[l]) / (r->v[k] - r->v[l]));
        if (at > r->u[w]) inside = !inside;
    }
    return inside;
}

// Cut the outline of all loops into convex polygons. Loop l is the vertices from loop[l] to
// loop[l + 1] - 1, anticlockwise around what is inside, clockwise around a hole.
DEVICE void cut_outline(Outline *r, int n_loops, const int *loop, int *outer_of)
{
    for (int l = 0; l < n_loops; ++l)
        outer_of[l] = loop_area(r, loop[l], loop[l + 1]) < 0.0 ? -1 : l;
    // A hole belongs to the smallest loop around it.
    for (int l = 0; l < n_loops; ++l) {
        if (outer_of[l] >= 0) continue;
        double least = 1e300;
        for (int m = 0; m < n_loops; ++m) {
            const double area = loop_area(r, loop[m], loop[m + 1]);
            if (area <= 0.0 || area >= least || !loop_holds(r, loop[m], loop[m + 1], loop[l]))
                continue;
            least = area;
            outer_of[l] = -2 - m;
        }
    }
    for (int l = 0; l < n_loops; ++l) {
        if (outer_of[l] < -1) continue;
        r->ring_length = 0;
        for (int k = loop[l]; k < loop[l + 1]; ++k) r->ring[r->ring_length++] = k;
        if (outer_of[l] == -1) {
            // A hole in nothing, where a surface crosses itself: keep it as it is.
            take_polygon(r, 0, r->ring_length);
            continue;
        }
        for (int m = 0; m < n_loops; ++m)
            if (outer_of[m] == -2 - l) join_hole(r, loop[m], loop[m + 1]);
        cut_ring(r);
    }
}
