// float64 functions of one and two numbers in vectors, for CPUs that multiply and add in one step; below AVX2 the
// entries that the tables had before, the C library's, stay in use.
// Invariant: what a formula does not cover (zeros, infinities, NaN, what is very large or small) goes to the library.
#include "cpu.h"
#include "math_wide.h"
#include "pointwise.h"

namespace mt {
namespace {

// A stretch with an argument or a pair that the formula does not cover is done wholly by the library.
constexpr int64_t STRETCH = 128;

template <class Op> struct Unary {
    static inline UnaryFn below = nullptr;
    static void run(char* out, const char* a, int64_t n, Params& p) {
        if (cpu_level < AVX2) return below(out, a, n, p);
        at_level(MT_BODY {
            double* o = reinterpret_cast<double*>(out);
            const double* x = reinterpret_cast<const double*>(a);
            const int64_t all = n;
            for (int64_t at = 0; at < all; at += STRETCH) {
                const int64_t end = all - at < STRETCH ? all : at + STRETCH;
                int64_t outside = 0;
                for (int64_t i = at; i < end; ++i) outside |= !Op::covers(x[i]);
                if (MT_UNLIKELY(outside)) {
                    below(out + at * (int64_t)sizeof(double), a + at * (int64_t)sizeof(double), end - at, p);
                } else {
#pragma GCC ivdep
                    for (int64_t i = at; i < end; ++i) o[i] = Op::of(x[i]);
                }
            }
        });
    }
    static void enter(int op) {
        below = kernels.unary[op][N_F64].fn;
        kernels.unary[op][N_F64].fn = run;
    }
};

// clang-format off: a table
struct Everywhere { static MT_INLINE bool covers(double) { return true; } };
struct Atan : Everywhere { static MT_INLINE double of(double x) { return atan_wide(x); } };
struct Asin : Everywhere { static MT_INLINE double of(double x) { return asin_wide(x); } };
struct Acos : Everywhere { static MT_INLINE double of(double x) { return acos_wide(x); } };
struct Atanh : Everywhere { static MT_INLINE double of(double x) { return atanh_wide(x); } };
struct Erfc : Everywhere { static MT_INLINE double of(double x) { return erfc_wide(x); } };
struct Tan {
    static MT_INLINE double of(double x) { return tan_wide(x); }
    static MT_INLINE bool covers(double x) { return std::fabs(x) <= TRIG_LIMIT; }
};
// clang-format on

struct Atan2 {
    static MT_INLINE double of(double y, double x) { return atan2_wide(y, x); }
    static double library(double y, double x) { return std::atan2(y, x); }
    static MT_INLINE bool covers(double y, double x) {
        const double a = std::fabs(y), b = std::fabs(x);
        return (a > 1e-150) & (a < 1e150) & (b > 1e-150) & (b < 1e150);
    }
};
struct Pow {
    static MT_INLINE double of(double a, double b) { return pow_wide(a, b); }
    static double library(double a, double b) { return std::pow(a, b); }
    static MT_INLINE bool covers(double a, double b) {
        return (a >= std::numeric_limits<double>::min()) & (a < std::numeric_limits<double>::infinity()) &
               (std::fabs(b) < 1e15);
    }
};

template <class Op, bool ONE> struct Binary {
    static inline BinaryFn below = nullptr;
    static void run(char* out, const char* a, const char* b, int64_t n, Params& p) {
        if (cpu_level < AVX2) return below(out, a, b, n, p);
        at_level(MT_BODY {
            // Names of the body's own: what it captures could be what it writes.
            double* o = reinterpret_cast<double*>(out);
            const double *x = reinterpret_cast<const double*>(a), *y = reinterpret_cast<const double*>(b);
            const double one = *y;
            const int64_t all = n;
            for (int64_t at = 0; at < all; at += STRETCH) {
                const int64_t end = all - at < STRETCH ? all : at + STRETCH;
                int64_t outside = 0;
                for (int64_t i = at; i < end; ++i) outside |= !Op::covers(x[i], ONE ? one : y[i]);
                if (MT_UNLIKELY(outside)) {
                    for (int64_t i = at; i < end; ++i) o[i] = Op::library(x[i], ONE ? one : y[i]);
                } else {
#pragma GCC ivdep
                    for (int64_t i = at; i < end; ++i) o[i] = Op::of(x[i], ONE ? one : y[i]);
                }
            }
        });
    }
};

// Powers with one exponent that are roots, squares and the like have loops of their own: those stay.
bool is_plain_exponent(double y) { return y == 1 || y == -1 || y == 3 || std::fabs(y) == 2 || std::fabs(y) == 0.5; }
BinaryFn pow_of_one = nullptr;
void pow_vs(char* out, const char* a, const char* b, int64_t n, Params& p) {
    (is_plain_exponent(*reinterpret_cast<const double*>(b)) ? pow_of_one : Binary<Pow, true>::run)(out, a, b, n, p);
}

}  // namespace

void register_wide() {
    Unary<Atan>::enter(OP_ATAN);
    Unary<Asin>::enter(OP_ASIN);
    Unary<Acos>::enter(OP_ACOS);
    Unary<Atanh>::enter(OP_ATANH);
    Unary<Erfc>::enter(OP_ERFC);
    Unary<Tan>::enter(OP_TAN);
    BinaryKernel& atan2 = kernels.binary[OP_ATAN2 - BINARY_BEGIN][N_F64];
    Binary<Atan2, false>::below = atan2.vv;
    atan2.vv = Binary<Atan2, false>::run;
    BinaryKernel& pow = kernels.binary[OP_POW - BINARY_BEGIN][N_F64];
    Binary<Pow, false>::below = pow.vv;
    Binary<Pow, true>::below = pow_of_one = pow.vs;
    pow.vv = Binary<Pow, false>::run;
    pow.vs = pow_vs;
}

}  // namespace mt
