// Images: resizing by scales, blurring, blending, pools by other names, regions with the place of their maximum, samples of several
// maps.
//
// The facts give shapes and dtypes only; the formulas are written at each kernel.
#include <cmath>

#include "moving.h"
#include "view.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

// -- resizing: a place of the result is place / scale of the input, without half pixels --------------------------------
void plan_resize(Plan& p) {
    Tensor x = channels_first(p.tensor("self")), y = channels_first(p.tensor("out"));
    const auto& scales = p.floats("scales");
    const std::string& mode = p.string("mode");
    p.require(p.tensor("self").format == p.tensor("out").format, "self and out must have the same format");
    p.require(mode == "nearest" || mode == "bilinear", "mode is \"%s\", expected nearest or bilinear", mode.c_str());
    p.require(scales.size() == 4, "scales has %zu elements, expected 4", scales.size());
    std::vector<double> s = scales;
    if (channels_last(p.tensor("self"))) s = {scales[0], scales[3], scales[1], scales[2]};
    p.require(s[0] == 1 && s[1] == 1, "samples and channels are not resized");
    Dims want = x.dims;
    for (int i = 2; i < 4; ++i) want[i] = int64_t(std::floor(double(x.dims[i]) * s[size_t(i)]));
    p.require(y.dims == want, "out has shape %s, expected %s", text(y.dims).c_str(), text(want).c_str());
}

void run_resize(Run& r) {
    Tensor from = channels_first(r.tensor("self")), to = channels_first(r.tensor("out"));
    const Dims &a = from.dims, &b = to.dims;
    auto x = r.read<double>(from);
    bool nearest = r.string("mode") == "nearest";
    Values y;
    double sh = double(a[2]) / double(b[2]), sw = double(a[3]) / double(b[3]);
    for (int64_t plane = 0; plane < a[0] * a[1]; ++plane)
        for (int64_t i = 0; i < b[2]; ++i)
            for (int64_t j = 0; j < b[3]; ++j) {
                double u = double(i) * sh, v = double(j) * sw;
                int64_t top = std::min(int64_t(u), a[2] - 1), left = std::min(int64_t(v), a[3] - 1);
                auto at = [&](int64_t row, int64_t column) {
                    return x[size_t((plane * a[2] + std::min(row, a[2] - 1)) * a[3] + std::min(column, a[3] - 1))];
                };
                double du = u - double(top), dv = v - double(left);
                y.push_back(nearest ? at(top, left)
                                    : (1 - du) * ((1 - dv) * at(top, left) + dv * at(top, left + 1)) +
                                          du * ((1 - dv) * at(top + 1, left) + dv * at(top + 1, left + 1)));
            }
    r.write(to, y);
}

// -- blurring: a Gaussian along the rows, then along the columns -------------------------------------------------------
// The facts have the parameters only; they are those of the function of that name that is usual for pictures: ksize is
// (width, height), odd; a size that is 0 follows from sigma, a sigma that is not positive from the size, sigmaY from sigmaX.
// Pictures are (h, w), (h, w, channels), or four dimensions whose format says where the channels are.
enum Border { kZeros = 0, kEdge = 1, kMirror = 2, kWrap = 3, kInnerMirror = 4 };
constexpr int64_t kLongestBlur = 32767;

struct Blur {
    int64_t size;
    double sigma;

    Values weights() const {
        static const double small[][7] = {{1}, {0.25, 0.5, 0.25}, {0.0625, 0.25, 0.375, 0.25, 0.0625}, {0.03125, 0.109375, 0.21875, 0.28125, 0.21875, 0.109375, 0.03125}};
        if (sigma <= 0 && size <= 7) return Values(small[size / 2], small[size / 2] + size);
        double s = sigma > 0 ? sigma : 0.3 * (double(size - 1) * 0.5 - 1) + 0.8, sum = 0;
        Values w;
        for (int64_t i = 0; i < size; ++i) {
            double x = double(i) - double(size - 1) / 2;
            w.push_back(std::exp(-x * x / (2 * s * s)));
            sum += w.back();
        }
        for (double& v : w) v /= sum;
        return w;
    }
};

Blur blur_of(const Call& c, int axis) {
    double x = c.real("sigmaX"), y = c.real("sigmaY"), sigma = axis == 0 || !(y > 0) ? x : y;
    int64_t size = c.ints("ksize")[size_t(axis)];
    double reach = c.tensor("src").dtype == ACL_UINT8 ? 3 : 4;
    if (size == 0 && sigma > 0 && sigma * reach * 2 < double(kLongestBlur)) size = int64_t(std::nearbyint(sigma * reach * 2 + 1)) | 1;
    return {size, sigma};
}

