// float64 functions to within an ulp, from fused multiplications: for bodies of at_level from AVX2 on.
// Invariant: no branches, so that loops become vectors. Sums of two numbers (hi, lo) are only made by exact steps.
#pragma once
#include "math_core.h"

namespace mt {

constexpr double PI_HI = 3.14159265358979311600e+00, PI_LO = 1.22464679914735317720e-16;

// atan(y / x) for x, y >= 0, neither both 0 nor so large or small that a product of two is not finite. The quotient is
// turned by the nearest of five angles before it is rounded.
MT_INLINE double atan_quotient(double y, double x) {
    struct Angle {
        double above, below, hi, lo;
    };
    const Angle angles[4] = {{y, x, 0.0, 0.0},
                             {2 * y - x, 2 * x + y, 4.63647609000806093515e-01, 2.26987774529616870924e-17},
                             {y - x, x + y, 7.85398163397448278999e-01, 3.06161699786838301793e-17},
                             {y - 1.5 * x, x + 1.5 * y, 9.82793723247329054082e-01, 1.39033110312309984516e-17}};
    double above = -x, below = y, hi = 1.57079632679489655800e+00, lo = 6.12323399573676603587e-17;
    auto choose = [&](double sixteenths, const Angle& angle) __attribute__((always_inline)) {
        const bool near = 16 * y < sixteenths * x;
        above = near ? angle.above : above;
        below = near ? angle.below : below;
        hi = near ? angle.hi : hi;
        lo = near ? angle.lo : lo;
    };
    choose(39, angles[3]);
    choose(19, angles[2]);
    choose(11, angles[1]);
    choose(7, angles[0]);
    const double t = above / below, z = t * t, w = z * z;
    const double even = z * (3.33333333333329318027e-01 +
                             w * (1.42857142725034663711e-01 +
                                  w * (9.09088713343650656196e-02 +
                                       w * (6.66107313738753120669e-02 +
                                            w * (4.97687799461593236017e-02 + w * 1.62858201153657823623e-02)))));
    const double odd =
        w *
        (-1.99999999998764832476e-01 +
         w * (-1.11111104054623557880e-01 +
              w * (-7.69187620504482999495e-02 + w * (-5.83357013379057348645e-02 + w * -3.65315727442169155270e-02))));
    return hi - ((t * (even + odd) - lo) - t);
}
MT_INLINE double atan_wide(double x) {
    const double ax = std::fabs(x), r = atan_quotient(ax > 1e300 ? 1e300 : ax, 1.0);
    return x != x ? x : std::copysign(r, x);
}
// Neither argument is 0, NaN, infinite, or far from 1.
MT_INLINE double atan2_wide(double y, double x) {
    const double r = atan_quotient(std::fabs(y), std::fabs(x));
    return std::copysign(x < 0 ? PI_HI - (r - PI_LO) : r, y);
}

// (asin(sqrt(t)) / sqrt(t) - 1) for 0 <= t <= 1/4.
MT_INLINE double asin_rest(double t) {
    const double p = t * (1.66666666666666657415e-01 +
                          t * (-3.25565818622400915405e-01 +
                               t * (2.01212532134862925881e-01 +
                                    t * (-4.00555345006794114027e-02 +
                                         t * (7.91534994289814532176e-04 + t * 3.47933107596021167570e-05)))));
    const double q =
        1.0 +
        t * (-2.40339491173441421878e+00 +
             t * (2.02094576023350569471e+00 + t * (-6.88283971605453293030e-01 + t * 7.70381505559019352791e-02)));
    return p / q;
}
// The root of t as it is rounded, its first half, and what the half leaves.
struct Root {
    double whole, half, rest;
};
MT_INLINE Root root_of(double t) {
    const double s = std::sqrt(t), half = double_of(bits_of(s) & 0xffffffff00000000ULL), sum = s + half;
    return {s, half, sum > 0 ? (t - half * half) / sum : 0.0};
}
MT_INLINE double asin_wide(double x) {
    const double ax = std::fabs(x);
    const bool small = ax < 0.5;
    const double t = small ? ax * ax : (1.0 - ax) * 0.5, r = asin_rest(t);
    const Root s = root_of(t);
    const double far = PI_HI / 4 - ((2 * s.whole * r - (PI_LO / 2 - 2 * s.rest)) - (PI_HI / 4 - 2 * s.half));
    return std::copysign(small ? ax + ax * r : far, x);
}
MT_INLINE double acos_wide(double x) {
    const double ax = std::fabs(x);
    const bool small = ax < 0.5;
    const double t = small ? ax * ax : (1.0 - ax) * 0.5, r = asin_rest(t);
    const Root s = root_of(t);
    const double middle = PI_HI / 2 - (x - (PI_LO / 2 - x * r));
    const double left = PI_HI - 2 * (s.whole + (r * s.whole - PI_LO / 2));
    const double right = 2 * (s.half + (r * s.whole + s.rest));
    return small ? middle : x < 0 ? left : right;
}

// The sum of two numbers.
struct Pair {
    double hi, lo;
};
MT_INLINE Pair exact_sum(double a, double b) {
    const double hi = a + b, part = hi - a;
    return {hi, (a - (hi - part)) + (b - part)};
}
// tan(x) for |x| <= TRIG_LIMIT: sine and cosine of what pi / 2 leaves, each a sum of two numbers, and their quotient corrected
// by what its rounding left.
MT_INLINE double tan_wide(double x) {
    const double t = x * 6.36619772367581382433e-01 + ROUND_MAGIC_D, k = t - ROUND_MAGIC_D;
    const double high = x - k * 1.57079632673412561417e+00, first = high - k * 6.07710050630396597660e-11;
    const double lost = ((high - first) - k * 6.07710050630396597660e-11) - k * 2.02226624879595063154e-21;
    const double r = first + lost, rest = (first - r) + lost;
    const double z = r * r, z_lo = __builtin_fma(r, r, -z), v = z * r;
    double s = -2.50507602534068634195e-08 + z * 1.58969099521155010221e-10;
    s = 2.75573137070700676789e-06 + z * s;
    s = -1.98412698298579493134e-04 + z * s;
    s = 8.33333333332248946124e-03 + z * s;
    const double v_lo = __builtin_fma(z, r, -v) + z_lo * r;
    const double bend = __builtin_fma(v, -1.66666666666666324348e-01, rest - v_lo * 1.66666666666666324348e-01);
    const Pair sine = exact_sum(r, bend - z * (0.5 * rest - v * s));
    double c = 2.08757232129817482790e-09 + z * -1.13596475577881948265e-11;
    c = -2.75573143513906633035e-07 + z * c;
    c = 2.48015872894767294178e-05 + z * c;
    c = -1.38888888888741095749e-03 + z * c;
    c = 4.16666666666666019037e-02 + z * c;
    const double half = 0.5 * z, most = 1.0 - half;
    const Pair cosine = exact_sum(most, ((1.0 - most) - half) + (z * (z * c) - (r * rest + 0.5 * z_lo)));
    const bool odd = bits_of(t) & 1;
    const double above = odd ? -cosine.hi : sine.hi, above_lo = odd ? -cosine.lo : sine.lo;
    const double below = odd ? sine.hi : cosine.hi, below_lo = odd ? sine.lo : cosine.lo;
    const double q = above / below, left = __builtin_fma(-q, below, above) + (above_lo - q * below_lo);
    return x == 0.0 ? x : q + left / below;
}
// e ln 2 + 2 (s + s^3 / 3 + s^5 / 5 + ...) to some 68 bits, |s| < 0.172: s and s^3 / 3 are sums of two numbers.
MT_INLINE Pair log_series(double e, double s, double s_lo) {
    const double z = s * s, z_lo = __builtin_fma(2 * s, s_lo, __builtin_fma(s, s, -z));
    const double c = s * z, c_lo = __builtin_fma(s, z_lo, __builtin_fma(s_lo, z, __builtin_fma(s, z, -c)));
    const double third = 3.33333333333333314830e-01, third_lo = 1.85037170770859413132e-17, u = c * third;
    const double u_lo = __builtin_fma(c, third_lo, __builtin_fma(c_lo, third, __builtin_fma(c, third, -u)));
    double p = 1.0 / 27;
    p = p * z + 1.0 / 25;
    p = p * z + 1.0 / 23;
    p = p * z + 1.0 / 21;
    p = p * z + 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    const double rest = 2 * (c * z * p + (s_lo + u_lo)) + e * 1.90821492927058770002e-10;
    const Pair first = exact_sum(e * 6.93147180369123816490e-01, 2 * s);  // the product is exact
    const Pair second = exact_sum(first.hi, 2 * u);
    const double lo = first.lo + (second.lo + rest), hi = second.hi + lo;
    return {hi, lo - (hi - second.hi)};
}
// x = 2^e m for a normal x > 0, and (m - 1) / (m + 1) as a sum of two numbers.
struct Reduced {
    double e, s, s_lo;
};
MT_INLINE Reduced reduce_log(double x) {
    const uint64_t ix = bits_of(x) - 0x3fe6a09e667f3bcdULL;  // sqrt(1/2)
    const double m = double_of((ix & 0xfffffffffffffULL) + 0x3fe6a09e667f3bcdULL);
    const uint64_t e_biased = (ix + (uint64_t(2048) << 52)) >> 52;
    const double e = (double_of(bits_of(ROUND_MAGIC_D) + e_biased) - ROUND_MAGIC_D) - 2048.0;
    const double f = m - 1.0, den = m + 1.0, den_lo = m - (den - 1.0), s = f / den;
    return {e, s, __builtin_fma(-s, den_lo, __builtin_fma(-s, den, f)) / den};
}

// Half the logarithm of (1 + x) / (1 - x); near 0 the series of x itself.
MT_INLINE double atanh_wide(double x) {
    const double ax = std::fabs(x), above = 1.0 + ax, below = 1.0 - ax;
    const bool small = ax < 0.17;
    const double q = above / (small ? 1.0 : below);
    // What the quotient lacks, as a part of it: below is exact from 1/2 on, and nearly so before.
    const double above_lo = ax - (above - 1.0), below_lo = (1.0 - below) - ax;
    const double lost = (__builtin_fma(-q, below, above) + (above_lo - q * below_lo)) / above;
    const Reduced r = reduce_log(q);
    const Pair log = log_series(small ? 0.0 : r.e, small ? ax : r.s, small ? 0.0 : r.s_lo);
    double v = 0.5 * (log.hi + (log.lo + (small ? 0.0 : lost)));
    v = ax == 1.0 ? std::numeric_limits<double>::infinity() : v;
    v = ax < 5e-9 ? ax : v;  // as many bits as there are, down to the smallest
    return ax <= 1.0 ? std::copysign(v, x) : x != x ? x : std::numeric_limits<double>::quiet_NaN();
}

// exp(r) - 1 - r for |r| <= ln(2) / 2.
MT_INLINE double exp_curve(double r) {
    double p = 1.6059043836821614599e-10;
    p = p * r + 2.0876756987868098979e-09;
    p = p * r + 2.5052108385441718775e-08;
    p = p * r + 2.7557319223985890653e-07;
    p = p * r + 2.7557319223985890653e-06;
    p = p * r + 2.4801587301587301566e-05;
    p = p * r + 1.9841269841269841253e-04;
    p = p * r + 1.3888888888888889419e-03;
    p = p * r + 8.3333333333333332177e-03;
    p = p * r + 4.1666666666666664354e-02;
    p = p * r + 1.6666666666666665741e-01;
    p = p * r + 0.5;
    return (p * r) * r;
}

// exp(g + g_lo) as a sum of two numbers, to be scaled by both powers of 2.
struct Exponential {
    double hi, lo, scale, again;
};
MT_INLINE Exponential exp_of_pair(double g, double g_lo) {
    double top = g > 710.0 ? 710.0 : g;
    top = top < -746.0 ? -746.0 : top;
    const double t = top * 1.44269504088896338700e+00 + ROUND_MAGIC_D, k = t - ROUND_MAGIC_D;
    const double near = __builtin_fma(-k, 6.93147180369123816490e-01, top);
    const double far = (top == g ? g_lo : 0.0) - k * 1.90821492927058770002e-10;
    const double r = near + far, r_lo = far - (r - near), one = 1.0 + r;
    const int64_t ki = (int64_t)(bits_of(t) - bits_of(ROUND_MAGIC_D));
    const uint64_t half = (uint64_t)(ki + 4096) >> 1, rest = (uint64_t)(ki + 4096) - half;
    return {one, (r - (one - 1.0)) + (exp_curve(r) + (r_lo + r_lo * r)), double_of((half - 2048 + 1023) << 52),
            double_of((rest - 2048 + 1023) << 52)};
}

// a ** b for normal a > 0 and |b| < 2^50. The exponent multiplies the logarithm's error, hence its bits.
MT_INLINE double pow_wide(double a, double b) {
    const Reduced at = reduce_log(a);
    const Pair log = log_series(at.e, at.s, at.s_lo);
    const double g = b * log.hi, g_lo = __builtin_fma(b, log.lo, __builtin_fma(b, log.hi, -g));
    const Exponential e = exp_of_pair(g, g_lo);
    return (e.hi + e.lo) * e.scale * e.again;
}

// erfc(x): near 0 from erf, which is as exact there; further out the product of an exponential and a polynomial of
// (a - 4) / (a + 4), over 1 + 2 a (math_special.h), all of them sums of two numbers.
MT_INLINE double erfc_wide(double x) {
    const double a = std::fabs(x), z = a * a;
    const Pair most = exact_sum(1.0, -x);
    const double near = most.hi - (x * (0.128379167095512574 + z * polynomial(ERF_NEAR, z)) - most.lo);
    const double c = a > 40.0 ? 40.0 : a, square = c * c;
    const Exponential e = exp_of_pair(-square, -__builtin_fma(c, c, -square));
    const Pair up = exact_sum(c, 4.0);
    const double y = (c - 4.0) / up.hi;
    const double y_lo = (__builtin_fma(-y, up.hi, c - 4.0) - y * up.lo) / up.hi;
    constexpr int N = sizeof ERFC_WHOLE / sizeof *ERFC_WHOLE;
    double p = ERFC_WHOLE[0];
#pragma GCC unroll 32
    for (int i = 1; i < N - 1; ++i) p = p * y + ERFC_WHOLE[i];
    const double last = p * y;
    const Pair sum = exact_sum(ERFC_WHOLE[N - 1], last), down = exact_sum(1.0, 2 * c), raised = exact_sum(e.hi, e.lo);
    const double sum_lo = sum.lo + (__builtin_fma(p, y, -last) + p * y_lo);
    const double value = raised.hi * sum.hi;
    const double value_lo = __builtin_fma(raised.hi, sum.hi, -value) + (raised.hi * sum_lo + raised.lo * sum.hi);
    const double q = value / down.hi, rest = __builtin_fma(-q, down.hi, value) + (value_lo - q * down.lo);
    const double far = (q + rest / down.hi) * e.scale * e.again;
    return a < 0.75 ? near : x < 0 ? 2.0 - far : x != x ? x : far;
}

}  // namespace mt
