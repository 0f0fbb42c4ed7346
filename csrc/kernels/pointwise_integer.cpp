// Range kernels for integers and bool. Invariant: arithmetic wraps (it is done unsigned), and a division by zero is
// reported through Params instead of trapping.
#include "pointwise_range.h"

namespace mt {
namespace {

template <class T> using Unsigned = typename std::make_unsigned<T>::type;
template <class T> constexpr bool is_signed_v = std::is_signed<T>::value;
template <class T> MT_INLINE bool negative(T x) {
    if constexpr (is_signed_v<T>) return x < 0;
    else return false;
}

template <class Op, class T, class R> MT_INLINE void range(char* out, const char* a, int64_t n, Params&) {
    R* o = reinterpret_cast<R*>(out);
    const T* x = reinterpret_cast<const T*>(a);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = (R)Op::run(x[i]);
}
#define MT_UNARY(name, expression) \
    struct name { \
        template <class T> static MT_INLINE T run(T x) { return (T)(expression); } \
    };
MT_UNARY(Neg, Unsigned<T>(0) - Unsigned<T>(x))
MT_UNARY(Abs, negative(x) ? Unsigned<T>(0) - Unsigned<T>(x) : Unsigned<T>(x))
MT_UNARY(Sign, (x > T(0)) - (int)negative(x))
MT_UNARY(Square, Unsigned<T>(x) * Unsigned<T>(x))
MT_UNARY(Relu, negative(x) ? T(0) : x)
MT_UNARY(BitwiseNot, ~x)
MT_UNARY(Positive, x)
MT_UNARY(LogicalNot, x == T(0))
MT_UNARY(Never, x != x)
MT_UNARY(Always, x == x)
MT_UNARY(SignBit, negative(x))

MT_BINARY(Add, (T)(Unsigned<T>(a) + Unsigned<T>(b)))
MT_BINARY(Sub, (T)(Unsigned<T>(a) - Unsigned<T>(b)))
MT_BINARY(Mul, (T)(Unsigned<T>(a) * Unsigned<T>(b)))
MT_BINARY(Maximum, a > b ? a : b)
MT_BINARY(Minimum, a < b ? a : b)
MT_BINARY(Eq, a == b)
MT_BINARY(Ne, a != b)
MT_BINARY(Lt, a < b)
MT_BINARY(Le, a <= b)
MT_BINARY(Gt, a > b)
MT_BINARY(Ge, a >= b)
MT_BINARY(LogicalAnd, (a != T(0)) & (b != T(0)))
MT_BINARY(LogicalOr, (a != T(0)) | (b != T(0)))
MT_BINARY(LogicalXor, (a != T(0)) != (b != T(0)))
MT_BINARY(Heaviside, a == T(0) ? b : T(a > T(0)))
MT_BINARY(And, (T)(a & b))
MT_BINARY(Or, (T)(a | b))
MT_BINARY(Xor, (T)(a ^ b))
// PyTorch defines shifts by a negative or too large amount: 0 to the left, the sign to the right. Widths are of the
// native type; narrower types agree after the truncation at the store.
// One-byte types are shifted by 1, 2 and 4 places where the amount says so: vectors of bytes have no shift by lanes.
struct LShift : Stateless {
    using Stateless::Stateless;
    template <class T> MT_INLINE T run(T a, T b) const {
        using U = Unsigned<T>;
        const U by = (U)b;  // negative amounts are too large ones
        if constexpr (sizeof(T) == 1) {
            U x = (U)a;
            x = by & 1 ? (U)(x << 1) : x;
            x = by & 2 ? (U)(x << 2) : x;
            x = by & 4 ? (U)(x << 4) : x;
            return by > 7 ? T(0) : (T)x;
        } else {
            return by >= sizeof(T) * 8 ? T(0) : (T)(U(a) << by);
        }
    }
};
struct RShift : Stateless {
    using Stateless::Stateless;
    template <class T> MT_INLINE T run(T a, T b) const {
        using U = Unsigned<T>;
        if constexpr (sizeof(T) == 1) {
            // A negative number is shifted as its complement.
            const U sign = negative(a) ? U(255) : U(0), by = (U)b > 7 ? U(is_signed_v<T> ? 7 : 8) : (U)b;
            U x = (U)((U)a ^ sign);
            x = by & 1 ? (U)(x >> 1) : x;
            x = by & 2 ? (U)(x >> 2) : x;
            x = by & 4 ? (U)(x >> 4) : x;
            return by > 7 ? T(0) : (T)(U)(x ^ sign);
        } else {
            const bool out = negative(b) || (uint64_t)b >= sizeof(T) * 8;
            if constexpr (is_signed_v<T>) return (T)(a >> (out ? T(sizeof(T) * 8 - 1) : b));
            else return out ? T(0) : (T)(a >> b);
        }
    }
};

struct AddAlpha : Stateless {
    uint64_t alpha;
    template <class T> AddAlpha(const Params& p, T x) : Stateless(p, x), alpha((uint64_t)p.get<T>()) {}
    template <class T> MT_INLINE T run(T a, T b) const {
        return (T)(Unsigned<T>(a) + Unsigned<T>(alpha) * Unsigned<T>(b));
    }
};
struct ThresholdBackward : Stateless {
    int64_t threshold;
    template <class T> ThresholdBackward(const Params& p, T x) : Stateless(p, x), threshold((int64_t)p.get<T>()) {}
    template <class T> MT_INLINE T run(T g, T x) const { return x <= (T)threshold ? T(0) : g; }
};

// Divisions: the divisor 0 is replaced by 1 and remembered; -1 is a negation, since MIN / -1 traps.
struct Division {
    bool zero = false;
    template <class T> MT_INLINE Division(const Params&, T) {}
    MT_INLINE void finish(Params& p) const {
        if (zero) p.zero_division = true;
    }
    template <class T> MT_INLINE T divisor(T b) {
        zero |= b == T(0);
        return b == T(0) ? T(1) : b;
    }
};
struct TruncDiv : Division {
    using Division::Division;
    template <class T> MT_INLINE T run(T a, T b) {
        const T d = divisor(b);
        if constexpr (is_signed_v<T>)
            if (d == T(-1)) return (T)(Unsigned<T>(0) - Unsigned<T>(a));
        return (T)(a / d);
    }
};
struct FloorDiv : Division {
    using Division::Division;
    template <class T> MT_INLINE T run(T a, T b) {
        const T d = divisor(b);
        if constexpr (is_signed_v<T>) {
            if (d == T(-1)) return (T)(Unsigned<T>(0) - Unsigned<T>(a));
            const T q = (T)(a / d);
            return (T)(q - (((a % d) != 0) & ((a < 0) != (d < 0))));
        } else {
            return (T)(a / d);
        }
    }
};
struct Fmod : Division {
    using Division::Division;
    template <class T> MT_INLINE T run(T a, T b) {
        const T d = divisor(b);
        if constexpr (is_signed_v<T>)
            if (d == T(-1)) return T(0);
        return (T)(a % d);
    }
};
struct Remainder : Division {
    using Division::Division;
    template <class T> MT_INLINE T run(T a, T b) {
        const T d = divisor(b);
        if constexpr (is_signed_v<T>) {
            if (d == T(-1)) return T(0);
            const T r = (T)(a % d);
            return (r != 0 && ((r < 0) != (d < 0))) ? (T)(r + d) : r;
        } else {
            return (T)(a % d);
        }
    }
};
struct Pow : Stateless {
    using Stateless::Stateless;
    template <class T> MT_INLINE T run(T a, T b) const {
        if (negative(b)) {
            // 1 / a ** |b| truncated.
            if (a == T(1)) return T(1);
            if (a == (T)-1) return (b & 1) ? (T)-1 : T(1);
            return T(0);
        }
        Unsigned<T> base = (Unsigned<T>)a, result = 1;
        for (Unsigned<T> e = (Unsigned<T>)b; e; e = (Unsigned<T>)(e >> 1)) {
            if (e & 1) result = (Unsigned<T>)(result * base);
            base = (Unsigned<T>)(base * base);
        }
        return (T)result;
    }
};

struct Gcd : Stateless {
    using Stateless::Stateless;
    template <class T> static MT_INLINE Unsigned<T> size(T x) {
        return negative(x) ? (Unsigned<T>)(Unsigned<T>(0) - Unsigned<T>(x)) : (Unsigned<T>)x;
    }
    template <class T> MT_INLINE T run(T a, T b) const {
        Unsigned<T> x = size(a), y = size(b);
        while (y) {
            const Unsigned<T> rest = (Unsigned<T>)(x % y);
            x = y;
            y = rest;
        }
        return (T)x;
    }
};
struct Lcm : Gcd {
    using Gcd::Gcd;
    template <class T> MT_INLINE T run(T a, T b) const {
        const Unsigned<T> divisor = (Unsigned<T>)Gcd::run(a, b);
        return divisor ? (T)(Unsigned<T>)(size(a) / divisor * size(b)) : T(0);
    }
};

struct AddCMul : Stateless {
    uint64_t alpha;
    template <class T> AddCMul(const Params& p, T x) : Stateless(p, x), alpha((uint64_t)p.get<T>()) {}
    template <class T> MT_INLINE T run(T a, T b, T c) const {
        using U = Unsigned<T>;
        return (T)(U(a) + U(alpha) * U(b) * U(c));
    }
};
struct Clamp : Stateless {
    using Stateless::Stateless;
    template <class T> MT_INLINE T run(T x, T lo, T hi) const {
        const T m = x > lo ? x : lo;
        return m < hi ? m : hi;
    }
};

template <class Op, class T> void unary(int op) {
    kernels.unary[op][NativeOf<T>::value] = {leveled<range<Op, T, T>>(), CodeOf<T>::value};
}
template <class Op, class T> void predicate(int op) {
    kernels.unary[op][NativeOf<T>::value] = {leveled<range<Op, T, uint8_t>>(), BOOL};
}

template <class T> void register_type() {
    // clang-format off: a table
    unary<Neg, T>(OP_NEG); unary<Abs, T>(OP_ABS); unary<Abs, T>(OP_REAL_ABS); unary<Sign, T>(OP_SIGN);
    unary<Sign, T>(OP_SGN); unary<Square, T>(OP_SQUARE); unary<Relu, T>(OP_RELU); unary<BitwiseNot, T>(OP_BITWISE_NOT);
    for (int op : {OP_POSITIVE, OP_CONJ, OP_FLOOR, OP_CEIL, OP_ROUND, OP_TRUNC}) unary<Positive, T>(op);
    predicate<LogicalNot, T>(OP_LOGICAL_NOT); predicate<Never, T>(OP_ISNAN); predicate<Never, T>(OP_ISINF);
    predicate<Always, T>(OP_ISFINITE); predicate<SignBit, T>(OP_SIGNBIT);
    enter_hot<Add, T>(OP_ADD); enter_hot<Sub, T>(OP_SUB); enter_hot<Mul, T>(OP_MUL);
    enter_hot<AddAlpha, T>(OP_ADD_ALPHA);
    enter_cold<Maximum, T>(OP_MAXIMUM); enter_cold<Minimum, T>(OP_MINIMUM); enter_cold<Maximum, T>(OP_FMAX);
    enter_cold<Minimum, T>(OP_FMIN); enter_cold<TruncDiv, T>(OP_TRUNC_DIV); enter_cold<FloorDiv, T>(OP_FLOOR_DIV);
    enter_cold<Fmod, T>(OP_FMOD); enter_cold<Remainder, T>(OP_REMAINDER); enter_cold<Pow, T>(OP_POW);
    enter_cold<And, T>(OP_BITWISE_AND); enter_cold<Or, T>(OP_BITWISE_OR); enter_cold<Xor, T>(OP_BITWISE_XOR);
    enter_cold<LShift, T>(OP_LSHIFT); enter_cold<RShift, T>(OP_RSHIFT); enter_cold<Heaviside, T>(OP_HEAVISIDE);
    enter_cold<Gcd, T>(OP_GCD); enter_cold<Lcm, T>(OP_LCM);
    enter_cold<ThresholdBackward, T>(OP_THRESHOLD_BACKWARD);
    enter_compare<Eq, T>(OP_EQ); enter_compare<Ne, T>(OP_NE); enter_compare<Lt, T>(OP_LT); enter_compare<Le, T>(OP_LE);
    enter_compare<Gt, T>(OP_GT); enter_compare<Ge, T>(OP_GE); enter_compare<LogicalAnd, T>(OP_LOGICAL_AND);
    enter_compare<LogicalOr, T>(OP_LOGICAL_OR); enter_compare<LogicalXor, T>(OP_LOGICAL_XOR);
    enter_ternary<AddCMul, T>(OP_ADDCMUL); enter_ternary<Clamp, T>(OP_CLAMP);
    // clang-format on
}

}  // namespace

void register_integer() {
    register_type<uint8_t>();
    register_type<int8_t>();
    register_type<int16_t>();
    register_type<int32_t>();
    register_type<int64_t>();
    register_type<uint64_t>();
}

}  // namespace mt
