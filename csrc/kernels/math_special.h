// Polynomials and what is made of them: errors, their complement and their inverse. Coefficients are interpolations at
// Chebyshev's points, made with many more digits than they have here. Invariant: as in math_core.h, which this is a part of.
#pragma once
#include "math_core.h"

namespace mt {

// The highest power first.
template <int N> MT_INLINE double polynomial(const double (&c)[N], double x) {
    double p = c[0];
#pragma GCC unroll 32
    for (int i = 1; i < N; ++i) p = p * x + c[i];
    return p;
}

// (1 + 2 a) e^(a a) erfc(a) for a >= 0, of (a - 4) / (a + 4).
constexpr double ERFC_WHOLE[] = {
    4.335744696880128e-11,   -1.37212432109558e-10,   -5.47796315403793e-10,   1.7887492189077536e-09,
    3.979908209935334e-09,   -1.470518755238763e-08,  -2.1917128684776733e-08, 1.1009041560728304e-07,
    7.89343963476142e-08,    -8.249127434964572e-07,  2.909062968371427e-07,   5.709201212226352e-06,
    -1.1220753452725425e-05, -2.4398942309069806e-05, 0.00015062130746391778,  -0.0001992567764579197,
    -0.0007577732195352293,  0.005031969992810925,    -0.01619773406595253,    0.03716751553591141,
    -0.0663303658116485,     0.09373283499843951,     -0.10103906603632504,    0.06809705425469036,
    0.015379652102620042,    -0.1396211168405625,     1.2329951186255526};
// e^(a a) erfc(a) for 0 <= a < 10.3, of 3 / (a + 3): to 2e-9. And e^r for |r| <= ln(2) / 2, to 2e-9.
constexpr double ERFC_SHORT[] = {0.05730784579711698,   -0.301384151033703032, 0.559318573763273769,
                                 -0.476041402783490374, 0.436488545924090464,  -0.0227621903179440884,
                                 0.201048481765162796,  0.168887060747345856,  0.189147542991734815,
                                 0.187987490600056147,  2.2039419311613129e-6};
constexpr double EXP_SHORT[] = {0.00138368355677345769, 0.00837482403409827403, 0.0416682261917326565,
                                0.166664200724148304,   0.49999992075086588,    1.0000000363446389,
                                1.00000000055460862};
// (erf(x) / x - its value at 0) / x^2, of x^2 up to 1.
constexpr double ERF_NEAR[] = {5.957176147748911e-11,   -1.1372848856791674e-09, 1.4659775274047436e-08,
                               -1.6350312701054695e-07, 1.6461000484121368e-06,  -1.4925595266831182e-05,
                               0.0001205533111164271,   -0.000854832698083379,   0.0052239776248180145,
                               -0.026866170645076792,   0.11283791670954879,     -0.3761263890318375};
// erfinv(x) / x of w = -log(1 - x^2), scaled to [-1, 1]: w up to 6.25, its root up to 4, its root up to 6.125.
constexpr double ERFINV_NEAR[] = {
    -2.7032254091069344e-10, 7.689312733742569e-10,   1.5401738716654886e-09, -8.562787796742932e-09,
    4.792369996100387e-09,   3.915473114023045e-08,   -9.867713140174249e-08, -1.0185147576818285e-08,
    5.394320648707009e-07,   -1.059321402540731e-06,  -6.83718721812117e-07,  7.1300572630824496e-06,
    -1.1257319182677936e-05, -1.5027710420277575e-05, 9.33673917780479e-05,   -0.0001168888399309713,
    -0.0002643936684366174,  0.0012324855686812834,   -0.0012716922684373015, -0.00413731437741443,
    0.017808361818295655,    -0.022604447453449802,   -0.05892256710377784,   0.7504943200799635,
    1.6536545626831027};
constexpr double ERFINV_MIDDLE[] = {
    -6.385846404875191e-11,  3.929056598182976e-12,   9.85047133124713e-10,   -2.7195823537882847e-09,
    -3.6086983146965074e-10, 2.6703991718481456e-08,  -9.46984593753811e-08,  9.267642775523117e-08,
    5.264680305425013e-07,   -2.6646983082852556e-06, 5.127314470348767e-06,  2.4058391918338327e-06,
    -4.739182677882865e-05,  0.00016966502592018017,  -0.0004006356984211825, 0.0007883078509981353,
    -0.0015825410894034398,  0.00302113943638407,     0.7539442257706239,     3.0838856104922208};
constexpr double ERFINV_FAR[] = {
    -4.284246239785696e-11, 7.300794998032846e-11,   2.0645883302693778e-10, -9.272103373896827e-10,
    2.3063611358506925e-09, -5.386008165868467e-09,  1.1141501229808186e-08, -2.0207188217773958e-08,
    3.7304232880954164e-08, -9.024546489388384e-08,  3.1766631409135084e-07, -1.3562452539236187e-06,
    5.920810831908112e-06,  -2.4458702174448735e-05, 8.933962951538415e-05,  -0.00023602855409846467,
    -0.0002001588727109044, 1.073423220166284,       4.913049587233785};
// The same to 1e-8: w up to 5, its root up to 4.1.
constexpr double ERFINV_SHORT_NEAR[] = {-4.1664258367318205e-08, -1.2229925164181329e-06, 3.0664378830743207e-06,
                                        7.818556236828118e-06,   -4.1569399478976314e-05, 2.1029832430522853e-05,
                                        0.00029223703768224376,  -0.0008343284984595643,  -0.0004879059644252649,
                                        0.008525432878741631,    -0.01957356059162233,    -0.026108237766112957,
                                        0.6166006918556526,      1.5014093511310715};
constexpr double ERFINV_SHORT_FAR[] = {-4.307120824908505e-06,  -1.789132547693929e-05,  8.412027179586851e-05,
                                       -5.9252034522322644e-05, -0.00024369885562430476, 0.0008933151902061138,
                                       -0.001806054438669442,   0.002841175954694355,    -0.004232871309607785,
                                       0.006014595678400016,    0.9538583109818852,      2.983417438326945};

// erfc(a) for a >= 0. The square is taken in two parts, so that its rounding does not grow in the exponential.
MT_INLINE double erfc_positive(double x) {
    const double a = x > 40.0 ? 40.0 : x;
    const double high = double_of(bits_of(a) & ~uint64_t(0x7ffffff)), low = (a - high) * (a + high);
    const double e = exp_v(-high * high), lost = low * (1.0 - low * (0.5 - low * (1.0 / 6.0)));
    const double scaled = e - e * lost;
    return scaled * polynomial(ERFC_WHOLE, (a - 4.0) / (a + 4.0)) / (1.0 + 2.0 * a);
}
MT_INLINE float erfc_v(float x) {
    const float b = std::fabs(x);
    const double a = b > 10.25f ? 10.25f : b;  // from 10.1 on the result is 0
    const double s = -a * a, t = s * 1.44269504088896338700e+00 + ROUND_MAGIC_D;
    const double r = s - (t - ROUND_MAGIC_D) * 6.93147180559945286227e-01;
    const double e = double_of(bits_of(polynomial(EXP_SHORT, r)) + (bits_of(t) << 52));
    const double v = e * polynomial(ERFC_SHORT, 3.0 * reciprocal_short(a + 3.0));
    return (float)(x < 0.0f ? 2.0 - v : v);
}
MT_INLINE double erf_whole(double x) {
    const double a = std::fabs(x), z = x * x;
    const double near = a + a * (0.128379167095512574 + z * polynomial(ERF_NEAR, z));
    return std::copysign(a < 1.0 ? near : 1.0 - erfc_positive(a), x);
}

// NaN outside of [-1, 1], infinite at its ends.
MT_INLINE double erfinv_v(double x) {
    const double w = -log_v((1.0 - x) * (1.0 + x)), s = std::sqrt(w);
    const double near = polynomial(ERFINV_NEAR, w * (1.0 / 3.125) - 1.0);
    const double middle = polynomial(ERFINV_MIDDLE, (s - 3.25) * (1.0 / 0.75));
    const double far = polynomial(ERFINV_FAR, (s - 5.0625) * (1.0 / 1.0625));
    const double r = x * (w <= 6.25 ? near : s <= 4.0 ? middle : far);
    return std::fabs(x) == 1.0 ? std::copysign(std::numeric_limits<double>::infinity(), x) : r;
}
MT_INLINE float erfinv_v(float y) {
    const double x = y, u = (1.0 - x) * (1.0 + x), w = -log_short(u), s = std::sqrt(w);
    const double near = polynomial(ERFINV_SHORT_NEAR, w * 0.4 - 1.0);
    const double far = polynomial(ERFINV_SHORT_FAR, (s - 3.15) * (1.0 / 0.95));
    double r = x * (w <= 5.0 ? near : far);
    r = std::fabs(x) == 1.0 ? std::copysign(std::numeric_limits<double>::infinity(), x) : r;
    return (float)(u < 0.0 ? std::numeric_limits<double>::quiet_NaN() : r);
}

MT_INLINE double exp2_v(double x) {
    double c = x > 1025.0 ? 1025.0 : x;
    c = c < -1076.0 ? -1076.0 : c;
    const double t = c + ROUND_MAGIC_D, r = c - (t - ROUND_MAGIC_D);
    const int64_t k = (int64_t)(bits_of(t) - bits_of(ROUND_MAGIC_D));
    const uint64_t half = (uint64_t)(k + 4096) >> 1, rest = (uint64_t)(k + 4096) - half;
    return exp_reduced(r * 6.93147180559945286227e-01) * double_of((half - 2048 + 1023) << 52) *
           double_of((rest - 2048 + 1023) << 52);
}

// Logarithms to another base: the natural one of the mantissa in two parts, each times the factor in two parts.
template <int BASE> MT_INLINE double log_based(double x) {
    const bool tiny = x < 2.2250738585072014e-308;
    const double xs = tiny ? x * 18014398509481984.0 : x;
    const uint64_t ix = bits_of(xs) - 0x3fe6a09e667f3bcdULL;
    const double m = double_of((ix & 0xfffffffffffffULL) + 0x3fe6a09e667f3bcdULL);
    const uint64_t e_biased = (ix + (uint64_t(2048) << 52)) >> 52;
    const double e = (double_of(bits_of(ROUND_MAGIC_D) + e_biased) - ROUND_MAGIC_D) - 2048.0 - (tiny ? 54.0 : 0.0);
    const double f = m - 1.0, s = f / (2.0 + f), z = s * s, w = z * z;
    const double t1 = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const double t3 = 2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01);
    const double t2 = z * (6.666666666666735130e-01 + w * t3), half = 0.5 * f * f;
    const double high = double_of(bits_of(f - half) & ~uint64_t(0xffffffff));
    const double low = ((f - high) - half) + s * (half + t1 + t2);
    constexpr double FACTOR = BASE == 2 ? 1.44269504072144627571e+00 : 4.34294481878168880939e-01;
    constexpr double FACTOR_REST = BASE == 2 ? 1.67517131648865118353e-10 : 2.50829467116452752298e-11;
    constexpr double TWO = BASE == 2 ? 1.0 : 3.01029995663611771306e-01;
    constexpr double TWO_REST = BASE == 2 ? 0.0 : 3.69423907715893078616e-13;
    const double whole = e * TWO, part = high * FACTOR, sum = whole + part;
    const double rest = e * TWO_REST + ((low + high) * FACTOR_REST + low * FACTOR) + ((whole - sum) + part);
    double r = sum + rest;
    r = x == 0.0 ? -std::numeric_limits<double>::infinity() : r;
    r = x < 0.0 ? std::numeric_limits<double>::quiet_NaN() : r;
    return (x != x || x == std::numeric_limits<double>::infinity()) ? x : r;
}
MT_INLINE double log2_v(double x) { return log_based<2>(x); }
MT_INLINE double log10_v(double x) { return log_based<10>(x); }

