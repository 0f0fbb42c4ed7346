// Running sums, products and extremes along an axis; the trace, counts and histograms.
#include <algorithm>

#include "reducing.h"

using namespace emu;

namespace {

// step(running, x): the running value and each element in turn, first to last or last to first.
template <class T, class F>
void scan(std::vector<T>& x, const Dims& dims, int64_t axis, bool reverse, F step) {
    Lines lines(dims, axis);
    for (int64_t o = 0; o < lines.outer; ++o)
        for (int64_t i = 0; i < lines.inner; ++i)
            for (int64_t k = 0; k < lines.length; ++k)
                step(k, x[size_t(lines.at(o, reverse ? lines.length - 1 - k : k, i))]);
}

void run_cumsum(Run& r, bool exclusive, bool reverse) {
    const Tensor& self = r.tensor("self");
    const Tensor& out = r.tensor("out");
    by_category(category(out.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(self);
        T sum{};
        scan(x, self.dims, wrap(r.integer("dim"), std::max(self.rank(), 1)), reverse, [&](int64_t k, T& v) {
            if (k == 0) sum = T{};
            T before = sum;
            sum += v;
            v = exclusive ? before : sum;
        });
        r.write(out, x);
    });
}

// dim comes as a scalar.
void plan_cumprod(Plan& p, const char* out) {
    const Tensor& input = p.tensor("input");
    p.axis(p.scalar("dim").as<int64_t>(), input.rank(), "dim");
    if (out == nullptr) return;
    p.same_shape("input", out);
    int dtype = p.dtype("dtype"), got = p.tensor(out).dtype;
    if (dtype == ACL_DT_UNDEFINED) dtype = input.dtype;
    p.require(dtype == got, "out has dtype %s, expected %s", dtype_name(got), dtype_name(dtype));
}

void run_cumprod(Run& r, const Tensor& out) {
    const Tensor& input = r.tensor("input");
    by_real_or_integer(category(out.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(input);
        T product{1};
        int64_t axis = wrap(r.scalar("dim").as<int64_t>(), std::max(input.rank(), 1));
        scan(x, input.dims, axis, false, [&](int64_t k, T& v) {
            product = k == 0 ? v : T(product * v);
            v = product;
        });
        r.write(out, x);
    });
}

void plan_cumulative_extreme(Plan& p) {
    p.axis("dim", p.tensor("self").rank());
    p.same_shape("self", "valuesOut");
    p.same_shape("self", "indicesOut");
    p.same_dtype("self", "valuesOut");
}

// The last of equal extremes, as PyTorch says; a NaN stays.
void run_cumulative_extreme(Run& r, bool greatest) {
    const Tensor& self = r.tensor("self");
    by_real_or_integer(category(self.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(self);
        std::vector<int64_t> where(x.size());
        T best{};
        int64_t at = 0;
        scan(x, self.dims, wrap(r.integer("dim"), std::max(self.rank(), 1)), false, [&](int64_t k, T& v) {
            if (k == 0 || is_nan(v) || (!is_nan(best) && (greatest ? v >= best : v <= best))) {
                best = v;
                at = k;
            }
            where[size_t(&v - x.data())] = at;
            v = best;
        });
        r.write(r.tensor("valuesOut"), x);
        r.write(r.tensor("indicesOut"), where);
    });
}

}  // namespace

ACLNN(aclnnCumsum,
      PLAN {
          p.axis("dim", p.tensor("self").rank());
          p.same_shape("self", "out");
          plan_result_dtype(p, "dtype", "out");
          p.casts(p.tensor("self").dtype, "out");
      },
      RUN { run_cumsum(r, false, false); })
ACLNN(aclnnCumsumV2,
      PLAN {
          p.axis("dim", p.tensor("self").rank());
          p.same_shape("self", "out");
          p.same_dtype("self", "out");
      },
      RUN { run_cumsum(r, r.flag("exclusive"), r.flag("reverse")); })
