// Gated activations: one half of an axis, activated, times the other half.
#include <algorithm>
#include <string>

#include "activation.h"
#include "elementwise.h"

using namespace emu;

namespace {

Dims halved(const Plan& p, const Tensor& x, int64_t axis) {
    p.require(x.rank() > 0 && x.dims[int(axis)] % 2 == 0, "the input has shape %s, expected an even size at axis %lld",
              text(x.dims).c_str(), static_cast<long long>(axis));
    Dims dims = x.dims;
    dims[int(axis)] /= 2;
    return dims;
}

// f(place in the first half, place in the second, place in a half by itself)
template <class F>
void each_pair(const Dims& dims, int64_t axis, F f) {
    Lines whole(dims, axis), half = whole;
    half.length /= 2;
    for (int64_t o = 0; o < half.outer; ++o)
        for (int64_t j = 0; j < half.length; ++j)
            for (int64_t i = 0; i < half.inner; ++i)
                f(size_t(whole.at(o, j, i)), size_t(whole.at(o, j + half.length, i)), size_t(half.at(o, j, i)));
}

using Function1 = double (*)(double);

// out = act(one half) * other half; `activated`, where given, is act(one half) alone.
void gate(Run& r, const Tensor& in, int64_t axis, Function1 act, bool left, const Tensor& out,
          const Tensor* activated) {
    auto x = r.read<double>(in);
    std::vector<double> y(x.size() / 2), z(x.size() / 2);
    each_pair(in.dims, axis, [&](size_t a, size_t b, size_t at) {
        z[at] = act(x[left ? a : b]);
        y[at] = z[at] * x[left ? b : a];
    });
    r.write(out, y);
    if (activated) r.write(*activated, z);
}

void gate_backward(Run& r, const Tensor& grad, const Tensor& in, int64_t axis, Function1 act, Function1 slope,
                   bool left, const Tensor& out) {
    auto x = r.read<double>(in), g = r.read<double>(grad);
    std::vector<double> y(x.size());
    each_pair(in.dims, axis, [&](size_t a, size_t b, size_t at) {
        size_t active = left ? a : b, linear = left ? b : a;
        y[active] = g[at] * x[linear] * slope(x[active]);
        y[linear] = g[at] * act(x[active]);
    });
    r.write(out, y);
}

void plan_gate(Plan& p, const char* in, const char* out) {
    const Tensor& x = p.tensor(in);
    p.shape(out, halved(p, x, p.axis("dim", x.rank())));
    p.casts(x.dtype, out);
}

void plan_gate_backward(Plan& p, const char* grad, const char* in, const char* out) {
    const Tensor& x = p.tensor(in);
    p.shape(grad, halved(p, x, p.axis("dim", x.rank())));
    p.same_dtype(in, grad);
    p.same_shape(in, out);
    p.casts(x.dtype, out);
}

int64_t axis_of(const Run& r, const Tensor& x) { return wrap(r.integer("dim"), x.rank()); }
double sigmoid_of(double x) { return sigmoid(x); }
double sigmoid_slope(double x) { return sigmoid(x) * (1 - sigmoid(x)); }

// -- GEGLU -----------------------------------------------------------------------------------------------------------
bool activates_left(const Call& c) {
    std::string name = c.function->name;
    return name == "aclnnGeGluV3" || name == "aclnnGeGluV3Backward" ? c.flag("activateLeft") : false;
}

void check_approximate(const Plan& p) {
    int64_t approximate = p.integer("approximate");
    p.require(approximate == 0 || approximate == 1, "approximate is %lld, expected 0 (none) or 1 (tanh)",
              static_cast<long long>(approximate));
}

void plan_geglu(Plan& p) {
    check_approximate(p);
    plan_gate(p, "self", "out");
    p.same_dtype("self", "out");
    p.same_dtype("self", "outGelu");
    p.same_shape("out", "outGelu");
}

void run_geglu(Run& r) {
    const Tensor& x = r.tensor("self");
    Function1 act = r.integer("approximate") == 0 ? Function1(gelu) : gelu_tanh;
    gate(r, x, axis_of(r, x), act, activates_left(r), r.tensor("out"), &r.tensor("outGelu"));
}

void plan_geglu_backward(Plan& p) {
    check_approximate(p);
    plan_gate_backward(p, "gradOutput", "self", "gradInput");
    p.same_dtype("self", "gradInput");
    p.same_dtype("self", "gelu");
    p.same_shape("gradOutput", "gelu");
}

void run_geglu_backward(Run& r) {
    const Tensor& x = r.tensor("self");
    bool erf = r.integer("approximate") == 0;
    gate_backward(r, r.tensor("gradOutput"), x, axis_of(r, x), erf ? Function1(gelu) : gelu_tanh,
                  erf ? Function1(gelu_slope) : gelu_tanh_slope, activates_left(r), r.tensor("gradInput"));
}

}  // namespace

