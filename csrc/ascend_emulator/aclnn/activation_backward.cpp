// Derivatives of activation functions: a is the gradient of the result, b the argument or the result.
#include <string>

#include "activation.h"
#include "elementwise.h"

using namespace emu;

MAP_TWO_RC(aclnnSigmoidBackward, a * b * (T(1) - b))
MAP_TWO_R(aclnnTanhBackward, a * (1 - b * b))
MAP_TWO_RI(aclnnThresholdBackward, b <= k[0] ? T(0) : a)
MAP_TWO_R(aclnnSiluBackward, a * silu_slope(b))
MAP_TWO_R(aclnnMishBackward, a * mish_slope(b))
MAP_TWO_R(aclnnFastGeluBackward, a * fast_gelu_slope(b))
MAP_TWO_R(aclnnGeluBackward, a * gelu_tanh_slope(b))
MAP_TWO_R(aclnnHardsigmoidBackward, b > -3 && b < 3 ? a / 6 : 0)
MAP_TWO_R(aclnnHardswishBackward, a * hard_swish_slope(b))
MAP_TWO_R(aclnnHardswishBackwardV2, a * hard_swish_slope(b))
MAP_TWO_R(aclnnHardtanhBackward, b <= k[0] || b >= k[1] ? 0 : a)
MAP_TWO_R(aclnnHardshrinkBackward, b >= -k[0] && b <= k[0] ? 0 : a)
MAP_TWO_R(aclnnSoftshrinkBackward, b >= -k[0] && b <= k[0] ? 0 : a)
MAP_TWO_R(aclnnSoftplusBackward, b * k[0] > k[1] ? a : a * sigmoid(b * k[0]))
MAP_TWO_R(aclnnSeluBackward, a * elu_slope(b, kSeluAlpha, kSeluScale, 1, true))
MAP_TWO_R(aclnnSoftsignBackward, a / ((1 + std::fabs(b)) * (1 + std::fabs(b))))
// Here the argument comes first.
MAP_TWO_RI(aclnnReluGradV3, a > 0 ? b : T(0))
// A mask instead of the argument.
MAP_TWO_RI(aclnnReluGradV4, b > k[0] ? a : T(0))

namespace {

const Pointwise kLeaky = {EMU_R(EMU_TWO, b > 0 ? a : a * k[0]), 2, false, false};
const Pointwise kElu = {EMU_R(EMU_TWO, a * elu_slope(b, k[0], k[1], k[2], k[3] != 0)), 2, false, false};
const Pointwise kGeluErf = {EMU_R(EMU_TWO, a * gelu_slope(b)), 2, false, false};
const Pointwise kGeluTanh = {EMU_R(EMU_TWO, a * gelu_tanh_slope(b)), 2, false, false};
const Pointwise kSwish = {EMU_R(EMU_TWO, a * (sigmoid(k[0] * b) + k[0] * b * sigmoid(k[0] * b) * sigmoid(-k[0] * b))),
                          2, false, false};
const Pointwise kSilu = {EMU_R(EMU_TWO, a * silu_slope(b)), 2, false, false};
// Of the argument itself: its place tells which side of 0 it is on, so the buffer is not needed.
const Pointwise kLogSigmoid = {EMU_R(EMU_TWO, a * sigmoid(-b)), 2, false, false};

}  // namespace

ACLNN(aclnnLeakyReluBackward,
      PLAN {
          double slope = p.scalar("negativeSlope").as<double>();
          p.require(!p.flag("selfIsResult") || slope >= 0, "negativeSlope is %g, expected >= 0 where selfIsResult",
                    slope);
          plan_pointwise(p, kLeaky);
      },
      RUN { run_pointwise(r, kLeaky); })

ACLNN(aclnnEluBackward,
      PLAN {
          double alpha = p.scalar("alpha").as<double>();
          p.require(!p.flag("isResult") || alpha >= 0, "alpha is %g, expected >= 0 where isResult", alpha);
          p.same_shape("gradOutput", "selfOrResult");
          plan_pointwise(p, kElu);
      },
      RUN { run_pointwise(r, kElu); })

ACLNN(aclnnGeluBackwardV2,
      PLAN {
          const std::string& approximate = p.string("approximate");
          p.require(approximate == "none" || approximate == "tanh", "approximate is \"%s\", expected none or tanh",
                    approximate.c_str());
          plan_pointwise(p, kGeluErf);
      },
      RUN { run_pointwise(r, r.string("approximate") == "none" ? kGeluErf : kGeluTanh); })

ACLNN(aclnnSwishBackward, PLAN { plan_pointwise(p, kSwish); },
      RUN { run_pointwise(r, r.has("betaOptional") ? kSwish : kSilu); })

ACLNN(aclnnLogSigmoidBackward, PLAN { plan_pointwise(p, kLogSigmoid); }, RUN { run_pointwise(r, kLogSigmoid); })

ACLNN(aclnnLogitGrad,
      PLAN {
          p.same_shape("x", "dy");
          p.same_shape("x", "out");
      },
      RUN {
          auto x = r.read<double>(r.tensor("x")), g = r.read<double>(r.tensor("dy"));
          double eps = r.real("eps");
          for (size_t i = 0; i < x.size(); ++i) {
              bool outside = eps < 0 ? x[i] < 0 || x[i] > 1 : x[i] < eps || x[i] > 1 - eps;
              x[i] = !outside ? g[i] / (x[i] * (1 - x[i])) : eps < 0 ? NAN : 0;
          }
          r.write(r.tensor("out"), x);
      })
