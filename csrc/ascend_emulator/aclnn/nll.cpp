// Losses of a class per sample: negative log likelihood and cross entropy.
#include <cmath>

#include "kernel.h"

using namespace emu;

namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

// (samples, classes, places): a class for each sample and place; NLLLoss has one place, NLLLoss2d height times width.
struct Classes {
    int64_t samples = 1, classes = 1, places = 1;
    explicit Classes(const Dims& d) {
        classes = d.n == 1 ? d[0] : d[1];
        samples = d.n == 1 ? 1 : d[0];
        for (int i = 2; i < d.n; ++i) places *= d[i];
    }
    int64_t at(int64_t n, int64_t c, int64_t s) const { return (n * classes + c) * places + s; }
};

// f(which target, where its class is in self, the class) for each target that is not ignored.
template <class F>
void each_target(const Classes& shape, const std::vector<int64_t>& target, int64_t ignored, F f) {
    for (int64_t n = 0; n < shape.samples; ++n)
        for (int64_t s = 0; s < shape.places; ++s) {
            int64_t t = n * shape.places + s, c = target[size_t(t)];
            if (c == ignored) continue;
            if (c < 0 || c >= shape.classes)
                fault("target %lld is out of range for %lld classes", static_cast<long long>(c),
                      static_cast<long long>(shape.classes));
            f(size_t(t), size_t(shape.at(n, c, s)), size_t(c));
        }
}

Dims target_shape(const Dims& self) {
    Dims out;
    for (int i = 0; i < self.n; ++i)
        if (i != (self.n == 1 ? 0 : 1)) out.push(self[i]);
    return out;
}

void plan_nll_inputs(const Plan& p) {
    const Tensor &self = p.tensor("self"), &target = p.tensor("target");
    p.require(self.rank() == 1 || self.rank() == 2 || self.rank() == 4, "self has %d dimensions, expected 1 or 2",
              self.rank());
    Dims want = target_shape(self.dims);
    p.require(target.dims == want || (self.rank() == 1 && target.numel() == 1 && target.rank() == 1),
              "target has shape %s, expected %s", text(target.dims).c_str(), text(want).c_str());
    p.shape("weight", {Classes(self.dims).classes});
    int64_t reduction = p.integer("reduction");
    p.require(reduction >= kNone && reduction <= kSum, "reduction is %lld, expected 0 (none), 1 (mean) or 2 (sum)",
              static_cast<long long>(reduction));
}

void plan_nll(Plan& p) {
    plan_nll_inputs(p);
    if (p.integer("reduction") == kNone) p.same_shape("target", "out");
    else p.require(p.tensor("out").numel() == 1 && p.tensor("out").rank() <= 1,
                   "out has shape %s, expected one element", text(p.tensor("out").dims).c_str());
    p.require(p.tensor("totalWeightOut").numel() == 1, "totalWeightOut has shape %s, expected one element",
              text(p.tensor("totalWeightOut").dims).c_str());
}

void run_nll(Run& r) {
    Classes shape(r.tensor("self").dims);
    auto x = r.read<double>(r.tensor("self")), w = r.read<double>(r.tensor("weight"));
    auto target = r.read<int64_t>(r.tensor("target"));
    std::vector<double> loss(target.size());
    double sum = 0, total = 0;
    each_target(shape, target, r.integer("ignoreIndex"), [&](size_t t, size_t at, size_t c) {
        loss[t] = -w[c] * x[at];
        sum += loss[t];
        total += w[c];
    });
    int64_t reduction = r.integer("reduction");
    if (reduction == kNone) r.write(r.tensor("out"), loss);
    else r.write(r.tensor("out"), std::vector<double>{reduction == kMean ? sum / total : sum});
    r.write(r.tensor("totalWeightOut"), std::vector<double>{reduction == kNone ? 0 : total});
}

void plan_nll_backward(Plan& p) {
    plan_nll_inputs(p);
    p.same_shape("self", "out");
    const Tensor& g = p.tensor("gradOutput");
    if (p.integer("reduction") == kNone) p.same_shape("target", "gradOutput");
    else p.require(g.numel() == 1, "gradOutput has shape %s, expected one element", text(g.dims).c_str());
    p.require(p.tensor("totalWeight").numel() == 1, "totalWeight has shape %s, expected one element",
              text(p.tensor("totalWeight").dims).c_str());
}

void run_nll_backward(Run& r) {
    Classes shape(r.tensor("self").dims);
    auto g = r.read<double>(r.tensor("gradOutput")), w = r.read<double>(r.tensor("weight"));
    double total = r.read<double>(r.tensor("totalWeight"))[0];
    int64_t reduction = r.integer("reduction");
    std::vector<double> out(size_t(r.tensor("out").numel()));
    each_target(shape, r.read<int64_t>(r.tensor("target")), r.integer("ignoreIndex"),
                [&](size_t t, size_t at, size_t c) {
                    out[at] = -w[c] * (reduction == kNone ? g[t] : reduction == kMean ? g[0] / total : g[0]);
                });
    r.write(r.tensor("out"), out);
}

// -- CrossEntropyLoss ------------------------------------------------------------------------------------------------
int64_t reduction_of(const Call& c) {
    if (!c.has("reductionOptional")) return kMean;
    const std::string& name = c.string("reductionOptional");
    return name == "mean" ? kMean : name == "sum" ? kSum : name == "none" ? kNone : -1;
}

