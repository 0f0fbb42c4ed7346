// Copies, casts, constants and sequences.
#include "elementwise.h"
#include "numbers.h"

using namespace emu;

// -- copies and casts ------------------------------------------------------------------------------------------------
namespace {

// The category that loses nothing of the source: the destination's own decides what it keeps.
void copy(Run& r, const Tensor& from, const Tensor& to) {
    bool unsigned_to_float = from.dtype == ACL_UINT64 && !is_integer(to.dtype);
    by_category(unsigned_to_float ? Category::Real : category(from.dtype), [&](auto zero) {
        using T = decltype(zero);
        r.write(to, r.read<T>(from, to.dims));
    });
}

}  // namespace

ACLNN(aclnnInplaceCopy,
      PLAN {
          const Tensor &to = p.tensor("selfRef"), &from = p.tensor("src");
          Dims shape;
          p.require(broadcast(to.dims, from.dims, &shape) && shape == to.dims,
                    "src of shape %s does not broadcast to selfRef of %s", text(from.dims).c_str(),
                    text(to.dims).c_str());
          p.require(!is_complex(to.dtype) || to.contiguous(), "a complex selfRef must be contiguous");
      },
      RUN { copy(r, r.tensor("src"), r.tensor("selfRef")); })

ACLNN(aclnnCast,
      PLAN {
          p.same_shape("self", "out");
          const Tensor& self = p.tensor("self");
          p.require(p.dtype("dtype") == p.tensor("out").dtype, "dtype is %s but out has %s",
                    dtype_name(p.dtype("dtype")), dtype_name(p.tensor("out").dtype));
          p.require((self.dtype != ACL_BOOL && !is_complex(self.dtype)) || self.contiguous(),
                    "self of dtype %s must be contiguous", dtype_name(self.dtype));
      },
      RUN { copy(r, r.tensor("self"), r.tensor("out")); }, NARROW)

ACLNN(aclnnTensorMove, PLAN { p.same_shape("x", "y"); p.same_dtype("x", "y"); },
      RUN { copy(r, r.tensor("x"), r.tensor("y")); })

// -- constants -------------------------------------------------------------------------------------------------------
namespace {

void fill(Run& r, const Tensor& t, int64_t value) { r.write(t, std::vector<int64_t>(size_t(t.numel()), value)); }
void plan_any(Plan&) {}

}  // namespace

ACLNN(aclnnInplaceZero, plan_any, RUN { fill(r, r.output(), 0); }, NARROW)
ACLNN(aclnnInplaceOne, plan_any, RUN { fill(r, r.output(), 1); })

ACLNN(aclnnInplaceFillScalar,
      PLAN {
          // BOOL holds any number, which the table of results does not say.
          if (p.tensor("selfRef").dtype != ACL_BOOL) p.casts(p.scalar("value").dtype, "selfRef");
      },
      RUN {
          const Tensor& self = r.tensor("selfRef");
          const Scalar& value = r.scalar("value");
          by_category(category(value.dtype), [&](auto zero) {
              using T = decltype(zero);
              r.write(self, std::vector<T>(size_t(self.numel()), value.as<T>()));
          });
      })

ACLNN(aclnnInplaceFillTensor,
      PLAN {
          const Tensor& value = p.tensor("value");
          p.require(value.numel() == 1 && value.rank() <= 1, "value has shape %s, expected one element",
                    text(value.dims).c_str());
          if (p.tensor("selfRef").dtype != ACL_BOOL) p.casts(value.dtype, "selfRef");
      },
      RUN {
          const Tensor& self = r.tensor("selfRef");
          by_category(category(r.tensor("value").dtype), [&](auto zero) {
              using T = decltype(zero);
              r.write(self, std::vector<T>(size_t(self.numel()), r.read<T>(r.tensor("value"))[0]));
          });
      })

ACLNN(aclnnEye,
      PLAN {
          p.require(p.integer("n") >= 0 && p.integer("m") >= 0, "n is %lld and m %lld, expected >= 0",
                    static_cast<long long>(p.integer("n")), static_cast<long long>(p.integer("m")));
          p.shape("out", {p.integer("n"), p.integer("m")});
      },
      RUN {
          int64_t n = r.integer("n"), m = r.integer("m");
          std::vector<int64_t> x(size_t(n * m));
          for (int64_t i = 0; i < n && i < m; ++i) x[size_t(i * m + i)] = 1;
          r.write(r.tensor("out"), x);
      })