// The place that stands for one outside [0, n); -1: nothing does.
int64_t bordered(int64_t i, int64_t n, int64_t border) {
    if ((i >= 0 && i < n) || border == kZeros) return i >= 0 && i < n ? i : -1;
    if (border == kEdge) return i < 0 ? 0 : n - 1;
    if (n == 1) return 0;
    int64_t period = border == kWrap ? n : border == kMirror ? 2 * n : 2 * n - 2;
    i = (i % period + period) % period;
    if (i < n) return i;
    return border == kMirror ? period - 1 - i : period - i;
}

void plan_blur(Plan& p) {
    const Tensor& x = p.tensor("src");
    p.same_shape("src", "dst");
    p.same_dtype("src", "dst");
    p.require(category(x.dtype) != Category::Complex, "src has dtype %s", dtype_name(x.dtype));
    bool placed = x.format == ACL_FORMAT_NCHW || x.format == ACL_FORMAT_NHWC;
    p.require(x.rank() == 2 || x.rank() == 3 || (x.rank() == 4 && placed && x.format == p.tensor("dst").format), "src has shape %s; of four dimensions the format says where the channels are", text(x.dims).c_str());
    p.require(p.ints("ksize").size() == 2, "ksize has %zu elements, expected 2", p.ints("ksize").size());
    for (int axis = 0; axis < 2; ++axis) {
        Blur b = blur_of(p, axis);
        p.require(b.size > 0 && b.size % 2 == 1 && b.size <= kLongestBlur, "ksize is %lld, expected an odd number to %lld, or 0 where sigmaX is positive and small", wide(b.size), wide(kLongestBlur));
        p.require(std::isfinite(b.sigma), "sigmaX and sigmaY must be finite");
    }
    int64_t border = p.integer("borderType");
    p.require(border >= kZeros && border <= kInnerMirror, "borderType is %lld, expected 0 to 4", wide(border));
}

Values blurred(const Values& x, int64_t outer, int64_t n, int64_t inner, const Values& w, int64_t border) {
    Values y(x.size(), 0);
    int64_t half = int64_t(w.size()) / 2;
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < n; ++i)
            for (int64_t k = 0; k < int64_t(w.size()); ++k) {
                int64_t from = bordered(i + k - half, n, border);
                if (from < 0) continue;
                for (int64_t c = 0; c < inner; ++c) y[size_t((o * n + i) * inner + c)] += w[size_t(k)] * x[size_t((o * n + from) * inner + c)];
            }
    return y;
}

void run_blur(Run& r) {
    const Tensor& t = r.tensor("src");
    int rows = t.rank() < 4 ? 0 : t.format == ACL_FORMAT_NCHW ? 2 : 1;
    int64_t outer = 1, inner = 1, h = t.dims[rows], w = t.dims[rows + 1], border = r.integer("borderType");
    for (int i = 0; i < rows; ++i) outer *= t.dims[i];
    for (int i = rows + 2; i < t.rank(); ++i) inner *= t.dims[i];
    auto y = blurred(r.read<double>(t), outer * h, w, inner, blur_of(r, 0).weights(), border);
    y = blurred(y, outer, h, w * inner, blur_of(r, 1).weights(), border);
    if (category(t.dtype) != Category::Real)
        for (double& v : y) v = std::nearbyint(v);
    r.write(r.tensor("dst"), y);
}

// -- blending ----------------------------------------------------------------------------------------------------------
void plan_covers(const Plan& p, const char* small, const char* whole) {
    Dims both;
    const Dims &a = p.tensor(small).dims, &b = p.tensor(whole).dims;
    p.require(broadcast(a, b, &both) && both == b, "%s has shape %s, which does not cover %s", small, text(a).c_str(),
              text(b).c_str());
}

Values pixels(Values x, int dtype) {
    if (dtype == ACL_UINT8)
        for (double& v : x) v = std::fmin(std::fmax(std::trunc(v), 0), 255);
    return x;
}

// -- pools --------------------------------------------------------------------------------------------------------------
struct Pool {
    int64_t kernel[2], stride[2], top, bottom, left, right;
    bool ceil;
    int64_t out(int64_t size, int axis) const {
        int64_t before = axis == 0 ? top : left, after = axis == 0 ? bottom : right;
        int64_t room = size + before + after - kernel[axis];
        int64_t n = (ceil ? (room + stride[axis] - 1) / stride[axis] : room / stride[axis]) + 1;
        if (ceil && (n - 1) * stride[axis] >= size + before) --n;  // a window begins inside the input or before it
        return n;
    }
};

