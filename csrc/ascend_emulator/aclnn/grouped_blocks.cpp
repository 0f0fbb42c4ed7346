// Groups of rows that become small floats: blocks never cross from one group into the next; and numbers scaled as told, with
// the largest absolute value of what they were.
//
// The facts have shapes and types. groupList and groupIndex are the rows at which groups end (groupListType 1: how many each
// has). A group's scales begin at row first / block + (number of the group), so that every group has room; rows of scales
// that no group uses are 0.
#include "microscaled.h"
#include "optional.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

const char* ends_name(const Call& c) { return has_parameter(c, "groupList") ? "groupList" : "groupIndex"; }

// f(number of the group, first row, row behind the last)
template <class F>
void each_group(const Run& r, int64_t rows, F f) {
    auto ends = r.read<int64_t>(r.tensor(ends_name(r)));
    int64_t first = 0;
    for (size_t g = 0; g < ends.size(); ++g) {
        int64_t last = has_parameter(r, "groupListType") && r.integer("groupListType") == 1 ? first + ends[g] : ends[g];
        if (last < first || last > rows) fault("%s: a group ends at row %lld of %lld, behind %lld", ends_name(r), wide(last), wide(rows), wide(first));
        f(int64_t(g), first, last);
        first = last;
    }
}

// -- a scale for each block of rows and columns -------------------------------------------------------------------------------
void plan_blocks(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    p.require(d.n == 2 || d.n == 3, "x has shape %s", text(d).c_str());
    int64_t high = p.integer("rowBlockSize"), across = p.integer("colBlockSize"), type = p.integer("groupListType");
    p.require(high > 0 && across > 0 && high <= INT32_MAX && across <= INT32_MAX, "rowBlockSize is %lld and colBlockSize %lld", wide(high), wide(across));
    p.require(type == 0 || type == 1, "groupListType is %lld, expected 0 or 1", wide(type));
    need_bytes(p, "yOut");
    need_stated(p, "dstType", "yOut");
    const std::string mode = p.has("roundModeOptional") ? p.string("roundModeOptional") : "rint";
    // Numbers of HIFLOAT8 are rounded half away from zero, whichever word says so.
    bool away = mode == "round" && p.tensor("yOut").dtype == ACL_HIFLOAT8;
    p.require(mode == "rint" || mode.empty() || away, "roundModeOptional is \"%s\"; the emulator rounds to the nearest (rint)", mode.c_str());
    p.require(p.real("minScale") >= 0, "minScale is %g, expected >= 0", p.real("minScale"));
    p.same_shape("x", "yOut");
    Dims want = d;
    want[d.n - 2] = d[d.n - 2] / high + p.tensor("groupList").numel(), want[d.n - 1] = (d[d.n - 1] + across - 1) / across;
    p.shape("scaleOut", want);
}

void run_blocks(Run& r) {
    const Dims &d = r.tensor("x").dims, &s = r.tensor("scaleOut").dims;
    auto x = r.read<double>(r.tensor("x"));
    int64_t high = r.integer("rowBlockSize"), across = r.integer("colBlockSize"), rows = d[d.n - 2], columns = d[d.n - 1], batch = d.n == 3 ? d[0] : 1;
    Values scales(size_t(s.product()), 0);
    double top = block_top(r);
    each_group(r, rows, [&](int64_t g, int64_t first, int64_t last) {
        for (int64_t b = 0; b < batch; ++b)
            for (int64_t i = first; i < last; i += high)
                for (int64_t j = 0; j < columns; j += across) {
                    auto each = [&](auto f) {
                        for (int64_t row = i; row < std::min(i + high, last); ++row)
                            for (int64_t column = j; column < std::min(j + across, columns); ++column) f(x[size_t((b * rows + row) * columns + column)]);
                    };
                    double largest = 0;
                    each([&](double v) { largest = std::fmax(largest, std::fabs(v)); });
                    double scale = std::fmax(largest / top, r.real("minScale"));
                    each([&](double& v) { v = scale > 0 ? v / scale : 0; });
                    int64_t row = first / high + g + (i - first) / high;
                    scales[size_t((b * s[s.n - 2] + row) * s[s.n - 1] + j / across)] = scale;
                }
    });
    r.write(r.tensor("yOut"), within(x, r.tensor("yOut").dtype));
    r.write(r.tensor("scaleOut"), scales);
}

// -- a power of two for each 32 rows of a column, in pairs --------------------------------------------------------------------
void plan_rounding(const Plan& p, const char* y) {
    for (const char* name : {"roundMode", "roundModeOptional"})
        if (given(p, name)) p.require(p.string(name) == "rint" || p.string(name).empty(), "%s is \"%s\"; the emulator rounds to the nearest (rint)", name, p.string(name).c_str());
    if (has_parameter(p, "scaleAlg")) p.require(p.integer("scaleAlg") == 0 || p.integer("scaleAlg") == 1, "scaleAlg is %lld; the emulator computes 0 and 1", wide(p.integer("scaleAlg")));
    for (const char* name : {"dstTypeMax", "maxDtypeValue"}) p.require(!has_parameter(p, name) || p.real(name) == 0, "%s: the emulator computes 0", name);
    if (has_parameter(p, "blocksize")) p.require(p.integer("blocksize") == kBlock, "blocksize is %lld, expected 32", wide(p.integer("blocksize")));
    need_stated(p, has_parameter(p, "dstType") ? "dstType" : "dstDtype", y);
}

void plan_columns(const Plan& p, const char* y, const char* scales) {
    const Dims& d = p.tensor("x").dims;
    p.same_shape("x", y);
    p.shape(scales, {d[0] / (2 * kBlock) + p.tensor(ends_name(p)).numel(), d[1], 2});
}

