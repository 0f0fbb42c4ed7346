// Convolutions of one to three spatial dimensions, ordinary and transposed, and what flows back through them.
#include "cube.h"
#include "quantize.h"
#include "view.h"

using namespace emu;

namespace {

// The ordinary convolution from `large` to `small`; a transposed one goes the other way. Missing dimensions are 1.
struct Geometry {
    int64_t batch = 1, large_channels = 1, small_channels = 1, groups = 1;
    int64_t large[3] = {1, 1, 1}, small[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
    int64_t stride[3] = {1, 1, 1}, before[3] = {0, 0, 0}, after[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};

    int64_t large_size() const { return batch * large_channels * large[0] * large[1] * large[2]; }
    int64_t small_size() const { return batch * small_channels * small[0] * small[1] * small[2]; }
    int64_t weight_size() const { return small_channels * (large_channels / groups) * kernel[0] * kernel[1] * kernel[2]; }
};

// f(place in small, place in large, place in weight, how many along the last dimension, step in large)
template <class F>
void each_tap(const Geometry& g, F f) {
    int64_t per_large = g.large_channels / g.groups, per_small = g.small_channels / g.groups;
    int64_t taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
    for (int64_t n = 0; n < g.batch; ++n)
        for (int64_t s = 0; s < g.small_channels; ++s)
            for (int64_t c = 0; c < per_large; ++c)
                for (int64_t tap = 0; tap < taps; ++tap) {
                    int64_t k[3] = {tap / (g.kernel[1] * g.kernel[2]), tap / g.kernel[2] % g.kernel[1],
                                    tap % g.kernel[2]};
                    int64_t shift[3];
                    for (int d = 0; d < 3; ++d) shift[d] = k[d] * g.dilation[d] - g.before[d];
                    // x * stride + shift must stay in [0, large)
                    int64_t first = shift[2] < 0 ? (-shift[2] + g.stride[2] - 1) / g.stride[2] : 0;
                    int64_t room = g.large[2] - 1 - shift[2];
                    int64_t count = room < 0 ? 0 : std::min(g.small[2], room / g.stride[2] + 1) - first;
                    if (count <= 0) continue;
                    int64_t plane = n * g.large_channels + s / per_small * per_large + c;
                    int64_t weight = (s * per_large + c) * taps + tap;
                    for (int64_t z = 0; z < g.small[0]; ++z) {
                        int64_t lz = z * g.stride[0] + shift[0];
                        if (lz < 0 || lz >= g.large[0]) continue;
                        for (int64_t y = 0; y < g.small[1]; ++y) {
                            int64_t ly = y * g.stride[1] + shift[1];
                            if (ly < 0 || ly >= g.large[1]) continue;
                            f((((n * g.small_channels + s) * g.small[0] + z) * g.small[1] + y) * g.small[2] + first,
                              ((plane * g.large[0] + lz) * g.large[1] + ly) * g.large[2] + first * g.stride[2] + shift[2],
                              weight, count, g.stride[2]);
                        }
                    }
                }
}

using Numbers = std::vector<double>;

Numbers to_small(const Geometry& g, const Numbers& large, const Numbers& weight) {
    Numbers small(size_t(g.small_size()));
    each_tap(g, [&](int64_t s, int64_t l, int64_t w, int64_t count, int64_t step) {
        double factor = weight[size_t(w)];
        for (int64_t i = 0; i < count; ++i) small[size_t(s + i)] += factor * large[size_t(l + i * step)];
    });
    return small;
}

Numbers to_large(const Geometry& g, const Numbers& small, const Numbers& weight) {
    Numbers large(size_t(g.large_size()));
    each_tap(g, [&](int64_t s, int64_t l, int64_t w, int64_t count, int64_t step) {
        double factor = weight[size_t(w)];
        for (int64_t i = 0; i < count; ++i) large[size_t(l + i * step)] += factor * small[size_t(s + i)];
    });
    return large;
}

Numbers to_weight(const Geometry& g, const Numbers& large, const Numbers& small) {
    Numbers weight(size_t(g.weight_size()));
    each_tap(g, [&](int64_t s, int64_t l, int64_t w, int64_t count, int64_t step) {
        double sum = 0;
        for (int64_t i = 0; i < count; ++i) sum += small[size_t(s + i)] * large[size_t(l + i * step)];
        weight[size_t(w)] += sum;
    });
    return weight;
}

// Sums over everything but the channels, dimension 1.
Numbers per_channel(const Numbers& x, const Dims& dims) {
    Lines lines(dims, 1);
    Numbers out(size_t(lines.length));
    for (int64_t o = 0; o < lines.outer; ++o)
        for (int64_t c = 0; c < lines.length; ++c)
            for (int64_t i = 0; i < lines.inner; ++i) out[size_t(c)] += x[size_t(lines.at(o, c, i))];
    return out;
}

// -- shapes ----------------------------------------------------------------------------------------------------------
struct Attributes {
    std::vector<int64_t> stride, padding, dilation, output_padding;
    bool transposed = false;
    int64_t groups = 1;
};

Attributes attributes(const Call& c) {
    return {c.ints("stride"), c.ints("padding"), c.ints("dilation"), c.ints("outputPadding"), c.flag("transposed"),
            c.integer("groups")};
}

// The geometry, and the shape of the output; what does not fit is refused.
Geometry geometry(const Dims& input, const Dims& weight, const Attributes& a, Dims* output) {
    auto require = [](bool holds, const char* what) {
        if (!holds) refuse(ACLNN_ERR_PARAM_INVALID, "%s", what);
    };
    int spatial = input.n - 2;
    require(spatial >= 1 && spatial <= 3 && weight.n == input.n,
            "input and weight must have 3, 4 or 5 dimensions, both as many");
    auto fits = [spatial](size_t n) { return n == size_t(spatial) || n == 1; };
    require(fits(a.stride.size()) && fits(a.dilation.size()),
            "stride and dilation need one element per spatial dimension");
    bool sided = a.padding.size() == 2 * size_t(spatial) && spatial < 3;
    require(fits(a.padding.size()) || sided,
            "padding needs one element per spatial dimension, or two below 3 dimensions");
    require(!a.transposed || fits(a.output_padding.size()), "outputPadding needs one element per spatial dimension");
    require(a.groups > 0, "groups must be positive");

    Geometry g;
    g.batch = input[0];
    g.groups = a.groups;
    int64_t channels_in = input[1], channels_out = a.transposed ? weight[1] * a.groups : weight[0];
    require(channels_in % a.groups == 0 && channels_out % a.groups == 0, "groups must divide the channels");
    require(a.transposed ? weight[0] == channels_in : weight[1] * a.groups == channels_in,
            "the channels of input and weight do not fit");
    g.large_channels = a.transposed ? channels_out : channels_in;
    g.small_channels = a.transposed ? channels_in : channels_out;
    *output = {input[0], channels_out};
    for (int i = 0; i < spatial; ++i) {
        int d = 3 - spatial + i;
        auto pick = [i](const std::vector<int64_t>& v) { return v[v.size() == 1 ? 0 : size_t(i)]; };
        g.kernel[d] = weight[2 + i];
        g.stride[d] = pick(a.stride);
        g.dilation[d] = pick(a.dilation);
        g.before[d] = sided ? a.padding[size_t(2 * i)] : pick(a.padding);
        g.after[d] = sided ? a.padding[size_t(2 * i + 1)] : g.before[d];
        require(g.stride[d] > 0 && g.dilation[d] > 0 && g.kernel[d] > 0,
                "stride, dilation and kernel must be positive");
        require(g.before[d] >= 0 && g.after[d] >= 0, "padding must not be negative");
        int64_t reach = g.dilation[d] * (g.kernel[d] - 1) + 1, pad = g.before[d] + g.after[d], in = input[2 + i], out;
        if (a.transposed) {
            int64_t extra = pick(a.output_padding);
            require(extra >= 0 && (extra < g.stride[d] || extra < g.dilation[d]),
                    "outputPadding must be smaller than stride or dilation");
            out = (in - 1) * g.stride[d] - pad + reach + extra;
            g.large[d] = out, g.small[d] = in;
        } else {
            require(in + pad >= reach, "the kernel is larger than the padded input");
            out = (in + pad - reach) / g.stride[d] + 1;
            g.large[d] = in, g.small[d] = out;
        }
        require(out >= 0, "the output would have a negative size");
        output->push(out);
    }
    return g;
}

uint64_t workspace_of(const Geometry& g) { return uint64_t(g.weight_size()) * 4 + uint64_t(g.small_size()) * 2; }

// -- Convolution -----------------------------------------------------------------------------------------------------
void add_bias(const Run& r, Numbers& y, const Dims& dims) {
    if (!r.has("bias")) return;
    auto bias = r.read<double>(r.tensor("bias"));
    Lines lines(dims, 1);
    for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i / size_t(lines.inner) % bias.size()];
}

Numbers rounded(const Run& r, const Tensor& t, int dtype) {
    auto values = r.read<double>(t);
    cube_round(values, dtype, r.integer("cubeMathType"));
    return values;
}

void convolve(const Run& r, const Tensor& input, const Tensor& weight, const Attributes& a, const Tensor& output) {
    Dims shape;
    Geometry g = geometry(input.dims, weight.dims, a, &shape);
    int dtype = promote(input.dtype, weight.dtype);
    auto x = rounded(r, input, dtype), w = rounded(r, weight, dtype);
    auto y = a.transposed ? to_large(g, x, w) : to_small(g, x, w);
    add_bias(r, y, shape);
    r.write(output, y);
}

void plan_convolve(Plan& p, const Tensor& input, const Tensor& weight, const Attributes& a, const Tensor& output) {
    int dtype = plan_cube(p, input, weight, p.integer("cubeMathType"));
    Dims shape;
    Geometry g = geometry(input.dims, weight.dims, a, &shape);
    p.require(output.dims == shape, "the output has shape %s, expected %s", text(output.dims).c_str(),
              text(shape).c_str());
    p.require(output.dtype == dtype, "the output has dtype %s, expected %s", dtype_name(output.dtype),
              dtype_name(dtype));
    if (p.has("bias"))
        p.require(p.tensor("bias").numel() == shape[1], "bias has shape %s, expected %lld elements",
                  text(p.tensor("bias").dims).c_str(), static_cast<long long>(shape[1]));
    p.workspace = workspace_of(g);
}

// -- ConvolutionBackward ---------------------------------------------------------------------------------------------
void plan_backward(Plan& p) {
    const Tensor &dy = p.tensor("gradOutput"), &input = p.tensor("input"), &weight = p.tensor("weight");
    p.require(p.ints("outputMask").size() == 3, "outputMask has %zu elements, expected 3", p.ints("outputMask").size());
    int dtype = plan_cube(p, input, weight, p.integer("cubeMathType"));
    p.require(promote(dtype, dy.dtype) != ACL_DT_UNDEFINED, "the dtypes of the operands do not promote");
    Dims shape;
    Geometry g = geometry(input.dims, weight.dims, attributes(p), &shape);
    p.shape("gradOutput", shape);
    const auto& mask = p.ints("outputMask");
    const char* names[] = {"gradInput", "gradWeight", "gradBias"};
    for (size_t i = 0; i < 3; ++i)
        if (mask[i] && !p.has(names[i]))
            refuse(ACLNN_ERR_PARAM_NULLPTR, "%s must not be null: outputMask asks for it", names[i]);
    if (mask[0]) {
        p.same_shape("input", "gradInput");
        p.same_dtype("input", "gradInput");
    }
    if (mask[1]) p.same_shape("weight", "gradWeight");
    if (mask[2]) {
        const auto& sizes = p.ints("biasSizes");
        p.require(sizes.size() == 1 && sizes[0] == shape[1], "biasSizes must be [%lld]",
                  static_cast<long long>(shape[1]));
        p.shape("gradBias", {shape[1]});
        p.same_dtype("gradOutput", "gradBias");
    }
    p.workspace = workspace_of(g);
}

void run_backward(Run& r) {
    const Tensor &input = r.tensor("input"), &weight = r.tensor("weight"), &incoming = r.tensor("gradOutput");
    Attributes a = attributes(r);
    Dims shape;
    Geometry g = geometry(input.dims, weight.dims, a, &shape);
    int dtype = promote(promote(input.dtype, weight.dtype), incoming.dtype);
    auto dy = rounded(r, incoming, dtype);
    const auto& mask = r.ints("outputMask");
    if (mask[0]) {
        auto w = rounded(r, weight, dtype);
        r.write(r.tensor("gradInput"), a.transposed ? to_small(g, dy, w) : to_large(g, dy, w));
    }
    if (mask[1]) {
        auto x = rounded(r, input, dtype);
        r.write(r.tensor("gradWeight"), a.transposed ? to_weight(g, dy, x) : to_weight(g, x, dy));
    }
    if (mask[2]) r.write(r.tensor("gradBias"), per_channel(r.read<double>(incoming), shape));
}

// -- ConvDepthwise2d -------------------------------------------------------------------------------------------------
Attributes depthwise(const Call& c) {
    return {c.ints("stride"), c.ints("padding"), c.ints("dilation"), {}, false, c.tensor("self").dims[1]};
}

void plan_depthwise(Plan& p) {
    const Dims& w = p.tensor("weight").dims;
    const auto& kernel = p.ints("kernelSize");
    p.require(kernel.size() == 2 && kernel[0] == w[2] && kernel[1] == w[3], "kernelSize is not that of weight, %s",
              text(w).c_str());
    p.require(w[1] == 1, "weight has %lld channels per group, expected 1", static_cast<long long>(w[1]));
    plan_convolve(p, p.tensor("self"), p.tensor("weight"), depthwise(p), p.tensor("out"));
}

// -- QuantConvolution: convolve(input, weight) * scale + bias; an INT32 bias is added before the scale ------------------------
// The facts have no formula; this is the one of the function's public description. Elements outside the input are offsetx.
Attributes quantized(const Call& c) {
    return {c.ints("stride"), c.ints("padding"), c.ints("dilation"), c.ints("outputPadding"), false, c.integer("groups")};
}

void plan_quantized(Plan& p) {
    const Tensor &input = p.tensor("input"), &weight = p.tensor("weight"), &output = p.tensor("output");
    p.same_dtype("input", "weight");
    p.require(!p.flag("transposed"), "transposed must be false");
    p.require(!p.has("offset"), "offset is reserved, it must be null");
    for (int64_t extra : p.ints("outputPadding")) p.require(extra == 0, "outputPadding must be 0");
    p.require(p.integer("offsetx") >= -128 && p.integer("offsetx") <= 127, "offsetx is %lld, expected -128 to 127", static_cast<long long>(p.integer("offsetx")));
    p.require(input.dtype == ACL_INT8 || p.integer("offsetx") == 0, "offsetx belongs to INT8");
    const std::string mode = p.has("roundMode") ? p.string("roundMode") : "";
    p.require(mode.empty() || mode == "rint" || mode == "round", "roundMode is \"%s\", expected rint or round", mode.c_str());
    Dims shape;
    Geometry g = geometry(input.dims, weight.dims, quantized(p), &shape);
    p.require(output.dims == shape, "output has shape %s, expected %s", text(output.dims).c_str(), text(shape).c_str());
    int64_t scales = p.tensor("scale").numel();
    p.require(scales == 1 || scales == shape[1], "scale has %lld elements, expected 1 or %lld", static_cast<long long>(scales), static_cast<long long>(shape[1]));
    if (p.has("bias")) p.shape("bias", {shape[1]});
    p.workspace = workspace_of(g);
}

void run_quantized(Run& r) {
    Dims shape;
    Geometry g = geometry(r.tensor("input").dims, r.tensor("weight").dims, quantized(r), &shape);
    auto x = r.read<double>(r.tensor("input")), w = r.read<double>(r.tensor("weight")), scale = read_scale(r, r.tensor("scale"));
    double outside = double(r.integer("offsetx"));
    for (double& v : x) v -= outside;
    auto y = to_small(g, x, w);
    Numbers all(size_t(shape[1]), 0), bias;
    for (size_t i = 0; i < w.size(); ++i) all[i / (w.size() / all.size())] += w[i] * outside;
    if (r.has("bias")) bias = r.read<double>(r.tensor("bias"));
    bool before = r.has("bias") && r.tensor("bias").dtype == ACL_INT32;
    Lines lines(shape, 1);
    for (size_t i = 0; i < y.size(); ++i) {
        size_t c = i / size_t(lines.inner) % size_t(shape[1]);
        double sum = y[i] + all[c] + (before ? bias[c] : 0);
        y[i] = sum * scale[scale.size() == 1 ? 0 : c] + (before || bias.empty() ? 0 : bias[c]);
    }
    r.write(r.tensor("output"), y);
}

// -- ConvTbc: (time, batch, channels), weight (kernel, channels in, channels out) ------------------------------------
Tensor tbc(const Tensor& t) { return permuted(t, {1, 2, 0}); }
Tensor tbc_weight(const Tensor& t) { return permuted(t, {2, 1, 0}); }

Attributes tbc_attributes(const Call& c) { return {{1}, {c.integer("pad")}, {1}, {}, false, 1}; }

void plan_tbc_backward(Plan& p) {
    Tensor input = tbc(p.tensor("input")), weight = tbc_weight(p.tensor("weight"));
    plan_cube(p, input, weight, p.integer("cubeMathType"));
    Dims shape;
    geometry(input.dims, weight.dims, tbc_attributes(p), &shape);
    p.shape("self", permuted(shape, std::initializer_list<int>{2, 0, 1}));
    p.same_shape("input", "gradInput");
    p.same_shape("weight", "gradWeight");
    p.shape("gradBias", {shape[1]});
}

void run_tbc_backward(Run& r) {
    Tensor input = tbc(r.tensor("input")), weight = tbc_weight(r.tensor("weight")), incoming = tbc(r.tensor("self"));
    Dims shape;
    Geometry g = geometry(input.dims, weight.dims, tbc_attributes(r), &shape);
    int dtype = promote(input.dtype, weight.dtype);
    auto dy = rounded(r, incoming, dtype);
    r.write(tbc(r.tensor("gradInput")), to_large(g, dy, rounded(r, weight, dtype)));
    r.write(tbc_weight(r.tensor("gradWeight")), to_weight(g, rounded(r, input, dtype), dy));
    r.write(r.tensor("gradBias"), per_channel(dy, shape));
}

}  // namespace

ACLNN(aclnnConvolution,
      PLAN { plan_convolve(p, p.tensor("input"), p.tensor("weight"), attributes(p), p.tensor("output")); },
      RUN { convolve(r, r.tensor("input"), r.tensor("weight"), attributes(r), r.tensor("output")); }, NARROW)
ACLNN(aclnnConvolutionBackward, plan_backward, run_backward)
ACLNN(aclnnConvDepthwise2d, plan_depthwise,
      RUN { convolve(r, r.tensor("self"), r.tensor("weight"), depthwise(r), r.tensor("out")); }, NARROW)
ACLNN(aclnnConvTbc, PLAN {
    plan_convolve(p, tbc(p.tensor("self")), tbc_weight(p.tensor("weight")), tbc_attributes(p), tbc(p.tensor("output")));
}, RUN { convolve(r, tbc(r.tensor("self")), tbc_weight(r.tensor("weight")), tbc_attributes(r),
                  tbc(r.tensor("output"))); }, NARROW)
ACLNN(aclnnConvTbcBackward, plan_tbc_backward, run_tbc_backward, NARROW)
ACLNN(aclnnQuantConvolution, plan_quantized, run_quantized, NARROW)
