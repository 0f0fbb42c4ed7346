// Special functions of one and two operands, and orthogonal polynomials, for float32 and float64.
// Invariant: values are computed in double and rounded once (trigamma alone in its operand's type, as PyTorch does).
//
//   frexp(x.., mantissa.., exponent.., n)     an operand: storage, offset, code; dense. The exponents are int32
#include "lanes.h"
#include "math_core.h"
#include "math_special.h"
#include "pointwise_range.h"
#include "windows.h"

namespace mt {
namespace {

constexpr double PI = 3.14159265358979323846, INF = std::numeric_limits<double>::infinity(),
                 NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN(), ROOT_HALF = 0.70710678118654752440;

// ---------------------------------------------------------------- one operand

// e^(x x) erfc(x). What ERFC_WHOLE says of positive arguments; the square of a negative one is taken in two parts.
double erfcx(double x) {
    if (x < -26.7) return INF;
    const double a = std::fabs(x);
    const double positive =
        a > 1e10 ? 0.56418958354775628695 / a : polynomial(ERFC_WHOLE, (a - 4.0) / (a + 4.0)) / (1.0 + 2.0 * a);
    if (!(x < 0)) return positive;
    const double high = double_of(bits_of(a) & ~uint64_t(0x7ffffff)), low = (a - high) * (a + high);
    return 2.0 * std::exp(high * high) * std::exp(low) - positive;
}

double log_ndtr(double x) {
    const double t = x * ROOT_HALF;
    return x < -1.0 ? std::log(erfcx(-t) * 0.5) - t * t : std::log1p(-std::erfc(t) * 0.5);
}

// The lower tail: Newton's steps for the logarithm of the distribution, which is concave there.
double ndtri_tail(double p) {
    const double logarithm = std::log(p), y = std::sqrt(-2.0 * logarithm);
    double x = -(y - std::log(y * 2.5066282746310002) / y);
    for (int i = 0; i < 5; ++i) {
        const double rate = 0.79788456080286535588 / erfcx(-x * ROOT_HALF);  // density over distribution
        const double step = (log_ndtr(x) - logarithm) / rate;
        x -= step;
        if (std::fabs(step) < 1e-16 * std::fabs(x)) break;
    }
    return x;
}
double ndtri(double p) {
    if (p == 0) return -INF;
    if (p == 1) return INF;
    if (!(p > 0 && p < 1)) return NOT_A_NUMBER;
    if (p < 0.02) return ndtri_tail(p);
    if (p > 0.98) return -ndtri_tail(1 - p);
    return erfinv_v(2 * p - 1) * 1.41421356237309504880;
}

double entr(double x) { return x != x ? x : x > 0 ? -x * std::log(x) : x == 0 ? 0 : -INF; }
double spherical_j0(double x) { return x == 0 ? 1.0 : std::fabs(x) == INF ? 0.0 : std::sin(x) / x; }

#define MT_SPECIAL(name, expression) \
    struct name { \
        static double run(double x) { return expression; } \
    };
// The C library's, but for infinities, which are NaN in PyTorch.
MT_SPECIAL(BesselJ0, std::fabs(x) == INF ? NOT_A_NUMBER : ::j0(x))
MT_SPECIAL(BesselJ1, std::fabs(x) == INF ? NOT_A_NUMBER : ::j1(x))
MT_SPECIAL(BesselY0, x < 0 || x == INF ? NOT_A_NUMBER : x == 0 ? -INF : ::y0(x))
MT_SPECIAL(BesselY1, x < 0 || x == INF ? NOT_A_NUMBER : x == 0 ? -INF : ::y1(x))
MT_SPECIAL(SphericalJ0, spherical_j0(x))
MT_SPECIAL(Erfcx, erfcx(x))
MT_SPECIAL(LogNdtr, log_ndtr(x))
MT_SPECIAL(Ndtri, ndtri(x))
MT_SPECIAL(Entr, entr(x))

template <class Op, class T> void one_operand(char* out, const char* a, int64_t n, Params&) {
    T* o = reinterpret_cast<T*>(out);
    const T* x = reinterpret_cast<const T*>(a);
    for (int64_t i = 0; i < n; ++i) o[i] = (T)Op::run((double)x[i]);
}
template <class Op> void enter_one(int op) {
    kernels.unary[op][N_F32] = {one_operand<Op, float>, F32};
    kernels.unary[op][N_F64] = {one_operand<Op, double>, F64};
}

// In the operand's type. A number below zero for eps: none is given.
template <class T> MT_CLONES void logit(char* out, const char* a, int64_t n, Params& p) {
    T* o = reinterpret_cast<T*>(out);
    const T* x = reinterpret_cast<const T*>(a);
    const T low = (T)p.numbers[0], high = T(1) - low;
    if (low < T(0)) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = log_v(x[i] / (T(1) - x[i]));
        return;
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
        const T m = (x[i] > low || x[i] != x[i]) ? x[i] : low, c = (m < high || m != m) ? m : high;
        o[i] = log_v(c / (T(1) - c));
    }
}

// ---------------------------------------------------------------- two operands

// Hurwitz' zeta function for positive q: the first terms, and Euler's and Maclaurin's formula for the rest.
double zeta_positive(double s, double q) {
    // B(2k) / (2k)!
    static const double B[] = {8.333333333333333e-02,  -1.388888888888889e-03, 3.306878306878307e-05,
                               -8.267195767195768e-07, 2.0876756987868098e-08, -5.284190138687493e-10,
                               1.3382536530684679e-11, -3.389680296322583e-13, 8.586062056277845e-15,
                               -2.174868698558062e-16, 5.5090028283602295e-18, -1.395446468581252e-19};
    double sum = 0, a = q;
    for (int i = 0; i < 10 || a < 10; ++i, a += 1) {
        const double term = std::pow(a, -s);
        sum += term;
        if (term < 1e-17 * sum) return sum;
    }
    const double power = std::pow(a, -s);
    sum += power * a / (s - 1) + 0.5 * power;
    double factor = s * power / a;
    for (int k = 0; k < 12; ++k) {
        const double term = B[k] * factor;
        sum += term;
        if (std::fabs(term) < 1e-17 * std::fabs(sum)) break;
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (a * a);
    }
    return sum;
}
double zeta(double s, double q) {
    if (s != s || q != q) return NOT_A_NUMBER;
    if (s == 1) return INF;
    if (s < 1) return NOT_A_NUMBER;
    if (q > 0) return q == INF ? NOT_A_NUMBER : zeta_positive(s, q);
    if (q == std::floor(q)) return INF;
    if (s != std::floor(s)) return NOT_A_NUMBER;
    // The terms below zero are a stretch of another such sum, mirrored.
    const double part = -q - std::floor(-q), sign = std::fmod(s, 2.0) == 0 ? 1.0 : -1.0;
    return sign * (zeta_positive(s, part) - zeta_positive(s, 1 - q)) + zeta_positive(s, 1 - part);
}

// PyTorch's series, in the precision of its argument, so that both err alike near the poles.
template <class T> T trigamma(T x) {
    T sign = 1, result = 0;
    if (x < T(0.5)) {
        sign = -1;
        const T sine = std::sin(T(PI) * x);
        result -= T(PI * PI) / (sine * sine);
        x = 1 - x;
    }
    for (int i = 0; i < 6; ++i) {
        result += 1 / (x * x);
        x += 1;
    }
    const T z = 1 / (x * x);
    result += (1 + 1 / (2 * x) + z * (T(1.0 / 6) - z * (T(1.0 / 30) - z * T(1.0 / 42)))) / x;
    return sign * result;
}
double polygamma(double x, double n) {
    const double sign = std::fmod(n, 2.0) == 0 ? -1.0 : 1.0;
    return sign * (n <= 170 ? std::tgamma(n + 1) : INF) * zeta(n + 1, x);
}

double xlog1py(double x, double y) { return y != y ? y : x == 0 ? 0 : x * std::log1p(y); }
double ldexp_of(double x, double n) { return std::ldexp(x, (int)(n > 5000 ? 5000 : n < -5000 ? -5000 : n)); }

#define MT_SPECIAL_PAIR(name, expression) \
    struct name : Stateless { \
        using Stateless::Stateless; \
        template <class T> T run(T x, T y) const { return (T)(expression); } \
    };
MT_SPECIAL_PAIR(Zeta, zeta(x, y))
MT_SPECIAL_PAIR(Polygamma, y == T(1) ? (double)trigamma(x) : polygamma(x, y))
MT_SPECIAL_PAIR(Xlog1py, xlog1py(x, y))
MT_SPECIAL_PAIR(Ldexp, ldexp_of(x, y))

// ---------------------------------------------------------------- polynomials

// Recurrences end here; of higher degrees the closed or the asymptotic form is as exact and takes no time.
constexpr double FAR_DEGREE = 16384;

double finite(double x) { return std::fabs(x) < INF ? x : NOT_A_NUMBER; }

// By angles inside [-1, 1] and by hyperbolic ones outside; at -x the kinds V and W change places.
enum Chebyshev { T_, U_, V_, W_ };
double far_chebyshev(Chebyshev kind, double x, double n) {
    const double sign = x < 0 && std::fmod(n, 2.0) == 1 ? -1.0 : 1.0, size = std::fabs(x);
    const bool inside = size < 1;
    const double a = inside ? std::acos(size) : std::acosh(size);
    const auto even = [&](double k) { return inside ? std::cos(k * a) : std::cosh(k * a); };
    const auto odd = [&](double k) { return inside ? std::sin(k * a) : std::sinh(k * a); };
    if (kind == T_) return finite(sign * even(n));
    if (kind == U_) return finite(sign * (size == 1 ? n + 1 : odd(n + 1) / odd(1.0)));
    if ((x < 0) == (kind == V_)) return finite(sign * (size == 1 ? 2 * n + 1 : odd(n + 0.5) / odd(0.5)));
    return finite(sign * (even(n + 0.5) / even(0.5)));
}
double far_legendre(double x, double n) {
    if (std::fabs(x) == 1) return x < 0 && std::fmod(n, 2.0) == 1 ? -1.0 : 1.0;
    if (!(std::fabs(x) < 1)) return NOT_A_NUMBER;
    const double a = std::acos(x);
    return finite(std::sqrt(2 / (PI * n * std::sin(a))) * std::cos((n + 0.5) * a - PI / 4));
}
double far_laguerre(double x, double n) {
    if (x == 0) return 1.0;
    const double r = std::sqrt(n * std::fabs(x)), front = std::exp(x / 2) / std::sqrt(PI * r);
    return finite(x > 0 ? front * std::cos(2 * r - PI / 4) : front * std::exp(2 * r) / 2);
}

// `first(x)` is the polynomial of degree 1, `next(x, k, q, p)` that of degree k + 1 by those of k and k - 1.
template <class First, class Next, class Far>
MT_INLINE double by_recurrence(double x, double degree, First first, Next next, Far far) {
    // As in PyTorch, whose degrees are whole numbers of 64 bits: others have become negative ones.
    const double n = std::trunc(degree);
    if (!(std::fabs(n) < 9223372036854775808.0) || n < 0) return 0.0;
    if (n == 0) return 1.0;
    if (n > FAR_DEGREE) return far(x, n);
    double p = 1.0, q = first(x);
    for (int64_t k = 1; k < (int64_t)n; ++k) {
        const double following = next(x, (double)k, q, p);
        p = q;
        q = following;
    }
    return q;
}
MT_INLINE double chebyshev(Chebyshev kind, double x, double n) {
    return by_recurrence(
        x, n, [=](double y) { return kind == T_   ? y
                                     : kind == U_ ? 2 * y
                                     : kind == V_ ? 2 * y - 1
                                                  : 2 * y + 1; },
        [](double y, double, double q, double p) { return 2 * y * q - p; },
        [=](double y, double k) { return far_chebyshev(kind, y, k); });
}
double nothing_there(double, double) { return NOT_A_NUMBER; }
double hermite_h(double x, double n) {
    return by_recurrence(
        x, n, [](double y) { return 2 * y; },
        [](double y, double k, double q, double p) { return 2 * y * q - 2 * k * p; }, nothing_there);
}
double hermite_he(double x, double n) {
    return by_recurrence(
        x, n, [](double y) { return y; }, [](double y, double k, double q, double p) { return y * q - k * p; },
        nothing_there);
}
double laguerre(double x, double n) {
    return by_recurrence(
        x, n, [](double y) { return 1 - y; },
        [](double y, double k, double q, double p) { return ((2 * k + 1 - y) * q - k * p) / (k + 1); }, far_laguerre);
}
double legendre(double x, double n) {
    return by_recurrence(
        x, n, [](double y) { return y; },
        [](double y, double k, double q, double p) { return ((2 * k + 1) * y * q - k * p) / (k + 1); }, far_legendre);
}
MT_SPECIAL_PAIR(ChebyshevT, chebyshev(T_, x, y))
MT_SPECIAL_PAIR(ChebyshevU, chebyshev(U_, x, y))
MT_SPECIAL_PAIR(ChebyshevV, chebyshev(V_, x, y))
MT_SPECIAL_PAIR(ChebyshevW, chebyshev(W_, x, y))
MT_SPECIAL_PAIR(ShiftedT, chebyshev(T_, 2 * (double)x - 1, y))
MT_SPECIAL_PAIR(ShiftedU, chebyshev(U_, 2 * (double)x - 1, y))
MT_SPECIAL_PAIR(ShiftedV, chebyshev(V_, 2 * (double)x - 1, y))
MT_SPECIAL_PAIR(ShiftedW, chebyshev(W_, 2 * (double)x - 1, y))
MT_SPECIAL_PAIR(HermiteH, hermite_h(x, y))
MT_SPECIAL_PAIR(HermiteHe, hermite_he(x, y))
MT_SPECIAL_PAIR(Laguerre, laguerre(x, y))
MT_SPECIAL_PAIR(Legendre, legendre(x, y))

template <class Op, class T> void two_operands(char* out, const char* a, const char* b, int64_t n, Params& p) {
    T* o = reinterpret_cast<T*>(out);
    const T *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b);
    const Op op(p, T());
    for (int64_t i = 0; i < n; ++i) o[i] = op.run(x[i], y[i]);
}
template <class Op> void enter_two(int op) {
    kernels.binary[op - BINARY_BEGIN][N_F32] = {two_operands<Op, float>, nullptr, nullptr, F32};
    kernels.binary[op - BINARY_BEGIN][N_F64] = {two_operands<Op, double>, nullptr, nullptr, F64};
}

