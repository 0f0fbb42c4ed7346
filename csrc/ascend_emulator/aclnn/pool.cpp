// Windows of pooling, and average pooling: with a fixed kernel or adapted to the output's size.
#include "pool.h"

#include <cmath>

#include "cube.h"

namespace emu {

namespace {

void expect(bool holds, const char* what) {
    if (!holds) refuse(ACLNN_ERR_PARAM_INVALID, "%s", what);
}

int64_t pick(const std::vector<int64_t>& v, int i, int64_t otherwise) {
    return v.empty() ? otherwise : v[v.size() == 1 ? 0 : size_t(i)];
}

Windows planes(const Dims& in, int spatial, Dims* out) {
    expect(in.n > spatial && in.n <= spatial + 2, "the input has too many or too few dimensions");
    Windows w;
    for (int i = 0; i < in.n; ++i) {
        if (i < in.n - spatial) {
            w.planes *= in[i];
            out->push(in[i]);
        } else {
            w.in[3 - (in.n - i)] = in[i];
            expect(in[i] > 0, "the input is empty in a pooled dimension");
        }
    }
    return w;
}

}  // namespace

Windows windows(const Dims& in, int spatial, const PoolAttributes& a, Dims* out) {
    *out = Dims();
    Windows w = planes(in, spatial, out);
    auto fits = [spatial](const std::vector<int64_t>& v, bool may_be_empty) {
        return v.size() == 1 || v.size() == size_t(spatial) || (may_be_empty && v.empty());
    };
    expect(fits(a.kernel, false), "the kernel needs one element or one per pooled dimension");
    expect(fits(a.stride, true), "stride needs no element, one, or one per pooled dimension");
    expect(fits(a.padding, true), "padding needs one element or one per pooled dimension");
    expect(fits(a.dilation, true), "dilation needs one element or one per pooled dimension");
    for (int i = 0; i < spatial; ++i) {
        int d = 3 - spatial + i;
        int64_t kernel = pick(a.kernel, i, 1), stride = pick(a.stride, i, kernel), pad = pick(a.padding, i, 0),
                dilation = pick(a.dilation, i, 1), size = w.in[d];
        expect(kernel > 0 && stride > 0 && dilation > 0, "kernel, stride and dilation must be positive");
        expect(pad >= 0 && pad <= kernel / 2, "padding must be between 0 and half of the kernel");
        int64_t room = size + 2 * pad - dilation * (kernel - 1) - 1 + (a.ceil ? stride - 1 : 0);
        expect(room >= 0, "the kernel is larger than the padded input");
        int64_t count = room / stride + 1;
        if (a.ceil && (count - 1) * stride >= size + pad) --count;
        w.axis[d].clear();
        for (int64_t o = 0; o < count; ++o) {
            int64_t begin = o * stride - pad, end = std::min(begin + dilation * (kernel - 1) + 1, size + pad);
            Window window;
            window.step = dilation;
            window.padded = end - begin;
            window.first = begin < 0 ? (-begin + dilation - 1) / dilation : 0;
            window.start = begin + window.first * dilation;
            window.stop = std::min(end, size);
            w.axis[d].push_back(window);
        }
        out->push(count);
    }
    return w;
}

Windows adaptive_windows(const Dims& in, int spatial, const std::vector<int64_t>& sizes, Dims* out) {
    *out = Dims();
    Windows w = planes(in, spatial, out);
    expect(sizes.size() == size_t(spatial), "outputSize needs one element per pooled dimension");
    for (int i = 0; i < spatial; ++i) {
        int d = 3 - spatial + i;
        int64_t size = w.in[d], count = sizes[size_t(i)];
        expect(count >= 0, "outputSize must not be negative");
        w.axis[d].clear();
        for (int64_t o = 0; o < count; ++o) {
            Window window;
            window.start = o * size / count;
            window.stop = ((o + 1) * size + count - 1) / count;
            window.padded = window.stop - window.start;
            w.axis[d].push_back(window);
        }
        out->push(count);
    }
    return w;
}

Greatest greatest(const Windows& w, const std::vector<double>& x) {
    Greatest out;
    for (int64_t p = 0; p < w.planes; ++p) {
        const double* plane = x.data() + p * w.in_plane();
        w.each([&](int64_t, const Window& a, const Window& b, const Window& c) {
            double best = -INFINITY;
            int64_t place = -1;
            w.inside(a, b, c, [&](int64_t at) {
                if (place < 0 || plane[at] > best || std::isnan(plane[at])) best = plane[at], place = at;
            });
            out.values.push_back(best);
            out.places.push_back(place);
        });
    }
    return out;
}

namespace {

// -- averages --------------------------------------------------------------------------------------------------------
struct Divisor {
    bool with_padding = false;
    int64_t fixed = 0;  // 0: the number of elements
    double of(const Window& z, const Window& y, const Window& x) const {
        if (fixed) return double(fixed);
        if (with_padding) return double(z.padded * y.padded * x.padded);
        auto covered = [](const Window& w) { return std::max<int64_t>(w.stop - w.start, 0); };
        return double(covered(z) * covered(y) * covered(x));
    }
};

std::vector<double> averages(const Windows& w, const std::vector<double>& x, const Divisor& divisor) {
    std::vector<double> out(size_t(w.planes * w.out_plane()));
    for (int64_t p = 0; p < w.planes; ++p)
        w.each([&](int64_t o, const Window& a, const Window& b, const Window& c) {
            double sum = 0;
            w.inside(a, b, c, [&](int64_t at) { sum += x[size_t(p * w.in_plane() + at)]; });
            out[size_t(p * w.out_plane() + o)] = sum / divisor.of(a, b, c);
        });
    return out;
}

std::vector<double> averages_backward(const Windows& w, const std::vector<double>& g, const Divisor& divisor) {
    std::vector<double> out(size_t(w.planes * w.in_plane()));
    for (int64_t p = 0; p < w.planes; ++p)
        w.each([&](int64_t o, const Window& a, const Window& b, const Window& c) {
            double share = g[size_t(p * w.out_plane() + o)] / divisor.of(a, b, c);
            w.inside(a, b, c, [&](int64_t at) { out[size_t(p * w.in_plane() + at)] += share; });
        });
    return out;
}

PoolAttributes attributes(const Call& c, const char* stride, const char* padding) {
    return {c.ints("kernelSize"), c.ints(stride), c.ints(padding), {}, c.flag("ceilMode")};
}
Divisor divisor(const Call& c) { return {c.flag("countIncludePad"), c.integer("divisorOverride")}; }

struct Names {
    const char *stride, *padding;
    int spatial;
    bool cube;
};

void plan_average(Plan& p, const Names& n) {
    const Tensor& self = p.tensor("self");
    if (n.cube) plan_cube(p, self.dtype, p.integer("cubeMathType"));
    Dims want;
    windows(self.dims, n.spatial, attributes(p, n.stride, n.padding), &want);
    p.shape("out", want);
    p.require(p.integer("divisorOverride") >= 0, "divisorOverride must not be negative");
}

void run_average(Run& r, const Names& n) {
    const Tensor& self = r.tensor("self");
    Dims shape;
    auto x = r.read<double>(self);
    if (n.cube) cube_round(x, self.dtype, r.integer("cubeMathType"));
    Windows w = windows(self.dims, n.spatial, attributes(r, n.stride, n.padding), &shape);
    r.write(r.tensor("out"), averages(w, x, divisor(r)));
}

void plan_average_backward(Plan& p, const Names& n) {
    const Tensor& self = p.tensor("self");
    if (n.cube) plan_cube(p, self.dtype, p.integer("cubeMathType"));
    Dims want;
    windows(self.dims, n.spatial, attributes(p, n.stride, n.padding), &want);
    p.shape("gradOutput", want);
    p.require(p.output().dims == self.dims, "the output has shape %s, expected %s", text(p.output().dims).c_str(),
              text(self.dims).c_str());
    p.require(p.integer("divisorOverride") >= 0, "divisorOverride must not be negative");
}

void run_average_backward(Run& r, const Names& n) {
    const Tensor& self = r.tensor("self");
    Dims shape;
    auto g = r.read<double>(r.tensor("gradOutput"));
    if (n.cube) cube_round(g, self.dtype, r.integer("cubeMathType"));
    Windows w = windows(self.dims, n.spatial, attributes(r, n.stride, n.padding), &shape);
    r.write(r.output(), averages_backward(w, g, divisor(r)));
}

// -- adapted to the output -------------------------------------------------------------------------------------------
template <int spatial>
void plan_adaptive(Plan& p) {
    Dims want;
    adaptive_windows(p.tensor("self").dims, spatial, p.ints("outputSize"), &want);
    p.shape("out", want);
}

template <int spatial>
void run_adaptive(Run& r) {
    Dims shape;
    Windows w = adaptive_windows(r.tensor("self").dims, spatial, r.ints("outputSize"), &shape);
    r.write(r.tensor("out"), averages(w, r.read<double>(r.tensor("self")), {}));
}

std::vector<int64_t> last_sizes(const Dims& d, int n) { return {d.end() - n, d.end()}; }

template <int spatial>
void plan_adaptive_backward(Plan& p) {
    const Tensor &self = p.tensor("self"), &g = p.tensor("gradOutput");
    p.same_dtype("self", "gradOutput");
    p.same_shape("self", "out");
    p.require(g.rank() == self.rank(), "gradOutput has %d dimensions, self has %d", g.rank(), self.rank());
    Dims want;
    adaptive_windows(self.dims, spatial, last_sizes(g.dims, spatial), &want);
    p.shape("gradOutput", want);
}

template <int spatial>
void run_adaptive_backward(Run& r) {
    Dims shape;
    const Tensor& g = r.tensor("gradOutput");
    Windows w = adaptive_windows(r.tensor("self").dims, spatial, last_sizes(g.dims, spatial), &shape);
    r.write(r.tensor("out"), averages_backward(w, r.read<double>(g), {}));
}

// -- everything at once ----------------------------------------------------------------------------------------------
Dims pooled_away(const Dims& in) {
    Dims out = in;
    for (int i = 2; i < in.n; ++i) out[i] = 1;
    return out;
}

void plan_global(Plan& p) {
    p.shape("out", pooled_away(p.tensor("self").dims));
    p.same_dtype("self", "out");
    p.require(p.tensor("self").numel() > 0, "self is empty");
}

template <class F>
void run_global(Run& r, F f) {
    const Tensor& self = r.tensor("self");
    auto x = r.read<double>(self);
    size_t planes = size_t(self.dims[0] * self.dims[1]), size = x.size() / planes;
    std::vector<double> out;
    for (size_t p = 0; p < planes; ++p) out.push_back(f(x.data() + p * size, size));
    r.write(r.tensor("out"), out);
}

double mean_of(const double* x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum += x[i];
    return sum / double(n);
}
double greatest_of(const double* x, size_t n) {
    double best = x[0];
    for (size_t i = 1; i < n; ++i)
        if (x[i] > best || std::isnan(x[i])) best = x[i];
    return best;
}

constexpr Names kForward2d{"strides", "paddings", 2, true}, kBackward2d{"stride", "padding", 2, true},
    kBoth3d{"stride", "padding", 3, false};

}  // namespace
}  // namespace emu

