// Losses of two tensors, element by element, then none, the mean or the sum of them.
#include <cmath>
#include <cstdlib>

#include "kernel.h"

using namespace emu;

namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2, kBatchMean = 3 };

// How the result of a reduction is shaped.
enum class Reduced { scalar, one_element };

Dims plan_pair(const Plan& p, const char* self, const char* target) {
    Dims shape = broadcast_all(p, {&p.tensor(self).dims, &p.tensor(target).dims});
    p.require(promote(p.tensor(self).dtype, p.tensor(target).dtype) != ACL_DT_UNDEFINED,
              "the dtypes of %s and %s do not promote", self, target);
    return shape;
}

void plan_reduction(const Plan& p, bool batch_mean) {
    int64_t reduction = p.integer("reduction"), last = batch_mean ? kBatchMean : kSum;
    p.require(reduction >= kNone && reduction <= last, "reduction is %lld, expected 0 to %lld",
              static_cast<long long>(reduction), static_cast<long long>(last));
}

void plan_reduced(const Plan& p, const Dims& shape, Reduced reduced, bool batch_mean = false) {
    plan_reduction(p, batch_mean);
    const Tensor& out = p.output();
    if (p.integer("reduction") == kNone)
        p.require(out.dims == shape, "the output has shape %s, expected %s", text(out.dims).c_str(),
                  text(shape).c_str());
    else
        p.require(out.numel() == 1 && out.rank() <= (reduced == Reduced::scalar ? 0 : 1),
                  "the output has shape %s, expected one element%s", text(out.dims).c_str(),
                  reduced == Reduced::scalar ? ", 0 dimensions" : "");
}

void write_reduced(Run& r, const std::vector<double>& loss, const Dims& shape) {
    int64_t reduction = r.integer("reduction");
    if (reduction == kNone) return r.write(r.output(), loss);
    double sum = 0;
    for (double v : loss) sum += v;
    if (reduction == kMean) sum /= double(loss.size());
    if (reduction == kBatchMean) sum /= double(shape.n ? shape[0] : 1);
    r.write(r.output(), std::vector<double>{sum});
}

template <Reduced reduced, bool batch_mean = false>
void plan_loss(Plan& p) {
    Dims shape = plan_pair(p, "self", "target");
    plan_reduced(p, shape, reduced, batch_mean);
    p.casts(promote(p.tensor("self").dtype, p.tensor("target").dtype),
            p.function->parameters[p.function->count - 1].name);
}

Dims pair_shape(const Call& c) {
    Dims shape;
    broadcast(c.tensor("self").dims, c.tensor("target").dims, &shape);
    return shape;
}

template <class F>
void run_loss(Run& r, F f) {
    Dims shape = pair_shape(r);
    auto x = r.read<double>(r.tensor("self"), shape), t = r.read<double>(r.tensor("target"), shape);
    for (size_t i = 0; i < x.size(); ++i) x[i] = f(x[i], t[i]);
    write_reduced(r, x, shape);
}

// The gradient has the shape self, target and the incoming gradient broadcast to.
Dims backward_shape(const Call& c) {
    Dims both, all;
    broadcast(c.tensor("self").dims, c.tensor("target").dims, &both);
    broadcast(both, c.input(0).dims, &all);
    return all;
}

template <bool batch_mean = false>
void plan_loss_backward(Plan& p) {
    plan_reduction(p, batch_mean);
    Dims shape = broadcast_all(p, {&p.tensor("self").dims, &p.tensor("target").dims, &p.input(0).dims});
    p.require(p.output().dims == shape, "the output has shape %s, expected %s", text(p.output().dims).c_str(),
              text(shape).c_str());
}

template <class F>
void run_loss_backward(Run& r, F f) {
    Dims shape = backward_shape(r);
    auto g = r.read<double>(r.input(0), shape);
    auto x = r.read<double>(r.tensor("self"), shape), t = r.read<double>(r.tensor("target"), shape);
    int64_t reduction = r.integer("reduction");
    double divisor = reduction == kMean ? double(g.size()) : 1;
    if (reduction == kBatchMean && shape.n) divisor = double(shape[0]);
    for (size_t i = 0; i < g.size(); ++i) g[i] = g[i] * f(x[i], t[i]) / divisor;
    r.write(r.output(), g);
}

// Whole numbers stay exact; only their mean needs a division.
void run_absolute(Run& r) {
    bool whole = is_integer(promote(r.tensor("self").dtype, r.tensor("target").dtype)) && is_integer(r.output().dtype);
    if (!whole || r.integer("reduction") == kMean)
        return run_loss(r, [](double x, double t) { return std::fabs(x - t); });
    Dims shape = pair_shape(r);
    auto x = r.read<int64_t>(r.tensor("self"), shape), t = r.read<int64_t>(r.tensor("target"), shape);
    int64_t sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += x[i] = std::abs(x[i] - t[i]);
    r.write(r.output(), r.integer("reduction") == kNone ? x : std::vector<int64_t>{sum});
}

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

