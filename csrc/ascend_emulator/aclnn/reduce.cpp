// Reductions over axes to sums, products, extremes, truth values, variances and norms.
#include <numeric>

#include "reducing.h"

using namespace emu;

namespace {

// -- sums, means, products -------------------------------------------------------------------------------------------
// A value in the dtype the reduction computes in: BOOL is 0 or 1.
template <class T>
std::vector<T> read_as(const Run& r, const Tensor& t, int dtype) {
    auto x = r.read<T>(t);
    if (dtype == ACL_BOOL)
        for (auto& v : x) v = T(v != T(0));
    return x;
}

void plan_sum(Plan& p, const char* dims, const char* keep) {
    plan_axes(p, "self", dims, keep, "out");
    plan_result_dtype(p, "dtype", "out");
    p.casts(p.tensor("self").dtype, "out");
    p.require(!(is_complex(p.tensor("out").dtype) && p.tensor("self").numel() == 0),
              "a complex sum of an empty tensor is not supported");
    p.workspace = kReduceWorkspace;
}

void run_sum(Run& r, const char* dims, bool skip_nan) {
    const Tensor& self = r.tensor("self");
    const Tensor& out = r.tensor("out");
    auto axes = axes_of(r.ints(dims), self.rank());
    by_category(category(out.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = read_as<T>(r, self, out.dtype);
        r.write(out, reduce<T>(x, self.dims, axes, [&](const std::vector<T>& line) {
            T sum{};
            for (T v : line)
                if (!skip_nan || !is_nan(v)) sum += v;
            return sum;
        }));
    });
}

// The mean of integers is computed in double and cut off.
void run_mean(Run& r, const std::vector<int>& axes) {
    const Tensor& self = r.tensor("self");
    const Tensor& out = r.tensor("out");
    bool complex = is_complex(self.dtype) || is_complex(out.dtype);
    by_category(complex ? Category::Complex : Category::Real, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (!std::is_same_v<T, int64_t>) {
            r.write(out, reduce<T>(r.read<T>(self), self.dims, axes, [](const std::vector<T>& line) {
                T sum{};
                for (T v : line) sum += v;
                return sum / double(line.size());
            }));
        }
    });
}

void run_prod(Run& r, const std::vector<int>& axes) {
    const Tensor& self = r.tensor("self");
    const Tensor& out = r.tensor("out");
    by_category(category(out.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = read_as<T>(r, self, out.dtype);
        r.write(out, reduce<T>(x, self.dims, axes, [](const std::vector<T>& line) {
            T product(1);
            for (T v : line) product *= v;
            return product;
        }));
    });
}

// -- truth -----------------------------------------------------------------------------------------------------------
void run_truth(Run& r, bool all) {
    const Tensor& self = r.tensor("self");
    auto x = r.read<double>(self);
    auto axes = axes_of(r.ints("dim"), self.rank());
    r.write(r.tensor("out"), reduce<int64_t>(x, self.dims, axes, [all](const auto& line) {
        auto yes = [](double v) { return v != 0; };
        return int64_t(all ? std::all_of(line.begin(), line.end(), yes) : std::any_of(line.begin(), line.end(), yes));
    }));
}

// -- extremes --------------------------------------------------------------------------------------------------------
void write_extreme(Run& r, const char* out, const std::vector<int>& axes, bool greatest) {
    const Tensor& self = r.tensor("self");
    by_real_or_integer(category(self.dtype), [&](auto zero) {
        using T = decltype(zero);
        r.write(r.tensor(out), reduce<T>(r.read<T>(self), self.dims, axes, [greatest](const std::vector<T>& line) {
            return extreme(line, greatest);
        }));
    });
}

void plan_extreme(Plan& p, const char* dims, const char* keep, const char* out) {
    plan_not_empty(p, "self", plan_axes(p, "self", dims, keep, out));
    p.same_dtype("self", out);
    p.workspace = kReduceWorkspace;
}

void plan_extreme_of_all(Plan& p, const char* out) {
    plan_one_element(p, out);
    p.same_dtype("self", out);
    p.require(p.tensor("self").numel() != 0, "self is empty: nothing to reduce");
    p.workspace = kReduceWorkspace;
}

void write_extreme_of_all(Run& r, const char* out, bool greatest) {
    write_extreme(r, out, axes_of({}, r.tensor("self").rank()), greatest);
}

