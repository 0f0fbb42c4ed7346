// Maximum pooling with the place of each maximum as an index or as a bit mask, and its inverse.
#include "pool.h"

using namespace emu;

namespace {

PoolAttributes attributes(const Call& c) {
    return {c.ints("kernelSize"), c.ints("stride"), c.ints("padding"), c.ints("dilation"), c.flag("ceilMode")};
}

std::vector<double> scattered(const Windows& w, const std::vector<double>& g, const std::vector<int64_t>& places) {
    std::vector<double> out(size_t(w.planes * w.in_plane()));
    for (size_t i = 0; i < g.size(); ++i) {
        int64_t at = places[i];
        if (at < 0 || at >= w.in_plane())
            fault("index %lld is out of range for a plane of %lld elements", static_cast<long long>(at),
                  static_cast<long long>(w.in_plane()));
        out[size_t(int64_t(i) / w.out_plane() * w.in_plane() + at)] += g[i];
    }
    return out;
}

// -- indices ---------------------------------------------------------------------------------------------------------
template <int spatial>
void plan_indexed(Plan& p) {
    Tensor self = channels_first(p.tensor("self"));
    Dims want;
    windows(self.dims, spatial, attributes(p), &want);
    for (const char* name : {"out", "indices"}) {
        Dims got = channels_first(p.tensor(name)).dims;
        p.require(got == want, "%s has shape %s, expected %s", name, text(got).c_str(), text(want).c_str());
    }
    p.same_dtype("self", "out");
}

template <int spatial>
void run_indexed(Run& r) {
    Tensor self = channels_first(r.tensor("self"));
    Dims shape;
    Greatest g = greatest(windows(self.dims, spatial, attributes(r), &shape), r.read<double>(self));
    r.write(channels_first(r.tensor("out")), g.values);
    r.write(channels_first(r.tensor("indices")), g.places);
}

template <int spatial>
void plan_indexed_backward(Plan& p) {
    Tensor self = channels_first(p.tensor("self"));
    Dims want;
    windows(self.dims, spatial, attributes(p), &want);
    for (const char* name : {"gradOutput", "indices"}) {
        Dims got = channels_first(p.tensor(name)).dims;
        p.require(got == want, "%s has shape %s, expected %s", name, text(got).c_str(), text(want).c_str());
    }
    p.same_shape("self", "gradInput");
}

template <int spatial>
void run_indexed_backward(Run& r) {
    Tensor self = channels_first(r.tensor("self"));
    Dims shape;
    Windows w = windows(self.dims, spatial, attributes(r), &shape);
    r.write(channels_first(r.tensor("gradInput")),
            scattered(w, r.read<double>(channels_first(r.tensor("gradOutput"))),
                      r.read<int64_t>(channels_first(r.tensor("indices")))));
}

// -- adapted to the output -------------------------------------------------------------------------------------------
template <int spatial>
void plan_adaptive(Plan& p) {
    Dims want;
    adaptive_windows(channels_first(p.tensor("self")).dims, spatial, p.ints("outputSize"), &want);
    for (const char* name : {"outputOut", "indicesOut"}) {
        Dims got = channels_first(p.tensor(name)).dims;
        p.require(got == want, "%s has shape %s, expected %s", name, text(got).c_str(), text(want).c_str());
    }
}

template <int spatial>
void run_adaptive(Run& r) {
    Tensor self = channels_first(r.tensor("self"));
    Dims shape;
    Greatest g = greatest(adaptive_windows(self.dims, spatial, r.ints("outputSize"), &shape), r.read<double>(self));
    r.write(channels_first(r.tensor("outputOut")), g.values);
    r.write(channels_first(r.tensor("indicesOut")), g.places);
}

Windows adapted_to_gradient(const Call& c, int spatial, Dims* want) {
    const Dims& g = c.tensor("gradOutput").dims;
    return adaptive_windows(c.tensor("self").dims, spatial, {g.end() - spatial, g.end()}, want);
}

template <int spatial>
void plan_adaptive_backward(Plan& p) {
    Dims want;
    p.require(p.tensor("gradOutput").rank() == p.tensor("self").rank(), "gradOutput and self must have the same rank");
    adapted_to_gradient(p, spatial, &want);
    p.shape("gradOutput", want);
    p.same_dtype("self", "gradOutput");
    p.same_shape("gradOutput", "indices");
    p.same_shape("self", "gradInput");
}

template <int spatial>
void run_adaptive_backward(Run& r) {
    Dims shape;
    Windows w = adapted_to_gradient(r, spatial, &shape);
    r.write(r.tensor("gradInput"),
            scattered(w, r.read<double>(r.tensor("gradOutput")), r.read<int64_t>(r.tensor("indices"))));
}

// -- masks -----------------------------------------------------------------------------------------------------------
// For each plane and place k of the kernel one bit per output: whether that output came from place k.
struct Mask {
    int64_t taps, row;  // rows of `row` bytes
    Mask(const std::vector<int64_t>& kernel, const Windows& w)
        : taps(kernel.size() == 1 ? kernel[0] * kernel[0] : kernel[0] * kernel[1]),
          row(((w.out_plane() + 15) / 16 + 1) * 32) {}
    size_t byte(int64_t plane, int64_t tap, int64_t out) const { return size_t((plane * taps + tap) * row + out / 8); }
    Dims shape(const Dims& in) const {
        Dims d(in.v.data(), uint64_t(in.n - 2));
        d.push(taps);
        d.push(row);
        return d;
    }
};

// f(which output of the plane, place of the kernel, place in the plane)
template <class F>
void each_tap(const Windows& w, const std::vector<int64_t>& kernel, F f) {
    int64_t columns = kernel.back();
    w.each([&](int64_t o, const Window&, const Window& y, const Window& x) {
        int64_t i = y.first;
        for (int64_t a = y.start; a < y.stop; a += y.step, ++i) {
            int64_t j = x.first;
            for (int64_t b = x.start; b < x.stop; b += x.step, ++j) f(o, i * columns + j, a * w.in[2] + b);
        }
    });
}

void plan_masked(Plan& p) {
    Dims want;
    const Tensor& self = p.tensor("self");
    Windows w = windows(self.dims, 2, attributes(p), &want);
    p.shape("out", want);
    p.shape("indices", Mask(p.ints("kernelSize"), w).shape(self.dims));
}

void run_masked(Run& r) {
    const Tensor& self = r.tensor("self");
    Dims shape;
    Windows w = windows(self.dims, 2, attributes(r), &shape);
    Mask mask(r.ints("kernelSize"), w);
    Greatest g = greatest(w, r.read<double>(self));
    std::vector<int64_t> bits(size_t(w.planes * mask.taps * mask.row));
    for (int64_t p = 0; p < w.planes; ++p)
        each_tap(w, r.ints("kernelSize"), [&](int64_t o, int64_t tap, int64_t at) {
            if (g.places[size_t(p * w.out_plane() + o)] == at) bits[mask.byte(p, tap, o)] |= int64_t{1} << (o % 8);
        });
    r.write(r.tensor("out"), g.values);
    r.write(r.tensor("indices"), bits);
}

void plan_masked_backward(Plan& p) {
    Dims want;
    const Tensor& self = p.tensor("self");
    Windows w = windows(self.dims, 2, attributes(p), &want);
    p.shape("gradOutput", want);
    p.shape("indices", Mask(p.ints("kernelSize"), w).shape(self.dims));
    p.same_shape("self", "gradInput");
}

void run_masked_backward(Run& r) {
    Dims shape;
    Windows w = windows(r.tensor("self").dims, 2, attributes(r), &shape);
    Mask mask(r.ints("kernelSize"), w);
    auto bits = r.read<int64_t>(r.tensor("indices"));
    auto g = r.read<double>(r.tensor("gradOutput"));
    std::vector<double> out(size_t(w.planes * w.in_plane()));
    for (int64_t p = 0; p < w.planes; ++p)
        each_tap(w, r.ints("kernelSize"), [&](int64_t o, int64_t tap, int64_t at) {
            if (bits[mask.byte(p, tap, o)] >> (o % 8) & 1)
                out[size_t(p * w.in_plane() + at)] += g[size_t(p * w.out_plane() + o)];
        });
    r.write(r.tensor("gradInput"), out);
}

// -- MaxPool ---------------------------------------------------------------------------------------------------------
PoolAttributes plain_attributes(const Call& c) {
    std::vector<int64_t> pads = c.ints("pads");
    if (pads.size() == 4) pads = {pads[0], pads[1]};
    return {c.ints("kernelShape"), c.ints("strides"), pads, c.ints("dilations"), c.integer("ceilMode") != 0};
}

void plan_plain(Plan& p) {
    p.require(p.integer("autoPad") == 0, "autoPad is %lld, only 0 is supported",
              static_cast<long long>(p.integer("autoPad")));
    const auto& pads = p.ints("pads");
    p.require(pads.size() <= 2 || pads.size() == 4, "pads has %zu elements, expected 0, 1, 2 or 4", pads.size());
    p.require(pads.size() < 4 || (pads[0] == pads[1] && pads[1] == pads[2] && pads[2] == pads[3]),
              "pads that differ between the sides are not computed by the emulator");
    Dims want;
    windows(p.tensor("self").dims, 2, plain_attributes(p), &want);
    p.shape("out", want);
    p.same_dtype("self", "out");
}

void run_plain(Run& r) {
    Dims shape;
    Windows w = windows(r.tensor("self").dims, 2, plain_attributes(r), &shape);
    r.write(r.tensor("out"), greatest(w, r.read<double>(r.tensor("self"))).values);
}

// -- MaxPool3D: as the operator of graphs that has its name --------------------------------------------------------------
// The facts have the parameters alone. Sizes and steps have one element, three, or one for each dimension of the layout,
// which is NDHWC where nothing is said; "SAME" keeps ceil(n / stride), "VALID" uses whole windows, "CALCULATED" takes pads.
struct Axis {
    int64_t in, out, kernel, stride, dilation, before;
};

bool channels_first(const Call& c) { return c.has("dataFormatOptional") && c.string("dataFormatOptional") == "NCDHW"; }

int64_t of_axis(const Plan& p, const char* name, int axis, int64_t otherwise) {
    const auto& given = p.ints(name);
    if (given.empty()) return otherwise;
    p.require(given.size() == 1 || given.size() == 3 || given.size() == 5, "%s has %zu elements, expected 1, 3 or 5", name, given.size());
    int64_t value = given[given.size() == 1 ? 0 : size_t(axis) + (given.size() == 3 ? 0 : channels_first(p) ? 2 : 1)];
    p.require(value > 0, "%s holds %lld", name, static_cast<long long>(value));
    return value;
}

Axis axis_of(const Plan& p, int axis) {
    const std::string& padding = p.string("padding");
    Axis a{p.tensor("x").dims[axis + (channels_first(p) ? 2 : 1)], 0, of_axis(p, "ksize", axis, 1), of_axis(p, "strides", axis, 1), of_axis(p, "dilationOptional", axis, 1), 0};
    int64_t reach = (a.kernel - 1) * a.dilation + 1, all = 0;
    if (padding == "SAME") {
        a.out = (a.in + a.stride - 1) / a.stride;
        all = std::max<int64_t>((a.out - 1) * a.stride + reach - a.in, 0);
        a.before = all / 2;
        return a;
    }
    const auto& pads = p.ints("padsOptional");
    if (padding == "CALCULATED" && !pads.empty()) {
        p.require(pads.size() == 6, "padsOptional has %zu elements, expected 6", pads.size());
        a.before = pads[size_t(axis) * 2], all = a.before + pads[size_t(axis) * 2 + 1];
        p.require(a.before >= 0 && all >= a.before, "padsOptional holds negative numbers");
    }
    int64_t room = a.in + all - reach;
    a.out = room < 0 ? 0 : (room + (p.integer("ceilMode") != 0 ? a.stride - 1 : 0)) / a.stride + 1;
    if (a.out > 1 && (a.out - 1) * a.stride >= a.in + a.before) --a.out;  // no window lies in the pads behind
    return a;
}

std::array<Axis, 3> axes_of(const Plan& p) { return {axis_of(p, 0), axis_of(p, 1), axis_of(p, 2)}; }

void plan_graph_pool(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    const std::string layout = p.has("dataFormatOptional") && !p.string("dataFormatOptional").empty() ? p.string("dataFormatOptional") : "NDHWC";
    const std::string& padding = p.string("padding");
    p.require(layout == "NDHWC" || layout == "NCDHW", "dataFormatOptional is \"%s\", expected NDHWC or NCDHW", layout.c_str());
    p.require(padding == "SAME" || padding == "VALID" || padding == "CALCULATED", "padding is \"%s\", expected SAME, VALID or CALCULATED", padding.c_str());
    p.require(d.n == 5, "x has %d dimensions, expected 5", d.n);
    auto axes = axes_of(p);
    Dims want = d;
    for (int i = 0; i < 3; ++i) want[i + (channels_first(p) ? 2 : 1)] = axes[size_t(i)].out;
    p.shape("out", want);
    p.same_dtype("x", "out");
}

void run_graph_pool(Run& r) {
    Plan again;  // the sizes are worked out as in phase 1
    static_cast<Call&>(again) = r;
    auto axes = axes_of(again);
    const Dims& d = r.tensor("x").dims;
    bool first = channels_first(r);
    int64_t channels = d[first ? 1 : 4];
    auto x = r.read<double>(r.tensor("x"));
    std::vector<double> y(size_t(r.tensor("out").numel()), -INFINITY);
    auto place = [&](int64_t n, int64_t c, const int64_t* at, bool out) {
        int64_t index = first ? n * channels + c : n;
        for (int i = 0; i < 3; ++i) index = index * (out ? axes[size_t(i)].out : axes[size_t(i)].in) + at[i];
        return size_t(first ? index : index * channels + c);
    };
    int64_t windows = axes[0].out * axes[1].out * axes[2].out, taps = axes[0].kernel * axes[1].kernel * axes[2].kernel;
    for (int64_t i = 0; i < windows * taps; ++i) {
        int64_t window = i / taps, tap = i % taps, to[3], from[3];
        bool inside = true;
        for (int k = 2; k >= 0; --k) {
            const Axis& a = axes[size_t(k)];
            to[k] = window % a.out, window /= a.out;
            from[k] = to[k] * a.stride - a.before + tap % a.kernel * a.dilation, tap /= a.kernel;
            inside = inside && from[k] >= 0 && from[k] < a.in;
        }
        for (int64_t n = 0; inside && n < d[0]; ++n)
            for (int64_t c = 0; c < channels; ++c) {
                double v = x[place(n, c, from, false)];
                double& best = y[place(n, c, to, true)];
                if (v > best || v != v) best = v;
            }
    }
    r.write(r.tensor("out"), y);
}

// -- MaxUnpool -------------------------------------------------------------------------------------------------------
template <int spatial>
Dims unpooled(const Plan& p) {
    const auto& sizes = p.ints("outputSize");
    p.require(sizes.size() == size_t(spatial), "outputSize has %zu elements, expected %d", sizes.size(), spatial);
    p.same_shape("self", "indices");
    Dims want = p.tensor("self").dims;
    p.require(want.n > spatial, "self has %d dimensions, expected more than %d", want.n, spatial);
    for (int i = 0; i < spatial; ++i) want[want.n - spatial + i] = sizes[size_t(i)];
    return want;
}

template <int spatial>
void plan_unpool(Plan& p, const char* out) {
    p.shape(out, unpooled<spatial>(p));
    p.same_dtype("self", out);
}

template <int spatial>
void plan_unpool_backward(Plan& p) {
    p.shape("gradOutput", unpooled<spatial>(p));
    p.same_shape("self", "out");
    p.same_dtype("self", "gradOutput");
}

int64_t plane_size(const Dims& d, int spatial) {
    int64_t size = 1;
    for (int i = d.n - spatial; i < d.n; ++i) size *= d[i];
    return size;
}

// f(place in the pooled tensor, place in the unpooled one)
template <class F>
void each_index(const Run& r, const Dims& small, const Dims& large, int spatial, F f) {
    int64_t from = plane_size(small, spatial), to = plane_size(large, spatial);
    auto index = r.read<int64_t>(r.tensor("indices"));
    for (size_t i = 0; i < index.size(); ++i) {
        if (index[i] < 0 || index[i] >= to)
            fault("index %lld is out of range for a plane of %lld elements", static_cast<long long>(index[i]),
                  static_cast<long long>(to));
        f(i, size_t(int64_t(i) / from * to + index[i]));
    }
}

template <int spatial>
void run_unpool(Run& r, const char* name) {
    const Tensor &self = r.tensor("self"), &out = r.tensor(name);
    by_real_or_integer(category(self.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(self);
        std::vector<T> y(size_t(out.numel()));
        each_index(r, self.dims, out.dims, spatial, [&](size_t from, size_t to) { y[to] = x[from]; });
        r.write(out, y);
    });
}

template <int spatial>
void run_unpool_backward(Run& r) {
    const Tensor &self = r.tensor("self"), &g = r.tensor("gradOutput");
    by_real_or_integer(category(g.dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(g);
        std::vector<T> y(size_t(self.numel()));
        each_index(r, self.dims, g.dims, spatial, [&](size_t to, size_t from) { y[to] = x[from]; });
        r.write(r.tensor("out"), y);
    });
}

}  // namespace

