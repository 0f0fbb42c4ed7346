// Numbers of 8 and of 4 bits with a power of two for each block of 32 (or of blocksize), and integers of 4 bits of turned matrices.
//
// The formulas are those of the OCP's microscaling formats, which the functions' descriptions cite; the facts have shapes
// and types only. A block's scale is 2^(floor(log2(largest)) - e), e the exponent of the type's largest number
// (scaleAlg 0), or the least power of two that brings the largest number within the type (scaleAlg 1). scaleAlg 2,
// of FLOAT4_E2M1, is 1 with dstTypeMax for the type's largest number: up to twice of it, what is beyond the type is its largest;
// 0 is the type's own. Scales stand in pairs: their axis has half as many, rounded up, and a last dimension of 2; what has no block is 0.
#include "gating.h"
#include "microscaled.h"

using namespace emu;

namespace {

using Values = std::vector<double>;
long long wide(int64_t x) { return static_cast<long long>(x); }

// The place of a block's scale.
int64_t scale_place(const Lines& lines, int64_t o, int64_t block, int64_t i, int64_t size = kBlock) {
    int64_t pairs = ((lines.length + size - 1) / size + 1) / 2;
    return ((o * pairs + block / 2) * lines.inner + i) * 2 + block % 2;
}

std::string rounding(const Call& c) {
    for (const char* name : {"roundModeOptional", "roundMode"})
        if (given(c, name) && !c.string(name).empty()) return c.string(name);
    return "rint";
}

// Writing rounds to the nearest; what is to be rounded otherwise is so before.
double placed(double x, int dtype, const std::string& mode) {
    if (mode == "floor") return narrow_floor(dtype, x);
    if (mode == "round") return narrow_away(dtype, x);
    return x;
}

int64_t block_of(const Call& c) { return has_parameter(c, "blocksize") ? c.integer("blocksize") : kBlock; }

int64_t algorithm(const Call& c) { return has_parameter(c, "scaleAlg") ? c.integer("scaleAlg") : 0; }

double most_of(const Call& c, int dtype) {
    bool stated = has_parameter(c, "dstTypeMax") && c.real("dstTypeMax") > 0;
    return stated ? c.real("dstTypeMax") : narrow_largest(dtype);
}

struct Scaled {
    Values y, scales;
};

Scaled scaled(const Values& x, const Dims& dims, int64_t axis, int dtype, int64_t algorithm, double most, const std::string& mode = "rint",
              int64_t block = kBlock) {
    Lines lines(dims, axis);
    Scaled out{x, Values(size_t(scale_dims(dims, axis, block).product()), std::ldexp(1.0, -127))};
    for (int64_t o = 0; o < lines.outer; ++o)
        for (int64_t i = 0; i < lines.inner; ++i)
            for (int64_t from = 0; from < lines.length; from += block) {
                int64_t to = std::min(from + block, lines.length);
                double largest = 0;
                for (int64_t k = from; k < to; ++k) {
                    double v = std::fabs(x[size_t(lines.at(o, k, i))]);
                    largest = std::isnan(v) ? v : v > largest ? v : largest;
                }
                double scale = block_scale(largest, dtype, algorithm, most);
                for (int64_t k = from; k < to; ++k) {
                    double& y = out.y[size_t(lines.at(o, k, i))];
                    y = placed(y / scale, dtype, mode);
                }
                out.scales[size_t(scale_place(lines, o, from / block, i, block))] = scale;
            }
    return out;
}

void plan_numbers(const Plan& p, const char* y) {
    // Numbers of four bits are rounded in one of three ways, those of eight to the nearest.
    const std::string mode = rounding(p);
    bool known = mode == "rint" || (is_half_byte(p.tensor(y).dtype) && (mode == "floor" || mode == "round"));
    p.require(known, "the rounding mode is \"%s\" for %s", mode.c_str(), dtype_name(p.tensor(y).dtype));
    int64_t how = algorithm(p);
    bool stated = how == 2 && has_parameter(p, "dstTypeMax") && is_half_byte(p.tensor(y).dtype);
    p.require(how == 0 || how == 1 || stated, "scaleAlg is %lld for %s", wide(how), dtype_name(p.tensor(y).dtype));
    if (has_parameter(p, "dstTypeMax")) {
        double most = p.real("dstTypeMax"), least = narrow_largest(p.tensor(y).dtype);
        p.require(most == 0 || (stated && most >= least && most <= 2 * least), "dstTypeMax is %g for %s with scaleAlg %lld", most, dtype_name(p.tensor(y).dtype), wide(how));
    }
    for (const char* name : {"maxDtypeValue", "maxLowBound"})
        p.require(!has_parameter(p, name) || p.real(name) == 0, "%s: the emulator computes 0", name);
    int64_t block = block_of(p);
    p.require(block > 0 && block <= 1024 && block % kBlock == 0, "blocksize is %lld, expected a multiple of 32 up to 1024", wide(block));
    for (const char* name : {"dstType", "dstDtype"})
        p.require(!has_parameter(p, name) || p.integer(name) == p.tensor(y).dtype, "%s is %lld, %s has dtype %s", name,
                  wide(has_parameter(p, name) ? p.integer(name) : 0), y, dtype_name(p.tensor(y).dtype));
}

void plan_scaled(const Plan& p, const Dims& dims, const char* y, const char* scales, int64_t axis) {
    p.shape(y, dims);
    p.shape(scales, scale_dims(dims, axis, block_of(p)));
}

void write_scaled(const Run& r, const Values& x, const char* y, const char* scales, int64_t axis) {
    const Tensor& out = r.tensor(y);
    Scaled s = scaled(x, out.dims, axis, out.dtype, algorithm(r), most_of(r, out.dtype), rounding(r), block_of(r));
    r.write(out, s.y);
    r.write(r.tensor(scales), s.scales);
}

// -- from floats -------------------------------------------------------------------------------------------------------------
void plan_one_axis(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    plan_numbers(p, "yOut");
    plan_scaled(p, d, "yOut", "mxscaleOut", p.axis("axis", d.n));
}

void run_one_axis(Run& r) {
    write_scaled(r, r.read<double>(r.tensor("x")), "yOut", "mxscaleOut", wrap(r.integer("axis"), r.tensor("x").rank()));
}

void plan_two_axes(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    plan_numbers(p, "y1Out");
    plan_scaled(p, d, "y1Out", "mxscale1Out", d.n - 1);
    plan_scaled(p, d, "y2Out", "mxscale2Out", d.n - 2);
}

void write_two_axes(const Run& r, const Values& x, int rank) {
    write_scaled(r, x, "y1Out", "mxscale1Out", rank - 1);
    write_scaled(r, x, "y2Out", "mxscale2Out", rank - 2);
}

void run_two_axes(Run& r) { write_two_axes(r, r.read<double>(r.tensor("x")), r.tensor("x").rank()); }

// One scale for each square of 32 by 32, written once for either axis.
void plan_squares(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    plan_numbers(p, "yOut");
    p.shape("yOut", d);
    p.shape("scale1Out", scale_dims(d, d.n - 1));
    p.shape("scale2Out", scale_dims(d, d.n - 2));
}

void write_squares(const Run& r, Values& x, const char* y, const char* rows_name, const char* columns_name) {
    const Tensor& out = r.tensor(y);
    const Dims& d = out.dims;
    int64_t rows = d[d.n - 2], columns = d[d.n - 1], batch = d.product() / std::max<int64_t>(rows * columns, 1);
    Values by_row(size_t(scale_dims(d, d.n - 1).product()), std::ldexp(1.0, -127)), by_column(size_t(scale_dims(d, d.n - 2).product()), std::ldexp(1.0, -127));
    Lines across(d, d.n - 1), down(d, d.n - 2);
    for (int64_t b = 0; b < batch; ++b)
        for (int64_t top = 0; top < rows; top += kBlock)
            for (int64_t left = 0; left < columns; left += kBlock) {
                auto each = [&](auto f) {
                    for (int64_t i = top; i < std::min(top + kBlock, rows); ++i)
                        for (int64_t j = left; j < std::min(left + kBlock, columns); ++j) f(x[size_t((b * rows + i) * columns + j)]);
                };
                double largest = 0;
                each([&](double v) { largest = std::fmax(largest, std::fabs(v)); });
                double scale = block_scale(largest, out.dtype, algorithm(r), most_of(r, out.dtype));
                each([&](double& v) { v = placed(v / scale, out.dtype, rounding(r)); });
                for (int64_t i = top; i < std::min(top + kBlock, rows); ++i) by_row[size_t(scale_place(across, b * rows + i, left / kBlock, 0))] = scale;
                for (int64_t j = left; j < std::min(left + kBlock, columns); ++j) by_column[size_t(scale_place(down, b, top / kBlock, j))] = scale;
            }
    r.write(out, x);
    r.write(r.tensor(rows_name), by_row);
    r.write(r.tensor(columns_name), by_column);
}

void run_squares(Run& r) {
    auto x = r.read<double>(r.tensor("x"));
    write_squares(r, x, "yOut", "scale1Out", "scale2Out");
}

// -- and back ----------------------------------------------------------------------------------------------------------------
void plan_back(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    p.shape("mxscale", scale_dims(d, p.axis("axis", d.n)));
    p.shape("y", d);
    p.require(p.integer("dstType") == p.tensor("y").dtype, "dstType is %lld, y has dtype %s", wide(p.integer("dstType")), dtype_name(p.tensor("y").dtype));
}

Values scaled_back(const Run& r, int64_t axis) {
    Lines lines(r.tensor("x").dims, axis);
    auto x = r.read<double>(r.tensor("x")), scales = r.read<double>(r.tensor("mxscale"));
    for (int64_t o = 0; o < lines.outer; ++o)
        for (int64_t k = 0; k < lines.length; ++k)
            for (int64_t i = 0; i < lines.inner; ++i) x[size_t(lines.at(o, k, i))] *= scales[size_t(scale_place(lines, o, k / kBlock, i))];
    return x;
}

void run_back(Run& r) { r.write(r.tensor("y"), scaled_back(r, wrap(r.integer("axis"), r.tensor("x").rank()))); }

// -- after a norm ------------------------------------------------------------------------------------------------------------
void plan_normed(Plan& p) {
    bool adds = has_parameter(p, "x2");
    const char* in = adds ? "x1" : "x";
    const Dims& d = p.tensor(in).dims;
    if (adds) p.same_shape("x1", "x2"), p.same_shape("x1", "xOut");
    p.shape("gamma", {d.back()});
    if (p.has("beta")) p.shape("beta", {d.back()});
    plan_numbers(p, "yOut");
    plan_scaled(p, d, "yOut", "mxscaleOut", d.n - 1);
    if (p.flag("outputRstd")) p.require(p.tensor("rstdOut").numel() == d.product() / std::max<int64_t>(d.back(), 1), "rstdOut has shape %s", text(p.tensor("rstdOut").dims).c_str());
}

void run_normed(Run& r) {
    bool adds = has_parameter(r, "x2");
    const Tensor& in = r.tensor(adds ? "x1" : "x");
    auto x = r.read<double>(in), gamma = r.read<double>(r.tensor("gamma"));
    Values beta(gamma.size(), 0), rstd;
    if (r.has("beta")) beta = r.read<double>(r.tensor("beta"));
    if (adds) {
        auto other = r.read<double>(r.tensor("x2"));
        for (size_t i = 0; i < x.size(); ++i) x[i] += other[i];
        r.write(r.tensor("xOut"), x);
    }
    for (size_t row = 0; row < x.size(); row += gamma.size()) {
        double square = 0;
        for (size_t k = 0; k < gamma.size(); ++k) square += x[row + k] * x[row + k];
        rstd.push_back(1 / std::sqrt(square / double(gamma.size()) + r.real("epsilon")));
        for (size_t k = 0; k < gamma.size(); ++k) x[row + k] = x[row + k] * rstd.back() * gamma[k] + beta[k];
    }
    write_scaled(r, x, "yOut", "mxscaleOut", in.rank() - 1);
    if (r.flag("outputRstd")) r.write(r.tensor("rstdOut"), rstd);
}

// -- after a gate ------------------------------------------------------------------------------------------------------------
Dims plan_gate(const Plan& p) {
    Dims d = p.tensor("x").dims;
    p.require(!p.has("groupIndexOptional"), "groupIndexOptional is not computed by the emulator: the documents state no formula for it");
    if (has_parameter(p, "swigluMode")) {
        p.require(p.integer("groupMode") == 0, "groupMode is %lld; the emulator computes 0", wide(p.integer("groupMode")));
        plan_gate_mode(p, d.n);
    }
    p.require(d.back() % 2 == 0, "x has shape %s, expected an even last size", text(d).c_str());
    d[d.n - 1] /= 2;
    return d;
}

Values gated_rows(const Run& r) { return gated_by_mode(r, r.read<double>(r.tensor("x")), r.tensor("x").dims.back() / 2); }

Values gated_backward(const Run& r) {
    auto x = r.read<double>(r.tensor("x")), g = r.read<double>(r.tensor("yGrad"));
    size_t half = size_t(r.tensor("x").dims.back() / 2);
    bool left = r.flag("activateLeft");
    Values y(x.size());
    for (size_t row = 0; row < x.size(); row += 2 * half)
        for (size_t k = 0; k < half; ++k) {
            size_t active = row + (left ? k : half + k), linear = row + (left ? half + k : k), at = row / 2 + k;
            double s = 1 / (1 + std::exp(-x[active]));
            y[active] = g[at] * x[linear] * (s + x[active] * s * (1 - s));
            y[linear] = g[at] * x[active] * s;
        }
    return y;
}

// -- turned on both sides, then integers of four bits ------------------------------------------------------------------------
Tensor flat_out(const Call& c) { return half_bytes(c.tensor("out")); }

void plan_flat(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    Tensor out = flat_out(p);
    plan_number(p, "groupListType", 1);
    bool floats = out.dtype == ACL_FLOAT4_E2M1;  // in blocks of 32 along all that a matrix holds
    Dims whole{d[0], d[1] * d[2]};
    p.require(out.dims == d || (floats && out.dims == whole), "out holds %s numbers of four bits, x has shape %s", text(out.dims).c_str(), text(d).c_str());
    p.shape("kroneckerP1", {d[1], d[1]});
    p.shape("kroneckerP2", {d[2], d[2]});
    p.shape("quantScale", floats ? scale_dims(whole, 1) : Dims({d[0]}));
    p.require((p.tensor("quantScale").dtype == ACL_FLOAT8_E8M0) == floats, "quantScale has dtype %s, out %s", dtype_name(p.tensor("quantScale").dtype), dtype_name(out.dtype));
    p.require(p.real("clipRatio") > 0 && p.real("clipRatio") <= 1, "clipRatio is %g, expected (0, 1]", p.real("clipRatio"));
    p.require(!has_parameter(p, "dstTypeMax") || p.real("dstTypeMax") == 0 || (floats && p.real("dstTypeMax") > 0), "dstTypeMax is %g, out has dtype %s",
              has_parameter(p, "dstTypeMax") ? p.real("dstTypeMax") : 0, dtype_name(out.dtype));
    p.require(!given(p, "groupListOptional"), "groupListOptional is not computed by the emulator: the documents state no formula for it");
}

// The scales of a matrix, which is divided by them.
Values flat_blocks(const Run& r, Values& matrix) {
    double most = has_parameter(r, "dstTypeMax") && r.real("dstTypeMax") > 0 ? r.real("dstTypeMax") : 0, clip = r.real("clipRatio");
    Values scales(size_t(scale_dims(Dims{int64_t(matrix.size())}, 0).product()), std::ldexp(1.0, -127));
    for (size_t from = 0; from < matrix.size(); from += kBlock) {
        size_t to = std::min(from + size_t(kBlock), matrix.size());
        double largest = 0;
        for (size_t k = from; k < to; ++k) largest = std::fmax(largest, std::fabs(matrix[k]));
        double& scale = scales[from / kBlock];
        scale = most > 0 ? block_scale(largest * clip, ACL_FLOAT4_E2M1, 2, most) : block_scale(largest * clip, ACL_FLOAT4_E2M1, 0);
        for (size_t k = from; k < to; ++k) matrix[k] /= scale;
    }
    return scales;
}

void run_flat(Run& r) {
    const Dims& d = r.tensor("x").dims;
    auto x = r.read<double>(r.tensor("x")), left = r.read<double>(r.tensor("kroneckerP1")), right = r.read<double>(r.tensor("kroneckerP2"));
    int64_t m = d[1], n = d[2];
    Values out, scales;
    for (int64_t z = 0; z < d[0]; ++z) {
        Values half(size_t(m * n), 0), both(size_t(m * n), 0);
        for (int64_t i = 0; i < m; ++i)
            for (int64_t k = 0; k < m; ++k)
                for (int64_t j = 0; j < n; ++j) half[size_t(i * n + j)] += left[size_t(i * m + k)] * x[size_t((z * m + k) * n + j)];
        for (int64_t i = 0; i < m; ++i)
            for (int64_t k = 0; k < n; ++k)
                for (int64_t j = 0; j < n; ++j) both[size_t(i * n + j)] += half[size_t(i * n + k)] * right[size_t(k * n + j)];
        if (flat_out(r).dtype == ACL_FLOAT4_E2M1) {
            auto found = flat_blocks(r, both);
            scales.insert(scales.end(), found.begin(), found.end());
            out.insert(out.end(), both.begin(), both.end());
            continue;
        }
        double largest = 0;
        for (double v : both) largest = std::fmax(largest, std::fabs(v));
        scales.push_back(largest * r.real("clipRatio") / 7);
        for (double v : both) out.push_back(scales.back() > 0 ? v / scales.back() : 0);
    }
    r.write(flat_out(r), within(out, flat_out(r).dtype));
    r.write(r.tensor("quantScale"), scales);
}

// -- turned, then quantized --------------------------------------------------------------------------------------------------
// Parts of a row, as long as the matrix is wide, times the matrix (or times their own, where there are several).
void plan_rotated(Plan& p) {
    const Dims &d = p.tensor("x").dims, &m = p.tensor("rotation").dims;
    Tensor out = half_bytes(p.tensor("yOut"));
    int64_t width = m.back();
    p.require(m[m.n - 2] == width && width > 0 && d.back() % width == 0, "rotation has shape %s, x %s", text(m).c_str(), text(d).c_str());
    p.require(m.n == 2 || m[0] * width == d.back(), "rotation has shape %s, x %s", text(m).c_str(), text(d).c_str());
    p.same_dtype("x", "rotation");
    p.require(!p.has("alpha"), "alpha is not computed by the emulator: the documents state no formula for it");
    p.require(p.axis("axis", d.n) == d.n - 1, "axis is %lld, expected the last", wide(p.integer("axis")));
    p.require(out.dims == d, "yOut holds %s numbers, x has shape %s", text(out.dims).c_str(), text(d).c_str());
    plan_numbers(p, "yOut");
    p.shape("scaleOut", is_narrow_float(out.dtype) ? scale_dims(d, d.n - 1) : without_last(d));
}

void run_rotated(Run& r) {
    const Dims &d = r.tensor("x").dims, &m = r.tensor("rotation").dims;
    auto x = r.read<double>(r.tensor("x")), matrix = r.read<double>(r.tensor("rotation"));
    int64_t width = m.back(), parts = d.back() / width;
    bool trans = r.flag("trans");
    Values y(x.size(), 0);
    for (int64_t part = 0; part < int64_t(x.size()) / width; ++part) {
        const double* by = matrix.data() + (m.n == 3 ? part % parts * width * width : 0);
        for (int64_t k = 0; k < width; ++k)
            for (int64_t j = 0; j < width; ++j) y[size_t(part * width + j)] += x[size_t(part * width + k)] * by[trans ? j * width + k : k * width + j];
    }
    if (is_narrow_float(r.tensor("yOut").dtype)) write_scaled(r, y, "yOut", "scaleOut", d.n - 1);
    else write_dynamic(r, y, d.back(), "yOut", "scaleOut");
}

// -- a float for each block of 512, then a power of two for each 32 --------------------------------------------------------------
constexpr int64_t kOuterBlock = 512;

void plan_two_levels(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    p.require(p.integer("level0BlockSize") == kOuterBlock && p.integer("level1BlockSize") == kBlock, "blocks of %lld and %lld, expected 512 and 32", wide(p.integer("level0BlockSize")),
              wide(p.integer("level1BlockSize")));
    plan_numbers(p, "yOut");
    Dims outer = d;
    outer[d.n - 1] = (d.back() + kOuterBlock - 1) / kOuterBlock;
    p.shape("level0ScaleOut", outer);
    plan_scaled(p, d, "yOut", "level1ScaleOut", d.n - 1);
    if (p.has("smoothScaleOptional")) p.shape("smoothScaleOptional", {d.back()}), p.same_dtype("x", "smoothScaleOptional");
}

void run_two_levels(Run& r) {
    auto x = r.read<double>(r.tensor("x"));
    int64_t length = r.tensor("x").dims.back();
    Values scales;
    if (r.has("smoothScaleOptional")) smooth(r, x, length, "smoothScaleOptional", nullptr);
    for (int64_t row = 0; row < int64_t(x.size()); row += length)
        for (int64_t from = 0; from < length; from += kOuterBlock) {
            double largest = 0;
            int64_t to = std::min(from + kOuterBlock, length);
            for (int64_t k = from; k < to; ++k) largest = std::fmax(largest, std::fabs(x[size_t(row + k)]));
            scales.push_back(float(largest / narrow_largest(r.tensor("yOut").dtype)));
            for (int64_t k = from; k < to; ++k) x[size_t(row + k)] = scales.back() > 0 ? x[size_t(row + k)] / scales.back() : 0;
        }
    r.write(r.tensor("level0ScaleOut"), scales);
    write_scaled(r, x, "yOut", "level1ScaleOut", r.tensor("x").rank() - 1);
}

// -- numbers of four bits with a scale for each 32 of a row become numbers of eight with one for each square ---------------------
void plan_resquared(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    p.shape("mxscale", scale_dims(d, d.n - 1));
    p.require(p.integer("dstType") == p.tensor("y").dtype, "dstType is %lld, y has dtype %s", wide(p.integer("dstType")), dtype_name(p.tensor("y").dtype));
    p.shape("y", d);
    p.shape("scale1", scale_dims(d, d.n - 1));
    p.shape("scale2", scale_dims(d, d.n - 2));
}

}  // namespace

