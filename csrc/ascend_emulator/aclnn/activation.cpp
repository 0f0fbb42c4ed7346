// Activation functions.
#include "activation.h"

#include "elementwise.h"

using namespace emu;

BOTH(UNARY_RI, aclnnRelu, aclnnInplaceRelu, relu(x))
BOTH(UNARY_RC, aclnnSigmoid, aclnnInplaceSigmoid, sigmoid(x))
UNARY_R(aclnnSilu, silu(x))
UNARY_R(aclnnGelu, gelu_tanh(x))
UNARY_R(aclnnFastGelu, fast_gelu(x))
// Not the same as FastGelu: a polynomial instead of a sigmoid.
UNARY_R(aclnnFastGeluV2, fast_gelu_polynomial(x))
BOTH(UNARY_R, aclnnMish, aclnnInplaceMish, mish(x))
UNARY_R(aclnnLogSigmoid, -softplus(-x))
BOTH(UNARY_R, aclnnHardsigmoid, aclnnInplaceHardsigmoid, hard_sigmoid(x))
BOTH(UNARY_R, aclnnHardsigmoidV2, aclnnInplaceHardsigmoidV2, hard_sigmoid(x))
BOTH(UNARY_R, aclnnHardswish, aclnnInplaceHardswish, x * hard_sigmoid(x))
BOTH(UNARY_R, aclnnSelu, aclnnInplaceSelu, elu(x, kSeluAlpha, kSeluScale, 1))
UNARY_R(aclnnSoftsign, x / (1 + std::fabs(x)))
UNARY_R(aclnnSquaredRelu, relu(x) * relu(x))
BOTH(UNARY_R, aclnnLeakyRelu, aclnnInplaceLeakyRelu, x > 0 ? x : x * k[0])
BOTH(UNARY_R, aclnnElu, aclnnInplaceElu, elu(x, k[0], k[1], k[2]))
UNARY_R(aclnnEluV2, elu(x, k[0], k[1], k[2]))
UNARY_R(aclnnSoftplus, x * k[0] > k[1] ? x : softplus(x * k[0]) / k[0])
UNARY_R(aclnnShrink, x > k[0] ? x - k[1] : x < -k[0] ? x + k[1] : 0)
BOTH(UNARY_RI, aclnnThreshold, aclnnInplaceThreshold, x <= k[0] ? k[1] : x)
UNARY_RI(aclnnThresholdV2, x <= k[0] ? k[1] : x)
MAP_TWO_R(aclnnSiluMul, silu(a) * b)

namespace {

// -- functions whose attributes have a range -------------------------------------------------------------------------
void not_negative(const Plan& p, const char* name) {
    double value = p.scalar(name).as<double>();
    p.require(value >= 0, "%s is %g, expected >= 0", name, value);
}

const Pointwise kSoftshrink = {EMU_R(EMU_ONE, soft_shrink(x, k[0])), 1, false, false};
const Pointwise kHardshrink = {EMU_R(EMU_ONE, hard_shrink(x, k[0])), 1, false, false};
const Pointwise kCelu = {EMU_R(EMU_ONE, x > 0 ? x : k[0] * std::expm1(x / k[0])), 1, false, false};
const Pointwise kGeluErf = {EMU_R(EMU_ONE, gelu(x)), 1, false, false};
const Pointwise kGeluTanh = {EMU_R(EMU_ONE, gelu_tanh(x)), 1, false, false};
const Pointwise kSwish = {EMU_R(EMU_ONE, x * sigmoid(k[0] * x)), 1, false, false};
const Pointwise kSilu = {EMU_R(EMU_ONE, silu(x)), 1, false, false};

void plan_celu(Plan& p) {
    p.require(p.scalar("alpha").as<double>() != 0, "alpha must not be 0");
    plan_pointwise(p, kCelu);
}

}  // namespace

ACLNN(aclnnSoftshrink, PLAN { not_negative(p, "lambd"); plan_pointwise(p, kSoftshrink); },
      RUN { run_pointwise(r, kSoftshrink); })
ACLNN(aclnnHardshrink, PLAN { plan_pointwise(p, kHardshrink); }, RUN { run_pointwise(r, kHardshrink); })
ACLNN(aclnnHardShrink, PLAN { plan_pointwise(p, kHardshrink); }, RUN { run_pointwise(r, kHardshrink); })
ACLNN(aclnnCelu, plan_celu, RUN { run_pointwise(r, kCelu); })
ACLNN(aclnnInplaceCelu, plan_celu, RUN { run_pointwise(r, kCelu); })
ACLNN(aclnnSwish, PLAN { plan_pointwise(p, kSwish); },
      RUN { run_pointwise(r, r.has("betaOptional") ? kSwish : kSilu); })

