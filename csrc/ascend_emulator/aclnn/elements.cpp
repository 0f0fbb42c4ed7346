// Small functions of the experimental and newer libraries: a minimum along one axis, masks, copies between views, axes by
// format, places of jagged rows, blocks that become small integers.
//
// The facts give shapes and dtypes only; the formulas are written at each kernel.
#include <cmath>
#include <string>

#include "moving.h"
#include "quantize.h"

using namespace emu;

namespace {

long long wide(int64_t x) { return static_cast<long long>(x); }

// A view of a flat tensor, its sizes read from the device.
struct View {
    Dims sizes, strides;
    int64_t offset;
};

View view(const Run& r, const char* size, const char* stride, const char* offset, int64_t room) {
    auto sizes = r.read<int64_t>(r.tensor(size)), strides = r.read<int64_t>(r.tensor(stride));
    View v{Dims(sizes.data(), sizes.size()), Dims(strides.data(), strides.size()), r.read<int64_t>(r.tensor(offset))[0]};
    int64_t low = v.offset, high = v.offset;
    for (int i = 0; i < v.sizes.n; ++i) {
        if (v.sizes[i] < 1) fault("%s holds %lld", size, wide(v.sizes[i]));
        (v.strides[i] < 0 ? low : high) += v.strides[i] * (v.sizes[i] - 1);
    }
    if (low < 0 || high >= room) fault("%s, %s and %s leave the tensor", size, stride, offset);
    return v;
}

void plan_view(Plan& p) {
    for (const char* name : {"dst", "src"}) {
        std::string prefix = name;
        int64_t rank = p.tensor((prefix + "_size").c_str()).numel();
        p.require(rank <= 8 && p.tensor((prefix + "_stride").c_str()).numel() == rank, "%s_size and %s_stride differ in length",
                  name, name);
        p.require(p.tensor((prefix + "_storage_offset").c_str()).numel() == 1, "%s_storage_offset must have one element", name);
    }
    p.same_dtype("dst", "src");
    p.same_shape("dst", "dst_out");
    p.same_dtype("dst", "dst_out");
}

// dst_out is dst, in whose view the elements of src's view stand.
void run_view(Run& r) {
    View to = view(r, "dst_size", "dst_stride", "dst_storage_offset", r.tensor("dst").numel());
    View from = view(r, "src_size", "src_stride", "src_storage_offset", r.tensor("src").numel());
    if (to.sizes.product() != from.sizes.product()) fault("dst_size and src_size hold different numbers of elements");
    auto places = [](const View& v) {
        std::vector<int64_t> out;
        each_place(v.sizes, [&](int64_t, const Dims& place) {
            int64_t at = v.offset;
            for (int i = 0; i < place.n; ++i) at += place[i] * v.strides[i];
            out.push_back(at);
        });
        return out;
    };
    auto a = places(to), b = places(from);
    by_category(category(r.tensor("dst").dtype), [&](auto zero) {
        auto y = r.read<decltype(zero)>(r.tensor("dst")), x = r.read<decltype(zero)>(r.tensor("src"));
        for (size_t i = 0; i < a.size(); ++i) y[size_t(a[i])] = x[size_t(b[i])];
        r.write(r.tensor("dst_out"), y);
    });
}

// A scale for each block of rows and columns: its largest absolute value is that of the type, or the scale is minScale where that is
// more.
struct Grid {
    int64_t batch, rows, columns, high, wide;
    int64_t down() const { return (rows + high - 1) / high; }
    int64_t across() const { return (columns + wide - 1) / wide; }
};

Grid grid(const Call& c) {
    const Dims& d = c.tensor("x").dims;
    return {d.n == 3 ? d[0] : 1, d[d.n - 2], d[d.n - 1], c.integer("rowBlockSize"), c.integer("colBlockSize")};
}

void plan_blocks(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    Grid g = grid(p);
    p.require(g.high > 0 && g.wide > 0, "rowBlockSize is %lld and colBlockSize %lld", wide(g.high), wide(g.wide));
    need_bytes(p, "yOut");
    need_stated(p, "dstType", "yOut");
    const std::string mode = p.has("roundModeOptional") ? p.string("roundModeOptional") : "rint";
    // Numbers of HIFLOAT8 are rounded half away from zero, whichever word says so.
    bool away = mode == "round" && p.tensor("yOut").dtype == ACL_HIFLOAT8;
    p.require(mode == "rint" || mode.empty() || away, "roundModeOptional is \"%s\", expected rint", mode.c_str());
    p.require(p.real("minScale") >= 0, "minScale is %g, expected >= 0", p.real("minScale"));
    p.same_shape("x", "yOut");
    Dims want = d;
    want[d.n - 2] = g.down(), want[d.n - 1] = g.across();
    p.shape("scaleOut", want);
}

void run_blocks(Run& r) {
    Grid g = grid(r);
    auto x = r.read<double>(r.tensor("x"));
    std::vector<double> scales;
    double top = block_top(r);
    for (int64_t b = 0; b < g.batch; ++b)
        for (int64_t i = 0; i < g.down(); ++i)
            for (int64_t j = 0; j < g.across(); ++j) {
                auto each = [&](auto f) {
                    for (int64_t row = i * g.high; row < std::min((i + 1) * g.high, g.rows); ++row)
                        for (int64_t column = j * g.wide; column < std::min((j + 1) * g.wide, g.columns); ++column)
                            f(x[size_t((b * g.rows + row) * g.columns + column)]);
                };
                double largest = 0;
                each([&](double v) { largest = std::fmax(largest, std::fabs(v)); });
                double scale = std::fmax(largest / top, r.real("minScale"));
                each([&](double& v) { v = scale > 0 ? v / scale : 0; });
                scales.push_back(scale);
            }
    r.write(r.tensor("yOut"), within(x, r.tensor("yOut").dtype));
    r.write(r.tensor("scaleOut"), scales);
}

}  // namespace