void write_extreme_place(Run& r, const char* out, bool greatest) {
    const Tensor& self = r.tensor("self");
    by_real_or_integer(category(self.dtype), [&](auto zero) {
        using T = decltype(zero);
        r.write(r.tensor(out), reduce<int64_t>(r.read<T>(self), self.dims, axis_of(r.integer("dim"), self.rank()),
                                               [greatest](const std::vector<T>& line) {
                                                   return int64_t(extreme_at(line, greatest));
                                               }));
    });
}

void plan_extreme_place(Plan& p, const char* out) {
    auto axes = plan_axis(p, "self", "dim", "keepdim", out);
    const Dims& dims = p.tensor("self").dims;
    p.require(dims.n == 0 || dims[axes[0]] != 0, "self has shape %s: axis %d is empty", text(dims).c_str(), axes[0]);
    p.workspace = kReduceWorkspace;
}

void plan_extreme_along(Plan& p) {
    plan_extreme_place(p, "out");
    p.shape("indices", p.tensor("out").dims);
    p.same_dtype("self", "out");
}

void run_extreme_along(Run& r, bool greatest) {
    write_extreme(r, "out", axis_of(r.integer("dim"), r.tensor("self").rank()), greatest);
    write_extreme_place(r, "indices", greatest);
}

// -- variance --------------------------------------------------------------------------------------------------------
void plan_variance(Plan& p, std::initializer_list<const char*> outs) {
    for (const char* out : outs) plan_axes(p, "self", "dim", "keepdim", out);
    p.workspace = kReduceWorkspace;
}

double mean_of(const std::vector<double>& line) {
    double sum = 0;
    for (double v : line) sum += v;
    return sum / double(line.size());
}

double variance_of(const std::vector<double>& line, double correction) {
    double mean = mean_of(line), sum = 0;
    for (double v : line) sum += (v - mean) * (v - mean);
    return sum / std::max(0.0, double(line.size()) - correction);
}

template <class F>
void write_moment(Run& r, const char* out, F f) {
    const Tensor& self = r.tensor("self");
    r.write(r.tensor(out), reduce<double>(r.read<double>(self), self.dims, axes_of(r.ints("dim"), self.rank()), f));
}

void write_variance(Run& r, const char* out, double correction) {
    write_moment(r, out, [correction](const std::vector<double>& line) { return variance_of(line, correction); });
}

void write_deviation(Run& r, const char* out, double correction) {
    write_moment(r, out, [=](const std::vector<double>& line) { return std::sqrt(variance_of(line, correction)); });
}

// -- norms -----------------------------------------------------------------------------------------------------------
double log_sum_exp(const std::vector<double>& line) {
    if (line.empty()) return -std::numeric_limits<double>::infinity();
    double top = extreme(line, true);
    if (!std::isfinite(top)) return top;  // all -inf, some inf, or NaN
    double sum = 0;
    for (double v : line) sum += std::exp(v - top);
    return top + std::log(sum);
}

double norm_of(const std::vector<double>& line, double p) {
    if (line.empty()) return 0;
    if (std::isinf(p)) {
        std::vector<double> sizes;
        for (double v : line) sizes.push_back(std::fabs(v));
        return extreme(sizes, p > 0);
    }
    double sum = 0;
    for (double v : line) sum += p == 0 ? double(v != 0) : p == 2 ? v * v : std::pow(std::fabs(v), p);
    return p == 0 || p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
}

void run_norm(Run& r, const char* order, const char* dims) {
    const Tensor& self = r.tensor("self");
    double p = r.scalar(order).as<double>();
    r.write(r.tensor("out"), reduce<double>(r.read<double>(self), self.dims, axes_of(r.ints(dims), self.rank()),
                                            [p](const std::vector<double>& line) { return norm_of(line, p); }));
}

// Slices along dim whose norm exceeds maxNorm are scaled down to it.
void plan_renorm(Plan& p) {
    p.axis("dim", p.input().rank());
    p.require(p.scalar("p").as<double>() > 0, "p is %g, expected a positive number", p.scalar("p").as<double>());
    p.require(p.scalar("maxNorm").as<double>() >= 0, "maxNorm is %g, expected a number not below 0",
              p.scalar("maxNorm").as<double>());
    p.require(p.input().dims == p.output().dims, "out has shape %s, expected %s", text(p.output().dims).c_str(),
              text(p.input().dims).c_str());
}

