// Tables of vectors: look-up, its gradient, bags, and bounding the norms of the rows used.
#include <algorithm>
#include <set>

#include "moving.h"

using namespace emu;

namespace {

// Gradients of equal indices add up; those of paddingIdx do not count.
void plan_dense_backward(Plan& p, const char* out) {
    const Tensor& indices = p.tensor("indices");
    int64_t width = p.tensor("grad").dims.back();
    Dims want = indices.dims;
    want.push(width);
    p.shape("grad", want);
    p.shape(out, {p.integer("numWeights"), width});
    p.same_dtype("grad", out);
    p.workspace = uint64_t(indices.numel()) * 16 + 512;
}

void run_dense_backward(Run& r, const char* name) {
    const Tensor& out = r.tensor(name);
    int64_t rows = out.dims[0], width = out.dims[1], padding = r.integer("paddingIdx");
    auto picks = r.read<int64_t>(r.tensor("indices"));
    auto grad = r.read<double>(r.tensor("grad"));
    std::vector<int64_t> uses(static_cast<size_t>(rows));
    for (int64_t pick : picks) ++uses[size_t(checked_index(pick, rows))];
    std::vector<double> y(size_t(out.numel()));
    for (size_t k = 0; k < picks.size(); ++k) {
        if (picks[k] == padding) continue;
        double scale = r.flag("scaleGradByFreq") ? 1.0 / double(uses[size_t(picks[k])]) : 1.0;
        for (int64_t i = 0; i < width; ++i)
            y[size_t(picks[k] * width + i)] += grad[k * size_t(width) + size_t(i)] * scale;
    }
    r.write(out, y);
}

double norm_of_row(const std::vector<double>& x, int64_t row, int64_t width, double type) {
    double sum = 0, top = 0;
    for (int64_t i = 0; i < width; ++i) {
        double size = std::fabs(x[size_t(row * width + i)]);
        top = std::max(top, size);
        sum += std::pow(size, type);
    }
    return std::isinf(type) ? top : std::pow(sum, 1 / type);
}

enum Bag { kSum = 0, kMean = 1, kMax = 2 };

int bag_mode(const Call& call) {
    int64_t mode = call.integer("mode");
    return mode == kSum || mode == kMean ? int(mode) : int(kMax);  // documented: any other mode is max
}

int64_t bags_of(const Call& call) {
    const Tensor& indices = call.tensor("indices");
    if (indices.rank() == 2) return indices.dims[0];
    return call.tensor("offsets").numel() - (call.flag("includeLastOffset") ? 1 : 0);
}

void plan_bag(Plan& p) {
    const Tensor& weight = p.tensor("weight");
    const Tensor& indices = p.tensor("indices");
    p.require(!p.flag("sparse"), "sparse must be false");
    p.require(!p.flag("scaleGradByFreq"), "scaleGradByFreq must be false");
    p.require(!p.flag("includeLastOffset") || p.tensor("offsets").numel() > 0,
              "offsets is empty, but includeLastOffset is true");
    if (p.has("perSampleWeights")) {
        p.require(bag_mode(p) == kSum, "perSampleWeights needs mode 0 (sum)");
        p.same_shape("indices", "perSampleWeights");
    }
    int64_t bags = bags_of(p);
    p.shape("output", {bags, weight.dims[1]});
    int64_t most = bag_mode(p) == kMax ? bags * weight.dims[1] : bags;
    for (auto [name, want] : {std::pair("offset2bag", indices.numel()), {"bagSize", bags}, {"maxIndices", most}}) {
        int64_t got = p.tensor(name).numel();
        p.require(got == want, "%s has %lld elements, expected %lld", name, static_cast<long long>(got),
                  static_cast<long long>(want));
    }
}

void run_bag(Run& r) {
    const Tensor& weight = r.tensor("weight");
    int64_t rows = weight.dims[0], width = weight.dims[1], bags = bags_of(r);
    int64_t padding = r.integer("paddingIdx");  // never counted; -1: none
    if (padding < -1) padding += rows;
    int mode = bag_mode(r);
    auto table = r.read<double>(weight);
    auto picks = r.read<int64_t>(r.tensor("indices"));
    auto starts = r.read<int64_t>(r.tensor("offsets"));
    std::vector<double> scale(picks.size(), 1);
    if (r.has("perSampleWeights")) scale = r.read<double>(r.tensor("perSampleWeights"));
    int64_t count = int64_t(picks.size());
    if (r.tensor("indices").rank() == 2) {
        starts.clear();
        for (int64_t b = 0; b < bags; ++b) starts.push_back(b * r.tensor("indices").dims[1]);
    }
    std::vector<double> y(size_t(bags * width));
    std::vector<int64_t> owner(picks.size()), size(static_cast<size_t>(bags)), best(size_t(bags * width), -1);
    for (int64_t b = 0; b < bags; ++b) {
        int64_t from = starts[size_t(b)], to = b + 1 < int64_t(starts.size()) ? starts[size_t(b) + 1] : count;
        if (from < 0 || from > to || to > count)
            fault("offsets of bag %lld are [%lld, %lld), of %lld indices", static_cast<long long>(b),
                  static_cast<long long>(from), static_cast<long long>(to), static_cast<long long>(count));
        for (int64_t k = from; k < to; ++k) {
            owner[size_t(k)] = b;
            int64_t pick = checked_index(picks[size_t(k)], rows);
            if (pick == padding) continue;
            bool first = size[size_t(b)]++ == 0;
            for (int64_t i = 0; i < width; ++i) {
                double v = table[size_t(pick * width + i)] * scale[size_t(k)];
                double& sum = y[size_t(b * width + i)];
                if (mode != kMax) sum += v;
                else if (first || v > sum || v != v) {
                    sum = v;
                    best[size_t(b * width + i)] = pick;
                }
            }
        }
        if (mode == kMean && size[size_t(b)] > 0)
            for (int64_t i = 0; i < width; ++i) y[size_t(b * width + i)] /= double(size[size_t(b)]);
    }
    r.write(r.tensor("output"), y);
    r.write(r.tensor("offset2bag"), owner);
    r.write(r.tensor("bagSize"), size);
    r.write(r.tensor("maxIndices"), mode == kMax ? best : size);
}

}  // namespace

