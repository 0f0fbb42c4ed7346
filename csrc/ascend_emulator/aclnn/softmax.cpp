// Softmax and its relatives, and what flows back through them.
#include <cmath>
#include <limits>

#include "kernel.h"

using namespace emu;

namespace {

// Along each line: x becomes softmax(x), or its logarithm.
void softmax(std::vector<double>& x, const Lines& lines, bool logarithm) {
    for (int64_t o = 0; o < lines.outer; ++o)
        for (int64_t i = 0; i < lines.inner; ++i) {
            double top = -std::numeric_limits<double>::infinity(), total = 0;
            for (int64_t k = 0; k < lines.length; ++k) {
                double v = x[size_t(lines.at(o, k, i))];
                if (v > top || v != v) top = v;
            }
            for (int64_t k = 0; k < lines.length; ++k) total += std::exp(x[size_t(lines.at(o, k, i))] - top);
            for (int64_t k = 0; k < lines.length; ++k) {
                double& v = x[size_t(lines.at(o, k, i))];
                v = logarithm ? v - top - std::log(total) : std::exp(v - top) / total;
            }
        }
}

// g becomes the gradient of the input, given y = softmax or log_softmax of it.
void softmax_backward(std::vector<double>& g, const std::vector<double>& y, const Lines& lines, bool logarithm) {
    for (int64_t o = 0; o < lines.outer; ++o)
        for (int64_t i = 0; i < lines.inner; ++i) {
            double total = 0;
            for (int64_t k = 0; k < lines.length; ++k) {
                size_t at = size_t(lines.at(o, k, i));
                total += logarithm ? g[at] : g[at] * y[at];
            }
            for (int64_t k = 0; k < lines.length; ++k) {
                size_t at = size_t(lines.at(o, k, i));
                g[at] = logarithm ? g[at] - std::exp(y[at]) * total : y[at] * (g[at] - total);
            }
        }
}

void plan_softmax(Plan& p) {
    p.axis("dim", p.tensor("self").rank());
    p.same_shape("self", "out");
}

template <bool logarithm>
void run_softmax(Run& r) {
    const Tensor& self = r.tensor("self");
    auto x = r.read<double>(self);
    softmax(x, Lines(self.dims, wrap(r.integer("dim"), std::max(self.rank(), 1))), logarithm);
    r.write(r.tensor("out"), x);
}

void plan_softmax_backward(Plan& p) {
    p.axis("dim", p.tensor("gradOutput").rank());
    p.same_dtype("gradOutput", "output");
    p.same_shape("gradOutput", "output");
    p.same_shape("gradOutput", "out");
}

template <bool logarithm>
void run_softmax_backward(Run& r) {
    const Tensor& y = r.tensor("output");
    auto g = r.read<double>(r.tensor("gradOutput"));
    softmax_backward(g, r.read<double>(y), Lines(y.dims, wrap(r.integer("dim"), std::max(y.rank(), 1))), logarithm);
    r.write(r.tensor("out"), g);
}

// -- softmax(x * scale) where the mask is not set --------------------------------------------------------------------
void plan_masked(const Plan& p, const Tensor& x, bool triangle) {
    Dims both;
    p.require(x.rank() == 4, "the input has %d dimensions, expected 4", x.rank());
    p.require(!triangle, "a fixed triangular mask (fixedTriuMask) is not supported");
    const Tensor& mask = p.tensor("mask");
    p.require(broadcast(mask.dims, x.dims, &both) && both == x.dims,
              "mask has shape %s, which does not broadcast to %s", text(mask.dims).c_str(), text(x.dims).c_str());
}

void plan_scaled(Plan& p) {
    plan_masked(p, p.tensor("x"), p.flag("fixedTriuMask"));
    p.same_shape("x", "y");
    p.same_dtype("x", "y");
}

void run_scaled(Run& r) {
    constexpr double kMasked = -10000;  // what the fused kernel puts in place of a masked value
    const Tensor& in = r.tensor("x");
    auto x = r.read<double>(in);
    auto mask = r.read<int64_t>(r.tensor("mask"), in.dims);
    for (size_t i = 0; i < x.size(); ++i) x[i] = mask[i] ? kMasked : x[i] * r.real("scale");
    softmax(x, Lines(in.dims, in.rank() - 1), false);
    r.write(r.tensor("y"), x);
}

void plan_scaled_backward(Plan& p) {
    plan_masked(p, p.tensor("y"), p.flag("fixTriuMask"));
    p.same_shape("gradOutput", "y");
    p.same_shape("gradOutput", "out");
}

void run_scaled_backward(Run& r) {
    const Tensor& y = r.tensor("y");
    auto g = r.read<double>(r.tensor("gradOutput"));
    auto mask = r.read<int64_t>(r.tensor("mask"), y.dims);
    softmax_backward(g, r.read<double>(y), Lines(y.dims, y.rank() - 1), false);
    for (size_t i = 0; i < g.size(); ++i) g[i] = mask[i] ? 0 : g[i] * r.real("scale");
    r.write(r.tensor("out"), g);
}

}  // namespace

ACLNN(aclnnSoftmax, plan_softmax, run_softmax<false>)
ACLNN(aclnnLogSoftmax, plan_softmax, run_softmax<true>)
ACLNN(aclnnSoftmaxBackward, plan_softmax_backward, run_softmax_backward<false>)
ACLNN(aclnnLogSoftmaxBackward, plan_softmax_backward, run_softmax_backward<true>)
ACLNN(aclnnScaledMaskedSoftmax, plan_scaled, run_scaled)
ACLNN(aclnnScaledMaskedSoftmaxBackward, plan_scaled_backward, run_scaled_backward)