void run_renorm(Run& r) {
    const Tensor& self = r.input();
    auto x = r.read<double>(self);
    double p = r.scalar("p").as<double>(), limit = r.scalar("maxNorm").as<double>();
    Lines lines(self.dims, wrap(r.integer("dim"), self.rank()));
    for (int64_t k = 0; k < lines.length; ++k) {
        std::vector<double> slice;
        for (int64_t o = 0; o < lines.outer; ++o)
            for (int64_t i = 0; i < lines.inner; ++i) slice.push_back(x[size_t(lines.at(o, k, i))]);
        double norm = norm_of(slice, p);
        if (!(norm > limit)) continue;
        for (int64_t o = 0; o < lines.outer; ++o)
            for (int64_t i = 0; i < lines.inner; ++i) x[size_t(lines.at(o, k, i))] *= limit / (norm + 1e-7);
    }
    r.write(r.output(), x);
}

}  // namespace

ACLNN(aclnnReduceSum, PLAN { plan_sum(p, "dims", "keepDims"); }, RUN { run_sum(r, "dims", false); })
ACLNN(aclnnReduceNansum, PLAN { plan_sum(p, "dim", "keepDim"); }, RUN { run_sum(r, "dim", true); })

ACLNN(aclnnMean,
      PLAN {
          plan_axes(p, "self", "dim", "keepDim", "out");
          p.require(castable(p.tensor("self").dtype, p.dtype("dtype")), "self has dtype %s, which cannot be cast to %s",
                    dtype_name(p.tensor("self").dtype), dtype_name(p.dtype("dtype")));
          p.casts(p.dtype("dtype"), "out");
          p.workspace = kReduceWorkspace;
      },
      RUN { run_mean(r, axes_of(r.ints("dim"), r.tensor("self").rank())); })
ACLNN(aclnnMeanV2,
      PLAN {
          p.same_dtype("self", "out");
          if (p.flag("noopWithEmptyAxes") && p.ints("dim").empty()) p.same_shape("self", "out");
          else plan_axes(p, "self", "dim", "keepDim", "out");
          p.workspace = kReduceWorkspace;
      },
      RUN {
          bool noop = r.flag("noopWithEmptyAxes") && r.ints("dim").empty();
          run_mean(r, noop ? std::vector<int>{} : axes_of(r.ints("dim"), r.tensor("self").rank()));
      })

ACLNN(aclnnProd,
      PLAN {
          plan_one_element(p, "out");
          plan_result_dtype(p, "dtype", "out");
          p.workspace = kReduceWorkspace;
      },
      RUN { run_prod(r, axes_of({}, r.tensor("self").rank())); })
ACLNN(aclnnProdDim,
      PLAN {
          plan_axis(p, "self", "dim", "keepDim", "out");
          plan_result_dtype(p, "dtype", "out");
          p.workspace = kReduceWorkspace;
      },
      RUN { run_prod(r, axis_of(r.integer("dim"), r.tensor("self").rank())); })

ACLNN(aclnnAll, PLAN { plan_axes(p, "self", "dim", "keepdim", "out"); }, RUN { run_truth(r, true); })
ACLNN(aclnnAny, PLAN { plan_axes(p, "self", "dim", "keepdim", "out"); }, RUN { run_truth(r, false); })

ACLNN(aclnnAmax, PLAN { plan_extreme(p, "dim", "keepDim", "out"); },
      RUN { write_extreme(r, "out", axes_of(r.ints("dim"), r.tensor("self").rank()), true); })
ACLNN(aclnnAmin, PLAN { plan_extreme(p, "dim", "keepDim", "out"); },
      RUN { write_extreme(r, "out", axes_of(r.ints("dim"), r.tensor("self").rank()), false); })
ACLNN(aclnnAminmax,
      PLAN {
          plan_extreme(p, "dim", "keepDim", "minOut");
          plan_extreme(p, "dim", "keepDim", "maxOut");
      },
      RUN {
          auto axes = axes_of(r.ints("dim"), r.tensor("self").rank());
          write_extreme(r, "minOut", axes, false);
          write_extreme(r, "maxOut", axes, true);
      })
ACLNN(aclnnAminmaxDim,
      PLAN {
          plan_not_empty(p, "self", plan_axis(p, "self", "dim", "keepDim", "minOut"));
          plan_axis(p, "self", "dim", "keepDim", "maxOut");
          p.same_dtype("self", "minOut");
          p.same_dtype("self", "maxOut");
      },
      RUN {
          auto axes = axis_of(r.integer("dim"), r.tensor("self").rank());
          write_extreme(r, "minOut", axes, false);
          write_extreme(r, "maxOut", axes, true);
      })