void plan_pool(const Plan& p, const Pool& w, const Dims& in, const Dims& out, const char* name) {
    p.require(w.kernel[0] > 0 && w.kernel[1] > 0 && w.stride[0] > 0 && w.stride[1] > 0, "sizes and strides must be positive");
    p.require(w.top >= 0 && w.bottom >= 0 && w.left >= 0 && w.right >= 0 && w.top * 2 <= w.kernel[0] && w.left * 2 <= w.kernel[1],
              "padding must be between 0 and half of the window");
    Dims want{in[0], in[1], w.out(in[2], 0), w.out(in[3], 1)};
    p.require(out == want && want[2] > 0 && want[3] > 0, "%s has shape %s, expected %s", name, text(out).c_str(),
              text(want).c_str());
}

Pool max_pool(const Call& c) {
    const auto &k = c.ints("ksize"), &s = c.ints("strides"), &pads = c.ints("pads");
    return {{k[0], k[1]}, {s[0], s[1]}, pads[0], pads[1], pads[2], pads[3], c.scalar("ceilMode").as<int64_t>() != 0};
}

void run_max(Run& r) {
    const Dims &d = r.tensor("x").dims, &o = r.tensor("out").dims;
    Pool w = max_pool(r);
    auto x = r.read<double>(r.tensor("x"));
    Values y;
    for (int64_t plane = 0; plane < d[0] * d[1]; ++plane)
        for (int64_t i = 0; i < o[2]; ++i)
            for (int64_t j = 0; j < o[3]; ++j) {
                double top = -INFINITY;
                for (int64_t a = 0; a < w.kernel[0]; ++a)
                    for (int64_t b = 0; b < w.kernel[1]; ++b) {
                        int64_t row = i * w.stride[0] - w.top + a, column = j * w.stride[1] - w.left + b;
                        if (row < 0 || row >= d[2] || column < 0 || column >= d[3]) continue;
                        double v = x[size_t((plane * d[2] + row) * d[3] + column)];
                        top = std::isnan(v) || std::isnan(top) ? NAN : std::fmax(top, v);
                    }
                y.push_back(top);
            }
    r.write(r.tensor("out"), y);
}

Pool mean_pool(const Call& c) {
    return {{c.integer("kernelH"), c.integer("kernelW")}, {c.integer("strideH"), c.integer("strideW")},
            c.integer("padTop"), c.integer("padBottom"), c.integer("padLeft"), c.integer("padRight"), c.flag("ceilMode")};
}

// Each place of a window receives the window's slope by how many it counted.
void run_mean_grad(Run& r) {
    const auto& d = r.ints("origInputShape");
    const Dims& o = r.tensor("gradOutput").dims;
    Pool w = mean_pool(r);
    auto g = r.read<double>(r.tensor("gradOutput"));
    Values out(size_t(r.tensor("out").numel()), 0);
    int64_t divisor = r.integer("divisorOverride");
    for (int64_t plane = 0; plane < d[0] * d[1]; ++plane)
        for (int64_t i = 0; i < o[2]; ++i)
            for (int64_t j = 0; j < o[3]; ++j) {
                int64_t top = i * w.stride[0] - w.top, left = j * w.stride[1] - w.left;
                int64_t bottom = std::min(top + w.kernel[0], d[2] + w.bottom), right = std::min(left + w.kernel[1], d[3] + w.right);
                int64_t whole = (bottom - top) * (right - left);
                top = std::max<int64_t>(top, 0), left = std::max<int64_t>(left, 0);
                bottom = std::min(bottom, d[2]), right = std::min(right, d[3]);
                int64_t count = divisor ? divisor : r.flag("countIncludePad") ? whole : (bottom - top) * (right - left);
                for (int64_t row = top; row < bottom; ++row)
                    for (int64_t column = left; column < right; ++column)
                        out[size_t((plane * d[2] + row) * d[3] + column)] +=
                            g[size_t((plane * o[2] + i) * o[3] + j)] / double(count);
            }
    r.write(r.tensor("out"), out);
}

// -- regions: (sample, x1, y1, x2, y2), rounded, both ends inside; the maximum of each of pooled_h x pooled_w bins ------
struct Region {
    int64_t sample, left, top, height, width;
};

