// Sampling at the points of a grid, and grids from affine maps.
//
// An output is a sum over some inputs along each dimension with weights that depend on the point; the gradient of the
// point comes from the derivatives of these weights.
#include <cmath>

#include "norm.h"
#include "view.h"

using namespace emu;

namespace {

enum Interpolation : int64_t { kLinear = 0, kNearest = 1, kCubic = 2 };
enum Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

struct Tap {
    int64_t index;  // negative: outside, contributes nothing
    double weight, slope;
};

struct Position {
    double at, slope;
};

Position clipped(Position p, int64_t size) {
    if (p.at <= 0) return {0, 0};
    if (p.at >= double(size - 1)) return {double(size - 1), 0};
    return p;
}

Position reflected(Position p, double twice_low, double twice_high) {
    if (twice_low == twice_high) return {0, 0};
    double low = twice_low / 2, span = (twice_high - twice_low) / 2, x = p.at - low, slope = p.slope;
    if (x < 0) x = -x, slope = -slope;
    double extra = std::fmod(x, span);
    bool even = int64_t(std::floor(x / span)) % 2 == 0;
    return even ? Position{extra + low, slope} : Position{span - extra + low, -slope};
}

Position padded(Position p, int64_t size, int64_t padding, bool align) {
    if (padding == kReflection) {
        p = align ? reflected(p, 0, 2 * double(size - 1)) : reflected(p, -1, 2 * double(size) - 1);
        return clipped(p, size);
    }
    return padding == kBorder ? clipped(p, size) : p;
}

// Points that are not finite or far away are outside.
double within_integers(double x) { return std::isfinite(x) && std::fabs(x) < 2147483647 ? x : -100; }
int64_t inside(int64_t i, int64_t size) { return i >= 0 && i < size ? i : -1; }

double cubic(double x) {
    constexpr double a = -0.75;
    x = std::fabs(x);
    return x < 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}
double cubic_slope(double x) {
    constexpr double a = -0.75;
    double m = std::fabs(x), s = x < 0 ? -1 : 1;
    return m < 1 ? s * (3 * (a + 2) * m - 2 * (a + 3)) * m : m < 2 ? s * ((3 * a * m - 10 * a) * m + 8 * a) : 0;
}

std::vector<Tap> taps(double x, int64_t size, int64_t mode, int64_t padding, bool align) {
    Position p = align ? Position{(x + 1) / 2 * double(size - 1), double(size - 1) / 2}
                       : Position{((x + 1) * double(size) - 1) / 2, double(size) / 2};
    if (mode == kCubic) {
        p.at = within_integers(p.at);
        int64_t first = int64_t(std::floor(p.at));
        std::vector<Tap> out;
        for (int64_t k = -1; k <= 2; ++k) {
            double away = p.at - double(first + k);
            double place = padded({double(first + k), 1}, size, padding, align).at;
            out.push_back({inside(int64_t(place), size), cubic(away), cubic_slope(away) * p.slope});
        }
        return out;
    }
    p = padded(p, size, padding, align);
    p.at = within_integers(p.at);
    if (mode == kNearest) return {{inside(int64_t(std::nearbyint(p.at)), size), 1, 0}};
    int64_t first = int64_t(std::floor(p.at));
    double part = p.at - double(first);
    return {{inside(first, size), 1 - part, -p.slope}, {inside(first + 1, size), part, p.slope}};
}

// The grid's last dimension names the innermost dimension first.
struct Sampling {
    int spatial;
    int64_t samples, channels, points;
    Dims in;