ACLNN(aclnnReduceMinV2,
      PLAN {
          const Dims& d = p.tensor("x").dims;
          int64_t axis = p.axis(p.integer("axes"), d.n, "axes");
          p.require(p.integer("keepdims") == 0 || p.integer("keepdims") == 1, "keepdims must be 0 or 1");
          p.shape("y", reduced(d, {int(axis)}, p.integer("keepdims") == 1));
          p.same_dtype("x", "y");
      },
      RUN {
          const Dims& d = r.tensor("x").dims;
          Lines lines(d, wrap(r.integer("axes"), d.n));
          auto x = r.read<double>(r.tensor("x"));
          std::vector<double> y;
          for (int64_t o = 0; o < lines.outer; ++o)
              for (int64_t i = 0; i < lines.inner; ++i) {
                  double low = INFINITY;
                  for (int64_t k = 0; k < lines.length; ++k) {
                      double v = x[size_t(lines.at(o, k, i))];
                      low = std::isnan(v) || std::isnan(low) ? NAN : std::fmin(low, v);
                  }
                  y.push_back(low);
              }
          r.write(r.tensor("y"), y);
      })
// The loss is max(0, 1 - target * predict).
ACLNN(aclnnHingeLossGrad,
      PLAN {
          for (const char* name : {"target", "gradOutput", "gradInput"}) p.same_shape("predict", name);
          p.same_dtype("predict", "gradInput");
      },
      RUN {
          auto x = r.read<double>(r.tensor("predict")), t = r.read<double>(r.tensor("target")), g = r.read<double>(r.tensor("gradOutput"));
          for (size_t i = 0; i < x.size(); ++i) x[i] = t[i] * x[i] < 1 ? -t[i] * g[i] : 0;
          r.write(r.tensor("gradInput"), x);
      })
ACLNN(aclnnExpandv,
      PLAN {
          const auto& shape = p.ints("shape");
          Dims want(shape.data(), shape.size()), both;
          p.require(broadcast(p.tensor("self").dims, want, &both) && both == want, "self has shape %s, which does not expand to %s",
                    text(p.tensor("self").dims).c_str(), text(want).c_str());
          p.shape("out", want);
          p.same_dtype("self", "out");
      },
      RUN {
          const Tensor& out = r.tensor("out");
          by_category(category(out.dtype), [&](auto zero) { r.write(out, r.read<decltype(zero)>(r.tensor("self"), out.dims)); });
      })
ACLNN(aclnnViewCopy, plan_view, run_view)
// The place in dstFormat of the axis that srcFormat has at place x.
ACLNN(aclnnDataFormatDimMap,
      PLAN {
          const std::string &from = p.string("srcFormat"), &to = p.string("dstFormat");
          p.require(from.size() == to.size() && !from.empty(), "srcFormat is \"%s\" and dstFormat \"%s\"", from.c_str(), to.c_str());
          for (char axis : from) p.require(to.find(axis) != std::string::npos, "dstFormat has no axis %c", axis);
          p.require(is_integer(p.tensor("x").dtype), "x has dtype %s, expected integers", dtype_name(p.tensor("x").dtype));
          p.same_shape("x", "y");
          p.same_dtype("x", "y");
      },
      RUN {
          const std::string &from = r.string("srcFormat"), &to = r.string("dstFormat");
          auto x = r.read<int64_t>(r.tensor("x"));
          for (int64_t& v : x) v = int64_t(to.find(from[size_t(wrapped_index(v, int64_t(from.size()), "x"))]));
          r.write(r.tensor("y"), x);
      })
// Rows of different lengths in another order: where each element of the result comes from.
ACLNN(aclnnExpandIntoJaggedPermute,
      PLAN {
          int64_t rows = p.tensor("permute").numel();
          for (const char* name : {"inputOffset", "outputOffset"}) p.shape(name, {rows + 1});
          p.shape("outputPermuteOut", {p.integer("outputSize")});
      },
      RUN {
          auto order = r.read<int64_t>(r.tensor("permute")), from = r.read<int64_t>(r.tensor("inputOffset"));
          auto to = r.read<int64_t>(r.tensor("outputOffset"));
          auto out = r.read<int64_t>(r.tensor("outputPermuteOut"));
          for (size_t i = 0; i < order.size(); ++i) {
              int64_t row = checked_index(order[i], int64_t(order.size()), "permute");
              for (int64_t k = 0; k < from[size_t(row) + 1] - from[size_t(row)]; ++k)
                  out[size_t(checked_index(to[i] + k, int64_t(out.size()), "outputOffset"))] = from[size_t(row)] + k;
          }
          r.write(r.tensor("outputPermuteOut"), out);
      })
ACLNN(aclnnDynamicBlockQuant, plan_blocks, run_blocks, NARROW)
ACLNN(aclnnDynamicBlockQuantV2,
      PLAN {
          p.require(p.real("dstTypeMax") == 0 || (p.real("dstTypeMax") > 0 && is_narrow_float(p.tensor("yOut").dtype)),
                    "dstTypeMax is %g; it belongs to 8-bit floats", p.real("dstTypeMax"));
          plan_blocks(p);
      },
      run_blocks, NARROW)
