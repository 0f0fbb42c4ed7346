// Losses whose reduction is given by name, and those that always give one number.
#include "activation.h"
#include "kernel.h"

using namespace emu;

namespace {

enum class Way { none, mean, sum };

Way way_of(const std::string& name) { return name == "none" ? Way::none : name == "sum" ? Way::sum : Way::mean; }

void plan_name(const Plan& p, const char* reduction) {
    const std::string& name = p.string(reduction);
    p.require(name == "none" || name == "mean" || name == "sum" || name.empty(),
              "%s is \"%s\", expected none, mean or sum", reduction, name.c_str());
}

void plan_reduced(const Plan& p, const Dims& shape, const char* reduction, const char* out) {
    plan_name(p, reduction);
    if (way_of(p.string(reduction)) == Way::none) p.shape(out, shape);
    else p.require(p.tensor(out).numel() == 1, "%s has shape %s, expected one element", out,
                   text(p.tensor(out).dims).c_str());
}

void write_reduced(const Run& r, const std::vector<double>& loss, Way way, const char* out) {
    if (way == Way::none) return r.write(r.tensor(out), loss);
    double sum = 0;
    for (double v : loss) sum += v;
    r.write(r.tensor(out), std::vector<double>{way == Way::mean ? sum / double(loss.size()) : sum});
}

void plan_same(const Plan& p, const char* first, std::initializer_list<const char*> names) {
    for (const char* name : names) p.same_shape(first, name);
}

template <class F>
std::vector<double> each(const Run& r, const char* a, const char* b, F f) {
    auto x = r.read<double>(r.tensor(a)), y = r.read<double>(r.tensor(b));
    for (size_t i = 0; i < x.size(); ++i) x[i] = f(x[i], y[i]);
    return x;
}

// -- Gaussian negative log likelihood: variances below eps count as eps ----------------------------------------------
Dims variance_shape(const Plan& p) {
    const Dims &d = p.tensor("input").dims, &v = p.tensor("var").dims;
    Dims both;
    p.require(broadcast(v, d, &both) && both == d, "var has shape %s, which does not broadcast to %s", text(v).c_str(),
              text(d).c_str());
    return d;
}

void plan_gaussian(Plan& p) {
    p.same_shape("input", "target");
    plan_reduced(p, variance_shape(p), "reductionOptional", "out");
}

void run_gaussian(Run& r) {
    const Dims& d = r.tensor("input").dims;
    auto x = each(r, "input", "target", [](double a, double b) { return (a - b) * (a - b); });
    auto variance = r.read<double>(r.tensor("var"), d);
    for (size_t i = 0; i < x.size(); ++i) {
        double v = std::fmax(variance[i], r.real("eps"));
        x[i] = 0.5 * (std::log(v) + x[i] / v + (r.flag("full") ? std::log(2 * kPi) : 0));
    }
    write_reduced(r, x, way_of(r.string("reductionOptional")), "out");
}

void plan_gaussian_grad(Plan& p) {
    plan_same(p, "input", {"target", "var", "gradInput", "gradVar"});
    plan_name(p, "reduction");
    if (way_of(p.string("reduction")) == Way::none) p.same_shape("input", "gradOutput");
    else p.require(p.tensor("gradOutput").numel() == 1, "gradOutput must have one element");
}

void run_gaussian_grad(Run& r) {
    const Dims& d = r.tensor("input").dims;
    auto x = r.read<double>(r.tensor("input")), t = r.read<double>(r.tensor("target"));
    auto v = r.read<double>(r.tensor("var")), g = r.read<double>(r.tensor("gradOutput"));
    Way way = way_of(r.string("reduction"));
    std::vector<double> dx(x.size()), dv(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
        double incoming = g[way == Way::none ? i : 0] / (way == Way::mean ? double(d.product()) : 1);
        double kept = std::fmax(v[i], r.real("eps")), apart = x[i] - t[i];
        dx[i] = incoming * apart / kept;
        dv[i] = v[i] < r.real("eps") ? 0 : incoming * 0.5 * (1 / kept - apart * apart / (kept * kept));
    }
    r.write(r.tensor("gradInput"), dx);
    r.write(r.tensor("gradVar"), dv);
}

// -- gradients and logits --------------------------------------------------------------------------------------------
void plan_mse_grad(Plan& p) {
    plan_same(p, "self", {"target", "out"});
    plan_name(p, "reduction");
    Dims both;
    p.require(broadcast(p.tensor("gradOutput").dims, p.tensor("self").dims, &both) && both == p.tensor("self").dims,
              "gradOutput does not broadcast to self");
}

void run_mse_grad(Run& r) {
    auto x = each(r, "self", "target", [](double a, double b) { return 2 * (a - b); });
    auto g = r.read<double>(r.tensor("gradOutput"), r.tensor("self").dims);
    double count = way_of(r.string("reduction")) == Way::mean ? double(x.size()) : 1;
    for (size_t i = 0; i < x.size(); ++i) x[i] *= g[i] / count;
    r.write(r.tensor("out"), x);
}

void softmax_rows(std::vector<double>& x, size_t length) {
    for (size_t row = 0; row < x.size(); row += length) {
        double top = -INFINITY, sum = 0;
        for (size_t k = row; k < row + length; ++k) top = std::fmax(top, x[k]);
        for (size_t k = row; k < row + length; ++k) sum += x[k] = std::exp(x[k] - top);
        for (size_t k = row; k < row + length; ++k) x[k] /= sum;
    }
}

void run_cross_entropy(Run& r) {
    auto x = r.read<double>(r.tensor("features")), label = r.read<double>(r.tensor("labels"));
    size_t length = size_t(r.tensor("features").dims[1]);
    softmax_rows(x, length);
    std::vector<double> loss(size_t(r.tensor("features").dims[0]));
    for (size_t i = 0; i < x.size(); ++i) {
        if (label[i] != 0) loss[i / length] -= label[i] * std::log(x[i]);
        x[i] -= label[i];
    }
    r.write(r.tensor("loss"), loss);
    r.write(r.tensor("backprop"), x);
}

// -- the part that one holder of a vocabulary has of a cross entropy -------------------------------------------------------
// x = logits - largest of all holders; where a target is not among [start, end): mask 1, offset 0, no logit. The facts have
// the inputs only.
void plan_vocabulary(Plan& p) {
    const Dims& d = p.tensor("vocabParallelLogits").dims;
    p.require(d.n >= 1, "vocabParallelLogits has no dimensions");
    Dims rows = d;
    --rows.n;
    int64_t first = p.integer("vocabStartIndex"), last = p.integer("vocabEndIndex");
    p.require(first >= 0 && last - first == d.back(), "vocabStartIndex is %lld, vocabEndIndex %lld, vocabParallelLogits has shape %s", static_cast<long long>(first),
              static_cast<long long>(last), text(d).c_str());
    for (const char* name : {"target", "globalLogitsMax", "predictedLogitsOut", "sumExpLogitsOut", "targetOffsetOut", "targetMaskOut"}) {
        if (name[0] != 't' || name[6] != 0) p.require(p.has(name), "%s is null", name);
        p.shape(name, rows);
    }
    p.require(p.has("expLogitsOut"), "expLogitsOut is null");
    p.shape("expLogitsOut", d);
}

void run_vocabulary(Run& r) {
    auto x = r.read<double>(r.tensor("vocabParallelLogits")), top = r.read<double>(r.tensor("globalLogitsMax"));
    auto target = r.read<int64_t>(r.tensor("target"));
    int64_t first = r.integer("vocabStartIndex"), many = r.tensor("vocabParallelLogits").dims.back();
    std::vector<double> found(top.size(), 0), sums(top.size(), 0);
    std::vector<int64_t> mask(top.size(), 0), offset(top.size(), 0);
    for (size_t i = 0; i < top.size(); ++i) {
        double* row = x.data() + int64_t(i) * many;
        mask[i] = target[i] < first || target[i] >= first + many;
        offset[i] = mask[i] ? 0 : target[i] - first;
        if (!mask[i]) found[i] = row[offset[i]] - top[i];
        for (int64_t k = 0; k < many; ++k) row[k] = std::exp(row[k] - top[i]), sums[i] += row[k];
    }
    r.write(r.tensor("predictedLogitsOut"), found);
    r.write(r.tensor("sumExpLogitsOut"), sums);
    r.write(r.tensor("expLogitsOut"), x);
    r.write(r.tensor("targetOffsetOut"), offset);
    r.write(r.tensor("targetMaskOut"), mask);
}

}  // namespace

