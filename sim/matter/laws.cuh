// The physical laws of the solver, without indexing. Symbols and papers: sim/bonds/simulate.py.
#include "device/device.cuh"

// ------------------------------------------------------------------ the law of a bond
// Layouts know bonds only by what stands here up to the next line: a law of another kind, or one
// with more constants, changes nothing but this part.

// The constants of a body's bonds, all float: each is the setting of that name, of its material or
// of the solver, or is made of them; one of several words is their number (laws.py).
struct BondLaw {
    float compression_strengthening;    // alpha of levine-2014 eq. 5
    float weak_factor;                  // strain limit of a weakened bond, relative
    float break_rule;                   // 0: the larger of its ends' limits counts, 1: the smaller
    float growth_share;                 // strain limit of a bond across a crack, relative; 1 for none
};

// A bond is across a crack where its ends have lost this share of all their bonds toward each other,
// in the mean. One of 122 neighbours is lost at 0.008; beside an open crack it is about 0.25.
#define CROSSING 0.02f
// and where that is a share of the wider of their gaps: beside a crack bonds lie along it.
#define ALONG 0.25f

// The law of a body; `law` holds one row a body.
DEVICE BondLaw bond_law(const float *law, int body) { return ((const BondLaw *)law)[body]; }

// A bond as it is now, one bond a lane. Lengths may be in any unit, as long as it is one.
struct Bond {
    lane_f y[3];    // current bond vector
    lane_f length;  // |y|
    lane_f pull;    // stretch / |y|
    lane_f stretch; // (|y| - |xi|) / |xi|, levine-2014 eq. 2
};

// |y|^2 - |xi|^2 of bonds with rest vectors xi whose ends' displacements differ by u; y is told.
DEVICE lane_f bond_growth(const lane_f *xi, const lane_f *u, lane_f *y)
{
    for (int k = 0; k < 3; ++k) y[k] = xi[k] + u[k];
    lane_f growth = u[0] * (xi[0] + y[0]);
    growth = lane_fma(u[1], xi[1] + y[1], growth);
    return lane_fma(u[2], xi[2] + y[2], growth);
}

// Fill in length, stretch and pull of bonds whose |y|^2 is `growth` above that at rest.
DEVICE void bond_stretch(
    Bond &bond, lane_f growth, lane_f rest2, lane_f rest, int live, bool all_live, lane_f zero)
{
    const lane_f length2 = rest2 + growth;
    bond.length = lane_sqrt(length2);
    bond.pull = growth / lane_fma(rest2, bond.length, rest * length2);
    if (!all_live) bond.pull = lane_select(lane_from_bits(live), bond.pull, zero);
    bond.stretch = bond.pull * bond.length;
}

// A bond from its rest vector xi, with |xi|^2 and |xi|, and the difference u of its ends'
// displacements. Lanes whose bit is not in `live` hold no bond and pull nothing; `all_live` spares
// the question. `zero` comes from outside the loop: a compiler that knows it to be 0 makes a
// longer way of the choice. |y|^2 - |xi|^2 = u . (xi + y) keeps the relative accuracy of small strains in
// float32; a bond whose ends moved alike has stretch exactly 0. Square root and division are
// those of IEEE 754, the same on every processor.
DEVICE Bond bond_now(
    const lane_f *xi, const lane_f *u, lane_f rest2, lane_f rest, int live, bool all_live,
    lane_f zero)
{
    Bond bond;
    const lane_f growth = bond_growth(xi, u, bond.y);
    bond_stretch(bond, growth, rest2, rest, live, all_live, zero);
    return bond;
}

// The same of a bond that is at rest at |xi| (1 + free): of matter under residual stress.
DEVICE Bond strained_bond_now(
    const lane_f *xi, const lane_f *u, lane_f rest2, lane_f rest, lane_f free, int live, lane_f zero)
{
    Bond bond;
    // |xi|^2 is above the square of the length at rest by -free (2 + free) |xi|^2.
    const lane_f excess = lane_fma(free, free, free + free) * rest2;
    const lane_f growth = bond_growth(xi, u, bond.y) - excess;
    bond_stretch(bond, growth, rest2 + excess, lane_fma(free, rest, rest), live, false, zero);
    return bond;
}

// Square of the length of a rest vector; the tiny term keeps a particle's lane with itself,
// which is no bond, away from 0.
DEVICE lane_f rest_squared(const lane_f *xi)
{
    return lane_fma(xi[2], xi[2], lane_fma(xi[1], xi[1], lane_fma(
        xi[0], xi[0], lane_splat(1e-10f))));
}

// Force that draws the ends together, over |y| and c V_i V_j: levine-2014 eq. 3.
DEVICE lane_f bond_force(const BondLaw &, const Bond &bond) { return bond.pull; }

// Energy, over |xi| c V_i V_j: the work of that force from rest to this stretch.
DEVICE lane_f bond_energy(const BondLaw &, const Bond &bond)
{
    return 0.5f * bond.stretch * bond.stretch;
}

