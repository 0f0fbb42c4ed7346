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

// -- a convolution that looks elsewhere ------------------------------------------------------------------------------
// Offsets are, for each deformable group: x of every kernel element, y of every one, then how much each counts.
void plan_deformable(Plan& p) {
    const Dims &x = p.tensor("x").dims, &w = p.tensor("weight").dims, &o = p.tensor("out").dims;
    const auto &size = p.ints("kernelSize"), &stride = p.ints("stride"), &pad = p.ints("padding"), &by = p.ints("dilation");
    p.require(size.size() == 2 && stride.size() == 4 && pad.size() == 4 && by.size() == 4,
              "kernelSize needs 2 elements; stride, padding and dilation 4");
    int64_t groups = p.integer("groups"), deformable = p.integer("deformableGroups");
    p.require(groups > 0 && deformable > 0 && x[1] % groups == 0 && w[0] % groups == 0 && x[1] % deformable == 0,
              "groups and deformableGroups must divide the channels");
    p.require(w[1] == x[1] / groups && w[2] == size[0] && w[3] == size[1], "weight has shape %s", text(w).c_str());
    p.require(stride[2] > 0 && stride[3] > 0 && by[2] > 0 && by[3] > 0, "stride and dilation must be positive");
    int64_t height = (x[2] + pad[0] + pad[1] - by[2] * (size[0] - 1) - 1) / stride[2] + 1;
    int64_t width = (x[3] + pad[2] + pad[3] - by[3] * (size[1] - 1) - 1) / stride[3] + 1;
    p.require(o == Dims({x[0], w[0], height, width}), "out has shape %s, expected %s", text(o).c_str(),
              text(Dims({x[0], w[0], height, width})).c_str());
    int64_t parts = p.flag("modulated") ? 3 : 2;
    p.shape("offset", {x[0], parts * deformable * size[0] * size[1], height, width});
    if (p.has("biasOptional")) p.shape("biasOptional", {w[0]});
    if (p.has("deformOutOptional")) p.shape("deformOutOptional", {x[0], x[1], height * size[0], width * size[1]});
}

void run_deformable(Run& r) {
    const Dims &d = r.tensor("x").dims, &w = r.tensor("weight").dims, &o = r.tensor("out").dims;
    auto x = r.read<double>(r.tensor("x")), weight = r.read<double>(r.tensor("weight"));
    auto offset = r.read<double>(r.tensor("offset"));
    const auto &stride = r.ints("stride"), &pad = r.ints("padding"), &by = r.ints("dilation");
    int64_t kernel = w[2] * w[3], deformable = r.integer("deformableGroups"), parts = r.flag("modulated") ? 3 : 2;
    int64_t plane = o[2] * o[3], groups = r.integer("groups");
    std::vector<double> seen(size_t(d[0] * d[1] * plane * kernel), 0), out(size_t(o.product()), 0), bias;
    if (r.has("biasOptional")) bias = r.read<double>(r.tensor("biasOptional"));
    // What each kernel element sees: (sample, channel, row, kernel row, column, kernel column).
    auto place = [&](int64_t n, int64_t c, int64_t i, int64_t a, int64_t j, int64_t b) {
        return size_t(((n * d[1] + c) * o[2] * w[2] + i * w[2] + a) * o[3] * w[3] + j * w[3] + b);
    };
    for (int64_t n = 0; n < d[0]; ++n)
        for (int64_t c = 0; c < d[1]; ++c)
            for (int64_t i = 0; i < o[2]; ++i)
                for (int64_t j = 0; j < o[3]; ++j)
                    for (int64_t k = 0; k < kernel; ++k) {
                        int64_t g = c / (d[1] / deformable), a = k / w[3], b = k % w[3];
                        auto told = [&](int64_t part) {
                            int64_t channel = (part * deformable + g) * kernel + k;
                            return offset[size_t((n * parts * deformable * kernel + channel) * plane + i * o[3] + j)];
                        };
                        double at_x = double(j * stride[3] - pad[2] + b * by[3]) + told(0);
                        double at_y = double(i * stride[2] - pad[0] + a * by[2]) + told(1), value = 0;
                        int64_t top = int64_t(std::floor(at_y)), left = int64_t(std::floor(at_x));
                        for (int64_t u : {top, top + 1})
                            for (int64_t v : {left, left + 1})
                                if (u >= 0 && u < d[2] && v >= 0 && v < d[3])
                                    value += (1 - std::fabs(at_y - double(u))) * (1 - std::fabs(at_x - double(v))) *
                                             x[size_t(((n * d[1] + c) * d[2] + u) * d[3] + v)];
                        seen[place(n, c, i, a, j, b)] = value * (parts == 3 ? told(2) : 1);
                    }
    for (int64_t n = 0; n < o[0]; ++n)
        for (int64_t m = 0; m < o[1]; ++m)
            for (int64_t i = 0; i < o[2]; ++i)
                for (int64_t j = 0; j < o[3]; ++j) {
                    double sum = bias.empty() ? 0 : bias[size_t(m)];
                    for (int64_t c = 0; c < w[1]; ++c)
                        for (int64_t k = 0; k < kernel; ++k)
                            sum += weight[size_t((m * w[1] + c) * kernel + k)] *
                                   seen[place(n, m / (o[1] / groups) * w[1] + c, i, k / w[3], j, k % w[3])];
                    out[size_t(((n * o[1] + m) * o[2] + i) * o[3] + j)] = sum;
                }
    r.write(r.tensor("out"), out);
    if (r.has("deformOutOptional")) r.write(r.tensor("deformOutOptional"), seen);
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
ACLNN(aclnnDeformableConv2d, plan_deformable, run_deformable)
