// Elementary functions without branches or calls, so that loops over them vectorise. Invariant: NaN, infinities and
// signed zeros come out as C's functions give them; errors stay within about 2 ulp (float32 functions that are not on
// a hot path are evaluated in double and rounded once).
#pragma once
#include "common.h"

namespace mt {

// ---------------------------------------------------------------- float64

// Adding these rounds to an integer, which then stands in the low bits.
constexpr double ROUND_MAGIC_D = 6755399441055744.0;
constexpr float ROUND_MAGIC_F = 12582912.0f;

MT_INLINE double exp_reduced(double r) {  // |r| <= ln(2) / 2
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
    return (p * r) * r + r + 1.0;
}
MT_INLINE double exp_v(double x) {
    double c = x > 710.0 ? 710.0 : x;
    c = c < -746.0 ? -746.0 : c;
    const double t = c * 1.44269504088896338700e+00 + ROUND_MAGIC_D;
    const double k = t - ROUND_MAGIC_D;
    const double r = (c - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    // The scale is applied in two halves: k reaches 1024 and, for subnormal results, -1076.
    const int64_t ki = (int64_t)(bits_of(t) - bits_of(ROUND_MAGIC_D));
    const uint64_t half = (uint64_t)(ki + 4096) >> 1, rest = (uint64_t)(ki + 4096) - half;
    return exp_reduced(r) * double_of((half - 2048 + 1023) << 52) * double_of((rest - 2048 + 1023) << 52);
}
// For arguments that come from float32: |result| stays far from the limits of double, and 1e-12 is plenty.
MT_INLINE double exp_short(double x) {
    double c = x > 300.0 ? 300.0 : x;
    c = c < -300.0 ? -300.0 : c;
    const double t = c * 1.44269504088896338700e+00 + ROUND_MAGIC_D;
    const double k = t - ROUND_MAGIC_D;
    const double r = c - k * 6.93147180559945286227e-01;
    double p = 2.7557319223985890653e-07;
    p = p * r + 2.7557319223985890653e-06;
    p = p * r + 2.4801587301587301566e-05;
    p = p * r + 1.9841269841269841253e-04;
    p = p * r + 1.3888888888888889419e-03;
    p = p * r + 8.3333333333333332177e-03;
    p = p * r + 4.1666666666666664354e-02;
    p = p * r + 1.6666666666666665741e-01;
    p = p * r + 0.5;
    p = (p * r) * r + r + 1.0;
    const uint64_t k52 = (bits_of(t) - bits_of(ROUND_MAGIC_D) + 1023) << 52;
    return p * double_of(k52);
}
// Of a positive normal number.
MT_INLINE double log_normal(double x, double shift) {
    const uint64_t ix = bits_of(x) - 0x3fe6a09e667f3bcdULL;  // sqrt(1/2)
    const double m = double_of((ix & 0xfffffffffffffULL) + 0x3fe6a09e667f3bcdULL);
    // The exponent as a double, without an int64 conversion: bits of 1.5 * 2^52 + e. The shift is made on a positive
    // number, since AVX2 has no arithmetic shift of 64 bits.
    const uint64_t e_biased = (ix + (uint64_t(2048) << 52)) >> 52;  // (e + 2048) mod 4096
    const double e = (double_of(bits_of(ROUND_MAGIC_D) + e_biased) - ROUND_MAGIC_D) - 2048.0 - shift;
    const double f = m - 1.0, s = f / (2.0 + f), z = s * s, w = z * z;
    const double t1 = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const double t3 = 2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01);
    const double t2 = z * (6.666666666666735130e-01 + w * t3);
    const double hfsq = 0.5 * f * f;
    return e * 6.93147180369123816490e-01 - ((hfsq - (s * (hfsq + t1 + t2) + e * 1.90821492927058770002e-10)) - f);
}
MT_INLINE double log_v(double x) {
    const bool tiny = x < 2.2250738585072014e-308;
    double r = log_normal(tiny ? x * 18014398509481984.0 : x, tiny ? 54.0 : 0.0);
    r = x == 0.0 ? -std::numeric_limits<double>::infinity() : r;
    r = x < 0.0 ? std::numeric_limits<double>::quiet_NaN() : r;
    return (x != x || x == std::numeric_limits<double>::infinity()) ? x : r;
}
// Of a positive number that comes from float32, zero or infinity: to 1e-13, which leaves float32's powers exact.
MT_INLINE double log_short(double x) {
    const uint64_t ix = bits_of(x) - 0x3fe6a09e667f3bcdULL;
    const double m = double_of((ix & 0xfffffffffffffULL) + 0x3fe6a09e667f3bcdULL);
    const uint64_t e_biased = (ix + (uint64_t(2048) << 52)) >> 52;
    const double e = (double_of(bits_of(ROUND_MAGIC_D) + e_biased) - ROUND_MAGIC_D) - 2048.0;
    const double f = m - 1.0, s = f / (2.0 + f), z = s * s;
    double p = 1.479819860511658591e-01;
    p = p * z + 1.531383769920937332e-01;
    p = p * z + 1.818357216161805012e-01;
    p = p * z + 2.222219843214978396e-01;
    p = p * z + 2.857142874366239149e-01;
    p = p * z + 3.999999999940941908e-01;
    p = p * z + 6.666666666666735130e-01;
    double r = e * 6.93147180559945286227e-01 + (2.0 * s + s * z * p);
    r = x == 0.0 ? -std::numeric_limits<double>::infinity() : r;
    return x == std::numeric_limits<double>::infinity() ? x : r;
}
MT_INLINE double atan_reduced(double t) {  // |t| <= tan(pi / 8), to 1e-12
    const double z = t * t;
    double p = -0.037655106012914021;
    p = p * z + 0.0697419768659526513;
    p = p * z - 0.0899255290615091148;
    p = p * z + 0.111034569089474629;
    p = p * z - 0.142853865537521393;
    p = p * z + 0.199999930535558136;
    p = p * z - 0.333333332769224921;
    return t + t * (p * z);
}
// To 1e-13, of a number whose size is far from the limits of float32: its quotient costs a quarter of one of float64.
MT_INLINE double reciprocal_short(double d) {
    const double q = (double)(1.0f / (float)d);
    return q * (2.0 - d * q);
}
MT_INLINE double asin_v(double x) {  // to 1e-12; NaN outside [-1, 1]
    const double a = std::fabs(x);
    const bool big = a > 0.5;
    const double z = big ? 0.5 * (1.0 - a) : a * a;
    const double s = big ? std::sqrt(z) : a;
    double p = 0.0279070314326660997;
    p = p * z - 0.00293979290672419638;
    p = p * z + 0.0156756625270709354;
    p = p * z + 0.0131879161367537301;
    p = p * z + 0.0174414956854928556;
    p = p * z + 0.0223660659388850076;
    p = p * z + 0.0303821827762124848;
    p = p * z + 0.0446428524379387159;
    p = p * z + 0.075000000035845581;
    p = p * z + 0.16666666666662181;
    const double r = s + s * (z * p);
    return std::copysign(big ? 1.5707963267948966 - 2.0 * r : r, x);
}
// sin and cos of a float-sized argument, |x| <= TRIG_LIMIT, to 6e-9: the sine of what whole turns by pi leave, or halves.
constexpr float TRIG_LIMIT = 1.0e6f;
struct SinCos {
    double sin, cos;
};
template <bool COS> MT_INLINE double wave_short(double x) {
    const double shift = COS ? 0.5 : 0.0;
    const double t = (x * 3.18309886183790671538e-01 - shift) + ROUND_MAGIC_D;
    const double k = (t - ROUND_MAGIC_D) + shift;
    const double r = (x - k * 3.14159265346825122834) - k * 1.21542010130123852129e-10;
    const double z = r * r;
    double p = 2.60575071122647869e-06;
    p = p * z - 1.98095901144725628e-04;
    p = p * z + 8.33306608301932170e-03;
    p = p * z - 1.66666595445936681e-01;
    const uint64_t flip = (COS ? ~bits_of(t) : bits_of(t)) << 63;
    return double_of(bits_of(r * (1.0 + z * p)) ^ flip);  // a product keeps the sign of 0
}
// A quotient of polynomials of what whole quarters leave, to 3e-11; odd quarters turn it over.
MT_INLINE double tan_short(double x) {
    const double t = x * 6.36619772367581382433e-01 + ROUND_MAGIC_D;
    const double k = t - ROUND_MAGIC_D;
    const double r = (x - k * 1.57079632673412561417e+00) - k * 6.07710050650619224932e-11;
    const double z = r * r;
    const double p = r * (1.0 + z * (z * 1.07447800193774286e-03 - 1.11351664647454959e-01));
    const double q = 1.0 + z * (z * 1.59694605677652025e-02 - 4.44684996897368932e-01);
    const bool odd = bits_of(t) & 1;
    return (odd ? -q : p) * reciprocal_short(odd ? p : q);
}

// ---------------------------------------------------------------- float32

// Argument at most 89, or NaN.
MT_INLINE float exp_low(float x) {
    const float c = x < -104.0f ? -104.0f : x;
    const float t = c * 1.44269504f + ROUND_MAGIC_F;
    const float k = t - ROUND_MAGIC_F;
    const float r = (c - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * r) * r + r + 1.0f;
    const int32_t ki = (int32_t)(bits_of(t) - bits_of(ROUND_MAGIC_F)), half = ki >> 1;
    return p * float_of((uint32_t)(half + 127) << 23) * float_of((uint32_t)(ki - half + 127) << 23);
}
MT_INLINE float exp_v(float x) { return exp_low(x > 89.0f ? 89.0f : x); }
// Argument at most 0 (softmax and the like) or known to stay below 88: one scale; results under 2^-126 become 0.
MT_INLINE float exp_fast(float x) {
    const float c = x < -87.3f ? -87.3f : x;
    const float t = c * 1.44269504f + ROUND_MAGIC_F;
    const float k = t - ROUND_MAGIC_F;
    const float r = (c - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * r) * r + r + 1.0f;
    const float v = p * float_of((bits_of(t) - bits_of(ROUND_MAGIC_F) + 127u) << 23);
    return x < -87.3f ? 0.0f : v;
}
MT_INLINE float exp2_v(float x) {
    float c = x > 129.0f ? 129.0f : x;
    c = c < -151.0f ? -151.0f : c;
    const float t = c + ROUND_MAGIC_F, r = c - (t - ROUND_MAGIC_F);
    float p = 1.535336188319500e-4f;
    p = p * r + 1.339887440266574e-3f;
    p = p * r + 9.618437357674640e-3f;
    p = p * r + 5.550332471162809e-2f;
    p = p * r + 2.402264791363012e-1f;
    p = p * r + 6.931472028550421e-1f;
    p = p * r + 1.0f;
    const int32_t k = (int32_t)(bits_of(t) - bits_of(ROUND_MAGIC_F)), half = k >> 1;
    return p * float_of((uint32_t)(half + 127) << 23) * float_of((uint32_t)(k - half + 127) << 23);
}
// Of a positive normal number.
MT_INLINE float log_normal(float x, float shift) {
    const uint32_t ix = bits_of(x) - 0x3f3504f3u;
    const float m = float_of((ix & 0x7fffffu) + 0x3f3504f3u);
    const float e = (float)((int32_t)ix >> 23) - shift;
    const float f = m - 1.0f, z = f * f;
    float p = 7.0376836292e-2f;
    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    float r = (f * z) * p - e * 2.12194440e-4f;
    r = r - 0.5f * z;
    return f + r + e * 0.693359375f;
}
MT_INLINE float log_v(float x) {
    const bool tiny = x < 1.17549435e-38f;
    float r = log_normal(tiny ? x * 8388608.0f : x, tiny ? 23.0f : 0.0f);
    r = x == 0.0f ? -std::numeric_limits<float>::infinity() : r;
    r = x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : r;
    return (x != x || x == std::numeric_limits<float>::infinity()) ? x : r;
}
// 2^k (e^r - 1) + (2^k - 1), halved before the scale so that 2^128 is not needed. What r lost is carried along.
MT_INLINE float expm1_v(float x) {
    float c = x > 89.0f ? 89.0f : x;
    c = c < -87.0f ? -87.0f : c;
    const float t = c * 1.44269504f + ROUND_MAGIC_F;
    const float k = t - ROUND_MAGIC_F;
    const float high = c - k * 0.693359375f, low = k * 2.12194440e-4f, r = high + low, lost = (high - r) + low;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = ((p * r) * r + (lost + lost * r)) + r;
    const float half = float_of((bits_of(t) - bits_of(ROUND_MAGIC_F) + 126u) << 23);
    const float v = (half * p + (half - 0.5f)) * 2.0f;
    return std::fabs(x) < 3e-8f ? x : v;  // halves of subnormal numbers would lose a bit
}
// What rounding 1 + x lost is added to the logarithm, to first order.
MT_INLINE float log1p_v(float x) {
    const float u = 1.0f + x, lost = (x - (u - 1.0f)) / u, v = log_v(u);
    const float r = (u == 0.0f) | (u == std::numeric_limits<float>::infinity()) ? v : v + lost;
    return x == 0.0f ? x : r;
}
// log(1 + e^-a) for a >= 0, and e^-a. With one select: more of them make GCC split the way through the function.
MT_INLINE float softplus_tail(float a) {
    const float e = exp_low(-a), u = 1.0f + e;
    return log_normal(u, 0.0f) + (e - (u - 1.0f)) / u;
}
MT_INLINE float tanh_v(float x) {
    const float a = std::fabs(x), z = x * x;
    const float big = 1.0f - 2.0f / (exp_v(2.0f * a) + 1.0f);
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    const float near = (p * z) * a + a;
    return std::copysign(a < 0.625f ? near : big, x);
}
MT_INLINE float erf_v(float x) {
    const float t = std::fabs(x), s = x * x;
    float u = -1.72853470e-5f * t + 3.83197126e-4f;
    const float v = -3.88396438e-3f * t + 2.42546219e-2f;
    u = u * s + v;
    u = u * t - 1.06777877e-1f;
    u = u * t - 6.34846687e-1f;
    u = u * t - 1.28717512e-1f;
    u = u * t - t;
    // From 4 on the result is 1; the polynomial would turn back up.
    const float big = t > 4.0f ? 1.0f : 1.0f - exp_fast(u);
    float w = -5.96761703e-4f;
    w = w * s + 4.99119423e-3f;
    w = w * s - 2.67681349e-2f;
    w = w * s + 1.12819925e-1f;
    w = w * s - 3.76125336e-1f;
    w = w * s + 1.28379166e-1f;
    const float near = w * x + x;
    return t > 0.927734375f ? std::copysign(big, x) : near;  // NaN takes the second branch and stays NaN
}

// Rarely hot float32 functions, through double.
MT_INLINE float log_times(float x, double factor) {
    const double d = x, r = log_short(d) * factor;
    return (float)(d >= 0.0 ? r : std::numeric_limits<double>::quiet_NaN());
}
MT_INLINE float log2_v(float x) { return log_times(x, 1.44269504088896338700e+00); }
MT_INLINE float log10_v(float x) { return log_times(x, 4.34294481903251816668e-01); }
MT_INLINE float sin_v(float x) { return (float)wave_short<false>((double)x); }
MT_INLINE float cos_v(float x) { return (float)wave_short<true>((double)x); }
MT_INLINE float tan_v(float x) { return (float)tan_short((double)x); }
MT_INLINE float asin_v(float x) { return (float)asin_v((double)x); }
MT_INLINE float acos_v(float x) { return (float)(1.5707963267948966 - asin_v((double)x)); }
MT_INLINE float atan_v(float x) {
    // 1e30 serves for what is larger, so that its quotient exists.
    const float b = std::fabs(x), a = b > 1e30f ? 1e30f : b;
    const bool big = a > 1.0f;
    const double t = big ? -reciprocal_short(a) : (double)a, z = t * t;
    double p = -1.79362839689860360e-03;
    p = p * z + 1.09146351901118101e-02;
    p = p * z - 3.11778995015553758e-02;
    p = p * z + 5.79576458730861443e-02;
    p = p * z - 8.40345327163888987e-02;
    p = p * z + 1.09521867369769830e-01;
    p = p * z - 1.42642418545044679e-01;
    p = p * z + 1.99985482999089894e-01;
    p = p * z - 3.33332990896533406e-01;
    return std::copysign((float)((big ? 1.5707963267948966 : 0.0) + t * (1.0 + z * p)), x);
}
MT_INLINE float sinh_v(float x) {
    const double d = x, e = exp_short(d), far = 0.5 * (e - 1.0 / e), near = d + d * d * d * (1.0 / 6.0);
    return (float)(std::fabs(d) < 1e-4 ? near : far);
}
MT_INLINE float cosh_v(float x) {
    const double e = exp_short((double)x);
    return (float)(0.5 * (e + 1.0 / e));
}
MT_INLINE float asinh_v(float x) {
    const double d = std::fabs((double)x), far = log_v(d + std::sqrt(d * d + 1.0)), near = d - d * d * d * (1.0 / 6.0);
    return (float)std::copysign(d < 1e-4 ? near : far, (double)x);
}
MT_INLINE float acosh_v(float x) {
    const double d = x, r = log_v(d + std::sqrt(d * d - 1.0));
    return (float)(d < 1.0 ? std::numeric_limits<double>::quiet_NaN() : r);
}
MT_INLINE float atanh_v(float x) {
    const double d = x, far = 0.5 * log_v((1.0 + d) / (1.0 - d)), near = d + d * d * d * (1.0 / 3.0);
    return (float)(std::fabs(d) < 1e-4 ? near : far);
}
MT_INLINE bool negative_bit(float x) { return bits_of(x) >> 31; }
MT_INLINE float hypot_v(float x, float y) {
    const double a = x, b = y;
    const float r = (float)std::sqrt(a * a + b * b);
    constexpr float inf = std::numeric_limits<float>::infinity();
    return ((std::fabs(x) == inf) | (std::fabs(y) == inf)) ? inf : r;
}
MT_INLINE float atan2_v(float y, float x) {
    const double ay = std::fabs((double)y), ax = std::fabs((double)x);
    const bool steep = ay > ax;
    const double lo = steep ? ax : ay, hi = steep ? ay : ax;
    // The quotient is at most 1; from tan(pi / 8) on it is counted from 45 degrees. One division serves both.
    const bool mid = lo > hi * 0.4142135623730950;
    double q = (mid ? lo - hi : lo) / (mid ? lo + hi : hi);
    q = lo == hi ? 0.0 : q;  // inf / inf means 45 degrees, 0 / 0 means 0
    double r = ((lo == hi) & (hi != 0.0)) | mid ? 0.7853981633974483 : 0.0;
    r += atan_reduced(q);
    r = steep ? 1.5707963267948966 - r : r;
    r = negative_bit(x) ? 3.141592653589793 - r : r;
    const float v = (float)std::copysign(r, (double)y);
    return ((x != x) | (y != y)) ? x + y : v;
}
MT_INLINE float pow_v(float x, float y) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    const float ax = std::fabs(x);
    const double yd = y, half = 0.5 * yd;
    // From 2^53 on the sum with the magic number is not exact, but rounds back: large exponents are even integers.
    const double back = (yd + ROUND_MAGIC_D) - ROUND_MAGIC_D, half_back = (half + ROUND_MAGIC_D) - ROUND_MAGIC_D;
    const bool large = std::fabs(y) >= 16777216.0f;
    const bool whole = large | (back == yd), odd = whole & !large & (half_back != half);
    double e = yd * log_short((double)ax);
    e = ax == 1.0f ? 0.0 : e;  // 1 ** inf
    float r = (float)exp_short(e);
    r = (odd & negative_bit(x)) ? -r : r;
    r = ((x < 0.0f) & !whole & (ax != inf)) ? std::numeric_limits<float>::quiet_NaN() : r;
    r = ((y == 0.0f) | (x == 1.0f)) ? 1.0f : r;
    const bool nan = ((x != x) & (y != 0.0f)) | ((y != y) & (x != 1.0f));
    return nan ? std::numeric_limits<float>::quiet_NaN() : r;
}
// fmod of float32 where |x / y| < FMOD_LIMIT: quotient times divisor is exact in double.
constexpr double FMOD_LIMIT = 536870912.0;
MT_INLINE double fmod_v(double x, double y, double quotient) {
    // Truncation by rounding, so that it needs no SSE4.1; |quotient| < 2^29.
    double q = (quotient + ROUND_MAGIC_D) - ROUND_MAGIC_D;
    double r = x - q * y;
    // The rounded quotient may be one too far from zero: then the remainder has the other sign.
    const double back = r + std::copysign(std::fabs(y), x);
    r = r * x < 0.0 ? back : r;
    r = std::fabs(y) == std::numeric_limits<double>::infinity() ? x : r;
    return std::copysign(r, x);
}

