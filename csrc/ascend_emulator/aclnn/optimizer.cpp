// Steps of optimisers and of the loss scale. Values are computed in double whatever the parameters' dtype.
#include "elementwise.h"

using namespace emu;

namespace {

// -- Adam with decoupled decay ---------------------------------------------------------------------------------------
struct AdamW {
    double lr, beta1, beta2, decay, eps;
    double power1, power2;  // the betas to the number of this step
    bool amsgrad, maximize;
};

struct State {
    const Tensor &var, &m, &v, &grad;
    const Tensor* largest;  // read where amsgrad
    bool keep_largest;      // written back
};

void adamw_step(Run& r, const AdamW& o, const State& s, double grad_scale) {
    auto var = r.read<double>(s.var), m = r.read<double>(s.m), v = r.read<double>(s.v), g = r.read<double>(s.grad);
    std::vector<double> largest = o.amsgrad ? r.read<double>(*s.largest) : std::vector<double>(var.size());
    for (size_t i = 0; i < var.size(); ++i) {
        double gradient = (o.maximize ? -g[i] : g[i]) / grad_scale;
        m[i] += (gradient - m[i]) * (1 - o.beta1);
        v[i] = v[i] * o.beta2 + gradient * gradient * (1 - o.beta2);
        if (o.amsgrad) largest[i] = std::fmax(largest[i], v[i]);
        double scale = std::sqrt((o.amsgrad ? largest[i] : v[i]) / (1 - o.power2)) + o.eps;
        var[i] = var[i] * (1 - o.lr * o.decay) - o.lr / (1 - o.power1) * m[i] / scale;
    }
    r.write(s.var, var);
    r.write(s.m, m);
    r.write(s.v, v);
    if (o.amsgrad && s.keep_largest) r.write(*s.largest, largest);
}

double one(const Run& r, const char* name) { return r.read<double>(r.tensor(name))[0]; }

double number(const Run& r, const char* name) { return r.scalar(name).as<double>(); }

void need_one(const Plan& p, std::initializer_list<const char*> names) {
    for (const char* name : names)
        p.require(p.tensor(name).numel() == 1, "%s has shape %s, expected one element", name,
                  text(p.tensor(name).dims).c_str());
}

void need_like(const Plan& p, const char* first, std::initializer_list<const char*> names) {
    for (const char* name : names) p.same_shape(first, name);
}

// -- Adam as TensorFlow has it: the learning rate is corrected, not the moments --------------------------------------
void check_adam(const Plan& p, const char* var) {
    need_like(p, var, {"m", "v", "grad"});
    need_one(p, {"beta1Power", "beta2Power", "lr", "beta1", "beta2", "epsilon"});
}

void adam_step(Run& r, const Tensor& var, const Tensor& var_out, const Tensor& m_out, const Tensor& v_out) {
    auto x = r.read<double>(var), m = r.read<double>(r.tensor("m")), v = r.read<double>(r.tensor("v"));
    auto g = r.read<double>(r.tensor("grad"));
    double beta1 = one(r, "beta1"), beta2 = one(r, "beta2"), eps = one(r, "epsilon");
    double lr = one(r, "lr") * std::sqrt(1 - one(r, "beta2Power")) / (1 - one(r, "beta1Power"));
    for (size_t i = 0; i < x.size(); ++i) {
        m[i] += (g[i] - m[i]) * (1 - beta1);
        v[i] += (g[i] * g[i] - v[i]) * (1 - beta2);
        double moment = r.flag("useNesterov") ? m[i] * beta1 + g[i] * (1 - beta1) : m[i];
        x[i] -= lr * moment / (std::sqrt(v[i]) + eps);
    }
    r.write(var_out, x);
    r.write(m_out, m);
    r.write(v_out, v);
}

// -- lists -----------------------------------------------------------------------------------------------------------
void check_lists(const Plan& p, const char* first, std::initializer_list<const char*> names) {
    const auto& like = p.tensors(first);
    for (const char* name : names) {
        const auto& list = p.tensors(name);
        p.require(list.size() == like.size(), "%s has %zu tensors and %s %zu", first, like.size(), name, list.size());
        for (size_t i = 0; i < list.size(); ++i)
            p.require(list[i].dims == like[i].dims && list[i].dtype == like[i].dtype,
                      "tensor %zu of %s is not like that of %s", i, name, first);
    }
}

// -- moments of 8 bits: places in a map of numbers, times the largest of their block ------------------------------------------
// The facts have shapes; the step is that of decoupled Adam over gradients times gnormScale, and the new moments are the
// nearest numbers of the maps.
void plan_mapped(Plan& p) {
    need_like(p, "varRef", {"grad", "mRef", "vRef"});
    need_one(p, {"step"});
    const std::string mode = p.has("quantModeOptional") ? p.string("quantModeOptional") : "BLOCKWISE";
    p.require(mode == "BLOCKWISE" || mode.empty(), "quantModeOptional is \"%s\", expected BLOCKWISE", mode.c_str());
    int64_t block = p.integer("blockSize"), all = p.tensor("varRef").numel();
    p.require(block > 0, "blockSize is %lld", static_cast<long long>(block));
    for (const char* name : {"mRef", "vRef"})
        p.require(p.tensor(name).dtype == ACL_UINT8, "%s has dtype %s, expected UINT8", name, dtype_name(p.tensor(name).dtype));
    for (const char* name : {"qmapM", "qmapV"}) p.shape(name, {256});
    for (const char* name : {"absmaxMRef", "absmaxVRef"}) p.shape(name, {all / block + (all % block != 0)});
}

size_t nearest(const std::vector<double>& map, double x) {
    size_t best = 0;
    for (size_t i = 1; i < map.size(); ++i)
        if (std::fabs(map[i] - x) < std::fabs(map[best] - x)) best = i;
    return best;
}

void run_mapped(Run& r) {
    auto var = r.read<double>(r.tensor("varRef")), g = r.read<double>(r.tensor("grad"));
    double step = one(r, "step"), beta1 = r.real("beta1"), beta2 = r.real("beta2"), lr = r.real("lr");
    int64_t block = r.integer("blockSize");
    std::vector<double> moments[2];
    const char *names[2] = {"mRef", "vRef"}, *maps[2] = {"qmapM", "qmapV"}, *tops[2] = {"absmaxMRef", "absmaxVRef"};
    for (int which = 0; which < 2; ++which) {
        auto code = r.read<int64_t>(r.tensor(names[which]));
        auto map = r.read<double>(r.tensor(maps[which])), top = r.read<double>(r.tensor(tops[which]));
        double beta = which == 0 ? beta1 : beta2;
        for (size_t i = 0; i < code.size(); ++i) {
            double gradient = g[i] * r.real("gnormScale"), now = map[size_t(code[i])] * top[i / size_t(block)];
            moments[which].push_back(now * beta + (1 - beta) * (which == 0 ? gradient : gradient * gradient));
        }
        std::fill(top.begin(), top.end(), 0);
        for (size_t i = 0; i < code.size(); ++i) top[i / size_t(block)] = std::fmax(top[i / size_t(block)], std::fabs(moments[which][i]));
        for (size_t i = 0; i < code.size(); ++i) {
            double largest = top[i / size_t(block)];
            code[i] = int64_t(nearest(map, largest > 0 ? moments[which][i] / largest : 0));
        }
        r.write(r.tensor(names[which]), code);
        r.write(r.tensor(tops[which]), top);
    }
    for (size_t i = 0; i < var.size(); ++i) {
        double m = moments[0][i] / (1 - std::pow(beta1, step)), v = moments[1][i] / (1 - std::pow(beta2, step));
        var[i] = var[i] * (1 - lr * r.real("weightDecay")) - lr * m / (std::sqrt(v) + r.real("eps"));
    }
    r.write(r.tensor("varRef"), var);
}

}  // namespace