ACLNN(aclnnDynamicMxQuant, plan_one_axis, run_one_axis, NARROW)
ACLNN(aclnnDynamicMxQuantV2, plan_one_axis, run_one_axis, NARROW)
ACLNN(aclnnDynamicMxQuantV3, plan_one_axis, run_one_axis, NARROW)
ACLNN(aclnnDynamicMxQuantWithDualAxis, plan_two_axes, run_two_axes, NARROW)
ACLNN(aclnnDynamicMxQuantWithDualAxisV2, plan_two_axes, run_two_axes, NARROW)
ACLNN(aclnnDynamicBlockMxQuant, plan_squares, run_squares, NARROW)
ACLNN(aclnnAntiMxQuant, plan_back, run_back, NARROW)
ACLNN(aclnnRmsNormDynamicMxQuant, plan_normed, run_normed, NARROW)
ACLNN(aclnnAddRmsNormDynamicMxQuant, plan_normed, run_normed, NARROW)
ACLNN(aclnnSwigluMxQuant,
      PLAN {
          Dims d = plan_gate(p);
          plan_numbers(p, "yOut");
          plan_scaled(p, d, "yOut", "mxscaleOut", p.axis("axis", d.n));
      },
      RUN { write_scaled(r, gated_rows(r), "yOut", "mxscaleOut", wrap(r.integer("axis"), r.tensor("x").rank())); }, NARROW)