ACLNN(aclnnGaussianNllLoss, plan_gaussian, run_gaussian)
ACLNN(aclnnGaussianNllLossGrad, plan_gaussian_grad, run_gaussian_grad)
ACLNN(aclnnHingeEmbeddingLoss,
      PLAN { p.same_shape("input", "target"); plan_reduced(p, p.tensor("input").dims, "reduction", "loss"); },
      RUN {
          double margin = r.real("margin");
          auto x = each(r, "input", "target", [=](double v, double t) { return t == 1 ? v : std::fmax(0, margin - v); });
          write_reduced(r, x, way_of(r.string("reduction")), "loss");
      })
// The mean of max(0, 1 - predict * target).
ACLNN(aclnnHingeLoss,
      PLAN { p.same_shape("predict", "target"); p.require(p.tensor("loss").numel() == 1, "loss has one element"); },
      RUN {
          auto x = each(r, "predict", "target", [](double a, double b) { return std::fmax(0, 1 - a * b); });
          write_reduced(r, x, Way::mean, "loss");
      })
ACLNN(aclnnHuberLoss,
      PLAN {
          p.same_shape("predictions", "targets");
          p.require(p.real("delta") > 0, "delta is %g, expected > 0", p.real("delta"));
          p.require(p.tensor("loss").numel() == 1, "loss has shape %s, expected one element",
                    text(p.tensor("loss").dims).c_str());
      },
      RUN {
          double delta = r.real("delta");
          auto x = each(r, "predictions", "targets", [=](double a, double b) {
              double d = std::fabs(a - b);
              return d <= delta ? 0.5 * d * d : delta * (d - 0.5 * delta);
          });
          write_reduced(r, x, Way::mean, "loss");
      })