// Stretch up to which no bond breaks. `least` is the smallest tau, below which strengthening
// takes none, and `is_weakened` whether there are weakened bonds.
DEVICE lane_f safe_stretch(const BondLaw &law, float least, bool is_weakened)
{
    return lane_splat(law.growth_share * (is_weakened ? law.weak_factor * least : least));
}

// Whether it matters which way particles have lost bonds.
DEVICE bool asks_for_cracks(const BondLaw &law) { return law.growth_share < 1.0f; }

// How far the ends of bonds have lost others toward each other, in the mean. `xi` goes from there to
// here, and a `gap` is the sum of the directions of the bonds that an end has lost, over the number
// it had. Deep in the matter an end has few bonds across the crack: the other one speaks for it.
DEVICE lane_f crossing(
    const lane_f *xi, lane_f rest, const lane_f *gap_here, const lane_f *gap_there)
{
    lane_f here = gap_here[0] * xi[0], there = gap_there[0] * xi[0];
    for (int k = 1; k < 3; ++k) {
        here = lane_fma(gap_here[k], xi[k], here);
        there = lane_fma(gap_there[k], xi[k], there);
    }
    lane_f size_here = gap_here[0] * gap_here[0], size_there = gap_there[0] * gap_there[0];
    for (int k = 1; k < 3; ++k) {
        size_here = lane_fma(gap_here[k], gap_here[k], size_here);
        size_there = lane_fma(gap_there[k], gap_there[k], size_there);
    }
    const lane_f toward = (there - here) * 0.5f / rest;
    const lane_f widest = lane_sqrt(lane_max(size_here, size_there));
    return lane_select(toward > widest * ALONG, toward, lane_splat(0.0f));
}

// Whether any of the bonds may break; hardly ever.
DEVICE bool bond_may_break(const Bond &bond, lane_f safe) { return lane_bits(bond.stretch > safe); }

// Break the bonds stretched beyond tau' of their ends (levine-2014, below eq. 3); return their bits.
// `across` is what crossing() says.
DEVICE int bond_break(
    const BondLaw &law, lane_f here, lane_f there, int weak, lane_f across, Bond &bond)
{
    lane_f limit = law.break_rule == 0.0f ? lane_max(here, there) : lane_min(here, there);
    limit = lane_select(lane_from_bits(weak), limit * law.weak_factor, limit);
    limit = lane_select(across > lane_splat(CROSSING), limit * law.growth_share, limit);
    const int torn = lane_bits(bond.stretch > limit);
    if (torn) {
        bond.pull = lane_select(lane_from_bits(torn), lane_splat(0.0f), bond.pull);
        bond.stretch = bond.pull * bond.length;
    }
    return torn;
}

// tau' of particles whose strain limit is `limit` and whose least stretched bond, if any is
// compressed, has the stretch `lowest` <= 0: levine-2014 eq. 5.
DEVICE lane_f strengthened(const BondLaw &law, lane_f limit, lane_f lowest)
{
    return limit - lowest * law.compression_strengthening;
}

// ------------------------------------------------------------------ other laws

// Share of a neighbour's volume that counts: falls from 1 to 1/2 over the last half length
// scale before the horizon. `edge` is the horizon + 1/2 in length scales, `per_scale` theirs.
DEVICE lane_f volume_share(const lane_f *xi, float edge, float per_scale)
{
    const lane_f share = lane_splat(edge) - lane_sqrt(rest_squared(xi)) * per_scale;
    return lane_max(lane_min(share, lane_splat(1.0f)), lane_splat(0.5f));
}

// Distance [m] below which particles without a bond repel each other: lambda/2, as levine-2014 eq. 6
// has it, where `within` is that. Irregular neighbours may rest closer: those are left alone.
DEVICE double contact_reach(double within, double rest) { return minimum(within, 0.9 * rest); }

// Quadratic repulsion [N] of two particles at distance d < reach, levine-2014 eq. 6.
DEVICE double contact_force(double stiffness, double distance, double reach)
{
    const double overlap = distance - reach;
    return stiffness * overlap * overlap;
}

// Coulomb friction over the speed of sliding [N s/m]: up to `limit` [N], and no more than `stopping`
// [N s/m], with which sliding ends.
DEVICE double friction_drag(double limit, double speed, double stopping)
{
    return limit < stopping * speed ? limit / speed : stopping;
}

// Distance [m] from its centre up to which a projectile acts, levine-2014 eq. 7.
DEVICE double projectile_reach(double radius) { return 1.5 * radius; }

// Magnitude of the projectile's body force [N/m^3] at distance d from its centre,
// levine-2014 eq. 7 with K_S in N/m^5: zero outside [3r/4, 3r/2], K_S r^2 at d = r.
DEVICE double projectile_force(double stiffness, double distance, double radius)
{
    const double inner = distance - 0.75 * radius;
    const double outer = distance - projectile_reach(radius);
    if (inner <= 0.0 || outer >= 0.0) return 0.0;
    const double cubed = cbrt(16.0 * inner * outer * outer);
    return stiffness * cubed * cubed;
}