// fmod of float64 where |x / y| < FMOD_LIMIT_WIDE. The remainder by the quotient rounded to the nearest whole number, and the
// sum with the divisor where that was one too far from zero, are multiples of the smaller unit and not larger than the
// divisor: both are exact.
constexpr double FMOD_LIMIT_WIDE = 1125899906842624.0;  // 2^50
MT_INLINE double fmod_wide(double x, double y) {
    const double q = (x / y + ROUND_MAGIC_D) - ROUND_MAGIC_D;
    double r = std::fma(-q, y, x);
    const double back = r + std::copysign(std::fabs(y), x);
    r = ((r < 0.0) & (x > 0.0)) | ((r > 0.0) & (x < 0.0)) ? back : r;
    r = std::fabs(y) == std::numeric_limits<double>::infinity() ? x : r;
    return std::copysign(r, x);
}
// The root of a sum of squares, corrected by what rounding left of the squares.
MT_INLINE double hypot_wide(double a, double b) {
    const double p = std::fabs(a), q = std::fabs(b), x = p > q ? p : q, y = p > q ? q : p;
    const double h = std::sqrt(std::fma(x, x, y * y)), hh = h * h, xx = x * x;
    const double rest = std::fma(-y, y, hh - xx) + std::fma(h, h, -hh) - std::fma(x, x, -xx);
    return h - rest / (2.0 * h);
}