ACLNN(aclnnApplyAdam, PLAN { check_adam(p, "varRef"); },
      RUN { adam_step(r, r.tensor("varRef"), r.tensor("varRef"), r.tensor("m"), r.tensor("v")); })
ACLNN(aclnnApplyAdamD,
      PLAN {
          check_adam(p, "var");
          need_like(p, "var", {"varOut", "mOut", "vOut"});
      },
      RUN { adam_step(r, r.tensor("var"), r.tensor("varOut"), r.tensor("mOut"), r.tensor("vOut")); })

ACLNN(aclnnApplyAdamW,
      PLAN {
          need_like(p, "varRef", {"mRef", "vRef", "grad"});
          need_one(p, {"beta1Power", "beta2Power", "lr", "weightDecay", "beta1", "beta2", "eps"});
          if (p.flag("amsgrad")) {
              if (!p.has("maxGradNormOptional"))
                  refuse(ACLNN_ERR_PARAM_NULLPTR, "maxGradNormOptional must not be null where amsgrad");
              p.same_shape("varRef", "maxGradNormOptional");
          }
      },
      RUN {
          AdamW o{one(r, "lr"),  one(r, "beta1"),      one(r, "beta2"),      one(r, "weightDecay"),
                  one(r, "eps"), one(r, "beta1Power"), one(r, "beta2Power"), r.flag("amsgrad"), r.flag("maximize")};
          State s{r.tensor("varRef"), r.tensor("mRef"), r.tensor("vRef"), r.tensor("grad"),
                  o.amsgrad ? &r.tensor("maxGradNormOptional") : nullptr, false};
          adamw_step(r, o, s, 1);
      })