ACLNN(aclnnCumprod, PLAN { plan_cumprod(p, "out"); }, RUN { run_cumprod(r, r.tensor("out")); })
ACLNN(aclnnInplaceCumprod, PLAN { plan_cumprod(p, nullptr); }, RUN { run_cumprod(r, r.tensor("input")); })
ACLNN(aclnnCummax, PLAN { plan_cumulative_extreme(p); }, RUN { run_cumulative_extreme(r, true); })
ACLNN(aclnnCummin, PLAN { plan_cumulative_extreme(p); }, RUN { run_cumulative_extreme(r, false); })

// The sum of the diagonal; integers add up to INT64.
ACLNN(aclnnTrace,
      PLAN {
          plan_one_element(p, "out");
          int self = p.tensor("self").dtype, got = p.tensor("out").dtype;
          int want = is_integer(self) ? int(ACL_INT64) : self;
          p.require(got == want, "out has dtype %s, expected %s", dtype_name(got), dtype_name(want));
      },
      RUN {
          const Tensor& self = r.tensor("self");
          by_category(category(self.dtype), [&](auto zero) {
              using T = decltype(zero);
              auto x = r.read<T>(self);
              T sum{};
              for (int64_t i = 0; i < std::min(self.dims[0], self.dims[1]); ++i) sum += x[size_t(i * self.dims[1] + i)];
              r.write(r.tensor("out"), std::vector<T>{sum});
          });
      })

// The length of out is the caller's business: at least minlength, and every value must fit.
ACLNN(aclnnBincount,
      PLAN {
          const Tensor& self = p.tensor("self");
          p.require(self.rank() == 1, "self has %d dimensions, expected 1", self.rank());
          p.require(p.integer("minlength") >= 0, "minlength is %lld, expected a number not below 0",
                    static_cast<long long>(p.integer("minlength")));
          const Dims& out = p.tensor("out").dims;
          p.require(out.n == 1 && out[0] >= p.integer("minlength"),
                    "out has shape %s, expected one axis of at least minlength %lld", text(out).c_str(),
                    static_cast<long long>(p.integer("minlength")));
          if (p.has("weights")) p.same_shape("self", "weights");
      },
      RUN {
          const Tensor& out = r.tensor("out");
          auto x = r.read<int64_t>(r.tensor("self"));
          std::vector<double> weights(x.size(), 1), y(size_t(out.numel()));
          if (r.has("weights")) weights = r.read<double>(r.tensor("weights"));
          for (size_t i = 0; i < x.size(); ++i) {
              if (x[i] < 0 || x[i] >= out.numel())
                  fault("value %lld is out of range [0, %lld)", static_cast<long long>(x[i]),
                        static_cast<long long>(out.numel()));
              y[size_t(x[i])] += weights[i];
          }
          r.write(out, y);
      })
// Equal bins between min and max, the last one closed; min == max means the range of the data.
ACLNN(aclnnHistc,
      PLAN {
          int64_t bins = p.integer("bins");
          double low = p.scalar("min").as<double>(), high = p.scalar("max").as<double>();
          p.require(bins > 0, "bins is %lld, expected a positive number", static_cast<long long>(bins));
          p.require(low <= high, "min %g is above max %g", low, high);
          p.shape("out", {bins});
      },
      RUN {
          auto x = r.read<double>(r.tensor("self"));
          int64_t bins = r.integer("bins");
          double low = r.scalar("min").as<double>(), high = r.scalar("max").as<double>();
          if (low == high && !x.empty()) {
              low = extreme(x, false);
              high = extreme(x, true);
          }
          if (low == high) {
              low -= 1;
              high += 1;
          }
          std::vector<double> y(static_cast<size_t>(bins));
          for (double v : x)
              if (v >= low && v <= high)
                  y[size_t(std::min(int64_t((v - low) * double(bins) / (high - low)), bins - 1))] += 1;
          r.write(r.tensor("out"), y);
      })
