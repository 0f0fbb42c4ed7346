// Boxes in images: regions brought to one size, overlaps, the best of overlapping boxes; and a convolution that looks
// where an offset tells it to.
#include <algorithm>
#include <cmath>

#include "view.h"

using namespace emu;

namespace {

// -- regions ---------------------------------------------------------------------------------------------------------
struct Regions {
    int64_t height, width, ratio;  // of the result; samples in each of its cells, 0: as many as there are pixels
    double scale;
    double shift;                  // half a pixel where corners are aligned
    bool smallest;                 // a region is at least one pixel wide
};

struct Sample {
    int64_t place[4];
    double weight[4];
};

// The four pixels around a point; nothing outside of the image.
bool around(double y, double x, int64_t height, int64_t width, Sample* s) {
    if (y < -1 || y > double(height) || x < -1 || x > double(width)) return false;
    y = std::fmax(y, 0), x = std::fmax(x, 0);
    int64_t top = int64_t(y), left = int64_t(x), bottom = top + 1, right = left + 1;
    if (top >= height - 1) top = bottom = height - 1, y = double(top);
    if (left >= width - 1) left = right = width - 1, x = double(left);
    double dy = y - double(top), dx = x - double(left);
    int64_t places[] = {top * width + left, top * width + right, bottom * width + left, bottom * width + right};
    double weights[] = {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx};
    std::copy(places, places + 4, s->place);
    std::copy(weights, weights + 4, s->weight);
    return true;
}

// f(cell, samples in it, sample) for every sample of one region given as x1, y1, x2, y2.
template <class F>
void each_sample(const Regions& g, const double* box, int64_t height, int64_t width, F f) {
    double left = box[0] * g.scale - g.shift, top = box[1] * g.scale - g.shift;
    double wide = box[2] * g.scale - g.shift - left, high = box[3] * g.scale - g.shift - top;
    if (g.smallest) wide = std::fmax(wide, 1), high = std::fmax(high, 1);
    double cell_w = wide / double(g.width), cell_h = high / double(g.height);
    int64_t across = g.ratio > 0 ? g.ratio : int64_t(std::ceil(cell_w));
    int64_t down = g.ratio > 0 ? g.ratio : int64_t(std::ceil(cell_h));
    for (int64_t i = 0; i < g.height; ++i)
        for (int64_t j = 0; j < g.width; ++j)
            for (int64_t a = 0; a < down; ++a)
                for (int64_t b = 0; b < across; ++b) {
                    double y = top + (double(i) + (double(a) + 0.5) / double(down)) * cell_h;
                    double x = left + (double(j) + (double(b) + 0.5) / double(across)) * cell_w;
                    Sample s;
                    bool inside = around(y, x, height, width, &s);
                    f(i * g.width + j, across * down, inside ? &s : nullptr);
                }
}

void plan_region(const Plan& p, const char* boxes, int columns, const Dims& image, int64_t height, int64_t width,
                 const char* out) {
    const Dims& d = p.tensor(boxes).dims;
    p.require(image.n == 4, "the image has %d dimensions, expected 4", image.n);
    p.require(image[2] > 0 && image[3] > 0, "the image has shape %s: there is nothing in it", text(image).c_str());
    p.require(d.n == 2 && d[1] == columns, "%s has shape %s, expected (n, %d)", boxes, text(d).c_str(), columns);
    p.require(height > 0 && width > 0, "the size of the result must be positive");
    p.shape(out, {d[0], image[1], height, width});
}

// max: the largest of the samples; otherwise their mean.
void run_regions(Run& r, const char* out, const Regions& g, const std::vector<double>& boxes,
                 const std::vector<int64_t>& images, bool largest) {
    const Dims& d = r.tensor("self").dims;
    auto x = r.read<double>(r.tensor("self"));
    int64_t cells = g.height * g.width, plane = d[2] * d[3];
    std::vector<double> y(images.size() * size_t(d[1] * cells), largest ? -INFINITY : 0.0);
    for (size_t n = 0; n < images.size(); ++n) {
        if (images[n] < 0 || images[n] >= d[0]) fault("a box is of image %lld", static_cast<long long>(images[n]));
        each_sample(g, boxes.data() + n * 4, d[2], d[3], [&](int64_t cell, int64_t count, const Sample* s) {
            for (int64_t c = 0; c < d[1]; ++c) {
                double value = 0, top = -INFINITY;
                for (int k = 0; s && k < 4; ++k) {
                    double part = s->weight[k] * x[size_t((images[n] * d[1] + c) * plane + s->place[k])];
                    value += part;
                    top = std::fmax(top, part);
                }
                double& to = y[size_t((int64_t(n) * d[1] + c) * cells + cell)];
                if (largest) to = std::fmax(to, s ? top : 0);
                else to += value / double(count);
            }
        });
    }
    r.write(r.tensor(out), y);
}

void split_boxes(const std::vector<double>& rows, std::vector<double>* boxes, std::vector<int64_t>* images) {
    for (size_t i = 0; i < rows.size(); i += 5) {
        images->push_back(int64_t(rows[i]));
        boxes->insert(boxes->end(), rows.begin() + i + 1, rows.begin() + i + 5);
    }
}

Regions aligned_regions(const Call& c) {
    bool aligned = c.flag("aligned");
    return {c.integer("pooledHeight"), c.integer("pooledWidth"), c.integer("samplingRatio"), c.real("spatialScale"),
            aligned ? 0.5 : 0.0, !aligned};
}

void run_backward(Run& r) {
    Regions g = aligned_regions(r);
    const auto& shape = r.ints("inputShape");
    std::vector<double> boxes;
    std::vector<int64_t> images;
    split_boxes(r.read<double>(r.tensor("boxes")), &boxes, &images);
    auto dy = r.read<double>(r.tensor("gradOutput"));
    int64_t plane = shape[2] * shape[3], cells = g.height * g.width;
    std::vector<double> dx(size_t(shape[0] * shape[1] * plane), 0);
    for (size_t n = 0; n < images.size(); ++n) {
        if (images[n] < 0 || images[n] >= shape[0]) fault("a box is of image %lld", static_cast<long long>(images[n]));
        each_sample(g, boxes.data() + n * 4, shape[2], shape[3], [&](int64_t cell, int64_t count, const Sample* s) {
            for (int64_t c = 0; s && c < shape[1]; ++c)
                for (int k = 0; k < 4; ++k)
                    dx[size_t((images[n] * shape[1] + c) * plane + s->place[k])] +=
                        dy[size_t((int64_t(n) * shape[1] + c) * cells + cell)] * s->weight[k] / double(count);
        });
    }
    r.write(r.tensor("gradInput"), dx);
}

// -- overlaps --------------------------------------------------------------------------------------------------------
double overlap(const double* a, const double* b, double eps, bool over_first) {
    double width = std::fmin(a[2], b[2]) - std::fmax(a[0], b[0]);
    double height = std::fmin(a[3], b[3]) - std::fmax(a[1], b[1]);
    double both = std::fmax(width, 0) * std::fmax(height, 0);
    double first = (a[2] - a[0]) * (a[3] - a[1]), second = (b[2] - b[0]) * (b[3] - b[1]);
    return over_first ? both / (second + eps) : both / (first + second - both + eps);
}

void plan_iou(Plan& p) {
    const Dims &a = p.tensor("bBoxes").dims, &b = p.tensor("gtBoxes").dims;
    const std::string& mode = p.string("mode");
    p.require(mode == "iou" || mode == "iof", "mode is \"%s\", expected iou or iof", mode.c_str());
    p.require(a.n == 2 && b.n == 2 && a[1] == 4 && b[1] == 4, "boxes have shapes %s and %s, expected (n, 4)",
              text(a).c_str(), text(b).c_str());
    p.require(!p.flag("aligned") || a[0] == b[0], "aligned boxes must be as many");
    p.shape("overlap", p.flag("aligned") ? Dims{a[0], 1} : Dims{b[0], a[0]});
}

void run_iou(Run& r) {
    auto a = r.read<double>(r.tensor("bBoxes")), b = r.read<double>(r.tensor("gtBoxes"));
    bool foreground = r.string("mode") == "iof";
    std::vector<double> out;
    for (size_t j = 0; j < b.size(); j += 4)
        for (size_t i = r.flag("aligned") ? j : 0; i < (r.flag("aligned") ? j + 4 : a.size()); i += 4)
            out.push_back(overlap(a.data() + i, b.data() + j, r.real("eps"), foreground));
    r.write(r.tensor("overlap"), out);
}

// -- the best of overlapping boxes -----------------------------------------------------------------------------------
void plan_suppression(Plan& p) {
    const Dims &b = p.tensor("boxes").dims, &s = p.tensor("scores").dims;
    p.require(b.n == 3 && b[2] == 4 && s.n == 3 && s[0] == b[0] && s[2] == b[1], "boxes %s and scores %s do not fit",
              text(b).c_str(), text(s).c_str());
    p.require(p.integer("centerPointBox") == 0 || p.integer("centerPointBox") == 1, "centerPointBox must be 0 or 1");
    const Dims& out = p.tensor("selectedIndices").dims;
    p.require(out.n == 2 && out[1] == 3, "selectedIndices has shape %s, expected (n, 3)", text(out).c_str());
}

void run_suppression(Run& r) {
    const Dims& s = r.tensor("scores").dims;
    auto boxes = r.read<double>(r.tensor("boxes")), scores = r.read<double>(r.tensor("scores"));
    auto first = [&](const char* name, double missing) { return r.floats(name).empty() ? missing : r.floats(name)[0]; };
    int64_t most = r.ints("maxOutputBoxesPerClass").empty() ? 0 : r.ints("maxOutputBoxesPerClass")[0];
    double limit = first("iouThreshold", 0), least = first("scoreThreshold", -INFINITY);
    for (size_t i = 0; i < boxes.size(); i += 4) {
        double* b = boxes.data() + i;
        if (r.integer("centerPointBox") == 1) {  // x, y of the centre, width, height
            double x = b[0], y = b[1], w = b[2], h = b[3];
            b[0] = x - w / 2, b[1] = y - h / 2, b[2] = x + w / 2, b[3] = y + h / 2;
        }
        if (b[0] > b[2]) std::swap(b[0], b[2]);
        if (b[1] > b[3]) std::swap(b[1], b[3]);
    }
    std::vector<int64_t> out;
    for (int64_t n = 0; n < s[0]; ++n)
        for (int64_t c = 0; c < s[1]; ++c) {
            const double* score = scores.data() + (n * s[1] + c) * s[2];
            std::vector<int64_t> order, kept;
            for (int64_t i = 0; i < s[2]; ++i)
                if (score[i] > least) order.push_back(i);
            std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return score[i] > score[j]; });
            for (int64_t i : order) {
                if (int64_t(kept.size()) == most) break;
                auto covers = [&](int64_t k) {
                    return overlap(boxes.data() + (n * s[2] + i) * 4, boxes.data() + (n * s[2] + k) * 4, 0, false) > limit;
                };
                if (std::any_of(kept.begin(), kept.end(), covers)) continue;
                kept.push_back(i);
                out.insert(out.end(), {n, c, i});
            }
        }
    check_room(r, "selectedIndices", int64_t(out.size()));
    r.resize("selectedIndices", {int64_t(out.size()) / 3, 3});
    r.write(r.tensor("selectedIndices"), out);
}

