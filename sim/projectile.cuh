// What a ball is: its constants, one row of BALL_WORDS doubles. Written by projectile.py.
#include "device/device.cuh"

#define BALL_WORDS 11
#define BALL_START 0            // centre at t = 0 (3) [m]
#define BALL_FLIGHT 3           // velocity at t = 0 (3) [m/s]
#define BALL_RADIUS 6           // r [m]
#define BALL_STIFFNESS 7        // K_S [N/m^5]
#define BALL_INVERSE_MASS 8     // [1/kg], 0 for a ball that nothing slows
#define BALL_FALLS 9            // 1 where gravity acts on it, else 0
#define BALL_QUANTUM 10         // unit of the reaction's sum [N]