ACLNN(aclnnApplyAdamWV2,
      PLAN {
          need_like(p, "varRef", {"mRef", "vRef", "grad"});
          need_one(p, {"step"});
          if (p.flag("amsgrad")) {
              if (!p.has("maxGradNormOptionalRef"))
                  refuse(ACLNN_ERR_PARAM_NULLPTR, "maxGradNormOptionalRef must not be null where amsgrad");
              p.same_shape("varRef", "maxGradNormOptionalRef");
          }
      },
      RUN {
          double step = one(r, "step"), beta1 = r.real("beta1"), beta2 = r.real("beta2");
          AdamW o{r.real("lr"),  beta1, beta2, r.real("weightDecay"),
                  r.real("eps"), std::pow(beta1, step), std::pow(beta2, step), r.flag("amsgrad"), r.flag("maximize")};
          State s{r.tensor("varRef"), r.tensor("mRef"), r.tensor("vRef"), r.tensor("grad"),
                  o.amsgrad ? &r.tensor("maxGradNormOptionalRef") : nullptr, true};
          adamw_step(r, o, s, 1);
      })

ACLNN(aclnnFusedAdamw,
      PLAN {
          check_lists(p, "paramsRef", {"grads", "expAvgsRef", "expAvgSqsRef"});
          if (p.flag("amsgrad")) check_lists(p, "paramsRef", {"maxExpAvgSqsRef"});
          const auto& steps = p.tensors("stateSteps");
          p.require(steps.size() == p.tensors("paramsRef").size(), "stateSteps has %zu tensors for %zu parameters",
                    steps.size(), p.tensors("paramsRef").size());
          for (const Tensor& step : steps)
              p.require(step.numel() == 1, "a step has shape %s, expected one element", text(step.dims).c_str());
      },
      RUN {
          if (r.has("foundInfOptional") && one(r, "foundInfOptional") != 0) return;
          double grad_scale = r.has("gradScaleOptional") ? one(r, "gradScaleOptional") : 1;
          const auto& params = r.tensors("paramsRef");
          for (size_t i = 0; i < params.size(); ++i) {
              double step = r.read<double>(r.tensors("stateSteps")[i])[0];
              double beta1 = r.real("beta1"), beta2 = r.real("beta2");
              AdamW o{r.real("lr"),  beta1, beta2, r.real("weightDecay"), r.real("eps"), std::pow(beta1, step),
                      std::pow(beta2, step), r.flag("amsgrad"), r.flag("maximize")};
              State s{params[i], r.tensors("expAvgsRef")[i], r.tensors("expAvgSqsRef")[i], r.tensors("grads")[i],
                      o.amsgrad ? &r.tensors("maxExpAvgSqsRef")[i] : nullptr, true};
              adamw_step(r, o, s, grad_scale);
          }
      })