// -- overlap, less the distance of the centres and the difference of the shapes ------------------------------------------
// Boxes are columns of (4, n): corners, or centre and sizes where trans. The facts have shapes; the formula is the published
// one, with 1e-9 where a quotient could have no divisor.
void plan_complete(Plan& p) {
    const Dims &a = p.tensor("bBoxes").dims, &b = p.tensor("gtBoxes").dims;
    const std::string& mode = p.string("mode");
    p.require(mode == "iou" || mode == "iof", "mode is \"%s\", expected iou or iof", mode.c_str());
    p.require(a[0] == 4 && b[0] == 4, "boxes have shapes %s and %s, expected (4, n)", text(a).c_str(), text(b).c_str());
    p.require(p.flag("isCross") || a[1] == b[1], "boxes %s and %s are not as many", text(a).c_str(), text(b).c_str());
    for (const char* name : {"overlap", "atanSub"}) p.shape(name, p.flag("isCross") ? Dims{a[1], b[1]} : Dims{1, a[1]});
}

void run_complete(Run& r) {
    int64_t n = r.tensor("bBoxes").dims[1], m = r.tensor("gtBoxes").dims[1];
    bool centred = r.flag("trans"), cross = r.flag("isCross"), foreground = r.string("mode") == "iof";
    auto corners = [&](const std::vector<double>& x, int64_t i, int64_t count, double* box) {
        for (int64_t k = 0; k < 4; ++k) box[k] = x[size_t(k * count + i)];
        if (!centred) return;
        double x0 = box[0], y0 = box[1], w = box[2], h = box[3];
        box[0] = x0 - w / 2, box[1] = y0 - h / 2, box[2] = x0 + w / 2, box[3] = y0 + h / 2;
    };
    constexpr double kLeast = 1e-9;
    const double pi = std::acos(-1.0);
    auto a = r.read<double>(r.tensor("bBoxes")), b = r.read<double>(r.tensor("gtBoxes"));
    std::vector<double> out, angles;
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = cross ? 0 : i; j < (cross ? m : i + 1); ++j) {
            double p[4], g[4];
            corners(a, i, n, p), corners(b, j, m, g);
            double inner = std::fmax(std::fmin(p[2], g[2]) - std::fmax(p[0], g[0]), 0) * std::fmax(std::fmin(p[3], g[3]) - std::fmax(p[1], g[1]), 0);
            double mine = (p[2] - p[0]) * (p[3] - p[1]), theirs = (g[2] - g[0]) * (g[3] - g[1]);
            double iou = inner / ((foreground ? theirs : mine + theirs - inner) + kLeast);
            double wide_ = std::fmax(p[2], g[2]) - std::fmin(p[0], g[0]), high = std::fmax(p[3], g[3]) - std::fmin(p[1], g[1]);
            double dx = (p[0] + p[2] - g[0] - g[2]) / 2, dy = (p[1] + p[3] - g[1] - g[3]) / 2;
            double angle = std::atan((g[2] - g[0]) / (g[3] - g[1] + kLeast)) - std::atan((p[2] - p[0]) / (p[3] - p[1] + kLeast));
            double v = 4 / (pi * pi) * angle * angle, share = v / (1 - iou + v + kLeast);
            out.push_back(iou - (dx * dx + dy * dy) / (wide_ * wide_ + high * high + kLeast) - share * v);
            angles.push_back(angle);
        }
    r.write(r.tensor("overlap"), out);
    r.write(r.tensor("atanSub"), angles);
}

}  // namespace