void plan_cross_entropy_inputs(const Plan& p, const Tensor& input) {
    p.require(input.rank() == 2, "the input has %d dimensions, expected 2", input.rank());
    p.shape("target", {input.dims[0]});
    if (p.has("weightOptional")) p.shape("weightOptional", {input.dims[1]});
    p.require(reduction_of(p) >= 0, "reductionOptional is \"%s\", expected \"mean\", \"sum\" or \"none\"",
              p.string("reductionOptional").c_str());
    double smoothing = p.real("labelSmoothing");
    p.require(smoothing >= 0 && smoothing <= 1, "labelSmoothing is %g, expected [0, 1]", smoothing);
}

std::vector<double> class_weights(const Run& r, int64_t classes) {
    return r.has("weightOptional") ? r.read<double>(r.tensor("weightOptional"))
                                   : std::vector<double>(size_t(classes), 1.0);
}

void plan_cross_entropy(Plan& p) {
    const Tensor& input = p.tensor("input");
    plan_cross_entropy_inputs(p, input);
    p.require(!p.flag("returnZloss") && p.real("lseSquareScaleForZloss") == 0, "the z loss is not supported");
    p.same_shape("input", "logProbOut");
    if (reduction_of(p) == kNone) p.same_shape("target", "lossOut");
    else p.require(p.tensor("lossOut").numel() == 1, "lossOut has shape %s, expected one element",
                   text(p.tensor("lossOut").dims).c_str());
}

void run_cross_entropy(Run& r) {
    const Tensor& input = r.tensor("input");
    Classes shape(input.dims);
    auto x = r.read<double>(input), w = class_weights(r, shape.classes);
    for (int64_t n = 0; n < shape.samples; ++n) {
        double* row = x.data() + n * shape.classes;
        double top = -INFINITY, total = 0;
        for (int64_t c = 0; c < shape.classes; ++c) top = std::max(top, row[c]);
        for (int64_t c = 0; c < shape.classes; ++c) total += std::exp(row[c] - top);
        for (int64_t c = 0; c < shape.classes; ++c) row[c] -= top + std::log(total);
    }
    r.write(r.tensor("logProbOut"), x);
    double smoothing = r.real("labelSmoothing"), sum = 0, total = 0;
    auto target = r.read<int64_t>(r.tensor("target"));
    std::vector<double> loss(target.size());
    each_target(shape, target, r.integer("ignoreIndex"), [&](size_t t, size_t at, size_t c) {
        double smooth = 0;
        for (size_t k = 0; k < w.size(); ++k) smooth -= w[k] * x[t * w.size() + k];
        loss[t] = -(1 - smoothing) * w[c] * x[at] + smoothing / double(w.size()) * smooth;
        sum += loss[t];
        total += w[c];
    });
    int64_t reduction = reduction_of(r);
    if (reduction == kNone) r.write(r.tensor("lossOut"), loss);
    else r.write(r.tensor("lossOut"), std::vector<double>{reduction == kMean ? sum / total : sum});
}

void plan_cross_entropy_grad(Plan& p) {
    const Tensor& input = p.tensor("logProb");
    plan_cross_entropy_inputs(p, input);
    p.require(!p.has("gradZlossOptional") && !p.has("lseForZlossOptional") && p.real("lseSquareScaleForZloss") == 0,
              "the z loss is not supported");
    p.same_shape("logProb", "out");
    if (reduction_of(p) == kNone) p.same_shape("target", "gradLoss");
    else p.require(p.tensor("gradLoss").numel() == 1, "gradLoss has shape %s, expected one element",
                   text(p.tensor("gradLoss").dims).c_str());
}

void run_cross_entropy_grad(Run& r) {
    Classes shape(r.tensor("logProb").dims);
    auto x = r.read<double>(r.tensor("logProb")), w = class_weights(r, shape.classes);
    auto g = r.read<double>(r.tensor("gradLoss"));
    auto target = r.read<int64_t>(r.tensor("target"));
    double smoothing = r.real("labelSmoothing"), share = smoothing / double(shape.classes), total = 0, weights = 0;
    int64_t reduction = reduction_of(r), ignored = r.integer("ignoreIndex");
    for (double v : w) weights += v;
    each_target(shape, target, ignored, [&](size_t, size_t, size_t c) { total += w[c]; });
    std::vector<double> out(x.size());
    each_target(shape, target, ignored, [&](size_t t, size_t at, size_t c) {
        double factor = reduction == kNone ? g[t] : reduction == kMean ? g[0] / total : g[0];
        for (size_t k = 0; k < w.size(); ++k) {
            size_t i = t * w.size() + k;
            double p = std::exp(x[i]);
            out[i] = factor * ((1 - smoothing) * w[c] * (p - (i == at)) + share * (weights * p - w[k]));
        }
    });
    r.write(r.tensor("out"), out);
}

}  // namespace

ACLNN(aclnnNLLLoss, plan_nll, run_nll)
ACLNN(aclnnNLLLoss2d, plan_nll, run_nll)
ACLNN(aclnnNLLLossBackward, plan_nll_backward, run_nll_backward)
ACLNN(aclnnNLLLoss2dBackward, plan_nll_backward, run_nll_backward)
ACLNN(aclnnCrossEntropyLoss, plan_cross_entropy, run_cross_entropy)
ACLNN(aclnnCrossEntropyLossGrad, plan_cross_entropy_grad, run_cross_entropy_grad)
