// Resampling of the spatial dimensions: nearest, linear and cubic, with or without smoothing.
//
// All of them work dimension by dimension: an output is a weighted sum of some inputs along each. The gradient is the
// transpose of that sum.
#include <cmath>

#include "view.h"

using namespace emu;

namespace {

enum class Method { nearest, exact, linear, cubic, smooth_linear, smooth_cubic };

struct Term {
    int64_t index;
    double weight;
};
using Sum = std::vector<Term>;

double cubic_filter(double x, double a) {
    x = std::fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return 0;
}

double source_step(int64_t in, int64_t out, bool align, double scale) {
    if (align) return out > 1 ? double(in - 1) / double(out - 1) : 0;
    return scale > 0 ? 1 / scale : double(in) / double(out);
}

// Which inputs along one dimension each output takes.
std::vector<Sum> sums(Method method, int64_t in, int64_t out, bool align, double scale) {
    std::vector<Sum> all;
    double step = source_step(in, out, align, scale);
    auto clamp = [in](int64_t i) { return std::min(std::max<int64_t>(i, 0), in - 1); };
    for (int64_t o = 0; o < out; ++o) {
        Sum sum;
        switch (method) {
            case Method::nearest: case Method::exact: {
                // In float, as the definition says: which side of a boundary an output falls on depends on it.
                float position = (method == Method::exact ? float(o) + 0.5f : float(o)) * float(step);
                sum.push_back({clamp(int64_t(std::floor(position))), 1});
                break;
            }
            case Method::linear: {
                double position = align ? step * double(o) : std::max(step * (double(o) + 0.5) - 0.5, 0.0);
                int64_t first = clamp(int64_t(position));
                double part = std::min(std::max(position - double(first), 0.0), 1.0);
                sum.push_back({first, 1 - part});
                sum.push_back({clamp(first + 1), part});
                break;
            }
            case Method::cubic: {
                double position = align ? step * double(o) : step * (double(o) + 0.5) - 0.5;
                int64_t first = int64_t(std::floor(position));
                for (int64_t k = -1; k <= 2; ++k)
                    sum.push_back({clamp(first + k), cubic_filter(position - double(first + k), -0.75)});
                break;
            }
            case Method::smooth_linear: case Method::smooth_cubic: {
                double reach = (method == Method::smooth_linear ? 1 : 2) * std::max(step, 1.0);
                double centre = step * (double(o) + 0.5), narrow = step >= 1 ? 1 / step : 1, total = 0;
                int64_t first = std::max<int64_t>(int64_t(centre - reach + 0.5), 0);
                int64_t last = std::min(int64_t(centre + reach + 0.5), in);
                for (int64_t i = first; i < last; ++i) {
                    double x = (double(i) - centre + 0.5) * narrow;
                    double weight = method == Method::smooth_linear ? std::max(1 - std::fabs(x), 0.0)
                                                                    : cubic_filter(x, -0.5);
                    sum.push_back({i, weight});
                    total += weight;
                }
                for (Term& term : sum) term.weight /= total;
                break;
            }
        }
        all.push_back(sum);
    }
    return all;
}

// -- arguments -------------------------------------------------------------------------------------------------------
// The scales of a function are its only real arguments, one per dimension, outermost first; nearest may have none.
std::vector<double> scales(const Call& c) {
    std::vector<double> out;
    for (int i = 0; i < c.function->count; ++i)
        if (c.function->parameters[i].role == Role::real) out.push_back(c.values[size_t(i)].real);
    return out;
}

bool aligned(const Call& c, Method method) {
    return method != Method::nearest && method != Method::exact && c.flag("alignCorners");
}

void plan_scales(const Plan& p) {
    if (std::string(p.function->name) == "aclnnUpsampleLinear1d") return;  // a negative scale is as good as none
    for (double scale : scales(p)) p.require(scale >= 0, "a scale is %g, expected 0 or more", scale);
}

Dims resized(const Plan& p, const Dims& in) {
    const auto& sizes = p.ints("outputSize");
    int spatial = in.n - 2;
    p.require(sizes.size() == size_t(spatial), "outputSize has %zu elements, expected %d", sizes.size(), spatial);
    Dims out = in;
    for (int i = 0; i < spatial; ++i) {
        p.require(sizes[size_t(i)] > 0 && in[2 + i] > 0, "sizes must be positive");
        out[2 + i] = sizes[size_t(i)];
    }
    return out;
}

void plan_upsample(Plan& p) {
    plan_scales(p);
    Dims want = resized(p, channels_first(p.input()).dims), got = channels_first(p.output()).dims;
    p.require(got == want, "the output has shape %s, expected %s", text(got).c_str(), text(want).c_str());
    p.require(p.input().dtype == p.output().dtype, "the output must have the dtype of the input");
}

// inputSize is the whole shape of the gradient of the input.
void plan_upsample_backward(Plan& p) {
    plan_scales(p);
    const auto& given = p.ints("inputSize");
    Dims in = channels_first(p.output()).dims;
    p.require(Dims(given.data(), given.size()) == in || Dims(given.data(), given.size()) == p.output().dims,
              "the output has shape %s, inputSize is %s", text(in).c_str(),
              text(Dims(given.data(), given.size())).c_str());
    Dims want = resized(p, in), got = channels_first(p.input()).dims;
    p.require(got == want, "the gradient has shape %s, expected %s", text(got).c_str(), text(want).c_str());
}

// -- computing -------------------------------------------------------------------------------------------------------
template <Method method, bool backward>
void run_upsample(Run& r) {
    Tensor from = channels_first(r.input()), to = channels_first(r.output());
    auto given = scales(r);
    auto x = r.read<double>(from);
    Dims dims = from.dims;
    for (int d = 2; d < dims.n; ++d) {
        int64_t in = backward ? to.dims[d] : from.dims[d], out = backward ? from.dims[d] : to.dims[d];
        auto table = sums(method, in, out, aligned(r, method), given.empty() ? 0 : given[size_t(d - 2)]);
        Lines before(dims, d);
        dims[d] = to.dims[d];
        Lines after(dims, d);
        std::vector<double> y(size_t(dims.product()));
        for (int64_t o = 0; o < after.outer; ++o)
            for (int64_t k = 0; k < out; ++k)
                for (const Term& term : table[size_t(k)])
                    for (int64_t i = 0; i < after.inner; ++i) {
                        if (backward) y[size_t(after.at(o, term.index, i))] += term.weight * x[size_t(before.at(o, k,
                                                                                                                i))];
                        else y[size_t(after.at(o, k, i))] += term.weight * x[size_t(before.at(o, term.index, i))];
                    }
        x.swap(y);
    }
    r.write(to, x);
}

}  // namespace