using namespace emu;

ACLNN(aclnnAvgPool2d, PLAN { plan_average(p, kForward2d); }, RUN { run_average(r, kForward2d); })
ACLNN(aclnnAvgPool2dBackward, PLAN { plan_average_backward(p, kBackward2d); },
      RUN { run_average_backward(r, kBackward2d); })
ACLNN(aclnnAvgPool3d, PLAN { plan_average(p, kBoth3d); }, RUN { run_average(r, kBoth3d); })
ACLNN(aclnnAvgPool3dBackward, PLAN { plan_average_backward(p, kBoth3d); }, RUN { run_average_backward(r, kBoth3d); })
ACLNN(aclnnAdaptiveAvgPool2d, plan_adaptive<2>, run_adaptive<2>)
ACLNN(aclnnAdaptiveAvgPool3d, plan_adaptive<3>, run_adaptive<3>)
ACLNN(aclnnAdaptiveAvgPool2dBackward, plan_adaptive_backward<2>, run_adaptive_backward<2>)
ACLNN(aclnnAdaptiveAvgPool3dBackward, plan_adaptive_backward<3>, run_adaptive_backward<3>)
ACLNN(aclnnGlobalAveragePool, plan_global, RUN { run_global(r, mean_of); })
ACLNN(aclnnGlobalMaxPool, plan_global, RUN { run_global(r, greatest_of); })
