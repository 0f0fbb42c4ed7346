// Connectionist temporal classification: the likelihood of a sequence of labels under all alignments.
#include <cmath>

#include "kernel.h"

using namespace emu;

namespace {

constexpr double kNever = -INFINITY;

double log_add(double a, double b) {
    if (a == kNever) return b;
    if (b == kNever) return a;
    double top = std::max(a, b);
    return top + std::log1p(std::exp(std::min(a, b) - top));
}

// logProbs is (time, batch, classes), or without the batch.
struct Shape {
    int64_t time, batch, classes;
    explicit Shape(const Dims& d) : time(d[0]), batch(d.n == 3 ? d[1] : 1), classes(d.back()) {}
    size_t at(int64_t t, int64_t n, int64_t c) const { return size_t((t * batch + n) * classes + c); }
};

// One sample: labels with blanks around each.
struct Sample {
    int64_t time;
    std::vector<int64_t> labels;

    int64_t states() const { return 2 * int64_t(labels.size()) + 1; }
    int64_t label(int64_t state, int64_t blank) const { return state % 2 ? labels[size_t(state / 2)] : blank; }
    // Whether a state may be entered from two before: past a blank between different labels.
    bool skips(int64_t state) const {
        return state % 2 && state >= 2 && labels[size_t(state / 2)] != labels[size_t(state / 2 - 1)];
    }
};

std::vector<Sample> samples(const Run& r, const char* target_lengths) {
    Shape shape(r.tensor("logProbs").dims);
    const Tensor& targets = r.tensor("targets");
    auto labels = r.read<int64_t>(targets);
    const auto& lengths = r.ints(target_lengths);
    std::vector<Sample> out;
    int64_t start = 0;
    for (int64_t n = 0; n < shape.batch; ++n) {
        int64_t first = targets.rank() == 2 ? n * targets.dims[1] : start;
        Sample s{r.ints("inputLengths")[size_t(n)], {}};
        for (int64_t i = 0; i < lengths[size_t(n)]; ++i) {
            int64_t label = labels[size_t(first + i)];
            if (label < 0 || label >= shape.classes)
                fault("label %lld is out of range for %lld classes", static_cast<long long>(label),
                      static_cast<long long>(shape.classes));
            s.labels.push_back(label);
        }
        start += lengths[size_t(n)];
        out.push_back(std::move(s));
    }
    return out;
}

void plan_ctc_inputs(const Plan& p, const char* target_lengths, const char* likelihood, const char* alpha) {
    const Dims& d = p.tensor("logProbs").dims;
    p.require(d.n == 2 || d.n == 3, "logProbs has %d dimensions, expected 2 or 3", d.n);
    Shape shape(d);
    const auto &inputs = p.ints("inputLengths"), &targets = p.ints(target_lengths);
    p.require(int64_t(inputs.size()) == shape.batch && int64_t(targets.size()) == shape.batch,
              "inputLengths and %s need %lld elements", target_lengths, static_cast<long long>(shape.batch));
    int64_t blank = p.integer("blank"), total = 0, longest = 0;
    p.require(blank >= 0 && blank < shape.classes, "blank is %lld, expected a class", static_cast<long long>(blank));
    for (int64_t t : inputs)
        p.require(t >= 0 && t <= shape.time, "an input length is outside [0, %lld]",
                  static_cast<long long>(shape.time));
    for (int64_t s : targets) {
        p.require(s >= 0, "a target length is negative");
        total += s;
        longest = std::max(longest, s);
    }
    const Tensor& labels = p.tensor("targets");
    p.require(labels.rank() == 2 ? labels.dims[0] == shape.batch && labels.dims[1] >= longest
                                 : labels.rank() == 1 && labels.numel() == total,
              "targets has shape %s, which does not fit the target lengths", text(labels.dims).c_str());
    p.require(p.tensor(likelihood).numel() == shape.batch, "%s has shape %s, expected one element per sample",
              likelihood, text(p.tensor(likelihood).dims).c_str());
    const Dims& a = p.tensor(alpha).dims;
    p.require(a.n >= 2 && a.back() >= 2 * longest + 1 && a[a.n - 2] == shape.time &&
                  a.product() == shape.batch * shape.time * a.back(),
              "%s has shape %s, expected (batch, %lld, at least %lld)", alpha, text(a).c_str(),
              static_cast<long long>(shape.time), static_cast<long long>(2 * longest + 1));
}

// An impossible alignment costs infinity here also when zeroInfinity asks for zero: the backward recognises it by that.
void run_ctc(Run& r) {
    Shape shape(r.tensor("logProbs").dims);
    auto x = r.read<double>(r.tensor("logProbs"));
    int64_t width = r.tensor("logAlphaOut").dims.back(), blank = r.integer("blank");
    std::vector<double> loss, all(size_t(shape.batch * shape.time * width), kNever);
    auto list = samples(r, "targetlengths");
    for (int64_t n = 0; n < shape.batch; ++n) {
        const Sample& s = list[size_t(n)];
        double* alpha = all.data() + n * shape.time * width;
        for (int64_t t = 0; t < s.time; ++t)
            for (int64_t k = 0; k < s.states(); ++k) {
                double sum = kNever;
                if (t == 0) {
                    if (k < 2) sum = 0;
                } else {
                    const double* before = alpha + (t - 1) * width;
                    sum = before[k];
                    if (k >= 1) sum = log_add(sum, before[k - 1]);
                    if (s.skips(k)) sum = log_add(sum, before[k - 2]);
                }
                alpha[t * width + k] = sum + x[shape.at(t, n, s.label(k, blank))];
            }
        if (s.time == 0) {
            loss.push_back(s.labels.empty() ? 0 : INFINITY);
            continue;
        }
        const double* last = alpha + (s.time - 1) * width;
        double sum = last[s.states() - 1];
        if (s.states() > 1) sum = log_add(sum, last[s.states() - 2]);
        loss.push_back(-sum);
    }
    r.write(r.tensor("negLogLikelihoodOut"), loss);
    r.write(r.tensor("logAlphaOut"), all);
}

void run_ctc_backward(Run& r) {
    Shape shape(r.tensor("logProbs").dims);
    auto x = r.read<double>(r.tensor("logProbs")), g = r.read<double>(r.tensor("gradOut"));
    auto loss = r.read<double>(r.tensor("negLogLikelihood")), all = r.read<double>(r.tensor("logAlpha"));
    int64_t width = r.tensor("logAlpha").dims.back(), blank = r.integer("blank");
    std::vector<double> out(x.size());
    auto list = samples(r, "targetLengths");
    for (int64_t n = 0; n < shape.batch; ++n) {
        const Sample& s = list[size_t(n)];
        if (r.flag("zeroInfinity") && loss[size_t(n)] == INFINITY) continue;
        const double* alpha = all.data() + n * shape.time * width;
        std::vector<double> beta(size_t(s.states()), kNever), next;
        for (int64_t t = s.time - 1; t >= 0; --t) {
            next = beta;
            for (int64_t k = 0; k < s.states(); ++k) {
                double sum = kNever;
                if (t == s.time - 1) {
                    if (k >= s.states() - 2) sum = 0;
                } else {
                    sum = next[size_t(k)];
                    if (k + 1 < s.states()) sum = log_add(sum, next[size_t(k + 1)]);
                    if (k + 2 < s.states() && s.skips(k + 2)) sum = log_add(sum, next[size_t(k + 2)]);
                }
                beta[size_t(k)] = sum + x[shape.at(t, n, s.label(k, blank))];
            }
            std::vector<double> through(size_t(shape.classes), kNever);
            for (int64_t k = 0; k < s.states(); ++k) {
                double& sum = through[size_t(s.label(k, blank))];
                sum = log_add(sum, alpha[t * width + k] + beta[size_t(k)]);
            }
            for (int64_t c = 0; c < shape.classes; ++c) {
                size_t at = shape.at(t, n, c);
                out[at] = (std::exp(x[at]) - std::exp(through[size_t(c)] + loss[size_t(n)] - x[at])) * g[size_t(n)];
            }
        }
    }
    r.write(r.tensor("out"), out);
}

}  // namespace

ACLNN(aclnnCtcLoss, PLAN { plan_ctc_inputs(p, "targetlengths", "negLogLikelihoodOut", "logAlphaOut"); }, run_ctc)
ACLNN(aclnnCtcLossBackward, PLAN {
    plan_ctc_inputs(p, "targetLengths", "negLogLikelihood", "logAlpha");
    p.require(p.tensor("gradOut").numel() == p.tensor("negLogLikelihood").numel(),
              "gradOut has shape %s, expected one element per sample", text(p.tensor("gradOut").dims).c_str());
    p.same_shape("logProbs", "out");
}, run_ctc_backward)