Region region(const double* roi, double sh, double sw, int64_t samples) {
    int64_t left = int64_t(std::round(roi[1] * sw)), top = int64_t(std::round(roi[2] * sh));
    int64_t right = int64_t(std::round(roi[3] * sw)), bottom = int64_t(std::round(roi[4] * sh));
    return {checked_index(to_integer(roi[0]), samples, "the sample of a region"), left, top,
            std::max<int64_t>(bottom - top + 1, 1), std::max<int64_t>(right - left + 1, 1)};
}

void run_regions(Run& r) {
    const Dims &d = r.tensor("x").dims, &o = r.tensor("y").dims;
    auto x = r.read<double>(r.tensor("x")), rois = r.read<double>(r.tensor("rois"));
    Values y;
    std::vector<int64_t> places;
    for (int64_t n = 0; n < o[0]; ++n) {
        Region g = region(rois.data() + n * 5, r.real("spatial_scale_h"), r.real("spatial_scale_w"), d[0]);
        for (int64_t c = 0; c < d[1]; ++c)
            for (int64_t i = 0; i < o[2]; ++i)
                for (int64_t j = 0; j < o[3]; ++j) {
                    auto edge = [](int64_t at, int64_t size, int64_t bins, int64_t start, int64_t limit, bool up) {
                        double place = double(at) * double(size) / double(bins);
                        return std::clamp<int64_t>(int64_t(up ? std::ceil(place) : std::floor(place)) + start, 0, limit);
                    };
                    int64_t r0 = edge(i, g.height, o[2], g.top, d[2], false), r1 = edge(i + 1, g.height, o[2], g.top, d[2], true);
                    int64_t c0 = edge(j, g.width, o[3], g.left, d[3], false), c1 = edge(j + 1, g.width, o[3], g.left, d[3], true);
                    double top = r1 <= r0 || c1 <= c0 ? 0 : -INFINITY;
                    int64_t place = -1;
                    for (int64_t row = r0; row < r1; ++row)
                        for (int64_t column = c0; column < c1; ++column) {
                            double v = x[size_t(((g.sample * d[1] + c) * d[2] + row) * d[3] + column)];
                            if (v > top) top = v, place = row * d[3] + column;
                        }
                    y.push_back(top);
                    places.push_back(place);
                }
    }
    r.write(r.tensor("y"), y);
    r.write(r.tensor("argmax"), places);
}

void run_regions_grad(Run& r) {
    const Dims &d = r.tensor("gradInputRef").dims, &o = r.tensor("gradOutput").dims;
    auto g = r.read<double>(r.tensor("gradOutput")), dx = r.read<double>(r.tensor("gradInputRef"));
    auto rois = r.read<double>(r.tensor("rois"));
    auto places = r.read<int64_t>(r.tensor("argmax"));
    for (int64_t i = 0; i < int64_t(g.size()); ++i) {
        if (places[size_t(i)] < 0) continue;
        int64_t c = i / (o[2] * o[3]) % o[1], n = i / (o[1] * o[2] * o[3]);
        int64_t sample = checked_index(to_integer(rois[size_t(n * 5)]), d[0], "the sample of a region");
        dx[size_t((sample * d[1] + c) * d[2] * d[3] + checked_index(places[size_t(i)], d[2] * d[3], "argmax"))] += g[size_t(i)];
    }
    r.write(r.tensor("gradInputRef"), dx);
}

// -- samples of several maps: value (samples, places of all maps, heads, size), location in [0, 1] -----------------------
struct Maps {
    int64_t samples, keys, heads, size, queries, levels, points;
    std::vector<int64_t> shapes, starts;

