// Random numbers. The forms called ...Tensor take seed and offset from the device; their offset argument is added.
#include <algorithm>
#include <numeric>

#include "elementwise.h"
#include "philox.h"

using namespace emu;

namespace {

Philox generator(const Run& r) {
    for (int i = 0; i < r.function->count; ++i)
        if (std::string(r.function->parameters[i].name) == "seedTensor") {
            auto seed = r.read<int64_t>(r.tensor("seedTensor")), offset = r.read<int64_t>(r.tensor("offsetTensor"));
            return {uint64_t(seed[0]), uint64_t(offset[0]) + uint64_t(r.integer("offset"))};
        }
    return {uint64_t(r.integer("seed")), uint64_t(r.integer("offset"))};
}

void check_generator(const Plan& p) {
    for (int i = 0; i < p.function->count; ++i) {
        std::string name = p.function->parameters[i].name;
        if (name == "seedTensor" || name == "offsetTensor")
            p.require(p.tensor(name.c_str()).numel() == 1, "%s has shape %s, expected one element", name.c_str(),
                      text(p.tensor(name.c_str()).dims).c_str());
    }
}

template <class T, class F>
void generate(Run& r, const Tensor& out, F f) {
    Philox g = generator(r);
    std::vector<T> x(size_t(out.numel()));
    for (size_t i = 0; i < x.size(); ++i) x[i] = f(g, i);
    r.write(out, x);
}

// -- Bernoulli -------------------------------------------------------------------------------------------------------
void check_offset(const Plan& p) {
    p.require(p.integer("offset") % 4 == 0, "offset is %lld, expected a multiple of 4",
              static_cast<long long>(p.integer("offset")));
}

void check_like_self(const Plan& p) {
    if (p.function->parameters[0].in_place) return;
    p.same_shape("self", "out");
    p.same_dtype("self", "out");
}

void plan_bernoulli(Plan& p) {
    check_offset(p);
    check_like_self(p);
    double prob = p.scalar("prob").as<double>();
    p.require(prob >= 0 && prob <= 1, "prob is %g, expected 0 to 1", prob);
}

void run_bernoulli(Run& r) {
    double prob = r.scalar("prob").as<double>();
    generate<int64_t>(r, r.output(), [&](const Philox& g, size_t i) { return g.uniform(i) < prob; });
}

void plan_bernoulli_tensor(Plan& p) {
    check_offset(p);
    check_like_self(p);
    Dims shape;
    p.require(broadcast(p.output().dims, p.tensor("prob").dims, &shape) && shape == p.output().dims,
              "prob of shape %s does not broadcast to %s", text(p.tensor("prob").dims).c_str(),
              text(p.output().dims).c_str());
}

void run_bernoulli_tensor(Run& r) {
    auto prob = r.read<double>(r.tensor("prob"), r.output().dims);
    generate<int64_t>(r, r.output(), [&](const Philox& g, size_t i) { return g.uniform(i) < prob[i]; });
}

// -- normal ----------------------------------------------------------------------------------------------------------
void check_deviation(const Plan& p) {
    p.require(p.real("std") >= 0, "std is %g, expected >= 0", p.real("std"));
}

void plan_normal(Plan& p) {
    check_deviation(p);
    check_generator(p);
}

void run_normal(Run& r) {
    double mean = r.real("mean"), deviation = r.real("std");
    generate<double>(r, r.output(), [&](const Philox& g, size_t i) { return mean + deviation * g.normal(i); });
}

// -- uniform ---------------------------------------------------------------------------------------------------------
void plan_uniform(Plan& p) {
    p.require(p.real("from") <= p.real("to"), "from is %g and to %g, expected from <= to", p.real("from"),
              p.real("to"));
    check_generator(p);
}

void run_uniform(Run& r) {
    double from = r.real("from"), to = r.real("to");
    int dtype = r.output().dtype;
    generate<double>(r, r.output(), [&](const Philox& g, size_t i) {
        double u = dtype == ACL_DOUBLE ? double(g.bits(i) >> 11) / 9007199254740992.0 : g.uniform(i);
        double x = from + u * (to - from);
        return narrow<double>(x, dtype) >= to ? from : x;  // rounding must not reach the end
    });
}

// -- integers --------------------------------------------------------------------------------------------------------
void plan_random(Plan& p) {
    p.require(p.integer("from") < p.integer("to"), "from is %lld and to %lld, expected from < to",
              static_cast<long long>(p.integer("from")), static_cast<long long>(p.integer("to")));
    check_generator(p);
}

void run_random(Run& r) {
    int64_t from = r.integer("from");
    uint64_t count = uint64_t(r.integer("to")) - uint64_t(from);
    generate<int64_t>(r, r.output(),
                      [&](const Philox& g, size_t i) { return int64_t(uint64_t(from) + g.below(i, count)); });
}

// How many values from 0 on the dtype holds without a gap.
uint64_t span_of(int dtype) {
    switch (dtype) {
        case ACL_BOOL: return 2;
        case ACL_INT8: return 1u << 7;
        case ACL_UINT8: return 1u << 8;
        case ACL_INT16: return 1u << 15;
        case ACL_INT32: return uint64_t(1) << 31;
        case ACL_INT64: return uint64_t(1) << 63;
        case ACL_FLOAT16: return (1u << 11) + 1;
        case ACL_BF16: return (1u << 8) + 1;
        case ACL_FLOAT: return (1u << 24) + 1;
        default: return (uint64_t(1) << 53) + 1;
    }
}

void run_random_any(Run& r) {
    uint64_t count = span_of(r.output().dtype);
    generate<int64_t>(r, r.output(), [&](const Philox& g, size_t i) { return int64_t(g.below(i, count)); });
}

// -- multinomial -----------------------------------------------------------------------------------------------------
void plan_multinomial(Plan& p) {
    const Tensor& self = p.tensor("self");
    int64_t samples = p.integer("numsamples");
    p.require(self.rank() == 1 || self.rank() == 2, "self has shape %s, expected 1 or 2 dimensions",
              text(self.dims).c_str());
    int64_t classes = self.dims.back();
    p.require(classes > 0 || self.numel() == p.output().numel(), "self has shape %s: there are no classes", text(self.dims).c_str());
    p.require(classes <= int64_t(1) << 24, "self has %lld classes, expected at most 2^24",
              static_cast<long long>(classes));
    p.require(samples > 0 && (p.flag("replacement") || samples <= classes),
              "numsamples is %lld, expected 1 or more, and without replacement at most %lld",
              static_cast<long long>(samples), static_cast<long long>(classes));
    Dims want = self.dims;
    want[want.n - 1] = samples;
    p.shape("out", want);
    check_generator(p);
    p.workspace = uint64_t(self.numel()) * 8;
}

void run_multinomial(Run& r) {
    auto weights = r.read<double>(r.tensor("self"));
    size_t classes = size_t(r.tensor("self").dims.back()), samples = size_t(r.integer("numsamples"));
    size_t rows = classes ? weights.size() / classes : 0;
    Philox g = generator(r);
    std::vector<int64_t> out;
    for (size_t row = 0; row < rows; ++row) {
        const double* w = weights.data() + row * classes;
        if (r.flag("replacement")) {
            std::vector<double> sums(classes);
            std::partial_sum(w, w + classes, sums.begin());
            for (size_t i = 0; i < samples; ++i) {
                double u = g.open_uniform(row * samples + i) * sums.back();
                auto found = std::upper_bound(sums.begin(), sums.end(), u) - sums.begin();
                out.push_back(std::min(int64_t(found), int64_t(classes) - 1));
            }
        } else {
            // A race of exponential clocks: the first to ring are a sample without replacement.
            std::vector<std::pair<double, int64_t>> clocks;
            for (size_t i = 0; i < classes; ++i)
                clocks.emplace_back(-std::log(g.open_uniform(row * classes + i)) / w[i], int64_t(i));
            std::partial_sort(clocks.begin(), clocks.begin() + std::ptrdiff_t(samples), clocks.end());
            for (size_t i = 0; i < samples; ++i) out.push_back(clocks[i].second);
        }
    }
    r.write(r.tensor("out"), out);
}

// -- RReLU -----------------------------------------------------------------------------------------------------------
void plan_rrelu(Plan& p) {
    double lower = p.scalar("lower").as<double>(), upper = p.scalar("upper").as<double>();
    p.require(lower <= upper, "lower is %g and upper %g, expected lower <= upper", lower, upper);
    p.same_shape("self", "noise");
    p.same_dtype("self", "noise");
    p.require(p.output().dims == p.tensor("self").dims && p.output().dtype == p.tensor("self").dtype,
              "the output must be like self");
}

void run_rrelu(Run& r) {
    double lower = r.scalar("lower").as<double>(), upper = r.scalar("upper").as<double>();
    auto x = r.read<double>(r.tensor("self"));
    bool training = r.flag("training");
    Philox g = generator(r);
    std::vector<double> slopes(x.size(), 1);
    for (size_t i = 0; i < x.size(); ++i) {
        if (!(x[i] <= 0)) continue;
        slopes[i] = training ? lower + (upper - lower) * g.uniform(i) : (lower + upper) / 2;
        x[i] *= slopes[i];
    }
    r.write(r.output(), x);
    if (training) r.write(r.tensor("noise"), slopes);
}

}  // namespace

