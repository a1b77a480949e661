// What a ball is. Written by projectile.py.
#include "device/device.cuh"

// The constants of a ball, all double.
struct Ball {
    Vec3d start;            // centre at t = 0 [m]
    Vec3d flight;           // velocity at t = 0 [m/s]
    double radius;          // r [m]
    double stiffness;       // K_S [N/m^5]
    double inverse_mass;    // [1/kg], 0 for a ball that nothing slows
    double falls;           // 1 where gravity acts on it, else 0
    double quantum;         // unit of the reaction's sum [N]
};
DEVICE Ball ball_of(const double *ball, int64 q) { return ((const Ball *)ball)[q]; }

// The balls as particles meet them.
struct Balls {
    int count;
    const double *ball;             // (count,) rows of Ball
    const double *position;         // (count, 3) [m]
    const double *velocity;         // (count, 3) [m/s]
    INOUT int64 *force;             // (count, 3) reaction on those with a mass [quantum]
};