ACLNN(aclnnUpsampleNearest1d, plan_upsample, (run_upsample<Method::nearest, false>))
ACLNN(aclnnUpsampleNearest1dV2, plan_upsample, (run_upsample<Method::nearest, false>))
ACLNN(aclnnUpsampleNearest2d, plan_upsample, (run_upsample<Method::nearest, false>))
ACLNN(aclnnUpsampleNearest2dV2, plan_upsample, (run_upsample<Method::nearest, false>))
ACLNN(aclnnUpsampleNearest3d, plan_upsample, (run_upsample<Method::nearest, false>))
ACLNN(aclnnUpsampleNearestExact1d, plan_upsample, (run_upsample<Method::exact, false>))
ACLNN(aclnnUpsampleNearestExact2d, plan_upsample, (run_upsample<Method::exact, false>))
ACLNN(aclnnUpsampleNearestExact3d, plan_upsample, (run_upsample<Method::exact, false>))
ACLNN(aclnnUpsampleLinear1d, plan_upsample, (run_upsample<Method::linear, false>))
ACLNN(aclnnUpsampleBilinear2d, plan_upsample, (run_upsample<Method::linear, false>))
ACLNN(aclnnUpsampleTrilinear3d, plan_upsample, (run_upsample<Method::linear, false>))
ACLNN(aclnnUpsampleBicubic2d, plan_upsample, (run_upsample<Method::cubic, false>))
ACLNN(aclnnUpsampleBilinear2dAA, plan_upsample, (run_upsample<Method::smooth_linear, false>))
ACLNN(aclnnUpsampleBicubic2dAA, plan_upsample, (run_upsample<Method::smooth_cubic, false>))
ACLNN(aclnnUpsampleNearest1dBackward, plan_upsample_backward, (run_upsample<Method::nearest, true>))
ACLNN(aclnnUpsampleNearest2dBackward, plan_upsample_backward, (run_upsample<Method::nearest, true>))
ACLNN(aclnnUpsampleNearest3dBackward, plan_upsample_backward, (run_upsample<Method::nearest, true>))
ACLNN(aclnnUpsampleNearestExact1dBackward, plan_upsample_backward, (run_upsample<Method::exact, true>))
ACLNN(aclnnUpsampleNearestExact2dBackward, plan_upsample_backward, (run_upsample<Method::exact, true>))
ACLNN(aclnnUpsampleNearestExact3dBackward, plan_upsample_backward, (run_upsample<Method::exact, true>))
ACLNN(aclnnUpsampleLinear1dBackward, plan_upsample_backward, (run_upsample<Method::linear, true>))
ACLNN(aclnnUpsampleBilinear2dBackward, plan_upsample_backward, (run_upsample<Method::linear, true>))
ACLNN(aclnnUpsampleBilinear2dBackwardV2, plan_upsample_backward, (run_upsample<Method::linear, true>))
ACLNN(aclnnUpsampleTrilinear3dBackward, plan_upsample_backward, (run_upsample<Method::linear, true>))
ACLNN(aclnnUpsampleBicubic2dBackward, plan_upsample_backward, (run_upsample<Method::cubic, true>))
ACLNN(aclnnUpsampleBilinear2dAABackward, plan_upsample_backward, (run_upsample<Method::smooth_linear, true>))
ACLNN(aclnnUpsampleBicubic2dAAGrad, plan_upsample_backward, (run_upsample<Method::smooth_cubic, true>))
