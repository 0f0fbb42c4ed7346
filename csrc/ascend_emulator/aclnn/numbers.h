// Arithmetic that C++ leaves undefined or defines otherwise than the functions: each for double and int64_t, some for
// Complex. An integer quotient by zero is 0 and its remainder the dividend, as the documents say of the latter.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "../core/dtype.h"

namespace emu {

constexpr double kPi = 3.14159265358979323846;
constexpr double kLogTwo = 0.69314718055994530942;

inline double relu(double x) { return x > 0 || x != x ? x : 0; }
inline int64_t relu(int64_t x) { return x > 0 ? x : 0; }

inline double divide_trunc(double a, double b) { return std::trunc(a / b); }
inline int64_t divide_trunc(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? -a : a / b; }

inline double quotient(double a, double b) { return a / b; }
inline int64_t quotient(int64_t a, int64_t b) { return divide_trunc(a, b); }

inline double fmod_of(double a, double b) { return std::fmod(a, b); }
inline int64_t fmod_of(int64_t a, int64_t b) { return b == 0 ? a : b == -1 ? 0 : a % b; }

// The sign of the divisor, as Python has it.
inline double remainder_of(double a, double b) {
    double m = std::fmod(a, b);
    return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
inline int64_t remainder_of(int64_t a, int64_t b) {
    int64_t m = fmod_of(a, b);
    return m != 0 && b != 0 && (m < 0) != (b < 0) ? m + b : m;
}

inline double floor_divide(double a, double b) {
    if (b == 0) return a / b;
    double m = std::fmod(a, b), q = (a - m) / b;
    if (m != 0 && (m < 0) != (b < 0)) q -= 1;
    if (q == 0) return std::copysign(0.0, a / b);
    double down = std::floor(q);
    return q - down > 0.5 ? down + 1 : down;
}
inline int64_t floor_divide(int64_t a, int64_t b) {
    if (b == 0) return 0;
    int64_t q = divide_trunc(a, b);
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

inline double power(double a, double b) { return std::pow(a, b); }
inline int64_t power(int64_t a, int64_t b) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    int64_t result = 1;
    for (; b; b >>= 1, a *= a)
        if (b & 1) result *= a;
    return result;
}
inline Complex power(Complex a, Complex b) {
    if (b == Complex(0)) return 1;
    if (a == Complex(0)) return 0;
    return std::pow(a, b);
}

inline int64_t gcd_of(int64_t a, int64_t b) {
    while (b) {
        int64_t m = fmod_of(a, b);
        a = b;
        b = m;
    }
    return a < 0 ? -a : a;
}

inline double magnitude(double x) { return std::fabs(x); }
inline int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }
inline double magnitude(Complex x) { return std::abs(x); }

inline double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
inline int64_t sign_of(int64_t x) { return (x > 0) - (x < 0); }
inline Complex sign_of(Complex x) { return x == Complex(0) ? x : x / std::abs(x); }

// Half to even at that decimal; integers only change left of the point.
inline double round_decimals(double x, int64_t decimals) {
    double ten = std::pow(10.0, double(std::llabs(decimals)));
    return decimals >= 0 ? std::nearbyint(x * ten) / ten : std::nearbyint(x / ten) * ten;
}
inline int64_t round_decimals(int64_t x, int64_t decimals) {
    if (decimals >= 0) return x;
    if (decimals < -18) return 0;
    int64_t ten = 1;
    for (int64_t i = 0; i < -decimals; ++i) ten *= 10;
    int64_t down = (x / ten - (x % ten < 0)) * ten, rest = x - down;
    bool up = 2 * rest > ten || (2 * rest == ten && (down / ten) % 2 != 0);
    return up ? down + ten : down;
}

// A count of bits below 0 or past the width leaves no bit, or only the sign.
inline int64_t shift_left(int64_t x, int64_t bits) {
    return bits < 0 || bits > 63 ? 0 : int64_t(uint64_t(x) << bits);
}
inline int64_t shift_right(int64_t x, int64_t bits) { return bits < 0 || bits > 63 ? (x < 0 ? -1 : 0) : x >> bits; }

inline bool sign_bit(double x) { return std::signbit(x); }
inline bool sign_bit(int64_t x) { return x < 0; }

inline double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
inline double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }
inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

inline double lerp(double a, double b, double w) {
    return std::fabs(w) < 0.5 ? a + w * (b - a) : b - (b - a) * (1 - w);
}

inline double xlogy(double a, double b) { return a == 0 && !std::isnan(b) ? 0 : a * std::log(b); }

inline double log_add_exp(double a, double b) {
    if (std::isinf(a) && a == b) return a;
    double high = std::fmax(a, b);
    return std::isnan(a) || std::isnan(b) ? a + b : high + std::log1p(std::exp(-std::fabs(a - b)));
}

}  // namespace emu