    Sampling(const Dims& input, const Dims& grid)
        : spatial(input.n - 2), samples(input[0]), channels(input[1]), points(1), in(input) {
        for (int i = 1; i <= spatial; ++i) points *= grid[i];
    }
    int64_t plane() const {
        int64_t size = 1;
        for (int i = 0; i < spatial; ++i) size *= in[2 + i];
        return size;
    }
    // f(place in a plane, weight, slopes along the dimensions as in the input) for the taps of one point
    template <class F>
    void each(const double* point, int64_t mode, int64_t padding, bool align, F f) const {
        std::vector<Tap> along[3];
        for (int d = 0; d < spatial; ++d) along[d] = taps(point[spatial - 1 - d], in[2 + d], mode, padding, align);
        if (spatial == 2) along[2] = {{0, 1, 0}};
        for (const Tap& a : along[0])
            for (const Tap& b : along[1])
                for (const Tap& c : along[2]) {
                    if (a.index < 0 || b.index < 0 || c.index < 0) continue;
                    int64_t last = spatial == 2 ? 1 : in[4];
                    double slopes[3] = {a.slope * b.weight * c.weight, a.weight * b.slope * c.weight,
                                        a.weight * b.weight * c.slope};
                    f((a.index * in[3] + b.index) * last + c.index, a.weight * b.weight * c.weight, slopes);
                }
    }
};

Dims sampled(const Dims& input, const Dims& grid) {
    Dims out{input[0], input[1]};
    for (int i = 1; i < grid.n - 1; ++i) out.push(grid[i]);
    return out;
}

void plan_inputs(const Plan& p, const Dims& input) {
    const Dims& grid = p.tensor("grid").dims;
    int spatial = input.n - 2;
    p.require(grid.n == input.n && grid[0] == input[0] && grid.back() == spatial,
              "grid has shape %s, which does not fit an input of shape %s", text(grid).c_str(), text(input).c_str());
    int64_t mode = p.integer("interpolationMode"), padding = p.integer("paddingMode");
    p.require(mode >= kLinear && mode <= (spatial == 2 ? kCubic : kNearest),
              "interpolationMode is %lld, expected 0 to %d", static_cast<long long>(mode), spatial == 2 ? 2 : 1);
    p.require(padding >= kZeros && padding <= kReflection, "paddingMode is %lld, expected 0, 1 or 2",
              static_cast<long long>(padding));
    p.same_dtype("input", "grid");
    for (int i = 2; i < input.n; ++i) p.require(input[i] > 0, "the input is empty in a sampled dimension");
}

void plan_sample(Plan& p) {
    Dims input = channels_first(p.tensor("input")).dims;
    plan_inputs(p, input);
    p.same_dtype("input", "out");
    Dims got = channels_first(p.tensor("out")).dims, want = sampled(input, p.tensor("grid").dims);
    p.require(got == want, "out has shape %s, expected %s", text(got).c_str(), text(want).c_str());
}

void run_sample(Run& r) {
    Tensor input = channels_first(r.tensor("input"));
    Sampling s(input.dims, r.tensor("grid").dims);
    auto x = r.read<double>(input), grid = r.read<double>(r.tensor("grid"));
    int64_t mode = r.integer("interpolationMode"), padding = r.integer("paddingMode");
    std::vector<double> y(size_t(s.samples * s.channels * s.points));
    for (int64_t n = 0; n < s.samples; ++n)
        for (int64_t i = 0; i < s.points; ++i)
            s.each(grid.data() + (n * s.points + i) * s.spatial, mode, padding, r.flag("alignCorners"),
                   [&](int64_t at, double weight, const double*) {
                       for (int64_t c = 0; c < s.channels; ++c)
                           y[size_t((n * s.channels + c) * s.points + i)] +=
                               weight * x[size_t((n * s.channels + c) * s.plane() + at)];
                   });
    r.write(channels_first(r.tensor("out")), y);
}

void plan_sample_backward(Plan& p) {
    Dims input = channels_first(p.tensor("input")).dims;
    plan_inputs(p, input);
    p.same_dtype("input", "gradOutput");
    plan_mask(p, "outputMask", {"inputGrad", "gridGrad"});
    Dims got = channels_first(p.tensor("gradOutput")).dims, want = sampled(input, p.tensor("grid").dims);
    p.require(got == want, "gradOutput has shape %s, expected %s", text(got).c_str(), text(want).c_str());
    p.same_shape("input", "inputGrad");
    p.same_shape("grid", "gridGrad");
}

void run_sample_backward(Run& r) {
    Tensor input = channels_first(r.tensor("input"));
    Sampling s(input.dims, r.tensor("grid").dims);
    auto x = r.read<double>(input), grid = r.read<double>(r.tensor("grid"));
    auto g = r.read<double>(channels_first(r.tensor("gradOutput")));
    int64_t mode = r.integer("interpolationMode"), padding = r.integer("paddingMode");
    std::vector<double> dx(x.size()), dgrid(grid.size());
    for (int64_t n = 0; n < s.samples; ++n)
        for (int64_t i = 0; i < s.points; ++i) {
            int64_t point = (n * s.points + i) * s.spatial;
            s.each(grid.data() + point, mode, padding, r.flag("alignCorners"),
                   [&](int64_t at, double weight, const double* slopes) {
                       for (int64_t c = 0; c < s.channels; ++c) {
                           double incoming = g[size_t((n * s.channels + c) * s.points + i)];
                           size_t place = size_t((n * s.channels + c) * s.plane() + at);
                           dx[place] += weight * incoming;
                           for (int d = 0; d < s.spatial; ++d)
                               dgrid[size_t(point + s.spatial - 1 - d)] += slopes[d] * incoming * x[place];
                       }
                   });
        }
    if (r.ints("outputMask")[0]) r.write(channels_first(r.tensor("inputGrad")), dx);
    if (r.ints("outputMask")[1]) r.write(r.tensor("gridGrad"), dgrid);
}

// -- AffineGrid ------------------------------------------------------------------------------------------------------
void plan_affine(Plan& p) {
    const auto& size = p.ints("size");
    p.require(size.size() == 4 || size.size() == 5, "size has %zu elements, expected 4 or 5", size.size());
    int64_t spatial = int64_t(size.size()) - 2;
    p.shape("theta", {size[0], spatial, spatial + 1});
    Dims want{size[0]};
    for (size_t i = 2; i < size.size(); ++i) {
        p.require(size[i] > 0, "size must be positive");
        want.push(size[i]);
    }
    want.push(spatial);
    p.shape("out", want);
}

void run_affine(Run& r) {
    const Dims& d = r.tensor("out").dims;
    int spatial = d.n - 2;
    auto theta = r.read<double>(r.tensor("theta"));
    bool align = r.flag("alignCorners");
    auto coordinate = [align](int64_t i, int64_t size) {
        if (size == 1) return 0.0;
        return align ? -1 + 2 * double(i) / double(size - 1) : (2 * double(i) + 1) / double(size) - 1;
    };
    int64_t points = 1;
    for (int i = 0; i < spatial; ++i) points *= d[1 + i];
    std::vector<double> out;
    for (int64_t n = 0; n < d[0]; ++n)
        for (int64_t i = 0; i < points; ++i) {
            double point[3];  // innermost dimension first
            int64_t rest = i;
            for (int k = 0; k < spatial; ++k) {
                int64_t size = d[spatial - k];
                point[k] = coordinate(rest % size, size);
                rest /= size;
            }
            for (int row = 0; row < spatial; ++row) {
                const double* t = theta.data() + (n * spatial + row) * (spatial + 1);
                double value = t[spatial];
                for (int k = 0; k < spatial; ++k) value += t[k] * point[k];
                out.push_back(value);
            }
        }
    r.write(r.tensor("out"), out);
}

}  // namespace

ACLNN(aclnnGridSampler2D, plan_sample, run_sample)
ACLNN(aclnnGridSampler3D, plan_sample, run_sample)
ACLNN(aclnnGridSampler2DBackward, plan_sample_backward, run_sample_backward)
ACLNN(aclnnGridSampler3DBackward, plan_sample_backward, run_sample_backward)
ACLNN(aclnnAffineGrid, plan_affine, run_affine)
