// Normalization of rows: each row of a matrix is brought to mean 0 and variance 1.
#pragma once

#include <cmath>

#include "kernel.h"

namespace emu {

struct Moments {
    std::vector<double> mean, variance, rstd;  // one per row; the variance is the biased one
};

inline double inverse_root(double variance, double eps) { return 1 / std::sqrt(variance + eps); }

inline Moments moments(const std::vector<double>& x, int64_t rows, double eps) {
    Moments m;
    int64_t length = rows ? int64_t(x.size()) / rows : 0;
    for (int64_t i = 0; i < rows; ++i) {
        const double* row = x.data() + i * length;
        double sum = 0, squares = 0;
        for (int64_t k = 0; k < length; ++k) sum += row[k];
        double mean = sum / double(length);
        for (int64_t k = 0; k < length; ++k) squares += (row[k] - mean) * (row[k] - mean);
        m.mean.push_back(mean);
        m.variance.push_back(squares / double(length));
        m.rstd.push_back(inverse_root(m.variance.back(), eps));
    }
    return m;
}

// (x - mean) * rstd, row by row.
inline void normalize(std::vector<double>& x, const std::vector<double>& mean, const std::vector<double>& rstd) {
    size_t length = mean.empty() ? 0 : x.size() / mean.size();
    for (size_t i = 0; i < x.size(); ++i) x[i] = (x[i] - mean[i / length]) * rstd[i / length];
}

// The gradient of the rows before normalization: g is that of the normalized rows.
inline std::vector<double> normalize_backward(const std::vector<double>& g, const std::vector<double>& normalized,
                                              const std::vector<double>& rstd) {
    std::vector<double> out(g.size());
    size_t length = rstd.empty() ? 0 : g.size() / rstd.size();
    for (size_t row = 0; row < rstd.size(); ++row) {
        double sum = 0, product = 0;
        for (size_t k = row * length; k < (row + 1) * length; ++k) sum += g[k], product += g[k] * normalized[k];
        for (size_t k = row * length; k < (row + 1) * length; ++k)
            out[k] = rstd[row] * (g[k] - (sum + normalized[k] * product) / double(length));
    }
    return out;
}

// The leading dimensions that `inner` trailing ones leave, with 1 in place of those.
inline Dims statistics_shape(const Dims& dims, int inner) {
    Dims out = dims;
    for (int i = dims.n - inner; i < dims.n; ++i) out[i] = 1;
    return out;
}
inline int64_t leading(const Dims& dims, int inner) {
    return Dims(dims.v.data(), uint64_t(dims.n - inner)).product();
}
inline bool ends_with(const Dims& dims, const Dims& tail) {
    if (tail.n > dims.n) return false;
    for (int i = 0; i < tail.n; ++i)
        if (dims[dims.n - tail.n + i] != tail[i]) return false;
    return true;
}

inline void plan_mask(const Plan& p, const char* name, std::initializer_list<const char*> outputs) {
    const auto& mask = p.ints(name);
    p.require(mask.size() == outputs.size(), "%s has %zu elements, expected %zu", name, mask.size(), outputs.size());
    size_t i = 0;
    for (const char* output : outputs)
        if (mask[i++] && !p.has(output))
            refuse(ACLNN_ERR_PARAM_NULLPTR, "%s must not be null: %s asks for it", output, name);
}

}  // namespace emu