    explicit Maps(const Run& r) {
        const Dims &v = r.tensor("value").dims, &l = r.tensor("location").dims;
        samples = v[0], keys = v[1], heads = v[2], size = v[3], queries = l[1], levels = l[3], points = l[4];
        shapes = r.read<int64_t>(r.tensor("spatialShape"));
        starts = r.read<int64_t>(r.tensor("levelStartIndex"));
        for (int64_t i = 0; i < levels; ++i)
            if (starts[size_t(i)] < 0 || shapes[size_t(2 * i)] <= 0 || shapes[size_t(2 * i + 1)] <= 0 ||
                starts[size_t(i)] + shapes[size_t(2 * i)] * shapes[size_t(2 * i + 1)] > keys)
                fault("map %lld is not inside value", wide(i));
    }
    // f(weight place, location place, query row, key row, share, its slopes by x and y) for the four neighbours.
    template <class F>
    void each(const Values& location, F f) const {
        size_t at = 0;
        for (int64_t b = 0; b < samples; ++b)
            for (int64_t q = 0; q < queries; ++q)
                for (int64_t h = 0; h < heads; ++h)
                    for (int64_t l = 0; l < levels; ++l)
                        for (int64_t p = 0; p < points; ++p, ++at) {
                            int64_t rows = shapes[size_t(2 * l)], columns = shapes[size_t(2 * l + 1)];
                            double x = location[2 * at] * double(columns) - 0.5, y = location[2 * at + 1] * double(rows) - 0.5;
                            if (!(x > -1 && y > -1 && x < double(columns) && y < double(rows))) continue;
                            double fx = std::floor(x), fy = std::floor(y), dx = x - fx, dy = y - fy;
                            for (int corner = 0; corner < 4; ++corner) {
                                int64_t i = int64_t(fy) + corner / 2, j = int64_t(fx) + corner % 2;
                                if (i < 0 || j < 0 || i >= rows || j >= columns) continue;
                                double u = corner / 2 ? dy : 1 - dy, v = corner % 2 ? dx : 1 - dx;
                                size_t key = size_t(((b * keys + starts[size_t(l)] + i * columns + j) * heads + h) * size);
                                f(at, size_t(((b * queries + q) * heads + h) * size), key, u * v,
                                  (corner % 2 ? u : -u) * double(columns), (corner / 2 ? v : -v) * double(rows));
                            }
                        }
    }
};

void plan_maps(const Plan& p) {
    const Dims &v = p.tensor("value").dims, &l = p.tensor("location").dims;
    p.require(v.n == 4 && l.n == 6 && l[0] == v[0] && l[2] == v[2] && l[5] == 2, "value has shape %s, location %s",
              text(v).c_str(), text(l).c_str());
    p.shape("spatialShape", {l[3], 2});
    p.shape("levelStartIndex", {l[3]});
    p.shape("attnWeight", {l[0], l[1], l[2], l[3], l[4]});
    for (const char* name : {"location", "attnWeight"}) p.same_dtype("value", name);
}

void run_maps(Run& r) {
    Maps m(r);
    auto value = r.read<double>(r.tensor("value")), weight = r.read<double>(r.tensor("attnWeight"));
    Values out(size_t(r.tensor("output").numel()), 0);
    m.each(r.read<double>(r.tensor("location")), [&](size_t at, size_t query, size_t key, double share, double, double) {
        for (size_t d = 0; d < size_t(m.size); ++d) out[query + d] += weight[at] * share * value[key + d];
    });
    r.write(r.tensor("output"), out);
}

void run_maps_grad(Run& r) {
    Maps m(r);
    auto value = r.read<double>(r.tensor("value")), weight = r.read<double>(r.tensor("attnWeight"));
    auto location = r.read<double>(r.tensor("location")), g = r.read<double>(r.tensor("gradOutput"));
    Values dv(value.size()), dw(weight.size()), dl(location.size());
    m.each(location, [&](size_t at, size_t query, size_t key, double share, double by_x, double by_y) {
        for (size_t d = 0; d < size_t(m.size); ++d) {
            double slope = g[query + d] * value[key + d];
            dv[key + d] += g[query + d] * weight[at] * share;
            dw[at] += slope * share;
            dl[2 * at] += slope * weight[at] * by_x;
            dl[2 * at + 1] += slope * weight[at] * by_y;
        }
    });
    r.write(r.tensor("gradValue"), dv);
    r.write(r.tensor("gradLocation"), dl);
    r.write(r.tensor("gradAttnWeight"), dw);
}

}  // namespace

ACLNN(aclnnResize, plan_resize, run_resize)
// bkg * (1 - mask) + src * mask
ACLNN(aclnnBackgroundReplace,
      PLAN {
          for (const char* name : {"src", "out"}) {
              p.same_shape("bkg", name);
              p.same_dtype("bkg", name);
          }
          plan_covers(p, "mask", "bkg");
      },
      RUN {
          const Tensor& to = r.tensor("out");
          auto a = r.read<double>(r.tensor("bkg")), b = r.read<double>(r.tensor("src"));
          auto mask = r.read<double>(r.tensor("mask"), to.dims);
          for (size_t i = 0; i < a.size(); ++i) a[i] = a[i] * (1 - mask[i]) + b[i] * mask[i];
          r.write(to, pixels(a, to.dtype));
      })