// -- others, as TensorFlow has them -----------------------------------------------------------------------------------
ACLNN(aclnnApplyAdamax,
      PLAN { need_like(p, "var", {"m", "v", "grad", "varOut", "mOut", "vOut"}); },
      RUN {
          auto x = r.read<double>(r.tensor("var")), g = r.read<double>(r.tensor("grad"));
          auto m = r.read<double>(r.tensor("m")), v = r.read<double>(r.tensor("v"));
          double beta1 = number(r, "beta1"), beta2 = number(r, "beta2"), eps = number(r, "epsilon");
          double lr = number(r, "lr") / (1 - number(r, "beta1Power"));
          for (size_t i = 0; i < x.size(); ++i) {
              m[i] = beta1 * m[i] + (1 - beta1) * g[i];
              v[i] = std::fmax(beta2 * v[i], std::fabs(g[i]));
              x[i] -= lr * m[i] / (v[i] + eps);
          }
          r.write(r.tensor("varOut"), x);
          r.write(r.tensor("mOut"), m);
          r.write(r.tensor("vOut"), v);
      })

ACLNN(aclnnApplyAdadelta,
      PLAN { need_like(p, "var", {"accum", "accumUpdate", "grad", "varOut", "accumOut", "accumUpdateOut"}); },
      RUN {
          auto x = r.read<double>(r.tensor("var")), squares = r.read<double>(r.tensor("accum"));
          auto updates = r.read<double>(r.tensor("accumUpdate")), g = r.read<double>(r.tensor("grad"));
          double lr = number(r, "lr"), rho = number(r, "rho"), eps = number(r, "epsilon");
          for (size_t i = 0; i < x.size(); ++i) {
              squares[i] = rho * squares[i] + (1 - rho) * g[i] * g[i];
              double update = std::sqrt((updates[i] + eps) / (squares[i] + eps)) * g[i];
              updates[i] = rho * updates[i] + (1 - rho) * update * update;
              x[i] -= lr * update;
          }
          r.write(r.tensor("varOut"), x);
          r.write(r.tensor("accumOut"), squares);
          r.write(r.tensor("accumUpdateOut"), updates);
      })

ACLNN(aclnnApplyFtrl,
      PLAN {
          need_like(p, "varRef", {"accumRef", "linearRef", "grad"});
          need_one(p, {"lr", "l1", "l2", "lrPower"});
      },
      RUN {
          auto x = r.read<double>(r.tensor("varRef")), squares = r.read<double>(r.tensor("accumRef"));
          auto linear = r.read<double>(r.tensor("linearRef")), g = r.read<double>(r.tensor("grad"));
          double lr = one(r, "lr"), l1 = one(r, "l1"), l2 = one(r, "l2"), power = -one(r, "lrPower");
          for (size_t i = 0; i < x.size(); ++i) {
              double after = squares[i] + g[i] * g[i];
              linear[i] += g[i] - (std::pow(after, power) - std::pow(squares[i], power)) / lr * x[i];
              double curve = std::pow(after, power) / lr + 2 * l2;
              x[i] = std::fabs(linear[i]) > l1 ? (std::copysign(l1, linear[i]) - linear[i]) / curve : 0;
              squares[i] = after;
          }
          r.write(r.tensor("varRef"), x);
          r.write(r.tensor("accumRef"), squares);
          r.write(r.tensor("linearRef"), linear);
      })

// -- gradient descent ------------------------------------------------------------------------------------------------
ACLNN(aclnnApplyGradientDescent,
      PLAN {
          p.same_shape("var", "delta");
          need_one(p, {"alpha"});
      },
      RUN {
          auto x = r.read<double>(r.tensor("var")), delta = r.read<double>(r.tensor("delta"));
          double alpha = one(r, "alpha");
          for (size_t i = 0; i < x.size(); ++i) x[i] -= alpha * delta[i];
          r.write(r.tensor("var"), x);
      })

