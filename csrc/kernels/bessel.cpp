// Modified Bessel functions, float32 and float64. Series in Chebyshev polynomials of x / 2 - 2 and 32 / x - 2 (first kind,
// up to 8 and from there on), or x^2 - 2 and 8 / x - 2 (second kind, about 2), with coefficients computed to 160 bits.
// Invariant: everything is computed in double and rounded once; no branches, so that loops become vectors.
//
//   bessel(kind, x.., out.., n)     an operand: storage, offset, code; dense. Kinds below; out may be x
#include "cpu.h"
#include "lanes.h"
#include "math_core.h"
#include "windows.h"

namespace mt {
namespace {

enum Kind : int64_t { I0 = 0, I0E, I1, I1E, K0, K0E, K1, K1E, NUM_KINDS };

constexpr double I0_NEAR[] = {
    -4.41534164647933950969e-18, 3.33079451882223839259e-17, -2.43127984654795489842e-16, 1.71539128555513307339e-15,
    -1.16853328779934514061e-14, 7.67618549860493607456e-14, -4.85644678311192896315e-13, 2.95505266312963988287e-12,
    -1.72682629144155586864e-11, 9.67580903537323697276e-11, -5.18979560163526271125e-10, 2.65982372468238660327e-09,
    -1.30002500998624804870e-08, 6.04699502254191862854e-08, -2.67079385394061193240e-07, 1.11738753912010365543e-06,
    -4.41673835845875051813e-06, 1.64484480707288955941e-05, -5.75419501008210396891e-05, 1.88502885095841648871e-04,
    -5.76375574538582355691e-04, 1.63947561694133573870e-03, -4.32430999505057592908e-03, 1.05464603945949978586e-02,
    -2.37374148058994705046e-02, 4.93052842396707116657e-02, -9.49010970480476390154e-02, 1.71620901522208768597e-01,
    -3.04682672343198401865e-01, 6.76795274409476066424e-01};
constexpr double I0_FAR[] = {
    1.19365089084600630990e-18,  9.92147541217367561263e-19,  -7.23318048787475995906e-18, -4.83050448594417802858e-18,
    4.46562142029675975161e-17,  3.46122286769746121897e-17,  -2.82762398051658364795e-16, -3.42548561967721899645e-16,
    1.77256013305652631073e-15,  3.81168066935262240410e-15,  -9.55484669882830730844e-15, -4.15056934728722223773e-14,
    1.54008621752140995659e-14,  3.85277838274214258693e-13,  7.18012445138366601474e-13,  -1.79417853150680615272e-12,
    -1.32158118404477133031e-11, -3.14991652796324164723e-11, 1.18891471078464390229e-11,  4.94060238822497005631e-10,
    3.39623202570838650682e-09,  2.26666899049817804333e-08,  2.04891858946906384031e-07,  2.89137052083475665020e-06,
    6.88975834691682453587e-05,  3.36911647825569428652e-03,  8.04490411014108786070e-01};
constexpr double I1_NEAR[] = {
    2.77791411276104637213e-18, -2.11142121435816595968e-17, 1.55363195773620054149e-16, -1.10559694773538624943e-15,
    7.60068429473540766868e-15, -5.04218550472791179211e-14, 3.22379336594557475817e-13, -1.98397439776494363874e-12,
    1.17361862988909012319e-11, -6.66348972350202712114e-11, 3.62559028155211724982e-10, -1.88724975172282944073e-09,
    9.38153738649577259021e-09, -4.44505912879632805340e-08, 2.00329475355213532662e-07, -8.56872026469545474686e-07,
    3.47025130813767845127e-06, -1.32731636560394358559e-05, 4.78156510755005422094e-05, -1.61760815825896743427e-04,
    5.12285956168575759041e-04, -1.51357245063125315371e-03, 4.15642294431288819578e-03, -1.05640848946261974028e-02,
    2.47264490306265162511e-02, -5.29459812080949887569e-02, 1.02643658689847094845e-01, -1.76416518357834062325e-01,
    2.52587186443633648913e-01};
constexpr double I1_FAR[] = {
    -1.24219327519491523581e-18, -9.31417886732686303674e-19, 7.51729631084211137781e-18,  4.41434832307170380104e-18,
    -4.65030536848935801117e-17, -3.20952592199342375552e-17, 2.96262899764595008042e-16,  3.30820231092092852048e-16,
    -1.88035477551078250977e-15, -3.81440307243700753955e-15, 1.04202769841288020693e-14,  4.27244001671195104712e-14,
    -2.10154184277266429961e-14, -4.08355111109219740355e-13, -7.19855177624590835713e-13, 2.03562854414708955583e-12,
    1.41258074366137818979e-11,  3.25260358301548843865e-11,  -1.89749581235054125546e-11, -5.58974346219658378312e-10,
    -3.83538038596423699897e-09, -2.63146884688951959125e-08, -2.51223623787020883740e-07, -3.88256480887769059367e-06,
    -1.10588938762623713438e-04, -9.76109749136146870319e-03, 7.78576235018280105038e-01};
constexpr double K0_NEAR[] = {1.37446543588075083638e-16, 4.25981614279108258320e-14, 1.03496952576336252763e-11,
                              1.90451637722020905143e-09, 2.53479107902614938779e-07, 2.28621210311945191954e-05,
                              1.26461541144692597542e-03, 3.59799365153615005597e-02, 3.44289899924628495231e-01,
                              -5.35327393233902770753e-01};
constexpr double K0_FAR[] = {
    5.30043377117733540342e-18, -1.64758059398426321219e-17, 5.21039177764355431656e-17, -1.67823112575490059295e-16,
    5.51205599940433350344e-16, -1.84859337792090710149e-15, 6.34007647627664605718e-15, -2.22751332674629646893e-14,
    8.03289077506837463424e-14, -2.98009692314817841985e-13, 1.14034058820734413572e-12, -4.51459788337451925245e-12,
    1.85594911495492644889e-11, -7.95748924447739647906e-11, 3.57739728140032832431e-10, -1.69753450938906141888e-09,
    8.57403401741422527098e-09, -4.66048989768794783302e-08, 2.76681363944501486093e-07, -1.83175552271911953169e-06,
    1.39498137188765002054e-05, -1.28495495816278017340e-04, 1.56988388573005331963e-03, -3.14481013119645019804e-02,
    2.44030308206595547560e+00};
constexpr double K1_NEAR[] = {-7.02386347938628815437e-18, -2.42744985051936596208e-15, -6.66690169419932948124e-13,
                              -1.41148839263352781378e-10, -2.21338763073472598836e-08, -2.43340614156596836442e-06,
                              -1.73028895751305199311e-04, -6.97572385963986414670e-03, -1.22611180822657150902e-01,
                              -3.53155960776544874946e-01, 1.52530022733894776721e+00};
constexpr double K1_FAR[] = {
    -5.75674448207330252006e-18, 1.79405104788635718112e-17, -5.68946284919364841076e-17, 1.83809357524304548385e-16,
    -6.05704727064301766321e-16, 2.03870316623986096527e-15, -7.01983708921476847210e-15, 2.47715442421959878246e-14,
    -8.97670518201014628865e-14, 3.34841966605224312098e-13, -1.28917396094982285376e-12, 5.13963967348234320830e-12,
    -2.12996783842779092206e-11, 9.21831518760531460414e-11, -4.19035475934192541845e-10, 2.01504975519703465939e-09,
    -1.03457624656780967915e-08, 5.74108412545004947244e-08, -3.50196060308781255723e-07, 2.40648494783721698524e-06,
    -1.93619797416608300817e-05, 1.95215518471351619830e-04, -2.85781685962277921115e-03, 1.03923736576817235533e-01,
    2.72062619048444265246e+00};

// Coefficients from the highest on, |x| <= 2 (Clenshaw).
template <int N> MT_INLINE double series(const double (&c)[N], double x) {
    double b0 = c[0], b1 = 0, b2 = 0;
#pragma GCC unroll 32
    for (int i = 1; i < N; ++i) {
        b2 = b1;
        b1 = b0;
        b0 = x * b1 - b2 + c[i];
    }
    return 0.5 * (b0 - b2);
}

// Of the first kind for a >= 0, times exp(-a).
MT_INLINE double first_0(double a) {
    const double near = series(I0_NEAR, a * 0.5 - 2.0), far = series(I0_FAR, 32.0 / a - 2.0) / std::sqrt(a);
    return a <= 8.0 ? near : far;
}
MT_INLINE double first_1(double a) {
    const double near = series(I1_NEAR, a * 0.5 - 2.0) * a, far = series(I1_FAR, 32.0 / a - 2.0) / std::sqrt(a);
    return a <= 8.0 ? near : far;
}
// Of the second kind, times exp(x) if SCALED.
template <bool SCALED> MT_INLINE double settled(double x, double near, double far) {
    const double e = exp_v(SCALED ? x : -x), value = x <= 2.0 ? (SCALED ? near * e : near) : SCALED ? far : far * e;
    const double edge = x == 0.0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    return x > 0.0 ? value : edge;
}
template <bool SCALED> MT_INLINE double second_0(double x) {
    const double c = x < 2.0 ? x : 2.0, i0 = series(I0_NEAR, c * 0.5 - 2.0) * exp_v(c);
    return settled<SCALED>(x, series(K0_NEAR, c * c - 2.0) - log_v(0.5 * c) * i0,
                           series(K0_FAR, 8.0 / x - 2.0) / std::sqrt(x));
}
template <bool SCALED> MT_INLINE double second_1(double x) {
    const double c = x < 2.0 ? x : 2.0, i1 = series(I1_NEAR, c * 0.5 - 2.0) * c * exp_v(c);
    return settled<SCALED>(x, log_v(0.5 * c) * i1 + series(K1_NEAR, c * c - 2.0) / c,
                           series(K1_FAR, 8.0 / x - 2.0) / std::sqrt(x));
}

template <int64_t KIND> MT_INLINE double value_of(double x) {
    const double a = std::fabs(x);
    if constexpr (KIND == I0) return exp_v(a) * first_0(a);
    else if constexpr (KIND == I0E) return first_0(a);
    else if constexpr (KIND == I1) return std::copysign(exp_v(a) * first_1(a), x);
    else if constexpr (KIND == I1E) return std::copysign(first_1(a), x);
    else if constexpr (KIND == K0) return second_0<false>(x);
    else if constexpr (KIND == K0E) return second_0<true>(x);
    else if constexpr (KIND == K1) return second_1<false>(x);
    else return second_1<true>(x);
}

template <int64_t KIND, class T> void run(const Dense& x, const Dense& out, int64_t n) {
    GilRelease unlocked(saturated_mul(n, 32));
    parallel_for(n, GRAIN / 32, [&](int64_t begin, int64_t end) {
        const T* from = x.as<const T>();
        T* to = out.as<T>();
        at_level(MT_BODY {
            const T* a = from;
            T* o = to;
#pragma GCC ivdep
            for (int64_t i = begin; i < end; ++i) o[i] = (T)value_of<KIND>((double)a[i]);
        });
    });
}

template <class T> void run_kind(int64_t kind, const Dense& x, const Dense& out, int64_t n) {
    switch (kind) {
        case I0: return run<I0, T>(x, out, n);
        case I0E: return run<I0E, T>(x, out, n);
        case I1: return run<I1, T>(x, out, n);
        case I1E: return run<I1E, T>(x, out, n);
        case K0: return run<K0, T>(x, out, n);
        case K0E: return run<K0E, T>(x, out, n);
        case K1: return run<K1, T>(x, out, n);
        default: return run<K1E, T>(x, out, n);
    }
}

PyObject* bessel(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("bessel", nargs, 8);
        const int64_t kind = as_int(args[0]), n = parse_count(args[7]);
        if (kind < 0 || kind >= NUM_KINDS) fail(PyExc_ValueError, "%lld is no Bessel function", (long long)kind);
        const Dense x = parse_dense(args + 1, n), out = parse_dense(args + 4, n);
        expect_code("bessel", out.code, x.code);
        if (x.code == F32) run_kind<float>(kind, x, out, n);
        else if (x.code == F64) run_kind<double>(kind, x, out, n);
        else fail_dtype("bessel", x.code);
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef bessel_methods[];  // no other file needs to know
PyMethodDef bessel_methods[] = {MT_METHOD("bessel", bessel, "A modified Bessel function of each element."),
                                {nullptr, nullptr, 0, nullptr}};