// rgb * alpha / 255 + frame * (1 - alpha / 255)
ACLNN(aclnnBlendImagesCustom,
      PLAN {
          for (const char* name : {"frame", "out"}) p.same_shape("rgb", name);
          plan_covers(p, "alpha", "rgb");
      },
      RUN {
          const Tensor& to = r.tensor("out");
          auto a = r.read<double>(r.tensor("rgb")), b = r.read<double>(r.tensor("frame"));
          auto alpha = r.read<double>(r.tensor("alpha"), to.dims);
          for (size_t i = 0; i < a.size(); ++i) a[i] = (a[i] * alpha[i] + b[i] * (255 - alpha[i])) / 255;
          r.write(to, pixels(a, to.dtype));
      })
// rgb * alpha / 255
ACLNN(aclnnMrgbaCustom,
      PLAN {
          p.same_shape("rgb", "out");
          plan_covers(p, "alpha", "rgb");
      },
      RUN {
          const Tensor& to = r.tensor("out");
          auto a = r.read<double>(r.tensor("rgb")), alpha = r.read<double>(r.tensor("alpha"), to.dims);
          for (size_t i = 0; i < a.size(); ++i) a[i] = a[i] * alpha[i] / 255;
          r.write(to, pixels(a, to.dtype));
      })
ACLNN(aclnnMaxPoolV3,
      PLAN {
          for (auto [name, count] : {std::pair{"ksize", 2u}, {"strides", 2u}, {"pads", 4u}})
              p.require(p.ints(name).size() == count, "%s has %zu elements, expected %u", name, p.ints(name).size(), count);
          plan_pool(p, max_pool(p), p.tensor("x").dims, p.tensor("out").dims, "out");
      },
      run_max)
ACLNN(aclnnAveragePoolingGrad,
      PLAN {
          const auto& d = p.ints("origInputShape");
          p.require(d.size() == 4, "origInputShape has %zu elements, expected 4", d.size());
          Dims shape(d.data(), 4);
          p.require(p.tensor("gradOutput").rank() == 4, "gradOutput has %d dimensions, expected 4", p.tensor("gradOutput").rank());
          plan_pool(p, mean_pool(p), shape, p.tensor("gradOutput").dims, "gradOutput");
          p.shape("out", shape);
      },
      run_mean_grad)
ACLNN(aclnnRoiPoolingWithArgMax,
      PLAN {
          const Dims &x = p.tensor("x").dims, &rois = p.tensor("rois").dims;
          p.require(rois[1] == 5, "rois has shape %s, expected (.., 5)", text(rois).c_str());
          p.require(p.integer("pooled_h") > 0 && p.integer("pooled_w") > 0, "pooled_h and pooled_w must be positive");
          for (const char* name : {"y", "argmax"}) p.shape(name, {rois[0], x[1], p.integer("pooled_h"), p.integer("pooled_w")});
          p.same_dtype("x", "y");
      },
      run_regions)
ACLNN(aclnnRoiPoolingGradWithArgMax,
      PLAN {
          const Dims &g = p.tensor("gradOutput").dims, &x = p.tensor("gradInputRef").dims, &rois = p.tensor("rois").dims;
          p.require(g.n == 4 && x.n == 4 && rois.n == 2 && rois[1] == 5 && rois[0] == g[0] && g[1] == x[1],
                    "gradOutput has shape %s, gradInputRef %s, rois %s", text(g).c_str(), text(x).c_str(), text(rois).c_str());
          p.require(g[2] == p.integer("pooledH") && g[3] == p.integer("pooledW"), "gradOutput has shape %s", text(g).c_str());
          p.same_shape("gradOutput", "argmax");
          p.same_dtype("gradOutput", "gradInputRef");
      },
      run_regions_grad)
ACLNN(aclnnMultiScaleDeformableAttnFunction,
      PLAN {
          plan_maps(p);
          const Dims &v = p.tensor("value").dims, &l = p.tensor("location").dims;
          p.shape("output", {v[0], l[1], v[2] * v[3]});
      },
      run_maps)
ACLNN(aclnnMultiScaleDeformableAttentionGrad,
      PLAN {
          plan_maps(p);
          const Dims &v = p.tensor("value").dims, &l = p.tensor("location").dims;
          p.shape("gradOutput", {v[0], l[1], v[2] * v[3]});
          p.same_shape("value", "gradValue");
          p.same_shape("location", "gradLocation");
          p.same_shape("attnWeight", "gradAttnWeight");
      },
      run_maps_grad)
ACLNN(aclnnGaussianBlur, plan_blur, run_blur)