ACLNN(aclnnBernoulli, plan_bernoulli, run_bernoulli)
ACLNN(aclnnInplaceBernoulli, plan_bernoulli, run_bernoulli)
ACLNN(aclnnBernoulliTensor, plan_bernoulli_tensor, run_bernoulli_tensor)
ACLNN(aclnnInplaceBernoulliTensor, plan_bernoulli_tensor, run_bernoulli_tensor)
ACLNN(aclnnInplaceNormal, plan_normal, run_normal)
ACLNN(aclnnInplaceNormalTensor, plan_normal, run_normal)
ACLNN(aclnnNormalFloatFloat, plan_normal, run_normal)
ACLNN(aclnnNormalFloatTensor, PLAN { p.same_shape("std", "out"); }, RUN {
    auto deviation = r.read<double>(r.tensor("std"));
    double mean = r.real("mean");
    generate<double>(r, r.tensor("out"), [&](const Philox& g, size_t i) { return mean + deviation[i] * g.normal(i); });
})
ACLNN(aclnnNormalTensorFloat, PLAN { check_deviation(p); p.same_shape("mean", "out"); }, RUN {
    auto mean = r.read<double>(r.tensor("mean"));
    double deviation = r.real("std");
    generate<double>(r, r.tensor("out"), [&](const Philox& g, size_t i) { return mean[i] + deviation * g.normal(i); });
})
ACLNN(aclnnNormalTensorTensor,
      PLAN {
          p.same_dtype("mean", "std");
          p.shape("out", broadcast_all(p, {&p.tensor("mean").dims, &p.tensor("std").dims}));
      },
      RUN {
          const Tensor& out = r.tensor("out");
          auto mean = r.read<double>(r.tensor("mean"), out.dims), deviation = r.read<double>(r.tensor("std"), out.dims);
          generate<double>(r, out, [&](const Philox& g, size_t i) { return mean[i] + deviation[i] * g.normal(i); });
      })