void run_columns(const Run& r, const char* name, const char* scale_name) {
    const Dims& d = r.tensor("x").dims;
    const Tensor& out = r.tensor(name);
    auto x = r.read<double>(r.tensor("x"));
    int64_t algorithm = has_parameter(r, "scaleAlg") ? r.integer("scaleAlg") : 0;
    Values scales(size_t(r.tensor(scale_name).numel()), std::ldexp(1.0, -127));
    each_group(r, d[0], [&](int64_t g, int64_t first, int64_t last) {
        for (int64_t i = first; i < last; i += kBlock)
            for (int64_t j = 0; j < d[1]; ++j) {
                double largest = 0;
                int64_t end = std::min(i + kBlock, last), block = (i - first) / kBlock;
                for (int64_t row = i; row < end; ++row) largest = std::fmax(largest, std::fabs(x[size_t(row * d[1] + j)]));
                double scale = block_scale(largest, out.dtype, algorithm);
                for (int64_t row = i; row < end; ++row) x[size_t(row * d[1] + j)] /= scale;
                scales[size_t(((first / (2 * kBlock) + g + block / 2) * d[1] + j) * 2 + block % 2)] = scale;
            }
    });
    r.write(out, x);
    r.write(r.tensor(scale_name), scales);
}

void run_rows(const Run& r, const char* name, const char* scale_name) {
    const Dims& d = r.tensor("x").dims;
    const Tensor& out = r.tensor(name);
    auto x = r.read<double>(r.tensor("x"));
    int64_t blocks = (d[1] + kBlock - 1) / kBlock;
    Values scales(size_t(r.tensor(scale_name).numel()), std::ldexp(1.0, -127));
    for (int64_t row = 0; row < d[0]; ++row)
        for (int64_t block = 0; block < blocks; ++block) {
            double largest = 0, *at = x.data() + row * d[1];
            int64_t end = std::min((block + 1) * kBlock, d[1]);
            for (int64_t j = block * kBlock; j < end; ++j) largest = std::fmax(largest, std::fabs(at[j]));
            double scale = block_scale(largest, out.dtype, r.integer("scaleAlg"));
            for (int64_t j = block * kBlock; j < end; ++j) at[j] /= scale;
            scales[size_t(row * ((blocks + 1) / 2) * 2 + block)] = scale;
        }
    r.write(out, x);
    r.write(r.tensor(scale_name), scales);
}

// -- y = x * scale, amax = the largest |x|; a scale and a largest for all, or for each group of rows ---------------------------
void plan_largest(Plan& p) {
    int64_t groups = has_parameter(p, "groupList") ? p.tensor("groupList").numel() : 1;
    const std::string& mode = p.string("roundMode");
    p.require(mode == "rint" || mode == "round" || mode == "hybrid", "roundMode is \"%s\"", mode.c_str());
    p.require(mode != "hybrid", "roundMode is \"hybrid\"; the emulator rounds to the nearest");
    need_bytes(p, "y");
    need_stated(p, "dstType", "y");
    p.same_shape("x", "y");
    p.shape("scale", {groups});
    p.shape("amax", {groups});
    p.same_dtype("x", "amax");
}

void run_largest(Run& r) {
    auto x = r.read<double>(r.tensor("x")), scale = r.read<double>(r.tensor("scale"));
    Values top(scale.size(), 0);
    auto part = [&](int64_t g, int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) top[size_t(g)] = std::fmax(top[size_t(g)], std::fabs(x[size_t(i)])), x[size_t(i)] *= scale[size_t(g)];
    };
    if (has_parameter(r, "groupList")) {
        int64_t rows = r.tensor("x").dims[0], row = rows == 0 ? 0 : int64_t(x.size()) / rows;
        each_group(r, rows, [&](int64_t g, int64_t first, int64_t last) { part(g, first * row, last * row); });
    } else {
        part(0, 0, int64_t(x.size()));
    }
    r.write(r.tensor("y"), x);
    r.write(r.tensor("amax"), top);
}

}  // namespace

ACLNN(aclnnGroupedDynamicBlockQuant, plan_blocks, run_blocks, NARROW)
ACLNN(aclnnGroupedDynamicBlockQuantV2, plan_blocks, run_blocks, NARROW)
ACLNN(aclnnGroupedDynamicMxQuant, PLAN { plan_rounding(p, "y"); plan_columns(p, "y", "mxscale"); }, RUN { run_columns(r, "y", "mxscale"); }, NARROW)
ACLNN(aclnnGroupedDynamicMxQuantV2, PLAN { plan_rounding(p, "y"); plan_columns(p, "y", "mxscale"); }, RUN { run_columns(r, "y", "mxscale"); }, NARROW)
ACLNN(aclnnGroupedDynamicMxQuantWithDualAxis,
      PLAN {
          const Dims& d = p.tensor("x").dims;
          plan_rounding(p, "y1Out");
          p.require(p.tensor("y2Out").dtype == p.tensor("y1Out").dtype, "y1Out and y2Out must have one dtype");
          p.same_shape("x", "y1Out");
          p.shape("y1ScaleOut", {d[0], ((d[1] + kBlock - 1) / kBlock + 1) / 2, 2});
          plan_columns(p, "y2Out", "y2ScaleOut");
      },
      RUN {
          run_rows(r, "y1Out", "y1ScaleOut");
          run_columns(r, "y2Out", "y2ScaleOut");
      }, NARROW)
ACLNN(aclnnQuantMax, plan_largest, run_largest, NARROW)
ACLNN(aclnnGroupedQuantMax, plan_largest, run_largest, NARROW)