ACLNN(aclnnAminmaxAll,
      PLAN {
          plan_extreme_of_all(p, "minOut");
          plan_extreme_of_all(p, "maxOut");
      },
      RUN {
          write_extreme_of_all(r, "minOut", false);
          write_extreme_of_all(r, "maxOut", true);
      })

ACLNN(aclnnMax, PLAN { plan_extreme_of_all(p, "out"); }, RUN { write_extreme_of_all(r, "out", true); })
ACLNN(aclnnMin, PLAN { plan_extreme_of_all(p, "out"); }, RUN { write_extreme_of_all(r, "out", false); })
ACLNN(aclnnMaxV2,
      PLAN {
          if (p.flag("noopWithEmptyDims") && p.ints("dims").empty()) {
              p.same_shape("self", "out");
              p.same_dtype("self", "out");
          } else {
              plan_extreme(p, "dims", "keepDims", "out");
          }
      },
      RUN {
          bool noop = r.flag("noopWithEmptyDims") && r.ints("dims").empty();
          write_extreme(r, "out", noop ? std::vector<int>{} : axes_of(r.ints("dims"), r.tensor("self").rank()), true);
      })
ACLNN(aclnnMaxDim, PLAN { plan_extreme_along(p); }, RUN { run_extreme_along(r, true); })
ACLNN(aclnnMinDim, PLAN { plan_extreme_along(p); }, RUN { run_extreme_along(r, false); })
ACLNN(aclnnArgMax, PLAN { plan_extreme_place(p, "out"); }, RUN { write_extreme_place(r, "out", true); })
ACLNN(aclnnArgMin, PLAN { plan_extreme_place(p, "out"); }, RUN { write_extreme_place(r, "out", false); })

ACLNN(aclnnVar, PLAN { plan_variance(p, {"out"}); }, RUN { write_variance(r, "out", r.flag("unbiased") ? 1 : 0); })
ACLNN(aclnnVarCorrection, PLAN { plan_variance(p, {"out"}); },
      RUN { write_variance(r, "out", double(r.integer("correction"))); })
ACLNN(aclnnVarMean, PLAN { plan_variance(p, {"varOut", "meanOut"}); },
      RUN {
          write_variance(r, "varOut", double(r.integer("correction")));
          write_moment(r, "meanOut", mean_of);
      })
ACLNN(aclnnStd, PLAN { plan_variance(p, {"out"}); },
      RUN { write_deviation(r, "out", double(r.integer("correction"))); })
ACLNN(aclnnStdMeanCorrection, PLAN { plan_variance(p, {"stdOut", "meanOut"}); },
      RUN {
          write_deviation(r, "stdOut", double(r.integer("correction")));
          write_moment(r, "meanOut", mean_of);
      })

ACLNN(aclnnReduceLogSum,
      PLAN {
          p.same_dtype("data", "reduce");
          if (p.flag("noopWithEmptyAxes") && p.ints("axes").empty()) p.same_shape("data", "reduce");
          else plan_axes(p, "data", "axes", "keepDims", "reduce");
          p.workspace = kReduceWorkspace;
      },
      RUN {
          const Tensor& data = r.tensor("data");
          bool noop = r.flag("noopWithEmptyAxes") && r.ints("axes").empty();
          auto x = r.read<double>(data);
          auto axes = axes_of(r.ints("axes"), data.rank());
          r.write(r.tensor("reduce"), noop ? x : reduce<double>(x, data.dims, axes, [](const auto& line) {
              return std::log(std::accumulate(line.begin(), line.end(), 0.0));
          }));
      })
ACLNN(aclnnLogSumExp,
      PLAN {
          plan_axes(p, "self", "dim", "keepDim", "out");
          p.workspace = kReduceWorkspace;
      },
      RUN { write_moment(r, "out", log_sum_exp); })
ACLNN(aclnnNorm,
      PLAN {
          plan_axes(p, "self", "dim", "keepdim", "out");
          p.workspace = kReduceWorkspace;
      },
      RUN { run_norm(r, "pScalar", "dim"); })
ACLNN(aclnnLinalgVectorNorm,
      PLAN {
          plan_axes(p, "self", "dims", "keepDims", "out");
          plan_result_dtype(p, "dtype", "out");
          p.workspace = kReduceWorkspace;
      },
      RUN { run_norm(r, "ord", "dims"); })
ACLNN(aclnnRenorm, PLAN { plan_renorm(p); }, RUN { run_renorm(r); })
ACLNN(aclnnInplaceRenorm, PLAN { plan_renorm(p); }, RUN { run_renorm(r); })