void plan_beta(const Plan& p) {
    p.require(p.real("beta") >= 0, "beta is %g, expected 0 or more", p.real("beta"));
}

double kl(double x, double t, bool log_target) {
    if (log_target) return std::exp(t) * (t - x);
    return t == 0 ? 0 : t * (std::log(t) - x);
}

double kl_target(double x, double t, bool log_target) {
    if (log_target) return std::exp(t) * (t - x + 1);
    return t == 0 ? 0 : std::log(t) - x + 1;
}

// -- binary cross entropy --------------------------------------------------------------------------------------------
double log_sigmoid(double x) { return std::min(x, 0.0) - std::log1p(std::exp(-std::fabs(x))); }
double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

std::vector<double> or_ones(const Run& r, const char* name, const Dims& shape) {
    return r.has(name) ? r.read<double>(r.tensor(name), shape) : std::vector<double>(size_t(shape.product()), 1.0);
}

void plan_weights(const Plan& p, std::initializer_list<const char*> names) {
    p.same_shape("self", "target");
    for (const char* name : names) {
        Dims both;
        if (p.has(name))
            p.require(broadcast(p.tensor(name).dims, p.tensor("self").dims, &both) && both == p.tensor("self").dims,
                      "%s has shape %s, which does not broadcast to %s", name, text(p.tensor(name).dims).c_str(),
                      text(p.tensor("self").dims).c_str());
    }
}

// f(x, target, posWeight) times the weight.
template <class F>
void run_weighted(Run& r, const char* weight, const char* positive, F f) {
    const Dims& shape = r.tensor("self").dims;
    auto x = r.read<double>(r.tensor("self")), t = r.read<double>(r.tensor("target"));
    auto w = or_ones(r, weight, shape);
    auto q = positive ? or_ones(r, positive, shape) : std::vector<double>(x.size(), 1.0);
    for (size_t i = 0; i < x.size(); ++i) x[i] = w[i] * f(x[i], t[i], q[i]);
    write_reduced(r, x, shape);
}

template <class F>
void run_weighted_backward(Run& r, const char* weight, const char* positive, F f) {
    const Dims& shape = r.tensor("self").dims;
    auto g = r.read<double>(r.tensor("gradOutput"), shape);
    auto x = r.read<double>(r.tensor("self")), t = r.read<double>(r.tensor("target"));
    auto w = or_ones(r, weight, shape);
    auto q = positive ? or_ones(r, positive, shape) : std::vector<double>(x.size(), 1.0);
    double divisor = r.integer("reduction") == kMean ? double(x.size()) : 1;
    for (size_t i = 0; i < g.size(); ++i) g[i] *= w[i] * f(x[i], t[i], q[i]) / divisor;
    r.write(r.output(), g);
}

void plan_weighted_backward(const Plan& p, std::initializer_list<const char*> names) {
    plan_weights(p, names);
    plan_reduction(p, false);
    Dims both;
    const Dims &g = p.tensor("gradOutput").dims, &self = p.tensor("self").dims;
    p.require(broadcast(g, self, &both) && both == self, "gradOutput has shape %s, which does not broadcast to %s",
              text(g).c_str(), text(self).c_str());
    p.require(p.output().dims == self, "the output has shape %s, expected %s", text(p.output().dims).c_str(),
              text(self).c_str());
}

// -- MultilabelMarginLoss --------------------------------------------------------------------------------------------
void plan_multilabel(Plan& p) {
    p.same_shape("self", "target");
    p.same_shape("self", "isTarget");
    const Tensor& self = p.tensor("self");
    plan_reduced(p, self.rank() == 2 ? Dims{self.dims[0]} : Dims{}, Reduced::one_element);
}

void run_multilabel(Run& r) {
    const Dims& dims = r.tensor("self").dims;
    int64_t classes = dims.back(), rows = dims.n == 2 ? dims[0] : 1;
    auto x = r.read<double>(r.tensor("self"));
    auto target = r.read<int64_t>(r.tensor("target"));
    std::vector<double> is(x.size()), loss;
    for (int64_t n = 0; n < rows; ++n) {
        const double* row = x.data() + n * classes;
        const int64_t* wanted = target.data() + n * classes;
        int64_t count = 0;
        for (; count < classes && wanted[count] >= 0; ++count) {  // the first negative class ends the list
            if (wanted[count] >= classes)
                fault("target %lld is out of range for %lld classes", static_cast<long long>(wanted[count]),
                      static_cast<long long>(classes));
            is[size_t(n * classes + wanted[count])] = 1;
        }
        double sum = 0;
        for (int64_t k = 0; k < count; ++k)
            for (int64_t c = 0; c < classes; ++c)
                if (is[size_t(n * classes + c)] == 0) sum += std::max(0.0, 1 - row[wanted[k]] + row[c]);
        loss.push_back(sum / double(classes));
    }
    r.write(r.tensor("isTarget"), is);
    write_reduced(r, loss, {rows});
}

}  // namespace