// ---------------------------------------------------------------- mantissas and exponents

template <class T> void split_floats(const Dense& x, const Dense& mantissa, const Dense& exponent, int64_t n) {
    const T* a = reinterpret_cast<const T*>(x.data);
    T* m = reinterpret_cast<T*>(mantissa.data);
    int32_t* e = reinterpret_cast<int32_t*>(exponent.data);
    for (int64_t i = 0; i < n; ++i) {
        int power = 0;
        m[i] = std::frexp(a[i], &power);
        e[i] = std::isfinite(a[i]) ? power : 0;
    }
}

PyObject* frexp_of(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("frexp", nargs, 10);
        const int64_t n = parse_count(args[9]);
        const Dense x = parse_dense(args, n), mantissa = parse_dense(args + 3, n), exponent = parse_dense(args + 6, n);
        expect_code("frexp", mantissa.code, x.code);
        expect_code("frexp", exponent.code, I32);
        if (x.code == F32) split_floats<float>(x, mantissa, exponent, n);
        else if (x.code == F64) split_floats<double>(x, mantissa, exponent, n);
        else fail_dtype("frexp", x.code);
        Py_RETURN_NONE;
    });
}

}  // namespace

void register_special() {
    // clang-format off: a table
    enter_one<BesselJ0>(OP_BESSEL_J0); enter_one<BesselJ1>(OP_BESSEL_J1); enter_one<BesselY0>(OP_BESSEL_Y0);
    enter_one<BesselY1>(OP_BESSEL_Y1); enter_one<SphericalJ0>(OP_SPHERICAL_BESSEL_J0); enter_one<Erfcx>(OP_ERFCX);
    enter_one<LogNdtr>(OP_LOG_NDTR); enter_one<Ndtri>(OP_NDTRI); enter_one<Entr>(OP_ENTR);
    kernels.unary[OP_LOGIT][N_F32] = {logit<float>, F32};
    kernels.unary[OP_LOGIT][N_F64] = {logit<double>, F64};
    enter_two<Zeta>(OP_ZETA); enter_two<Polygamma>(OP_POLYGAMMA); enter_two<Xlog1py>(OP_XLOG1PY);
    enter_two<Ldexp>(OP_LDEXP);
    enter_two<ChebyshevT>(OP_CHEBYSHEV_POLYNOMIAL_T); enter_two<ChebyshevU>(OP_CHEBYSHEV_POLYNOMIAL_U);
    enter_two<ChebyshevV>(OP_CHEBYSHEV_POLYNOMIAL_V); enter_two<ChebyshevW>(OP_CHEBYSHEV_POLYNOMIAL_W);
    enter_two<ShiftedT>(OP_SHIFTED_CHEBYSHEV_POLYNOMIAL_T); enter_two<ShiftedU>(OP_SHIFTED_CHEBYSHEV_POLYNOMIAL_U);
    enter_two<ShiftedV>(OP_SHIFTED_CHEBYSHEV_POLYNOMIAL_V); enter_two<ShiftedW>(OP_SHIFTED_CHEBYSHEV_POLYNOMIAL_W);
    enter_two<HermiteH>(OP_HERMITE_POLYNOMIAL_H); enter_two<HermiteHe>(OP_HERMITE_POLYNOMIAL_HE);
    enter_two<Laguerre>(OP_LAGUERRE_POLYNOMIAL_L); enter_two<Legendre>(OP_LEGENDRE_POLYNOMIAL_P);
    // clang-format on
}

}  // namespace mt

using namespace mt;
extern PyMethodDef special_methods[];  // no other file needs to know
PyMethodDef special_methods[] = {MT_METHOD("frexp", frexp_of, "Mantissas and exponents of floats."),
                                 {nullptr, nullptr, 0, nullptr}};
