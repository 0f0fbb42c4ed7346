// Gated rows: silu(a) * b of their halves, with bounds.
#pragma once

#include "activation.h"
#include "optional.h"

namespace emu {

// A limit of 0 or less bounds nothing.
struct Bounds {
    double limit;
    bool active() const { return limit > 0; }
    double gate(double a) const { return active() ? std::fmin(a, limit) : a; }
    double linear(double b) const { return active() ? std::fmin(std::fmax(b, -limit), limit) : b; }
    double gate_slope(double a) const { return active() && a > limit ? 0 : 1; }
    double linear_slope(double b) const { return active() && std::fabs(b) > limit ? 0 : 1; }
};

inline std::vector<double> gated(const std::vector<double>& x, int64_t half, bool left, double limit = 0) {
    std::vector<double> y;
    Bounds bounds{limit};
    for (size_t row = 0; row < x.size(); row += size_t(2 * half))
        for (size_t k = row; k < row + size_t(half); ++k) {
            double a = x[left ? k : k + size_t(half)], b = x[left ? k + size_t(half) : k];
            y.push_back(silu(bounds.gate(a)) * bounds.linear(b));
        }
    return y;
}

// By the functions' public descriptions swigluMode 1 takes gates from the even columns and factors from the odd ones:
// a * sigmoid(alpha * a) * (b + bias), both bounded.
inline std::vector<double> gated_by_mode(const Call& c, const std::vector<double>& x, int64_t half) {
    if (!has_parameter(c, "swigluMode") || c.integer("swigluMode") == 0) return gated(x, half, c.flag("activateLeft"));
    std::vector<double> y;
    Bounds bounds{c.real("clampLimit")};
    for (size_t k = 0; k < x.size(); k += 2) {
        double a = bounds.gate(x[k]), b = bounds.linear(x[k + 1]);
        y.push_back(a * sigmoid(c.real("gluAlpha") * a) * (b + c.real("gluBias")));
    }
    return y;
}

inline void plan_gate_mode(const Plan& p, int rank) {
    plan_number(p, "swigluMode", 1);
    int64_t dim = p.axis("activateDim", rank);
    p.require(dim == rank - 1, "activateDim is %lld; the emulator halves the last axis", static_cast<long long>(dim));
}

}  // namespace emu