ACLNN(aclnnSwigluMxQuantWithDualAxis,
      PLAN {
          Dims d = plan_gate(p);
          plan_numbers(p, "y1Out");
          plan_scaled(p, d, "y1Out", "mxscale1Out", d.n - 1);
          plan_scaled(p, d, "y2Out", "mxscale2Out", d.n - 2);
      },
      RUN { write_two_axes(r, gated_rows(r), r.tensor("x").rank()); }, NARROW)
ACLNN(aclnnSwigluBackwardMxQuantWithDualAxis,
      PLAN {
          p.shape("yGrad", plan_gate(p));
          plan_two_axes(p);
      },
      RUN { write_two_axes(r, gated_backward(r), r.tensor("x").rank()); }, NARROW)
ACLNN(aclnnFlatQuant, plan_flat, run_flat, NARROW)
ACLNN(aclnnFlatQuantV2, plan_flat, run_flat, NARROW)
ACLNN(aclnnFlatQuantV3, plan_flat, run_flat, NARROW)
ACLNN(aclnnRotateQuant, plan_rotated, run_rotated, NARROW)
ACLNN(aclnnDynamicDualLevelMxQuant, plan_two_levels, run_two_levels, NARROW)
ACLNN(aclnnMxToBlockMxQuant, plan_resquared, RUN {
    Values x = scaled_back(r, r.tensor("x").rank() - 1);
    write_squares(r, x, "y", "scale1", "scale2");
}, NARROW)