ACLNN(aclnnMseLoss, plan_loss<Reduced::scalar>,
      RUN { run_loss(r, [](double x, double t) { return (x - t) * (x - t); }); })
ACLNN(aclnnMseLossBackward, plan_loss_backward,
      RUN { run_loss_backward(r, [](double x, double t) { return 2 * (x - t); }); })
ACLNN(aclnnL1Loss, plan_loss<Reduced::scalar>, run_absolute)
ACLNN(aclnnL1LossBackward, plan_loss_backward,
      RUN { run_loss_backward(r, [](double x, double t) { return sign(x - t); }); })
ACLNN(aclnnSmoothL1Loss, PLAN { plan_beta(p); plan_loss<Reduced::scalar>(p); }, RUN {
    double beta = r.real("beta");
    run_loss(r, [beta](double x, double t) {
        double d = std::fabs(x - t);
        return d < beta ? d * d / (2 * beta) : d - beta / 2;
    });
})
ACLNN(aclnnSmoothL1LossBackward, PLAN { plan_beta(p); plan_loss_backward(p); }, RUN {
    double beta = r.real("beta");
    run_loss_backward(r, [beta](double x, double t) {
        double d = x - t;
        return std::fabs(d) < beta ? d / beta : sign(d);
    });
})
ACLNN(aclnnSoftMarginLoss, plan_loss<Reduced::one_element>,
      RUN { run_loss(r, [](double x, double t) { return -log_sigmoid(x * t); }); })
ACLNN(aclnnSoftMarginLossBackward, plan_loss_backward,
      RUN { run_loss_backward(r, [](double x, double t) { return -t * sigmoid(-x * t); }); })
ACLNN(aclnnKlDiv, (plan_loss<Reduced::one_element, true>), RUN {
    bool log_target = r.flag("logTarget");
    run_loss(r, [log_target](double x, double t) { return kl(x, t, log_target); });
})
ACLNN(aclnnKlDivBackward, plan_loss_backward<true>, RUN {
    bool log_target = r.flag("logTarget");
    run_loss_backward(r, [log_target](double, double t) { return log_target ? -std::exp(t) : -t; });
})
ACLNN(aclnnKlDivTargetBackward, plan_loss_backward<true>, RUN {
    bool log_target = r.flag("logTarget");
    run_loss_backward(r, [log_target](double x, double t) { return kl_target(x, t, log_target); });
})
ACLNN(aclnnBinaryCrossEntropy, PLAN {
    plan_weights(p, {"weight"});
    plan_reduced(p, p.tensor("self").dims, Reduced::one_element);
}, RUN {
    run_weighted(r, "weight", nullptr, [](double x, double t, double) {
        return -t * std::max(std::log(x), -100.0) - (1 - t) * std::max(std::log1p(-x), -100.0);
    });
})
ACLNN(aclnnBinaryCrossEntropyBackward, PLAN { plan_weighted_backward(p, {"weightOptional"}); }, RUN {
    run_weighted_backward(r, "weightOptional", nullptr, [](double x, double t, double) {
        return (x - t) / std::max((1 - x) * x, 1e-12);
    });
})
ACLNN(aclnnBinaryCrossEntropyWithLogits, PLAN {
    plan_weights(p, {"weightOptional", "posWeightOptional"});
    plan_reduced(p, p.tensor("self").dims, Reduced::one_element);
}, RUN {
    run_weighted(r, "weightOptional", "posWeightOptional", [](double x, double t, double positive) {
        return -positive * t * log_sigmoid(x) - (1 - t) * log_sigmoid(-x);
    });
})
ACLNN(aclnnBinaryCrossEntropyWithLogitsBackward, PLAN {
    plan_weighted_backward(p, {"weightOptional", "posWeightOptional"});
}, RUN {
    run_weighted_backward(r, "weightOptional", "posWeightOptional", [](double x, double t, double positive) {
        return (positive * t + 1 - t) * sigmoid(x) - positive * t;
    });
})
ACLNN(aclnnBinaryCrossEntropyWithLogitsTargetBackward, PLAN {
    plan_weighted_backward(p, {"weightOptional", "posWeightOptional"});
}, RUN {
    run_weighted_backward(r, "weightOptional", "posWeightOptional", [](double x, double, double positive) {
        return log_sigmoid(-x) - positive * log_sigmoid(x);
    });
})
ACLNN(aclnnMultilabelMarginLoss, plan_multilabel, run_multilabel)