// ---------------------------------------------------------------- activations, both precisions

MT_INLINE double tanh_v(double x) {
    const double a = std::fabs(x), z = x * x;
    const double big = 1.0 - 2.0 / (exp_v(2.0 * a) + 1.0);
    // fdlibm-like rational of Cephes for the middle, exact enough near 0.
    const double p = ((-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3);
    const double q = (((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z + 4.84406305325125486048e3);
    const double near = a + a * z * (p / q);
    return std::copysign(a < 0.625 ? near : big, x);
}
double MT_INLINE erf_whole(double x);  // math_special.h
MT_INLINE double erf_v(double x) { return erf_whole(x); }
MT_INLINE double pow_v(double x, double y) { return std::pow(x, y); }
MT_INLINE double atan2_v(double y, double x) { return std::atan2(y, x); }
MT_INLINE double hypot_v(double x, double y) { return std::hypot(x, y); }

// As in float32.
MT_INLINE double expm1_v(double x) {
    double c = x > 710.0 ? 710.0 : x;
    c = c < -40.0 ? -40.0 : c;
    const double t = c * 1.44269504088896338700e+00 + ROUND_MAGIC_D;
    const double k = t - ROUND_MAGIC_D;
    const double high = c - k * 6.93147180369123816490e-01, low = k * 1.90821492927058770002e-10;
    const double r = high - low, lost = (high - r) - low;
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
    p = ((p * r) * r + (lost + lost * r)) + r;
    const double half = double_of((bits_of(t) - bits_of(ROUND_MAGIC_D) + 1022) << 52);
    const double v = (half * p + (half - 0.5)) * 2.0;
    return std::fabs(x) < 5e-17 ? x : v;
}
MT_INLINE double log1p_v(double x) {
    const double u = 1.0 + x, lost = (x - (u - 1.0)) / u, v = log_v(u);
    const double r = (u == 0.0) | (u == std::numeric_limits<double>::infinity()) ? v : v + lost;
    return x == 0.0 ? x : r;
}
// Far out by halves: e^x may be too large where half of it is not.
MT_INLINE double sinh_v(double x) {
    const double a = std::fabs(x), t = expm1_v(a > 40.0 ? 40.0 : a), h = exp_v(0.5 * a);
    return std::copysign(a > 40.0 ? 0.5 * h * h : 0.5 * (t + t / (t + 1.0)), x);
}
MT_INLINE double cosh_v(double x) {
    const double a = std::fabs(x), e = exp_v(a > 40.0 ? 40.0 : a), h = exp_v(0.5 * a);
    return a > 40.0 ? 0.5 * h * h : 0.5 * (e + 1.0 / e);
}
// Sine and cosine, to the last digits of a double: |x| <= TRIG_LIMIT. What the rest of the division by pi / 2 lost is carried.
MT_INLINE SinCos sincos_whole(double x) {
    const double t = x * 6.36619772367581382433e-01 + ROUND_MAGIC_D;
    const double k = t - ROUND_MAGIC_D;
    const double high = x - k * 1.57079632673412561417e+00, first = high - k * 6.07710050630396597660e-11;
    const double lost = ((high - first) - k * 6.07710050630396597660e-11) - k * 2.02226624879595063154e-21;
    const double r = first + lost, rest = (first - r) + lost;
    const double z = r * r, v = z * r;
    double s = -2.50507602534068634195e-08 + z * 1.58969099521155010221e-10;
    s = 2.75573137070700676789e-06 + z * s;
    s = -1.98412698298579493134e-04 + z * s;
    s = 8.33333333332248946124e-03 + z * s;
    s = r - ((z * (0.5 * rest - v * s) - rest) - v * -1.66666666666666324348e-01);
    double c = 2.08757232129817482790e-09 + z * -1.13596475577881948265e-11;
    c = -2.75573143513906633035e-07 + z * c;
    c = 2.48015872894767294178e-05 + z * c;
    c = -1.38888888888741095749e-03 + z * c;
    c = 4.16666666666666019037e-02 + z * c;
    const double half = 0.5 * z, most = 1.0 - half;
    c = most + (((1.0 - most) - half) + (z * (z * c) - r * rest));
    const uint64_t q = bits_of(t);
    const bool odd = q & 1;
    const uint64_t flip_s = (q & 2) << 62, flip_c = ((q + 1) & 2) << 62;
    return {double_of(bits_of(odd ? c : s) ^ flip_s), double_of(bits_of(odd ? s : c) ^ flip_c)};
}
MT_INLINE double sin_v(double x) { return x == 0.0 ? x : sincos_whole(x).sin; }
MT_INLINE double cos_v(double x) { return sincos_whole(x).cos; }
MT_INLINE double tan_v(double x) { return std::tan(x); }  // a quotient of the two would round three times
// log(1 + e^x), and its slope without overflow.
MT_INLINE double exp_low(double x) { return exp_v(x); }
MT_INLINE double softplus_tail(double a) {
    // As log_v, without what a number between 1 and 2 does not need: the loop stays one run of instructions.
    const double e = exp_v(-a), u = 1.0 + e, high = u > 1.4142135623730951 ? 1.0 : 0.0;
    const double f = u * (1.0 - 0.5 * high) - 1.0, s = f / (2.0 + f), z = s * s, w = z * z;
    const double t1 = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const double t3 = 2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01);
    const double t2 = z * (6.666666666666735130e-01 + w * t3), square = 0.5 * f * f;
    const double log = high * 6.93147180369123816490e-01 -
                       ((square - (s * (square + t1 + t2) + high * 1.90821492927058770002e-10)) - f);
    return log + (e - (u - 1.0)) / u;
}
template <class T> MT_INLINE T softplus_v(T x) { return (x > T(0) ? x : T(0)) + softplus_tail(std::fabs(x)); }
template <class T> MT_INLINE T softplus_slope_v(T x) {
    const T e = exp_low(-std::fabs(x));
    return (x < T(0) ? e : T(1)) / (T(1) + e);
}
template <class T> MT_INLINE T sigmoid_v(T x) { return T(1) / (T(1) + exp_v(-x)); }
template <class T> MT_INLINE T silu_v(T x) { return x / (T(1) + exp_v(-x)); }
// 1 + erf(x / sqrt 2): twice the normal distribution.
MT_INLINE double twice_cdf(double x) { return 1.0 + erf_v(x * 0.70710678118654752440); }
// As good as erf itself where 1 is added to it. A quotient of polynomials, fitted on [0, 4] to 2e-9; it is 1 from there.
MT_INLINE float twice_cdf(float x) {
    const float y = x * 0.70710678f, z = y * y;
    float p = -1.3666788589716816e-8f;
    p = p * z + 4.7805378926568665e-6f;
    p = p * z + 3.826923784799874e-4f;
    p = p * z + 3.8395384326577187e-3f;
    p = p * z + 5.433262512087822e-2f;
    p = p * z + 1.847105771303177e-1f;
    p = p * z + 1.128379225730896f;
    float q = 6.400925485650077e-5f;
    q = q * z + 1.3095811009407043e-3f;
    q = q * z + 1.5453535132110119e-2f;
    q = q * z + 1.1382640153169632e-1f;
    q = q * z + 4.9702903628349304e-1f;
    q = q * z + 1.0f;
    const float r = y * p / q;
    return 1.0f + (std::fabs(y) > 3.95f ? std::copysign(1.0f, y) : r);
}
template <class T> MT_INLINE T gelu_v(T x) { return x * T(0.5) * twice_cdf(x); }
constexpr double GELU_BETA = 0.79788456080286535588, GELU_KAPPA = 0.044715;  // sqrt(2 / pi)
template <class T> MT_INLINE T gelu_tanh_v(T x) {
    const T inner = T(GELU_BETA) * (x + T(GELU_KAPPA) * (x * x * x));
    return T(0.5) * x * (T(1) + tanh_v(inner));
}

}  // namespace mt

#include "math_special.h"  // what the functions above declare