// Acceleration [m/s^2] by a projectile of a particle at `away` from its centre; the direction
// is halfway between the flight and straight away from the centre.
DEVICE Vec3d projectile_acceleration(
    Vec3d away, Vec3d flight, double radius, double stiffness, double inverse_density)
{
    const double distance = norm(away);
    const double push = projectile_force(stiffness, distance, radius);
    if (push <= 0.0) return make_vec3d(0.0, 0.0, 0.0);
    const double speed = norm(flight);
    const Vec3d ahead = flight * (speed > 0.0 ? 1.0 / speed : 0.0);
    const Vec3d middle = ahead + away * (1.0 / distance);
    // Straight behind the ball the two directions cancel.
    const double size = norm(middle);
    return middle * (size > 1e-9 ? push * inverse_density / size : 0.0);
}

// Part of its speed that a particle keeps at the most in a bounce under pressure.
#define MOST_CHATTER 0.99

// A step toward a surface, ended above it: height [m], and speed away from it [m/s].
struct Rebound { double height, speed; };

// What becomes of a step that would end at `height` < 0 in a surface, with `speed` half a step
// before, under a steady `pull` [m/s^2] away from it: the flight turns where it meets the surface,
// or at its start where that was inside, and what would come back within a step rests. To turn
// the speed alone would let what is pressed down sink a little with every step, and lose its
// energy; to mirror the flight without the pull would give it some.
DEVICE Rebound rebound(double height, double speed, double pull, double dt, double restitution)
{
    const double start = height - speed * dt, above = maximum(start, 0.0);
    const double first = speed - 0.5 * pull * dt;
    const double fall = sqrt(maximum(first * first - 2.0 * pull * above, 0.0));
    // The time of the fall, by the one of two forms that cancels nothing.
    const double drop = first < 0.0 ? 2.0 * above / (fall - first)
                                    : (pull < 0.0 ? (first + fall) / -pull : 0.0);
    const double left = dt - minimum(maximum(drop, 0.0), dt);
    // What is pressed down chatters, and would gain energy at steps near the stable one.
    const bool is_pressed = -pull * dt > 1e-3 * fall;
    const double rise = (is_pressed ? minimum(restitution, MOST_CHATTER) : restitution) * fall;
    Rebound after;
    after.height = (rise + 0.5 * pull * left) * left;
    after.speed = rise + pull * left;
    if (2.0 * rise < -pull * dt) after.height = after.speed = 0.0;
    after.height += start - above;
    after.speed -= 0.5 * pull * dt;
    return after;
}

// Velocity of what leaves a surface of unit normal n at `speed`; the tangential impulse is at most
// `friction` times the normal one.
DEVICE Vec3d leave_surface(Vec3d velocity, Vec3d normal, double speed, double friction)
{
    const double approach = dot(velocity, normal);
    const Vec3d slide = velocity - normal * approach;
    const double size = norm(slide);
    const double kept =
        size > 0.0 ? maximum(0.0, 1.0 - friction * (speed - approach) / size) : 0.0;
    return slide * kept + normal * speed;
}

// Velocity after touching a surface of unit normal n, both relative to the surface: the normal part
// is reflected with `restitution`.
DEVICE Vec3d bounce(Vec3d velocity, Vec3d normal, double restitution, double friction)
{
    return leave_surface(velocity, normal, -restitution * dot(velocity, normal), friction);
}

// A rectangle: `across_u` and `across_v` are vectors whose products with a place on it, seen from
// its origin, run from 0 to 1 along its sides. All double.
struct Rectangle { Vec3d origin, normal, across_u, across_v; };

// Whether the line from a to b crosses a rectangle.
DEVICE bool crosses_rectangle(const Rectangle &rectangle, Vec3d a, Vec3d b)
{
    const double above_a = dot(a - rectangle.origin, rectangle.normal);
    const double above_b = dot(b - rectangle.origin, rectangle.normal);
    if ((above_a > 0.0) == (above_b > 0.0)) return false;
    const Vec3d at = a + (b - a) * (above_a / (above_a - above_b)) - rectangle.origin;
    const double u = dot(at, rectangle.across_u), v = dot(at, rectangle.across_v);
    return u >= 0.0 && u <= 1.0 && v >= 0.0 && v <= 1.0;
}

// Whether the line from a to b crosses a segment (start x, y, end x, y) of the plane.
DEVICE bool crosses(const float *segment, float ax, float ay, float bx, float by)
{
    const float dx = segment[2] - segment[0], dy = segment[3] - segment[1];
    ax -= segment[0];
    ay -= segment[1];
    bx -= segment[0];
    by -= segment[1];
    // The ends lie on either side of the segment's line, and its ends on either side of theirs.
    if ((dx * ay - dy * ax > 0.0f) == (dx * by - dy * bx > 0.0f)) return false;
    const float ex = bx - ax, ey = by - ay;
    const float start = ey * ax - ex * ay;
    return (start > 0.0f) != (start + ex * dy - ey * dx > 0.0f);
}
