// Activation functions and their derivatives on one double.
#pragma once

#include <cmath>

#include "numbers.h"

namespace emu {

constexpr double kGeluSlope = 0.7978845608028654;    // sqrt(2 / pi)
constexpr double kGeluCubic = 0.044715;
constexpr double kSeluAlpha = 1.6732632423543772848;
constexpr double kSeluScale = 1.0507009873554804934;
constexpr double kSqrtHalf = 0.70710678118654752440;

inline double sigmoid(double x) {
    double e = std::exp(-std::fabs(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}
inline Complex sigmoid(Complex x) { return 1.0 / (1.0 + std::exp(-x)); }
inline double silu(double x) { return x * sigmoid(x); }
inline double silu_slope(double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }
inline double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

inline double gelu(double x) { return 0.5 * x * std::erfc(-x * kSqrtHalf); }
inline double gelu_slope(double x) {
    return 0.5 * std::erfc(-x * kSqrtHalf) + x * std::exp(-x * x / 2) / std::sqrt(2 * kPi);
}
inline double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(kGeluSlope * (x + kGeluCubic * x * x * x))); }
inline double gelu_tanh_slope(double x) {
    double t = std::tanh(kGeluSlope * (x + kGeluCubic * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kGeluSlope * (1 + 3 * kGeluCubic * x * x);
}
inline double fast_gelu(double x) { return x * sigmoid(1.702 * x); }
inline double fast_gelu_slope(double x) {
    double s = sigmoid(1.702 * x);
    return s + 1.702 * x * s * (1 - s);
}

// The error function of gelu as sgn(t) (a (min(|t|, -b) + b)^2 + 1), t = x / sqrt(2).
inline double fast_gelu_polynomial(double x) {
    constexpr double a = -0.2888, b = -1.769;
    double t = std::fmin(std::fabs(x * kSqrtHalf), -b) + b;
    double error = std::copysign(a * t * t + 1, x);
    return std::isnan(x) ? x : x * 0.5 * (1 + error);
}

inline double mish(double x) { return x * std::tanh(softplus(x)); }
inline double mish_slope(double x) {
    double t = std::tanh(softplus(x));
    return t + x * (1 - t * t) * sigmoid(x);
}

inline double elu(double x, double alpha, double scale, double input_scale) {
    return x > 0 ? scale * x : scale * alpha * std::expm1(input_scale * x);
}
// `y`: the result where `from_result`, else the argument.
inline double elu_slope(double y, double alpha, double scale, double input_scale, bool from_result) {
    if (y > 0) return scale;
    return from_result ? input_scale * (y + alpha * scale) : input_scale * alpha * scale * std::exp(input_scale * y);
}

inline double hard_sigmoid(double x) { return std::isnan(x) ? x : std::fmin(std::fmax(x + 3, 0), 6) / 6; }
inline double hard_swish_slope(double x) { return x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1; }
inline double soft_shrink(double x, double lambda) {
    return x > lambda ? x - lambda : x < -lambda ? x + lambda : x * 0;
}
inline double hard_shrink(double x, double lambda) { return x >= -lambda && x <= lambda ? 0 : x; }

}  // namespace emu