ACLNN(aclnnEmbedding,
      PLAN {
          plan_select(p, "weight", "indices", 0, "out");
          p.same_dtype("weight", "out");
      },
      RUN { run_select(r, "weight", "indices", 0, "out"); })

ACLNN(aclnnEmbeddingDenseBackward, PLAN { plan_dense_backward(p, "out"); }, RUN { run_dense_backward(r, "out"); })
ACLNN(aclnnEmbeddingDenseGrad, PLAN { plan_dense_backward(p, "y"); }, RUN { run_dense_backward(r, "y"); })

// Rows named by indices whose norm exceeds maxNorm are scaled down to it, each once.
ACLNN(aclnnEmbeddingRenorm,
      PLAN {
          p.require(p.real("maxNorm") >= 0, "maxNorm is %g, expected a number not below 0", p.real("maxNorm"));
      },
      RUN {
          const Tensor& self = r.tensor("selfRef");
          int64_t rows = self.dims[0], width = self.dims[1];
          auto x = r.read<double>(self);
          auto picks = r.read<int64_t>(r.tensor("indices"));
          for (int64_t pick : picks) checked_index(pick, rows);
          for (int64_t row : std::set<int64_t>(picks.begin(), picks.end())) {
              double norm = norm_of_row(x, row, width, r.real("normType"));
              if (!(norm > r.real("maxNorm"))) continue;
              for (int64_t i = 0; i < width; ++i) x[size_t(row * width + i)] *= r.real("maxNorm") / (norm + 1e-7);
          }
          r.write(self, x);
      })

ACLNN(aclnnEmbeddingBag, PLAN { plan_bag(p); }, RUN { run_bag(r); })