// -- sequences -------------------------------------------------------------------------------------------------------
namespace {

struct Sequence {
    double start, end, step;
    explicit Sequence(const Call& c)
        : start(c.scalar("start").as<double>()), end(c.scalar("end").as<double>()),
          step(c.scalar("step").as<double>()) {}
};

bool whole(const Call& c) {
    return is_integer(c.scalar("start").dtype) && is_integer(c.scalar("end").dtype) &&
           is_integer(c.scalar("step").dtype);
}

// `inclusive`: the end belongs to it.
void plan_sequence(Plan& p, bool inclusive) {
    Sequence s(p);
    p.require(s.step != 0 && std::isfinite(s.start) && std::isfinite(s.end) && !std::isnan(s.step),
              "start is %g, end %g, step %g: expected finite numbers and a step that is not 0", s.start, s.end, s.step);
    p.require(s.step > 0 ? s.start <= s.end : s.start >= s.end, "step %g does not lead from %g to %g", s.step, s.start,
              s.end);
    double exact = (s.end - s.start) / s.step;
    p.require(exact < 9e18, "a sequence from %g to %g by %g is too long", s.start, s.end, s.step);
    int64_t want = inclusive ? int64_t(std::floor(exact)) + 1 : int64_t(std::ceil(exact));
    int64_t got = p.tensor("out").numel();
    // Callers compute the length of a float sequence in float, which may be one off.
    int64_t slack = whole(p) ? 0 : 1;
    p.require(p.tensor("out").rank() == 1 && std::llabs(got - want) <= slack, "out has shape %s, expected [%lld]",
              text(p.tensor("out").dims).c_str(), static_cast<long long>(want));
}

void run_sequence(Run& r) {
    const Tensor& out = r.tensor("out");
    if (whole(r)) {
        int64_t start = r.scalar("start").as<int64_t>(), step = r.scalar("step").as<int64_t>();
        std::vector<int64_t> x(size_t(out.numel()));
        for (size_t i = 0; i < x.size(); ++i) x[i] = start + int64_t(i) * step;
        r.write(out, x);
        return;
    }
    Sequence s(r);
    std::vector<double> x(size_t(out.numel()));
    for (size_t i = 0; i < x.size(); ++i) x[i] = s.start + double(i) * s.step;
    r.write(out, x);
}

// Both ends are met exactly.
std::vector<double> spaced(const Run& r) {
    double start = r.scalar("start").as<double>(), end = r.scalar("end").as<double>();
    int64_t steps = r.integer("steps");
    std::vector<double> x;
    double step = steps > 1 ? (end - start) / double(steps - 1) : 0;
    for (int64_t i = 0; i < steps; ++i)
        x.push_back(i < steps / 2 || steps == 1 ? start + step * double(i) : end - step * double(steps - 1 - i));
    return x;
}

void plan_steps(Plan& p, const char* out) {
    int64_t steps = p.integer("steps");
    p.require(steps >= 0, "steps is %lld, expected >= 0", static_cast<long long>(steps));
    p.require(p.tensor(out).numel() == steps, "%s has shape %s, expected %lld elements", out,
              text(p.tensor(out).dims).c_str(), static_cast<long long>(steps));
}

}  // namespace

ACLNN(aclnnArange, PLAN { plan_sequence(p, false); }, run_sequence)
ACLNN(aclnnRange, PLAN { plan_sequence(p, true); }, run_sequence)
ACLNN(aclnnLinspace, PLAN { plan_steps(p, "out"); }, RUN { r.write(r.tensor("out"), spaced(r)); })
ACLNN(aclnnLogSpace, PLAN { plan_steps(p, "result"); }, RUN {
    auto x = spaced(r);
    for (double& one : x) one = std::pow(r.real("base"), one);
    r.write(r.tensor("result"), x);
})

// -- complex numbers from and to their parts -------------------------------------------------------------------------
namespace {

void plan_parts(Plan& p) {
    const Tensor &a = p.input(0), &b = p.input(1), &out = p.output();
    p.require(a.dtype == b.dtype, "the parts have dtypes %s and %s; they must be the same", dtype_name(a.dtype),
              dtype_name(b.dtype));
    int want = a.dtype == ACL_DOUBLE ? ACL_COMPLEX128 : a.dtype == ACL_FLOAT16 ? ACL_COMPLEX32 : ACL_COMPLEX64;
    p.require(out.dtype == want, "the output has dtype %s, expected %s", dtype_name(out.dtype), dtype_name(want));
    Dims dims = broadcast_all(p, {&a.dims, &b.dims});
    p.require(out.dims == dims, "the output has shape %s, expected %s", text(out.dims).c_str(), text(dims).c_str());
}

template <class F>
void run_parts(Run& r, F join) {
    const Dims& dims = r.output().dims;
    auto a = r.read<double>(r.input(0), dims), b = r.read<double>(r.input(1), dims);
    std::vector<Complex> y(a.size());
    for (size_t i = 0; i < a.size(); ++i) y[i] = join(a[i], b[i]);
    r.write(r.output(), y);
}

}  // namespace

ACLNN(aclnnComplex, plan_parts, RUN { run_parts(r, [](double a, double b) { return Complex(a, b); }); })
ACLNN(aclnnPolar, plan_parts,
      RUN { run_parts(r, [](double a, double b) { return Complex(a * std::cos(b), a * std::sin(b)); }); })

ACLNN(aclnnReal, PLAN { p.same_shape("self", "out"); p.casts(p.tensor("self").dtype, "out"); },
      RUN { copy(r, r.tensor("self"), r.tensor("out")); })

ACLNN(aclnnAngleV2, PLAN { p.same_shape("x", "out"); }, RUN {
    auto x = r.read<Complex>(r.tensor("x"));
    bool complex = is_complex(r.tensor("x").dtype);
    std::vector<double> y(x.size());
    for (size_t i = 0; i < x.size(); ++i)
        y[i] = complex ? std::arg(x[i]) : std::isnan(x[i].real()) ? x[i].real() : x[i].real() < 0 ? kPi : 0;
    r.write(r.tensor("out"), y);
})
