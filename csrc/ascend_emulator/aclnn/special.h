// Special functions the C++ library lacks, or does not offer safely to several threads.
#pragma once

#include <cmath>
#include <limits>

#include "numbers.h"

namespace emu {

inline double round_down(double x) { return std::floor(x); }
inline int64_t round_down(int64_t x) { return x; }
inline double round_to_zero(double x) { return std::trunc(x); }
inline int64_t round_to_zero(int64_t x) { return x; }

// A rational first guess, then Newton's steps on erf until double is exhausted.
inline double inverse_erf(double y) {
    if (std::isnan(y) || std::fabs(y) > 1) return std::numeric_limits<double>::quiet_NaN();
    if (std::fabs(y) == 1) return std::copysign(std::numeric_limits<double>::infinity(), y);
    if (y == 0) return y;
    double l = std::log1p(-y * y), a = 0.147, t = 2 / (kPi * a) + l / 2;
    double x = std::copysign(std::sqrt(std::sqrt(t * t - l / a) - t), y);
    for (int i = 0; i < 4; ++i) {
        // The complement keeps its precision in the tails.
        double error = std::fabs(y) < 0.5 ? std::erf(x) - y
                                          : std::copysign(1.0, y) * ((1 - std::fabs(y)) - std::erfc(std::fabs(x)));
        double step = error / (2 / std::sqrt(kPi) * std::exp(-x * x));
        x -= step / (1 + x * step);
    }
    return x;
}

inline double log_gamma(double x) {
    int sign;  // lgamma() itself writes a global
    return lgamma_r(x, &sign);
}

// The integral of sin or cos of pi t^2 / 2 from 0 to x: its series where that converges fast, and beyond, where it no
// longer does, the asymptotic expansion of the auxiliary functions.
inline double fresnel(double x, bool sine) {
    double a = std::fabs(x), half = kPi / 2;
    if (std::isinf(a)) return std::copysign(0.5, x);
    if (a < 4) {
        long double t = half * a * a, power = sine ? t : 1, sum = 0;  // the terms grow to e^t before they cancel
        for (int n = 0; n < 200; ++n) {
            int m = sine ? 2 * n + 1 : 2 * n;
            sum += power / (2 * m + 1);
            if (power == 0 || (m > t && std::fabs(power) < 1e-19L * std::fabs(sum))) break;
            power *= -t * t / ((m + 1.0L) * (m + 2.0L));
        }
        return std::copysign(a * double(sum), x);
    }
    double z = kPi * a * a, f = 0, g = 0, up = 1, down = 1;
    for (int n = 0; n < 6; ++n) {
        f += up;
        g += down;
        up *= -((4 * n + 1) * (4 * n + 3)) / (z * z);
        down *= -((4 * n + 3) * (4 * n + 5)) / (z * z);
    }
    f /= kPi * a;
    g /= kPi * a * z;
    double c = std::cos(half * a * a), s = std::sin(half * a * a);
    return std::copysign(sine ? 0.5 - f * c - g * s : 0.5 + f * s - g * c, x);
}

// The recurrence up to 10, then the asymptotic series; reflection for the negative half.
inline double digamma(double x) {
    if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
    if (x < 0) {
        if (x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
        return digamma(1 - x) - kPi / std::tan(kPi * (x - std::floor(x)));
    }
    double result = 0;
    for (; x < 10; x += 1) result -= 1 / x;
    double s = 1 / (x * x);
    double series = s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132)))));
    return result + std::log(x) - 0.5 / x - series;
}

}  // namespace emu