ACLNN(aclnnFusedSgd,
      PLAN {
          check_lists(p, "paramsRef", {"gradsRef"});
          if (p.has("gradScaleOptional")) need_one(p, {"gradScaleOptional"});
          if (p.real("momentum") != 0) {
              if (!p.has("momentumBufferListOptionalRef"))
                  refuse(ACLNN_ERR_PARAM_NULLPTR,
                         "momentumBufferListOptionalRef must not be null where momentum is not 0");
              check_lists(p, "paramsRef", {"momentumBufferListOptionalRef"});
          }
          p.require(!p.flag("nesterov") || (p.real("momentum") > 0 && p.real("dampening") == 0),
                    "nesterov needs a momentum above 0 and no dampening");
      },
      RUN {
          double decay = r.real("weightDecay"), momentum = r.real("momentum"), lr = r.real("lr");
          double kept = 1 - r.real("dampening"), scale = r.has("gradScaleOptional") ? one(r, "gradScaleOptional") : 1;
          const auto& params = r.tensors("paramsRef");
          for (size_t t = 0; t < params.size(); ++t) {
              const Tensor& gradients = r.tensors("gradsRef")[t];
              auto x = r.read<double>(params[t]), g = r.read<double>(gradients);
              for (double& one_gradient : g) one_gradient /= scale;
              if (r.has("gradScaleOptional")) r.write(gradients, g);
              std::vector<double> buffer;
              if (momentum != 0) buffer = r.read<double>(r.tensors("momentumBufferListOptionalRef")[t]);
              for (size_t i = 0; i < x.size(); ++i) {
                  double step = (r.flag("maximize") ? -g[i] : g[i]) + decay * x[i];
                  if (momentum != 0) {
                      buffer[i] = r.flag("isFirstStep") ? step : momentum * buffer[i] + kept * step;
                      step = r.flag("nesterov") ? step + momentum * buffer[i] : buffer[i];
                  }
                  x[i] -= lr * step;
              }
              r.write(params[t], x);
              if (momentum != 0) r.write(r.tensors("momentumBufferListOptionalRef")[t], buffer);
          }
      })

// -- loss scale ------------------------------------------------------------------------------------------------------
ACLNN(aclnnAmpUpdateScale,
      PLAN {
          need_one(p, {"currentScale", "growthTracker", "foundInf", "updatedScale", "updatedGrowthTracker"});
          p.same_dtype("currentScale", "foundInf");
          p.same_dtype("currentScale", "updatedScale");
      },
      RUN {
          double scale = one(r, "currentScale");
          int64_t tracker = r.read<int64_t>(r.tensor("growthTracker"))[0];
          if (one(r, "foundInf") != 0) {
              scale *= r.real("backoffFactor");
              tracker = 0;
          } else if (++tracker == r.integer("growthInterval")) {
              double grown = narrow<double>(scale * r.real("growthFactor"), r.tensor("currentScale").dtype);
              if (std::isfinite(grown)) scale = grown;
              tracker = 0;
          }
          r.write(r.tensor("updatedScale"), std::vector<double>{scale});
          r.write(r.tensor("updatedGrowthTracker"), std::vector<int64_t>{tracker});
      })

ACLNN(aclnnForeachNonFiniteCheckAndUnscale,
      PLAN {
          size_t n = p.tensors("scaledGrads").size();
          p.require(n > 0 && n <= 256, "scaledGrads has %zu tensors, expected 1 to 256", n);
          need_one(p, {"foundInf", "invScale"});
      },
      RUN {
          double scale = one(r, "invScale");
          bool found = false;
          for (const Tensor& t : r.tensors("scaledGrads")) {
              auto g = r.read<double>(t);
              for (double& x : g) {
                  found = found || !std::isfinite(x);
                  x *= scale;
              }
              r.write(t, g);
          }
          if (found) r.write(r.tensor("foundInf"), std::vector<double>{1});
      })
ACLNN(aclnnApplyAdamWQuant, plan_mapped, run_mapped)
