// To small integers and back: y = round(x * scale + offset), kept within the type. Where scales are found from the data
// ("dynamic"), each row is stretched to the whole range.
//
// An output of INT32 where documents have INT4 too holds eight integers of four bits in each. Results of 8-bit floats are
// not made whole.
#include "activation.h"
#include "norm.h"
#include "optional.h"
#include "quantize.h"

using namespace emu;

namespace {

// A result in small numbers of the shape of x, perhaps packed.
void plan_small(const Plan& p, const char* x, const char* name) {
    Tensor y = half_bytes(p.tensor(name));
    p.require(y.dtype == ACL_INT8 || is_narrow(y.dtype), "%s has dtype %s", name, dtype_name(y.dtype));
    p.require(y.dims == p.tensor(x).dims, "%s holds %s numbers, %s has shape %s", name, text(y.dims).c_str(), x, text(p.tensor(x).dims).c_str());
}

void write_small(const Run& r, const char* name, const std::vector<double>& x, const std::string& mode = "rint") {
    Tensor y = half_bytes(r.tensor(name));
    r.write(y, within(x, y.dtype, mode));
}

// A vector along an axis, one number, or something that broadcasts.
Dims along(const Dims& small, const Dims& dims, int64_t axis) {
    if (small.n != 1 || small[0] == 1) return small;
    Dims out;
    for (int i = int(wrap(axis, dims.n)); i < dims.n; ++i) out.push(i == wrap(axis, dims.n) ? small[0] : 1);
    return out;
}

void plan_along(const Plan& p, const char* x, const char* name, int64_t axis) {
    if (!p.has(name)) return;
    const Dims& dims = p.tensor(x).dims;
    Dims both, small = along(p.tensor(name).dims, dims, axis);
    p.require(broadcast(small, dims, &both) && both == dims, "%s has shape %s, which does not fit %s", name,
              text(p.tensor(name).dims).c_str(), text(dims).c_str());
}

std::vector<double> read_along(const Run& r, const char* x, const char* name, int64_t axis, double missing) {
    const Dims& dims = r.tensor(x).dims;
    if (!r.has(name)) return std::vector<double>(size_t(dims.product()), missing);
    Tensor t = r.tensor(name);
    Dims wide = along(t.dims, dims, axis);
    if (wide.n != t.dims.n) {
        Dims strides;
        for (int i = 0; i < wide.n; ++i) strides.push(i == 0 ? t.strides[0] : 0);
        t.dims = wide;
        t.strides = strides;
    }
    return r.read<double>(t, dims);
}

// -- with given scales -----------------------------------------------------------------------------------------------
void plan_ascend(Plan& p, int64_t axis) {
    static const char* const modes[] = {"round", "floor", "ceil", "trunc", "rint"};
    const std::string& mode = p.string("roundMode");
    p.require(std::any_of(std::begin(modes), std::end(modes), [&](const char* m) { return mode == m; }),
              "roundMode is \"%s\", expected round, floor, ceil or trunc", mode.c_str());
    p.require(p.integer("dstType") == p.tensor("y").dtype, "dstType is %lld, y has dtype %s",
              static_cast<long long>(p.integer("dstType")), dtype_name(p.tensor("y").dtype));
    plan_small(p, "x", "y");
    for (const char* name : {"scale", "offset"}) plan_along(p, "x", name, axis);
    if (p.has("offset")) p.same_shape("scale", "offset");
}

void run_ascend(Run& r, int64_t axis) {
    auto x = r.read<double>(r.tensor("x")), scale = read_along(r, "x", "scale", axis, 1);
    auto offset = read_along(r, "x", "offset", axis, 0);
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * scale[i] * (r.flag("sqrtMode") ? scale[i] : 1) + offset[i];
    write_small(r, "y", x, r.string("roundMode"));
}

void plan_quantize(Plan& p) {
    int out = p.tensor("out").dtype;
    p.require(p.dtype("dtype") == out, "dtype is %s, out has %s", dtype_name(p.dtype("dtype")), dtype_name(out));
    p.same_shape("x", "out");
    p.axis(p.integer("axis"), p.tensor("x").rank(), "axis");
    for (const char* name : {"scales", "zeroPoints"}) plan_along(p, "x", name, p.integer("axis"));
}

// Floats of 8 bits are rounded when they are written.
double rounded(double x, int dtype) { return is_narrow_float(dtype) ? x : std::nearbyint(x); }

void run_quantize(Run& r) {
    int64_t axis = r.integer("axis");
    const Tensor& out = r.tensor("out");
    auto x = r.read<double>(r.tensor("x")), scale = read_along(r, "x", "scales", axis, 1);
    auto zero = read_along(r, "x", "zeroPoints", axis, 0);
    for (size_t i = 0; i < x.size(); ++i) x[i] = rounded(x[i] / scale[i], out.dtype) + zero[i];
    r.write(out, within(x, out.dtype));
}

// What is lost by quantization, without it: the values a quantized tensor stands for.
template <bool channels>
void plan_fake(Plan& p) {
    p.require(p.integer("quantMin") <= p.integer("quantMax"), "quantMin is above quantMax");
    for (const char* name : {"out", "mask"}) p.same_shape("self", name);
    const Dims& dims = p.tensor("self").dims;
    int64_t count = channels ? dims[int(p.axis("axis", dims.n))] : 1;
    for (const char* name : {"scale", "zeroPoint"}) p.shape(name, {count});
}

template <bool channels>
void run_fake(Run& r) {
    auto x = r.read<double>(r.tensor("self")), scale = r.read<double>(r.tensor("scale"));
    auto zero = r.read<double>(r.tensor("zeroPoint"));
    const Dims& dims = r.tensor("self").dims;
    bool enabled = true;
    Lines lines(dims, 0);
    if constexpr (channels) lines = Lines(dims, wrap(r.integer("axis"), dims.n));
    else enabled = r.real("fakeQuantEnabled") >= 1;
    double low = double(r.integer("quantMin")), high = double(r.integer("quantMax"));
    std::vector<int64_t> mask(x.size(), 1);
    for (size_t i = 0; enabled && i < x.size(); ++i) {
        size_t c = channels ? i / size_t(lines.inner) % size_t(lines.length) : 0;
        double q = std::nearbyint(x[i] / scale[c]) + zero[c];
        mask[i] = q >= low && q <= high;
        x[i] = (std::fmin(std::fmax(q, low), high) - zero[c]) * scale[c];
    }
    r.write(r.tensor("out"), x);
    r.write(r.tensor("mask"), mask);
}

// -- groups of rows --------------------------------------------------------------------------------------------------
void plan_group(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    plan_small(p, "x", "y");
    need_stated(p, "dstType", "y");
    p.shape("scale", {p.tensor("groupIndex").dims[0], d[1]});
    if (p.has("offsetOptional")) p.shape("offsetOptional", {1});
}

void run_group(Run& r) {
    const Dims& d = r.tensor("x").dims;
    auto x = r.read<double>(r.tensor("x")), scale = r.read<double>(r.tensor("scale"));
    double offset = r.has("offsetOptional") ? r.read<double>(r.tensor("offsetOptional"))[0] : 0;
    auto groups = groups_of(r.read<int64_t>(r.tensor("groupIndex")), d[0]);
    for (int64_t i = 0; i < d[0]; ++i) {
        if (groups[size_t(i)] < 0) fault("row %lld is in no group", static_cast<long long>(i));
        for (int64_t k = 0; k < d[1]; ++k)
            x[size_t(i * d[1] + k)] = x[size_t(i * d[1] + k)] * scale[size_t(groups[size_t(i)] * d[1] + k)] + offset;
    }
    write_small(r, "y", x);
}

// -- with scales from the data ---------------------------------------------------------------------------------------
bool one_scale(const Call& c) { return has_parameter(c, "quantMode") && c.string("quantMode") == "pertensor"; }
bool by_channel(const Call& c) { return has_parameter(c, "quantMode") && c.string("quantMode") == "perchannel"; }

Tensor turned(Tensor t) {
    int last = t.rank() - 1;
    std::swap(t.dims[last], t.dims[last - 1]), std::swap(t.strides[last], t.strides[last - 1]);
    return t;
}

// Later versions say whether there are offsets; before, an output for them asks for them.
bool with_offsets(const Call& c) {
    return given(c, "offsetOut") && (!has_parameter(c, "isSymmetrical") || !c.flag("isSymmetrical"));
}

void plan_dynamic(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    Dims scales = one_scale(p) ? Dims({1}) : without_last(d);
    if (by_channel(p)) scales[scales.n - 1] = d.back();
    plan_small(p, "x", "yOut");
    p.shape("scaleOut", scales);
    bool grouped = false;
    if (p.function->count > 4) {
        grouped = p.has("groupIndexOptional");
        if (with_offsets(p)) p.shape("offsetOut", scales);
        p.require(p.integer("dstType") == p.tensor("yOut").dtype, "dstType is %lld, yOut has dtype %s",
                  static_cast<long long>(p.integer("dstType")), dtype_name(p.tensor("yOut").dtype));
    }
    if (!p.has("smoothScalesOptional")) return;
    const Dims& s = p.tensor("smoothScalesOptional").dims;
    p.require(s.back() == d.back() && s.n == (grouped ? 2 : s.n) && (grouped || s.product() == d.back()),
              "smoothScalesOptional has shape %s, which does not fit %s", text(s).c_str(), text(d).c_str());
    if (grouped) p.shape("groupIndexOptional", {s[0]});
}

// Later versions say what has a scale of its own, too.
void plan_dynamic_later(Plan& p) {
    const std::string& mode = p.string("quantMode");
    p.require(mode == "pertoken" || mode == "pertensor" || mode == "perchannel", "quantMode is \"%s\", expected pertoken, pertensor or perchannel", mode.c_str());
    p.require(mode == "pertoken" || !p.has("groupIndexOptional"), "groupIndexOptional belongs to pertoken");
    if (has_parameter(p, "dstTypeMax")) {
        bool floats = is_narrow_float(p.tensor("yOut").dtype);
        p.require(p.real("dstTypeMax") == 0 || (floats && p.real("dstTypeMax") > 0), "dstTypeMax is %g; it belongs to 8-bit floats", p.real("dstTypeMax"));
    }
    p.require(p.flag("isSymmetrical") || p.has("offsetOut"), "isSymmetrical is false and offsetOut is null");
    plan_dynamic(p);
}

void run_dynamic(Run& r) {
    auto x = r.read<double>(r.tensor("x"));
    int64_t length = r.tensor("x").dims.back();
    bool second = r.function->count > 4;
    smooth(r, x, length, "smoothScalesOptional", second ? "groupIndexOptional" : nullptr);
    if (one_scale(r)) length = int64_t(x.size());
    const Tensor &in = r.tensor("x"), out = half_bytes(r.tensor("yOut"));
    if (by_channel(r)) {  // columns are the rows of the turned matrices
        length = in.dims[in.rank() - 2];
        std::vector<double> columns(x.size());
        Lines lines(in.dims, in.rank() - 2);
        for (size_t i = 0; i < x.size(); ++i) columns[i] = x[size_t(lines.at(int64_t(i) / (lines.inner * length), int64_t(i) % length, int64_t(i) / length % lines.inner))];
        x = columns;
    }
    Stretched rows = stretched(std::move(x), length, r.tensor("scaleOut").numel(), out.dtype, block_top(r), with_offsets(r));
    r.write(by_channel(r) ? turned(out) : out, rows.values);
    r.write(r.tensor("scaleOut"), rows.scales);
    if (with_offsets(r)) r.write(r.tensor("offsetOut"), rows.offsets);
}

// -- back ------------------------------------------------------------------------------------------------------------
void plan_anti(Plan& p) {
    p.require(p.integer("dstType") == p.tensor("y").dtype, "dstType is %lld, y has dtype %s",
              static_cast<long long>(p.integer("dstType")), dtype_name(p.tensor("y").dtype));
    p.shape("y", half_bytes(p.tensor("x")).dims);
    for (const char* name : {"scale", "offset"}) plan_along(p, "y", name, -1);
}

void run_anti(Run& r) {
    auto x = r.read<double>(half_bytes(r.tensor("x"))), scale = read_along(r, "y", "scale", -1, 1);
    auto offset = read_along(r, "y", "offset", -1, 0);
    for (size_t i = 0; i < x.size(); ++i) x[i] = (x[i] + offset[i]) * scale[i] * (r.flag("sqrtMode") ? scale[i] : 1);
    r.write(r.tensor("y"), x);
}

// A bias of INT32 is added before the scales, one of floats after.
void plan_dequant_bias(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    p.same_shape("x", "out");
    p.shape("weightScale", {d[1]});
    if (p.has("activateScaleOptional")) p.shape("activateScaleOptional", {d[0]});
    if (p.has("biasOptional")) p.shape("biasOptional", {d[1]});
    p.require(p.integer("outputDtype") == p.tensor("out").dtype, "outputDtype is %lld, out has dtype %s",
              static_cast<long long>(p.integer("outputDtype")), dtype_name(p.tensor("out").dtype));
}

void run_dequant_bias(Run& r) {
    const Dims& d = r.tensor("x").dims;
    auto x = r.read<double>(r.tensor("x")), weight = r.read<double>(r.tensor("weightScale"));
    std::vector<double> rows(size_t(d[0]), 1), bias(size_t(d[1]), 0);
    if (r.has("activateScaleOptional")) rows = r.read<double>(r.tensor("activateScaleOptional"));
    bool whole = r.has("biasOptional") && r.tensor("biasOptional").dtype == ACL_INT32;
    if (r.has("biasOptional")) bias = r.read<double>(r.tensor("biasOptional"));
    for (size_t i = 0; i < x.size(); ++i) {
        size_t column = i % size_t(d[1]);
        double scale = weight[column] * rows[i / size_t(d[1])];
        x[i] = whole ? (x[i] + bias[column]) * scale : x[i] * scale + bias[column];
    }
    r.write(r.tensor("out"), x);
}

// The matrix unit's own form of a scale: a float of 19 bits, an offset of 9 and a mark.
void run_parameter(Run& r, bool rounds) {
    const Dims& dims = r.tensor("out").dims;
    auto scale = r.read<double>(r.tensor("scale"), dims);
    std::vector<double> offset(scale.size());
    if (r.has("offset")) offset = r.read<double>(r.tensor("offset"), dims);
    std::vector<int64_t> out;
    for (size_t i = 0; i < scale.size(); ++i) {
        float value = float(scale[i]);
        uint32_t bits;
        std::memcpy(&bits, &value, 4);
        if (rounds) bits += 0x1000;
        int64_t whole = int64_t(std::fmin(std::fmax(std::nearbyint(offset[i]), -256), 255));
        out.push_back(int64_t(uint64_t(bits & 0xFFFFE000u) | uint64_t(whole & 0x1FF) << 37 | uint64_t(1) << 46));
    }
    r.write(r.tensor("out"), out);
}

void plan_parameter(Plan& p) {
    Dims shape = p.tensor("scale").dims;
    if (p.has("offset")) shape = broadcast_all(p, {&p.tensor("scale").dims, &p.tensor("offset").dims});
    p.shape("out", shape);
    plan_number(p, "roundMode", 1);
}

// -- normalized rows -------------------------------------------------------------------------------------------------
// x / rms(x) * gamma + beta
void normalize_rms(const Run& r, std::vector<double>& x, const char* beta) {
    auto gamma = r.read<double>(r.tensor("gamma"));
    std::vector<double> shift(gamma.size());
    if (beta && r.has(beta)) shift = r.read<double>(r.tensor(beta));
    size_t length = gamma.size();
    for (size_t row = 0; row < x.size(); row += length) {
        double squares = 0;
        for (size_t k = 0; k < length; ++k) squares += x[row + k] * x[row + k];
        double rstd = inverse_root(squares / double(length), r.real("epsilon"));
        for (size_t k = 0; k < length; ++k) x[row + k] = x[row + k] * rstd * gamma[k] + shift[k];
    }
}

void plan_rows(const Plan& p, const char* x, std::initializer_list<const char*> columns) {
    const Dims& d = p.tensor(x).dims;
    int64_t length = p.tensor("gamma").numel();
    p.require(d.back() == length, "gamma has shape %s, the rows have %lld elements", text(p.tensor("gamma").dims).c_str(),
              static_cast<long long>(d.back()));
    for (const char* name : columns)
        if (p.has(name))
            p.require(p.tensor(name).numel() == length, "%s has shape %s, expected %lld elements", name,
                      text(p.tensor(name).dims).c_str(), static_cast<long long>(length));
}

void plan_rms_quant(Plan& p) {
    need_small(p, "x", "y");
    plan_rows(p, "x", {"beta"});
    for (const char* name : {"scale", "offset"}) p.shape(name, {1});
}

void run_rms_quant(Run& r) {
    auto x = r.read<double>(r.tensor("x"));
    normalize_rms(r, x, "beta");
    double scale = r.read<double>(r.tensor("scale"))[0], offset = r.read<double>(r.tensor("offset"))[0];
    for (double& v : x) v = v * scale + offset;
    Tensor y = half_bytes(r.tensor("y"));
    r.write(y, within(x, y.dtype));
}

std::vector<double> read_sum(const Run& r) {
    auto x = r.read<double>(r.tensor("x1")), y = r.read<double>(r.tensor("x2"));
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
    return x;
}

template <bool second>
void plan_add_quant(Plan& p) {
    need_bytes(p, "y1Out");
    plan_rows(p, "x1", {"scales1", "scales2Optional", "zeroPoints1Optional", "zeroPoints2Optional"});
    if constexpr (second) plan_rows(p, "x1", {"betaOptional"});
    for (const char* name : {"x2", "y1Out", "xOut"}) p.same_shape("x1", name);
    p.same_dtype("x1", "x2");
    p.same_dtype("x1", "gamma");
    p.require(p.integer("axis") == -1, "axis is %lld, expected -1", static_cast<long long>(p.integer("axis")));
    if (p.has("scales2Optional")) {
        need_bytes(p, "y2Out");
        p.same_shape("x1", "y2Out");
    }
}

template <bool second>
void run_add_quant(Run& r) {
    auto x = read_sum(r);
    r.write(r.tensor("xOut"), x);
    normalize_rms(r, x, second ? "betaOptional" : nullptr);
    if (second && r.has("rmsNormOut")) r.write(r.tensor("rmsNormOut"), x);
    for (int which : {1, 2}) {
        const char* scales = which == 1 ? "scales1" : "scales2Optional";
        const char* zeros = which == 1 ? "zeroPoints1Optional" : "zeroPoints2Optional";
        if (!r.has(scales)) continue;
        auto scale = r.read<double>(r.tensor(scales));
        std::vector<double> zero(scale.size()), y = x;
        if (r.has(zeros)) zero = r.read<double>(r.tensor(zeros));
        for (size_t i = 0; i < y.size(); ++i) {
            double s = scale[i % scale.size()];
            y[i] = (r.flag("divMode") ? y[i] / s : y[i] * s) + zero[i % scale.size()];
        }
        r.write(r.tensor(which == 1 ? "y1Out" : "y2Out"), within(y, r.tensor(which == 1 ? "y1Out" : "y2Out").dtype));
    }
}

void plan_add_dynamic(Plan& p) {
    need_bytes(p, "y1Out");
    plan_rows(p, "x1", {"smoothScale1Optional", "smoothScale2Optional"});
    for (const char* name : {"x2", "y1Out", "xOut"}) p.same_shape("x1", name);
    p.shape("scale1Out", without_last(p.tensor("x1").dims));
    p.require(p.has("smoothScale1Optional") || !p.has("smoothScale2Optional"),
              "smoothScale2Optional needs smoothScale1Optional");
    if (!p.has("smoothScale2Optional")) return;
    need_bytes(p, "y2Out");
    p.same_shape("x1", "y2Out");
    p.shape("scale2Out", without_last(p.tensor("x1").dims));
}

void run_add_dynamic(Run& r) {
    auto x = read_sum(r);
    int64_t length = r.tensor("x1").dims.back();
    r.write(r.tensor("xOut"), x);
    normalize_rms(r, x, nullptr);
    auto y = x;
    smooth(r, y, length, "smoothScale1Optional", nullptr);
    write_dynamic(r, y, length, "y1Out", "scale1Out");
    if (!r.has("smoothScale2Optional")) return;
    smooth(r, x, length, "smoothScale2Optional", nullptr);
    write_dynamic(r, x, length, "y2Out", "scale2Out");
}

void plan_rms_dynamic(Plan& p) {
    need_bytes(p, "yOut");
    need_stated(p, "dstType", "yOut");
    plan_rows(p, "x", {"smoothScalesOptional", "betaOptional"});
    p.same_shape("x", "yOut");
    p.shape("scaleOut", without_last(p.tensor("x").dims));
}

void run_rms_dynamic(Run& r) {
    auto x = r.read<double>(r.tensor("x"));
    int64_t length = r.tensor("x").dims.back();
    normalize_rms(r, x, "betaOptional");
    smooth(r, x, length, "smoothScalesOptional", nullptr);
    write_dynamic(r, x, length, "yOut", "scaleOut");
}

}  // namespace