ACLNN(aclnnLpLoss,
      PLAN {
          p.same_shape("predict", "label");
          p.require(p.integer("p") == 1, "p is %lld, expected 1", static_cast<long long>(p.integer("p")));
          plan_reduced(p, p.tensor("predict").dims, "reduction", "out");
      },
      RUN {
          auto x = each(r, "predict", "label", [](double a, double b) { return std::fabs(a - b); });
          write_reduced(r, x, way_of(r.string("reduction")), "out");
      })
ACLNN(aclnnMseLossGrad, plan_mse_grad, run_mse_grad)
ACLNN(aclnnSoftmaxCrossEntropyWithLogits,
      PLAN {
          const Dims& d = p.tensor("features").dims;
          p.require(d.n == 2, "features has %d dimensions, expected 2", d.n);
          plan_same(p, "features", {"labels", "backprop"});
          p.shape("loss", {d[0]});
      },
      run_cross_entropy)
ACLNN(aclnnSoftmaxGrad, PLAN { plan_same(p, "y", {"dy", "dx"}); }, RUN {
    auto y = r.read<double>(r.tensor("y")), g = r.read<double>(r.tensor("dy"));
    size_t length = size_t(r.tensor("y").dims.back());
    for (size_t row = 0; row < y.size(); row += length) {
        double sum = 0;
        for (size_t k = row; k < row + length; ++k) sum += y[k] * g[k];
        for (size_t k = row; k < row + length; ++k) y[k] *= g[k] - sum;
    }
    r.write(r.tensor("dx"), y);
})
ACLNN(aclnnCrossEntropySumExpAndIndexLogit, plan_vocabulary, run_vocabulary)