ACLNN(aclnnInplaceUniform, plan_uniform, run_uniform)
ACLNN(aclnnInplaceUniformTensor, plan_uniform, run_uniform)
ACLNN(aclnnInplaceRandom, plan_random, run_random)
ACLNN(aclnnInplaceRandomTensor, plan_random, run_random)
ACLNN(aclnnInplaceRandomWithoutFromTo, check_generator, run_random_any)
ACLNN(aclnnInplaceRandomWithoutFromToTensor, check_generator, run_random_any)
ACLNN(aclnnMultinomial, plan_multinomial, run_multinomial)
ACLNN(aclnnMultinomialTensor, plan_multinomial, run_multinomial)
ACLNN(aclnnRReluWithNoise, plan_rrelu, run_rrelu)
ACLNN(aclnnInplaceRReluWithNoise, plan_rrelu, run_rrelu)

ACLNN(aclnnSimThreadExponential,
      PLAN {
          p.require(p.real("lambda") > 0, "lambda is %g, expected > 0", p.real("lambda"));
          p.require(p.integer("count") == p.tensor("selfRef").numel(), "count is %lld, selfRef has %lld elements",
                    static_cast<long long>(p.integer("count")), static_cast<long long>(p.tensor("selfRef").numel()));
      },
      RUN {
          double lambda = r.real("lambda");
          generate<double>(r, r.tensor("selfRef"),
                           [&](const Philox& g, size_t i) { return -std::log(g.open_uniform(i)) / lambda; });
      })

ACLNN(aclnnRandperm,
      PLAN {
          p.require(p.integer("n") >= 0, "n is %lld, expected >= 0", static_cast<long long>(p.integer("n")));
          p.shape("out", {p.integer("n")});
          p.workspace = uint64_t(p.integer("n")) * 8;
      },
      RUN {
          Philox g = generator(r);
          std::vector<int64_t> x(size_t(r.integer("n")));
          std::iota(x.begin(), x.end(), int64_t{0});
          for (size_t i = x.size(); i > 1; --i) std::swap(x[i - 1], x[g.below(i, i)]);
          r.write(r.tensor("out"), x);
      })
