// Which triangle covers each pixel, and where in it the pixel lies.
//
// The facts have dtypes and ranks; the rule is that of the rasterizer the function's description names. Corners are
// (x, y, z, w) before the division by w; x and y from -1 to 1 span the pixels' centres, z becomes z / w * 0.49999 + 0.5. The
// nearest triangle wins, of equal depths (to 2^-18) the first. Numbers of triangles begin at 1; 0 is none. With useDepthPrior
// a triangle nearer than the prior by more than occlusionTruncation is not seen.
#include <cmath>

#include "kernel.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

long long wide(int64_t x) { return static_cast<long long>(x); }

constexpr double kDepthScale = 0.49999, kDepthSteps = 1 << 18;

void plan_raster(Plan& p) {
    const Dims &v = p.tensor("v").dims, &f = p.tensor("f").dims;
    p.require(v[1] == 4 && f[1] == 3, "v has shape %s, expected (n, 4); f %s, expected (n, 3)", text(v).c_str(), text(f).c_str());
    int64_t width = p.integer("width"), height = p.integer("height"), prior = p.integer("useDepthPrior");
    p.require(width > 0 && height > 0 && width <= 1 << 15 && height <= 1 << 15, "width is %lld, height %lld", wide(width), wide(height));
    p.require(prior == 0 || prior == 1, "useDepthPrior is %lld, expected 0 or 1", wide(prior));
    if (prior == 1) {
        if (!p.has("dOptional")) refuse(ACLNN_ERR_PARAM_NULLPTR, "dOptional must not be null: useDepthPrior asks for it");
        p.shape("dOptional", {height, width});
    }
    p.shape("findicesOut", {height, width});
    p.shape("barycentricOut", {height, width, 3});
}

struct Triangle {
    double x[3], y[3], z[3], w[3];
    // Shares of the corners at a point; all negative where the triangle has no area.
    void shares(double px, double py, double* out) const {
        auto area = [](double ax, double ay, double bx, double by, double cx, double cy) { return (cx - ax) * (by - ay) - (bx - ax) * (cy - ay); };
        double whole = area(x[0], y[0], x[1], y[1], x[2], y[2]);
        if (whole == 0) {
            out[0] = out[1] = out[2] = -1;
            return;
        }
        out[1] = area(x[0], y[0], px, py, x[2], y[2]) / whole;
        out[2] = area(x[0], y[0], x[1], y[1], px, py) / whole;
        out[0] = 1 - out[1] - out[2];
    }
};

Triangle corners(const Run& r, const Values& v, const int64_t* face, int64_t count) {
    Triangle t;
    for (int i = 0; i < 3; ++i) {
        if (face[i] < 0 || face[i] >= count) fault("f holds %lld, v has %lld rows", wide(face[i]), wide(count));
        const double* c = v.data() + face[i] * 4;
        t.w[i] = c[3];
        t.x[i] = (c[0] / c[3] * 0.5 + 0.5) * double(r.integer("width") - 1) + 0.5;
        t.y[i] = (c[1] / c[3] * 0.5 + 0.5) * double(r.integer("height") - 1) + 0.5;
        t.z[i] = c[2] / c[3] * kDepthScale + 0.5;
    }
    return t;
}

// The pixels from the least to the most of three places, within the image.
std::pair<int64_t, int64_t> reach(const double* at, int64_t size) {
    double low = std::fmin(at[0], std::fmin(at[1], at[2])), high = std::fmax(at[0], std::fmax(at[1], at[2]));
    if (!(low <= high) || high < 0 || low >= double(size)) return {0, 0};
    return {int64_t(std::fmax(low, 0)), int64_t(std::fmin(high + 1, double(size - 1))) + 1};
}

void run_raster(Run& r) {
    auto v = r.read<double>(r.tensor("v"));
    auto f = r.read<int64_t>(r.tensor("f"));
    int64_t width = r.integer("width"), height = r.integer("height"), count = r.tensor("v").dims[0];
    Values prior, shares(size_t(width * height * 3), 0), nearest(size_t(width * height), INFINITY);
    if (r.integer("useDepthPrior") == 1) prior = r.read<double>(r.tensor("dOptional"));
    std::vector<int64_t> index(size_t(width * height), 0);
    for (int64_t n = 0; n < int64_t(f.size()) / 3; ++n) {
        Triangle t = corners(r, v, f.data() + n * 3, count);
        auto [left, right] = reach(t.x, width);
        auto [top, bottom] = reach(t.y, height);
        for (int64_t py = top; py < bottom; ++py)
            for (int64_t px = left; px < right; ++px) {
                double b[3];
                t.shares(double(px) + 0.5, double(py) + 0.5, b);
                if (!(b[0] >= 0 && b[1] >= 0 && b[2] >= 0)) continue;
                size_t at = size_t(py * width + px);
                double depth = b[0] * t.z[0] + b[1] * t.z[1] + b[2] * t.z[2], step = std::floor(depth * kDepthSteps);
                if (!prior.empty() && depth < prior[at] * kDepthScale + 0.5 + r.real("occlusionTruncation")) continue;
                if (step >= nearest[at]) continue;
                nearest[at] = step, index[at] = n + 1;
                double over[3] = {b[0] / t.w[0], b[1] / t.w[1], b[2] / t.w[2]}, sum = over[0] + over[1] + over[2];
                for (int i = 0; i < 3; ++i) shares[at * 3 + size_t(i)] = over[i] / sum;  // as before the division by w
            }
    }
    r.write(r.tensor("findicesOut"), index);
    r.write(r.tensor("barycentricOut"), shares);
}

}  // namespace

ACLNN(aclnnRasterizer, plan_raster, run_raster)