ACLNN(aclnnRoiAlign,
      PLAN {
          plan_region(p, "rois", 4, p.tensor("self").dims, p.integer("outputHeight"), p.integer("outputWidth"), "out");
          p.shape("batchIndices", {p.tensor("rois").dims[0]});
          const std::string& mode = p.string("mode");
          p.require(mode == "avg" || mode == "max", "mode is \"%s\", expected avg or max", mode.c_str());
      },
      RUN {
          Regions g{r.integer("outputHeight"), r.integer("outputWidth"), r.integer("samplingRatio"),
                    r.real("spatialScale"), 0, true};
          run_regions(r, "out", g, r.read<double>(r.tensor("rois")), r.read<int64_t>(r.tensor("batchIndices")),
                      r.string("mode") == "max");
      })
ACLNN(aclnnRoiAlignV2,
      PLAN {
          plan_region(p, "boxes", 5, p.tensor("self").dims, p.integer("pooledHeight"), p.integer("pooledWidth"), "out");
      },
      RUN {
          std::vector<double> boxes;
          std::vector<int64_t> images;
          split_boxes(r.read<double>(r.tensor("boxes")), &boxes, &images);
          run_regions(r, "out", aligned_regions(r), boxes, images, false);
      })
ACLNN(aclnnRoiAlignV2Backward,
      PLAN {
          const auto& shape = p.ints("inputShape");
          p.require(shape.size() == 4, "inputShape has %zu elements, expected 4", shape.size());
          Dims image(shape.data(), 4);
          plan_region(p, "boxes", 5, image, p.integer("pooledHeight"), p.integer("pooledWidth"), "gradOutput");
          p.shape("gradInput", image);
      },
      run_backward)
ACLNN(aclnnIou, plan_iou, run_iou)
ACLNN(aclnnNonMaxSuppression, plan_suppression, run_suppression, DYNAMIC)
ACLNN(aclnnCIoU, plan_complete, run_complete)