// log(e^a + e^b), where both are infinite too.
template <class T> MT_INLINE T logaddexp_v(T a, T b) {
    const T most = a > b ? a : b, apart = a == b ? T(0) : std::fabs(a - b);
    return most + softplus_tail(apart);
}
template <class T> MT_INLINE T logaddexp2_v(T a, T b) {
    const T most = a > b ? a : b, apart = a == b ? T(0) : std::fabs(a - b);
    return most + softplus_tail(apart * T(0.69314718055994530942)) * T(1.44269504088896340736);
}

// log |gamma(x)| of float32 for x >= 0, to 1e-15 absolutely: Stirling's series from 8 on, of x + 8 below. By masks, since
// selects would make GCC split the way through a loop.
MT_INLINE double lgamma_short(double x) {
    const uint64_t small = -(uint64_t)(x < 8.0), one = bits_of(1.0);
    const double z = x + double_of(small & bits_of(8.0));
    const double u = x * (x + 7.0), product = u * (u + 6.0) * ((u + 10.0) * (u + 12.0));  // x (x + 1) ... (x + 7)
    const double i = 1.0 / z, w = i * i;
    double p = 6.41025641025641026e-03;
    p = p * w - 1.91752691752691753e-03;
    p = p * w + 8.41750841750841751e-04;
    p = p * w - 5.95238095238095238e-04;
    p = p * w + 7.93650793650793651e-04;
    p = p * w - 2.77777777777777778e-03;
    p = p * w + 8.33333333333333333e-02;
    const double below = log_normal(double_of((bits_of(product) & small) | (one & ~small)), 0.0);
    const double r = (z - 0.5) * log_normal(z, 0.0) - z + 0.918938533204672742 + p * i - below;
    const uint64_t zero = -(uint64_t)((x == 1.0) | (x == 2.0));
    return double_of(bits_of(r) & ~zero);
}
MT_INLINE float lgamma_positive(float x) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    const float r = (float)lgamma_short((double)x);
    return (x == inf) | (x == 0.0f) ? inf : r;
}
// Below 0 by reflection: the sine of pi times the distance from the nearest whole number. Infinite at whole numbers.
MT_INLINE float lgamma_any(float v) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    const double x = v, a = std::fabs(x), above = lgamma_short(a);
    const double f = a - ((a + ROUND_MAGIC_D) - ROUND_MAGIC_D), r = f * 3.14159265358979323846, z = r * r;
    double s = 1.58969099521155010221e-10;
    s = s * z - 2.50507602534068634195e-08;
    s = s * z + 2.75573137070700676789e-06;
    s = s * z - 1.98412698298579493134e-04;
    s = s * z + 8.33333333332248946124e-03;
    s = s * z - 1.66666666666666324348e-01;
    const double below = (1.1447298858494001741 - log_normal(std::fabs(r * (1.0 + z * s)) * a, 0.0)) - above;
    const uint64_t positive = -(uint64_t)(x > 0.0), ends = -(uint64_t)((a == inf) | (!(x > 0.0) & (f == 0.0)));
    const uint64_t finite = (bits_of(above) & positive) | (bits_of(below) & ~positive);
    return (float)double_of((finite & ~ends) | (bits_of(inf) & ends));
}

// The next number from a on towards b.
MT_INLINE float nextafter_v(float a, float b) {
    const int32_t bits = (int32_t)bits_of(a), step = ((a < b) == (bits >= 0)) ? 1 : -1;
    const float tiny = float_of((bits_of(b) & 0x80000000u) | 1u),
                moved = a == 0.0f ? tiny : float_of((uint32_t)(bits + step));
    return (a != a) | (b != b) ? a + b : a == b ? b : moved;
}
MT_INLINE double nextafter_v(double a, double b) {
    const int64_t bits = (int64_t)bits_of(a), step = ((a < b) == (bits >= 0)) ? 1 : -1;
    const double tiny = double_of((bits_of(b) & 0x8000000000000000ull) | 1u);
    const double moved = a == 0.0 ? tiny : double_of((uint64_t)(bits + step));
    return (a != a) | (b != b) ? a + b : a == b ? b : moved;
}

}  // namespace mt
