// Functions that carry the names of graph operators: sums over lists, biases along an axis, other names of functions.
#include "activation.h"
#include "elementwise.h"
#include "special.h"

using namespace emu;

namespace {

void plan_list(Plan& p) {
    const auto& list = p.tensors("tensors");
    const Tensor& out = p.tensor("out");
    p.require(!list.empty(), "tensors is empty");
    Dims shape;
    for (size_t i = 0; i < list.size(); ++i) {
        Dims next;
        p.require(broadcast(shape, list[i].dims, &next), "tensors of shapes %s and %s do not broadcast",
                  text(shape).c_str(), text(list[i].dims).c_str());
        shape = next;
        p.require(list[i].dtype == out.dtype, "tensor %zu has dtype %s, out has %s; they must be the same", i,
                  dtype_name(list[i].dtype), dtype_name(out.dtype));
    }
    p.shape("out", shape);
}

struct Join {
    template <class T>
    static void fold(Run& r, T (*join)(T, T)) {
        const Tensor& out = r.tensor("out");
        const auto& list = r.tensors("tensors");
        auto total = r.read<T>(list[0], out.dims);
        for (size_t i = 1; i < list.size(); ++i) {
            auto next = r.read<T>(list[i], out.dims);
            for (size_t j = 0; j < total.size(); ++j) total[j] = join(total[j], next[j]);
        }
        r.write(out, total);
    }
    double (*real)(double, double);
    int64_t (*integer)(int64_t, int64_t);
    void operator()(Run& r) const {
        if (is_integer(r.tensor("out").dtype)) fold<int64_t>(r, integer);
        else fold<double>(r, real);
    }
};

double add(double a, double b) { return a + b; }
int64_t add(int64_t a, int64_t b) { return a + b; }

}  // namespace

ACLNN(aclnnAddN, plan_list, Join{add, add})
ACLNN(aclnnMaxN, plan_list, Join{larger, larger})
ACLNN(aclnnMinN, plan_list, Join{smaller, smaller})

// -- the same as others, under the names of graph operators ----------------------------------------------------------
UNARY_R(aclnnAsinhV2, std::asinh(x))
UNARY_R(aclnnAsinhWithAgent, std::asinh(x))
UNARY_R(aclnnAsinWithAgent, std::asin(x))
UNARY_R(aclnnFresnelSin, fresnel(x, true))
UNARY_R(aclnnFresnelCos, fresnel(x, false))
MAP_THREE_RI(aclnnFusedMulAddN, a * c + b)
MAP_TWO_R(aclnnFusedBiasLeakyRelu, k[1] * (a + b > 0 ? a + b : k[0] * (a + b)))

namespace {

const Pointwise kApproximateEqual = {EMU_R(EMU_TWO, std::fabs(a - b) < k[0]), 2, false, true};

// The bias lies along the last axis, or along axis 1 where the format is NCHW or NCDHW.
int bias_axis(const Call& c) {
    const Tensor& x = c.tensor("x");
    const std::string& format = c.string("dataFormatOptional");
    return format == "NCHW" || format == "NCDHW" ? 1 : x.rank() - 1;
}

size_t along(const Dims& dims, int axis, size_t at) {
    int64_t inner = 1;
    for (int i = axis + 1; i < dims.n; ++i) inner *= dims[i];
    return size_t(int64_t(at) / inner % dims[axis]);
}

}  // namespace

ACLNN(aclnnApproximateEqual,
      PLAN {
          p.same_shape("x1", "x2");
          p.same_dtype("x1", "x2");
          plan_pointwise(p, kApproximateEqual);
      },
      RUN { run_pointwise(r, kApproximateEqual); })

ACLNN(aclnnBiasAdd,
      PLAN {
          const Tensor& x = p.tensor("x");
          const std::string& format = p.string("dataFormatOptional");
          p.require(format.empty() || format == "NHWC" || format == "NCHW" || format == "NDHWC" || format == "NCDHW",
                    "dataFormatOptional is \"%s\", expected NHWC, NCHW, NDHWC or NCDHW", format.c_str());
          p.require(x.rank() >= 2, "x has shape %s, expected 2 dimensions or more", text(x.dims).c_str());
          p.shape("bias", {x.dims[bias_axis(p)]});
          p.same_dtype("x", "bias");
          p.same_shape("x", "out");
          p.same_dtype("x", "out");
      },
      RUN {
          const Tensor& t = r.tensor("x");
          by_real_or_integer(category(t.dtype), [&](auto zero) {
              using T = decltype(zero);
              auto x = r.read<T>(t), bias = r.read<T>(r.tensor("bias"));
              for (size_t i = 0; i < x.size(); ++i) x[i] += bias[along(t.dims, bias_axis(r), i)];
              r.write(r.tensor("out"), x);
          });
      })

// The scale's axes are those of x from `axis` on; scaleFromBlob says that numAxes counts them (-1: to the last).
ACLNN(aclnnScale,
      PLAN {
          const Tensor &x = p.tensor("x"), &scale = p.tensor("scale");
          int64_t axis = p.axis("axis", x.rank());
          int64_t count = p.flag("scaleFromBlob") ? p.integer("numAxes") : scale.rank();
          if (count == -1) count = x.rank() - axis;
          p.require(count >= 0 && axis + count <= x.rank(), "numAxes is %lld: x has %d dimensions from axis %lld on",
                    static_cast<long long>(count), x.rank() - int(axis), static_cast<long long>(axis));
          Dims want;
          for (int i = int(axis); i < int(axis + count); ++i) want.push(x.dims[i]);
          p.shape("scale", want);
          if (p.has("bias")) p.shape("bias", want);
          p.same_shape("x", "y");
          for (const char* name : {"scale", "y"}) p.same_dtype("x", name);
      },
      RUN {
          const Tensor &t = r.tensor("x"), &s = r.tensor("scale");
          auto x = r.read<double>(t), scale = r.read<double>(s);
          auto bias = r.has("bias") ? r.read<double>(r.tensor("bias")) : std::vector<double>(scale.size());
          int64_t inner = 1;
          for (int i = int(wrap(r.integer("axis"), t.rank())) + s.rank(); i < t.rank(); ++i) inner *= t.dims[i];
          for (size_t i = 0; i < x.size(); ++i) {
              size_t j = i / size_t(inner) % scale.size();
              x[i] = x[i] * scale[j] + bias[j];
          }
          r.write(r.tensor("y"), x);
      })

ACLNN(aclnnCastV3,
      PLAN {
          p.same_shape("x", "y");
          p.require(p.integer("dstType") == p.tensor("y").dtype, "dstType is %lld but y has dtype %s",
                    static_cast<long long>(p.integer("dstType")), dtype_name(p.tensor("y").dtype));
      },
      RUN {
          by_real_or_integer(category(r.tensor("x").dtype), [&](auto zero) {
              r.write(r.tensor("y"), r.read<decltype(zero)>(r.tensor("x")));
          });
      })