ACLNN(aclnnGlu, PLAN { plan_gate(p, "self", "out"); }, RUN {
    const Tensor& x = r.tensor("self");
    gate(r, x, axis_of(r, x), sigmoid_of, false, r.tensor("out"), nullptr);
})
ACLNN(aclnnGluBackward, PLAN { plan_gate_backward(p, "gradOut", "self", "out"); }, RUN {
    const Tensor& x = r.tensor("self");
    gate_backward(r, r.tensor("gradOut"), x, axis_of(r, x), sigmoid_of, sigmoid_slope, false, r.tensor("out"));
})
ACLNN(aclnnSwiGlu, PLAN { plan_gate(p, "x", "out"); }, RUN {
    const Tensor& x = r.tensor("x");
    gate(r, x, axis_of(r, x), silu, true, r.tensor("out"), nullptr);
})
ACLNN(aclnnSwiGluGrad, PLAN { plan_gate_backward(p, "yGrad", "x", "out"); }, RUN {
    const Tensor& x = r.tensor("x");
    gate_backward(r, r.tensor("yGrad"), x, axis_of(r, x), silu, silu_slope, true, r.tensor("out"));
})
ACLNN(aclnnGeGlu, plan_geglu, run_geglu)
ACLNN(aclnnGeGluV3, plan_geglu, run_geglu)
ACLNN(aclnnGeGluBackward, plan_geglu_backward, run_geglu_backward)
ACLNN(aclnnGeGluV3Backward, plan_geglu_backward, run_geglu_backward)

ACLNN(aclnnGeluMul,
      PLAN {
          const std::string& how = p.string("approximateOptional");
          p.require(how.empty() || how == "none" || how == "tanh",
                    "approximateOptional is \"%s\", expected none or tanh", how.c_str());
          const Tensor& x = p.tensor("input");
          p.shape("out", halved(p, x, x.rank() - 1));
          p.same_dtype("input", "out");
      },
      RUN {
          const Tensor& x = r.tensor("input");
          bool tanh = r.string("approximateOptional") == "tanh";
          gate(r, x, x.rank() - 1, tanh ? Function1(gelu_tanh) : gelu, true, r.tensor("out"), nullptr);
      })

ACLNN(aclnnFatreluMul,
      PLAN {
          const Tensor& x = p.tensor("input");
          p.shape("out", halved(p, x, x.rank() - 1));
          p.same_dtype("input", "out");
          p.require(p.tensor("threshold").numel() == 1, "threshold has shape %s, expected one element",
                    text(p.tensor("threshold").dims).c_str());
      },
      RUN {
          const Tensor& in = r.tensor("input");
          auto x = r.read<double>(in);
          double threshold = r.read<double>(r.tensor("threshold"))[0];
          std::vector<double> y(x.size() / 2);
          each_pair(in.dims, in.rank() - 1,
                    [&](size_t a, size_t b, size_t at) { y[at] = x[a] > threshold ? x[a] * x[b] : 0; });
          r.write(r.tensor("out"), y);
      })

// -- SwiGLU with bounds ----------------------------------------------------------------------------------------------
// What lies before the axis are rows; where groups are given only as many rows as they count together are computed, and
// the others stay as they are.
ACLNN(aclnnClippedSwiglu,
      PLAN {
          plan_gate(p, "x", "out");
          p.require(p.real("limit") > 0, "limit is %g, expected > 0", p.real("limit"));
      },
      RUN {
          const Tensor& in = r.tensor("x");
          int64_t axis = axis_of(r, in);
          auto x = r.read<double>(in), y = r.read<double>(r.tensor("out"));
          Lines whole(in.dims, axis);
          int64_t half = whole.length / 2, rows = whole.outer;
          if (r.has("groupIndexOptional")) {
              int64_t counted = 0;
              for (int64_t n : r.read<int64_t>(r.tensor("groupIndexOptional"))) counted += n;
              rows = std::min(rows, counted);
          }
          double alpha = r.real("alpha"), limit = r.real("limit"), bias = r.real("bias");
          bool interleaved = r.flag("interleaved");
          for (int64_t o = 0; o < rows; ++o)
              for (int64_t j = 0; j < half; ++j)
                  for (int64_t i = 0; i < whole.inner; ++i) {
                      double a = x[size_t(whole.at(o, interleaved ? 2 * j : j, i))];
                      double b = x[size_t(whole.at(o, interleaved ? 2 * j + 1 : j + half, i))];
                      a = smaller(a, limit);
                      b = larger(smaller(b, limit), -limit);
                      y[size_t((o * half + j) * whole.inner + i)] = a * sigmoid(alpha * a) * (b + bias);
                  }
          r.write(r.tensor("out"), y);
      })