ACLNN(aclnnMaxPool2dWithIndices, plan_indexed<2>, run_indexed<2>)
ACLNN(aclnnMaxPool3dWithArgmax, plan_indexed<3>, run_indexed<3>)
ACLNN(aclnnMaxPool2dWithIndicesBackward, plan_indexed_backward<2>, run_indexed_backward<2>)
ACLNN(aclnnMaxPool3dWithArgmaxBackward, plan_indexed_backward<3>, run_indexed_backward<3>)
ACLNN(aclnnAdaptiveMaxPool2d, plan_adaptive<2>, run_adaptive<2>)
ACLNN(aclnnAdaptiveMaxPool3d, plan_adaptive<3>, run_adaptive<3>)
ACLNN(aclnnAdaptiveMaxPool2dBackward, plan_adaptive_backward<2>, run_adaptive_backward<2>)
ACLNN(aclnnAdaptiveMaxPool3dBackward, plan_adaptive_backward<3>, run_adaptive_backward<3>)
ACLNN(aclnnMaxPool2dWithMask, plan_masked, run_masked)
ACLNN(aclnnMaxPool2dWithMaskBackward, plan_masked_backward, run_masked_backward)
ACLNN(aclnnMaxPool, plan_plain, run_plain)
ACLNN(aclnnMaxPool3D, plan_graph_pool, run_graph_pool)
ACLNN(aclnnMaxUnpool2d, PLAN { plan_unpool<2>(p, "out"); }, RUN { run_unpool<2>(r, "out"); })
ACLNN(aclnnMaxUnpool3d, PLAN { plan_unpool<3>(p, "outRef"); }, RUN { run_unpool<3>(r, "outRef"); })
ACLNN(aclnnMaxUnpool2dBackward, plan_unpool_backward<2>, run_unpool_backward<2>)
ACLNN(aclnnMaxUnpool3dBackward, plan_unpool_backward<3>, run_unpool_backward<3>)