ACLNN(aclnnAscendQuant, PLAN { plan_ascend(p, -1); }, RUN { run_ascend(r, -1); }, NARROW)
ACLNN(aclnnAscendQuantV3, PLAN { plan_ascend(p, p.axis(p.integer("axis"), p.tensor("x").rank(), "axis")); },
      RUN { run_ascend(r, r.integer("axis")); }, NARROW)
ACLNN(aclnnQuantize, plan_quantize, run_quantize, NARROW)
ACLNN(aclnnFakeQuantPerTensorAffineCachemask, plan_fake<false>, run_fake<false>)
ACLNN(aclnnFakeQuantPerChannelAffineCachemask, plan_fake<true>, run_fake<true>)
ACLNN(aclnnGroupQuant, plan_group, run_group, NARROW)
ACLNN(aclnnDynamicQuant, plan_dynamic, run_dynamic, NARROW)
ACLNN(aclnnDynamicQuantV2, plan_dynamic, run_dynamic, NARROW)
ACLNN(aclnnDynamicQuantV3, plan_dynamic_later, run_dynamic, NARROW)
ACLNN(aclnnDynamicQuantV4, plan_dynamic_later, run_dynamic, NARROW)
ACLNN(aclnnAscendAntiQuant, plan_anti, run_anti, NARROW)
ACLNN(aclnnDequantBias, plan_dequant_bias, run_dequant_bias)
ACLNN(aclnnTransQuantParamV2, plan_parameter, RUN { run_parameter(r, false); })
ACLNN(aclnnTransQuantParamV3, plan_parameter, RUN { run_parameter(r, r.integer("roundMode") == 1); })
ACLNN(aclnnRmsNormQuant, plan_rms_quant, run_rms_quant, NARROW)
ACLNN(aclnnAddRmsNormQuant, plan_add_quant<false>, run_add_quant<false>, NARROW)
ACLNN(aclnnAddRmsNormQuantV2, plan_add_quant<true>, run_add_quant<true>, NARROW)
ACLNN(aclnnAddRmsNormDynamicQuant, plan_add_dynamic, run_add_dynamic, NARROW)
ACLNN(aclnnRmsNormDynamicQuant, plan_rms_dynamic, run_rms_dynamic, NARROW)
