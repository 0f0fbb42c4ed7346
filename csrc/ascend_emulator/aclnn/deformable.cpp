// A convolution that looks elsewhere: each kernel element reads where an offset tells it, between four elements; and what
// flows back to input, weight, offsets and bias.
//
// Offsets are, for each deformable group: x of every kernel element, y of every one, then how much each counts.
#include "kernel.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

struct Looks {
    int64_t batch, channels, height, width;        // of the input
    int64_t out_channels, rows, columns;           // of the output
    int64_t high, across, groups, deformable, parts;
    std::vector<int64_t> stride, pad, by;

    Looks(const Call& c, const char* x, const Dims& o)
        : batch(o[0]), out_channels(o[1]), rows(o[2]), columns(o[3]), high(c.tensor("weight").dims[2]), across(c.tensor("weight").dims[3]), groups(c.integer("groups")),
          deformable(c.integer("deformableGroups")), parts(c.flag("modulated") ? 3 : 2), stride(c.ints("stride")), pad(c.ints("padding")), by(c.ints("dilation")) {
        const Dims& d = c.tensor(x).dims;
        channels = d[1], height = d[2], width = d[3];
    }
    int64_t kernel() const { return high * across; }
    int64_t per_group() const { return channels / groups; }
    size_t seen_size() const { return size_t(batch * channels * rows * columns * kernel()); }
    // What a kernel element sees: (sample, channel, row, kernel row, column, kernel column).
    size_t seen(int64_t n, int64_t c, int64_t i, int64_t j, int64_t k) const {
        return size_t(((n * channels + c) * rows * high + i * high + k / across) * columns * across + j * across + k % across);
    }
    size_t told(int64_t n, int64_t c, int64_t i, int64_t j, int64_t k, int64_t part) const {
        int64_t channel = (part * deformable + c / (channels / deformable)) * kernel() + k;
        return size_t(((n * parts * deformable * kernel() + channel) * rows + i) * columns + j);
    }
    // f(n, c, i, j, k) for each kernel element at each place.
    template <class F>
    void each(F f) const {
        for (int64_t n = 0; n < batch; ++n)
            for (int64_t c = 0; c < channels; ++c)
                for (int64_t i = 0; i < rows; ++i)
                    for (int64_t j = 0; j < columns; ++j)
                        for (int64_t k = 0; k < kernel(); ++k) f(n, c, i, j, k);
    }
    // f(place in the input, distance down, distance across) for the elements around where it looks.
    template <class F>
    void around(const Values& offset, int64_t n, int64_t c, int64_t i, int64_t j, int64_t k, F f) const {
        double at_x = double(j * stride[3] - pad[2] + k % across * by[3]) + offset[told(n, c, i, j, k, 0)];
        double at_y = double(i * stride[2] - pad[0] + k / across * by[2]) + offset[told(n, c, i, j, k, 1)];
        if (!(std::fabs(at_x) < 1e9 && std::fabs(at_y) < 1e9)) return;  // far outside, or not a number
        int64_t top = int64_t(std::floor(at_y)), left = int64_t(std::floor(at_x));
        for (int64_t u : {top, top + 1})
            for (int64_t v : {left, left + 1})
                if (u >= 0 && u < height && v >= 0 && v < width) f(size_t(((n * channels + c) * height + u) * width + v), at_y - double(u), at_x - double(v));
    }
    // f(place in the output, place in the weight, place among the seen)
    template <class F>
    void each_product(F f) const {
        for (int64_t n = 0; n < batch; ++n)
            for (int64_t m = 0; m < out_channels; ++m)
                for (int64_t i = 0; i < rows; ++i)
                    for (int64_t j = 0; j < columns; ++j)
                        for (int64_t c = 0; c < per_group(); ++c)
                            for (int64_t k = 0; k < kernel(); ++k)
                                f(size_t(((n * out_channels + m) * rows + i) * columns + j), size_t((m * per_group() + c) * kernel() + k),
                                  seen(n, m / (out_channels / groups) * per_group() + c, i, j, k));
    }
};

void plan_looks(const Plan& p, const char* input, const char* output, const char* deform) {
    const Dims &x = p.tensor(input).dims, &w = p.tensor("weight").dims, &o = p.tensor(output).dims;
    const auto &size = p.ints("kernelSize"), &stride = p.ints("stride"), &pad = p.ints("padding"), &by = p.ints("dilation");
    p.require(size.size() == 2 && stride.size() == 4 && pad.size() == 4 && by.size() == 4, "kernelSize needs 2 elements; stride, padding and dilation 4");
    int64_t groups = p.integer("groups"), deformable = p.integer("deformableGroups");
    p.require(groups > 0 && deformable > 0 && x[1] % groups == 0 && w[0] % groups == 0 && x[1] % deformable == 0, "groups and deformableGroups must divide the channels");
    p.require(w[1] == x[1] / groups && w[2] == size[0] && w[3] == size[1], "weight has shape %s", text(w).c_str());
    p.require(stride[2] > 0 && stride[3] > 0 && by[2] > 0 && by[3] > 0, "stride and dilation must be positive");
    int64_t height = (x[2] + pad[0] + pad[1] - by[2] * (size[0] - 1) - 1) / stride[2] + 1;
    int64_t width = (x[3] + pad[2] + pad[3] - by[3] * (size[1] - 1) - 1) / stride[3] + 1;
    p.require(o == Dims({x[0], w[0], height, width}), "%s has shape %s, expected %s", output, text(o).c_str(), text(Dims({x[0], w[0], height, width})).c_str());
    p.shape("offset", {x[0], (p.flag("modulated") ? 3 : 2) * deformable * size[0] * size[1], height, width});
    if (p.has(deform)) p.shape(deform, {x[0], x[1], height * size[0], width * size[1]});
}