ACLNN(aclnnGeluV2,
      PLAN {
          int64_t approximate = p.integer("approximate");
          p.require(approximate == 0 || approximate == 1, "approximate is %lld, expected 0 (none) or 1 (tanh)",
                    static_cast<long long>(approximate));
          plan_pointwise(p, kGeluErf);
      },
      RUN { run_pointwise(r, r.integer("approximate") == 0 ? kGeluErf : kGeluTanh); })

// An eps outside of [0, 1] leaves the argument as it is.
ACLNN(aclnnLogit, PLAN { p.same_shape("input", "out"); casts_into(p, p.tensor("input").dtype, p.tensor("out")); }, RUN {
    auto x = r.read<double>(r.tensor("input"));
    double eps = r.real("eps");
    for (double& one : x) {
        double z = eps < 0 || std::isnan(one) ? one : std::fmin(std::fmax(one, eps), 1 - eps);
        one = std::log(z / (1 - z));
    }
    r.write(r.tensor("out"), x);
})

// The buffer holds exp(-|x|), which the derivative needs again.
ACLNN(aclnnLogSigmoidForward,
      PLAN {
          p.same_shape("self", "out");
          casts_into(p, p.tensor("self").dtype, p.tensor("out"));
          p.same_shape("self", "buffer");
      },
      RUN {
          auto x = r.read<double>(r.tensor("self")), y = x, z = x;
          for (size_t i = 0; i < x.size(); ++i) {
              y[i] = -softplus(-x[i]);
              z[i] = std::exp(-std::fabs(x[i]));
          }
          r.write(r.tensor("out"), y);
          r.write(r.tensor("buffer"), z);
      })

// -- weights along the channels --------------------------------------------------------------------------------------
namespace {

// One weight, or one for each place along axis 1.
Dims channel_shape(const Plan& p, const Tensor& self, const Tensor& weight) {
    int64_t channels = self.rank() > 1 ? self.dims[1] : 1;
    p.require(weight.numel() == 1 || weight.numel() == channels, "weight has %lld elements, expected 1 or %lld",
              static_cast<long long>(weight.numel()), static_cast<long long>(channels));
    return self.dims;
}

size_t channel_of(const Dims& dims, size_t at, size_t weights) {
    if (weights == 1) return 0;
    int64_t inner = 1;
    for (int i = 2; i < dims.n; ++i) inner *= dims[i];
    return size_t((int64_t(at) / inner) % dims[1]);
}

}  // namespace

ACLNN(aclnnPrelu,
      PLAN {
          p.shape("out", channel_shape(p, p.tensor("self"), p.tensor("weight")));
          int dtype = promote(p.tensor("self").dtype, p.tensor("weight").dtype);
          casts_into(p, dtype, p.tensor("out"));
      },
      RUN {
          auto x = r.read<double>(r.tensor("self")), w = r.read<double>(r.tensor("weight"));
          for (size_t i = 0; i < x.size(); ++i)
              if (x[i] <= 0) x[i] *= w[channel_of(r.tensor("self").dims, i, w.size())];
          r.write(r.tensor("out"), x);
      })

ACLNN(aclnnPreluBackward,
      PLAN {
          channel_shape(p, p.tensor("self"), p.tensor("weight"));
          for (const char* name : {"gradOutput", "weight", "gradInput", "gradWeight"}) p.same_dtype("self", name);
          p.same_shape("self", "gradOutput");
          p.same_shape("self", "gradInput");
          p.require(p.tensor("gradWeight").numel() == p.tensor("weight").numel(),
                    "gradWeight has shape %s, weight %s; they must have as many elements",
                    text(p.tensor("gradWeight").dims).c_str(), text(p.tensor("weight").dims).c_str());
          p.workspace = uint64_t(p.tensor("self").numel()) * 4;
      },
      RUN {
          auto x = r.read<double>(r.tensor("self")), w = r.read<double>(r.tensor("weight"));
          auto g = r.read<double>(r.tensor("gradOutput"));
          std::vector<double> dx(x.size()), dw(w.size());
          for (size_t i = 0; i < x.size(); ++i) {
              size_t c = channel_of(r.tensor("self").dims, i, w.size());
              dx[i] = x[i] > 0 ? g[i] : g[i] * w[c];
              if (x[i] <= 0) dw[c] += g[i] * x[i];
          }
          r.write(r.tensor("gradInput"), dx);
          r.write(r.tensor("gradWeight"), dw);
      })
// The mask is 1 where something passes.
ACLNN(aclnnReluV3,
      PLAN {
          for (const char* name : {"yOut", "maskOut"}) p.same_shape("x", name);
          p.same_dtype("x", "yOut");
      },
      RUN {
          by_real_or_integer(category(r.tensor("x").dtype), [&](auto zero) {
              auto x = r.read<decltype(zero)>(r.tensor("x"));
              std::vector<int64_t> passes;
              for (auto& v : x) passes.push_back(v > 0), v = v > 0 ? v : decltype(zero)(0);
              r.write(r.tensor("yOut"), x);
              r.write(r.tensor("maskOut"), passes);
          });
      })
