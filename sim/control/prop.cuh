// What a prop is, where it is, and its surface. Written by prop.py.
#include "device/device.cuh"

// The constants of a prop, all double.
struct Prop {
    double inverse_mass;            // [1/kg], 0 where nothing moves it
    Vec3d inverse_x, inverse_y, inverse_z;  // rows of the inverse inertia at rest [1/(kg m^2)]
    double falls;                   // 1 where gravity acts on it, else 0
    double restitution, friction;
    double radius;                  // of a ball [m], 0 for hulls
    double bound;                   // radius of a ball around it [m]
    double first_hull, end_hull;    // of those that it is the union of
    double quantum;                 // unit of the sum of impulses [N s]
    double moment_quantum;          // of the sum of their moments [N m s]
};

// How a prop moves, all double.
struct PropMotion {
    Vec3d center, velocity;         // [m], [m/s]
    Vec3d spin, turning;            // angular velocity [1/s] and angular momentum [N m s]
    Vec3d axis_x, axis_y, axis_z;   // where its axes at rest point now
};

// What a step adds up for a prop: as integers, whose sums do not depend on their order.
#define SUM_TOUCHES 0
#define SUM_IMPULSE 1               // three components [quantum]
#define SUM_MOMENT 4                // [moment_quantum]
#define SUM_WORDS 7

struct Props {
    int count;
    const double *prop;             // (count,) rows of Prop
    const int *plane_start;         // (n_hulls + 1,)
    const double *plane;            // (n_planes, 4) normal and distance from the centre, at rest
    const double *hull_ball;        // (n_hulls, 4) centre and radius of a ball around it, at rest
    INOUT double *motion;           // (count,) rows of PropMotion
    INOUT int64 *sum;               // (count, SUM_WORDS)
};

DEVICE Vec3d cross(Vec3d a, Vec3d b)
{
    return make_vec3d(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
// A vector of the world along the axes of a prop, and back.
DEVICE Vec3d to_prop(const PropMotion &motion, Vec3d v)
{
    return make_vec3d(dot(v, motion.axis_x), dot(v, motion.axis_y), dot(v, motion.axis_z));
}
DEVICE Vec3d from_prop(const PropMotion &motion, Vec3d v)
{
    return motion.axis_x * v.x + motion.axis_y * v.y + motion.axis_z * v.z;
}
// The angular velocity that an angular momentum makes.
DEVICE Vec3d spun(const Prop &prop, const PropMotion &motion, Vec3d turning)
{
    const Vec3d own = to_prop(motion, turning);
    return from_prop(motion, make_vec3d(
        dot(prop.inverse_x, own), dot(prop.inverse_y, own), dot(prop.inverse_z, own)));
}
// Velocity of what is `arm` from the centre and moves with the prop.
DEVICE Vec3d carried_along(const PropMotion &motion, Vec3d arm)
{
    return motion.velocity + cross(motion.spin, arm);
}

// How an element meets a prop: the normal out of it, and the height of its surface above.
struct Meeting { Vec3d normal; double height; };

// The hulls that are near a cluster, ascending, as list_hulls found them: `near` is their number
// and then themselves, or below 0 where all have to be looked at.
#define ALL_NEAR -1
#define NEVER_LOOKED -2
#define MOST_NEAR 23
#define NEAR_WORDS (MOST_NEAR + 1)

// An element reaches as far along a normal as the ways `edge` to three of its faces go. Of hulls
// the nearest counts, of a hull the face that the element is highest above; those it is above of
// do not count at all.
DEVICE Meeting meet_prop(
    const Prop &prop, const PropMotion &motion, const Props &props, const int *near,
    const double *edge, Vec3d arm)
{
    Meeting meeting;
    if (prop.radius > 0.0) {
        const double distance = norm(arm);
        meeting.normal = distance > 0.0 ? arm * (1.0 / distance) : make_vec3d(0.0, 1.0, 0.0);
        meeting.height = distance - prop.radius;
        for (int k = 0; k < 3; ++k)
            meeting.height -= fabs(dot(load_vec3d(edge, k), meeting.normal));
        return meeting;
    }
    const Vec3d own = to_prop(motion, arm);
    const Vec3d edge_x = to_prop(motion, load_vec3d(edge, 0));
    const Vec3d edge_y = to_prop(motion, load_vec3d(edge, 1));
    const Vec3d edge_z = to_prop(motion, load_vec3d(edge, 2));
    Vec3d nearest = make_vec3d(0.0, 1.0, 0.0);
    meeting.height = 0.0;
    const int first = (int)prop.first_hull, end = (int)prop.end_hull;
    const int count = near[0] < 0 ? end - first : near[0];
    for (int k = 0; k < count; ++k) {
        const int h = near[0] < 0 ? first + k : near[1 + k];
        if (h < first || h >= end) continue;
        double above = -INFINITY_F;
        Vec3d face = nearest;
        for (int p = props.plane_start[h]; p < props.plane_start[h + 1]; ++p) {
            const double *plane = props.plane + 4 * (int64)p;
            const Vec3d normal = load_vec3d(plane, 0);
            const double height = dot(normal, own) - plane[3]
                - fabs(dot(edge_x, normal)) - fabs(dot(edge_y, normal))
                - fabs(dot(edge_z, normal));
            if (height > above) {
                above = height;
                face = normal;
            }
            if (above >= meeting.height) break;
        }
        if (above < meeting.height) {
            meeting.height = above;
            nearest = face;
        }
    }
    meeting.normal = from_prop(motion, nearest);
    return meeting;
}