void run_forward(Run& r) {
    Looks l(r, "x", r.tensor("out").dims);
    auto x = r.read<double>(r.tensor("x")), weight = r.read<double>(r.tensor("weight")), offset = r.read<double>(r.tensor("offset"));
    Values seen(l.seen_size(), 0), out(size_t(r.tensor("out").numel()), 0);
    l.each([&](int64_t n, int64_t c, int64_t i, int64_t j, int64_t k) {
        double value = 0;
        l.around(offset, n, c, i, j, k, [&](size_t at, double dy, double dx) { value += (1 - std::fabs(dy)) * (1 - std::fabs(dx)) * x[at]; });
        seen[l.seen(n, c, i, j, k)] = value * (l.parts == 3 ? offset[l.told(n, c, i, j, k, 2)] : 1);
    });
    l.each_product([&](size_t to, size_t w, size_t from) { out[to] += weight[w] * seen[from]; });
    if (r.has("biasOptional")) {
        auto bias = r.read<double>(r.tensor("biasOptional"));
        for (size_t i = 0; i < out.size(); ++i) out[i] += bias[i / size_t(l.rows * l.columns) % bias.size()];
    }
    r.write(r.tensor("out"), out);
    if (r.has("deformOutOptional")) r.write(r.tensor("deformOutOptional"), seen);
}

void run_backward(Run& r) {
    Looks l(r, "input", r.tensor("gradOutput").dims);
    auto x = r.read<double>(r.tensor("input")), weight = r.read<double>(r.tensor("weight")), offset = r.read<double>(r.tensor("offset"));
    auto g = r.read<double>(r.tensor("gradOutput")), seen = r.read<double>(r.tensor("offsetOut"));
    Values dseen(seen.size(), 0), dx(x.size(), 0), dw(weight.size(), 0), doffset(offset.size(), 0), dbias(size_t(l.out_channels), 0);
    l.each_product([&](size_t to, size_t w, size_t from) {
        dseen[from] += weight[w] * g[to];
        dw[w] += seen[from] * g[to];
    });
    for (size_t i = 0; i < g.size(); ++i) dbias[i / size_t(l.rows * l.columns) % dbias.size()] += g[i];
    l.each([&](int64_t n, int64_t c, int64_t i, int64_t j, int64_t k) {
        double flow = dseen[l.seen(n, c, i, j, k)], counts = l.parts == 3 ? offset[l.told(n, c, i, j, k, 2)] : 1;
        double value = 0, down = 0, right = 0;
        l.around(offset, n, c, i, j, k, [&](size_t at, double dy, double dx_) {
            double a = 1 - std::fabs(dy), b = 1 - std::fabs(dx_);
            dx[at] += flow * counts * a * b;
            value += a * b * x[at];
            down += (dy < 0 ? 1 : -1) * b * x[at];  // an element below comes nearer
            right += (dx_ < 0 ? 1 : -1) * a * x[at];
        });
        doffset[l.told(n, c, i, j, k, 0)] += flow * counts * right;
        doffset[l.told(n, c, i, j, k, 1)] += flow * counts * down;
        if (l.parts == 3) doffset[l.told(n, c, i, j, k, 2)] += flow * value;
    });
    r.write(r.tensor("gradInput"), dx);
    r.write(r.tensor("gradWeight"), dw);
    r.write(r.tensor("gradOffset"), doffset);
    r.write(r.tensor("gradBias"), dbias);
}

}  // namespace

ACLNN(aclnnDeformableConv2d,
      PLAN {
          plan_looks(p, "x", "out", "deformOutOptional");
          if (p.has("biasOptional")) p.shape("biasOptional", {p.tensor("weight").dims[0]});
      },
      run_forward)
ACLNN(aclnnDeformableConv2dBackward,
      PLAN {
          plan_looks(p, "input", "gradOutput", "offsetOut");
          p.same_shape("input", "gradInput");
          p.same_shape("weight", "gradWeight");
          p.same_shape("offset", "gradOffset");
          p.shape("gradBias", {p.tensor("weight").dims[0]});
      },
      run_backward)
