// Gradients that are sums over what a value went into: of interpolated points, nearest neighbours, modulated rows, biases
// of groups, weighted experts.
#include <cmath>

#include "moving.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

// -- points interpolated from three others ---------------------------------------------------------------------------
void plan_three(Plan& p) {
    const Dims &g = p.tensor("grad_x").dims, &i = p.tensor("idx").dims;
    p.require(g.n == 3 || (g.n == 4 && g[3] == 1), "grad_x has shape %s, expected (b, c, n) or (b, c, n, 1)",
              text(g).c_str());
    p.require(i == Dims({g[0], g[2], 3}), "idx has shape %s, expected (b, n, 3)", text(i).c_str());
    p.same_shape("idx", "weight");
    Dims want = g;
    p.require(p.integer("m") > 0, "m must be positive");
    want[2] = p.integer("m");
    p.shape("grad_y", want);
}

void run_three(Run& r) {
    const Dims& d = r.tensor("grad_x").dims;
    auto g = r.read<double>(r.tensor("grad_x")), weight = r.read<double>(r.tensor("weight"));
    auto index = r.read<int64_t>(r.tensor("idx"));
    int64_t m = r.integer("m");
    Values out(size_t(d[0] * d[1] * m), 0);
    for (int64_t b = 0; b < d[0]; ++b)
        for (int64_t n = 0; n < d[2]; ++n)
            for (int64_t k = 0; k < 3; ++k) {
                size_t at = size_t((b * d[2] + n) * 3 + k);
                if (index[at] < 0 || index[at] >= m) fault("idx holds %lld", static_cast<long long>(index[at]));
                for (int64_t c = 0; c < d[1]; ++c)
                    out[size_t((b * d[1] + c) * m + index[at])] += g[size_t((b * d[1] + c) * d[2] + n)] * weight[at];
            }
    r.write(r.tensor("grad_y"), out);
}

// -- squared distances to the nearest points of another set ----------------------------------------------------------
void plan_chamfer(Plan& p) {
    const Dims &a = p.tensor("xyz1").dims, &b = p.tensor("xyz2").dims;
    p.require(a.n == 3 && b.n == 3 && a[0] == b[0] && a[2] == b[2], "xyz1 has shape %s, xyz2 %s", text(a).c_str(),
              text(b).c_str());
    for (const char* name : {"idx1", "gradDist1"}) p.shape(name, {a[0], a[1]});
    for (const char* name : {"idx2", "gradDist2"}) p.shape(name, {b[0], b[1]});
    p.same_shape("xyz1", "gradXyz1");
    p.same_shape("xyz2", "gradXyz2");
}

void spread(const Values& from, const Values& to, const std::vector<int64_t>& nearest, const Values& g, int64_t size,
            int64_t batch, Values& d_from, Values& d_to) {
    int64_t n = int64_t(nearest.size()) / batch, others = int64_t(to.size()) / size / batch;
    for (int64_t i = 0; i < int64_t(nearest.size()); ++i) {
        int64_t j = nearest[size_t(i)];
        if (j < 0 || j >= others) fault("an index is %lld", static_cast<long long>(j));
        for (int64_t d = 0; d < size; ++d) {
            size_t a = size_t(i * size + d), b = size_t((i / n * others + j) * size + d);
            double slope = 2 * g[size_t(i)] * (from[a] - to[b]);
            d_from[a] += slope;
            d_to[b] -= slope;
        }
    }
}

void run_chamfer(Run& r) {
    const Dims& d = r.tensor("xyz1").dims;
    auto a = r.read<double>(r.tensor("xyz1")), b = r.read<double>(r.tensor("xyz2"));
    Values da(a.size()), db(b.size());
    spread(a, b, r.read<int64_t>(r.tensor("idx1")), r.read<double>(r.tensor("gradDist1")), d[2], d[0], da, db);
    spread(b, a, r.read<int64_t>(r.tensor("idx2")), r.read<double>(r.tensor("gradDist2")), d[2], d[0], db, da);
    r.write(r.tensor("gradXyz1"), da);
    r.write(r.tensor("gradXyz2"), db);
}

// -- x * (1 + scale) + shift, per sample -----------------------------------------------------------------------------
void plan_modulate(Plan& p) {
    const Dims& d = p.tensor("input").dims;
    p.require(d.n == 3, "input has %d dimensions, expected 3", d.n);
    for (const char* name : {"grad_output", "grad_input"}) p.same_shape("input", name);
    for (const char* name : {"scale", "shift", "grad_scale", "grad_shift"})
        if (p.has(name))
            p.require(p.tensor(name).numel() == d[0] * d[2], "%s has shape %s, expected (%lld, %lld)", name,
                      text(p.tensor(name).dims).c_str(), static_cast<long long>(d[0]), static_cast<long long>(d[2]));
}

void run_modulate(Run& r) {
    const Dims& d = r.tensor("input").dims;
    auto g = r.read<double>(r.tensor("grad_output")), x = r.read<double>(r.tensor("input"));
    Values scale(size_t(d[0] * d[2]), 0), d_scale(scale), d_shift(scale);
    if (r.has("scale")) scale = r.read<double>(r.tensor("scale"));
    for (size_t i = 0; i < g.size(); ++i) {
        size_t at = i / size_t(d[1] * d[2]) * size_t(d[2]) + i % size_t(d[2]);
        d_scale[at] += g[i] * x[i];
        d_shift[at] += g[i];
        g[i] *= 1 + scale[at];
    }
    r.write(r.tensor("grad_input"), g);
    r.write(r.tensor("grad_scale"), d_scale);
    r.write(r.tensor("grad_shift"), d_shift);
}

// -- biases of groups ------------------------------------------------------------------------------------------------
void plan_bias(Plan& p) {
    const Dims& d = p.tensor("gradY").dims;
    bool given = p.has("groupIdxOptional");
    p.require(d.n == (given ? 2 : 3), "gradY has %d dimensions, expected %d %s groupIdxOptional", d.n, given ? 2 : 3,
              given ? "with" : "without");
    p.shape("out", {given ? p.tensor("groupIdxOptional").dims[0] : d[0], d.back()});
    p.same_dtype("gradY", "out");
}

void run_bias(Run& r, bool counts) {
    const Dims& d = r.tensor("gradY").dims;
    auto g = r.read<double>(r.tensor("gradY"));
    int64_t length = d.back(), rows = int64_t(g.size()) / length;
    std::vector<int64_t> ends;
    if (r.has("groupIdxOptional")) ends = r.read<int64_t>(r.tensor("groupIdxOptional"));
    else
        for (int64_t i = 1; i <= d[0]; ++i) ends.push_back(i * d[1]);
    if (counts)
        for (size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
    Values out(ends.size() * size_t(length), 0);
    int64_t row = 0;
    for (size_t e = 0; e < ends.size(); ++e)
        for (; row < ends[e]; ++row) {
            if (row >= rows) fault("groupIdxOptional goes beyond the rows of gradY");
            for (int64_t k = 0; k < length; ++k) out[e * size_t(length) + size_t(k)] += g[size_t(row * length + k)];
        }
    r.write(r.tensor("out"), out);
}

// -- weighted experts ------------------------------------------------------------------------------------------------
void plan_finalize(Plan& p) {
    const Dims& d = p.tensor("gradY").dims;
    int64_t pairs = p.tensor("expandedRowIdx").numel();
    bool padded = p.integer("dropPadMode") == 1;
    p.require(padded || p.integer("dropPadMode") == 0, "dropPadMode is %lld, expected 0 or 1",
              static_cast<long long>(p.integer("dropPadMode")));
    p.require(d.n == 2 && d[0] > 0 && pairs % d[0] == 0, "gradY has shape %s for %lld pairs", text(d).c_str(),
              static_cast<long long>(pairs));
    int64_t active = p.integer("activeNum");
    // Each expert has its own places, or all rows stand one after the other.
    Dims expanded = padded ? Dims({p.integer("expertNum"), p.integer("expertCapacity"), d[1]})
                           : Dims({active > 0 ? std::min(active, pairs) : pairs, d[1]});
    p.shape("gradExpandedXOut", expanded);
    if (p.has("expandedXOptional")) p.shape("expandedXOptional", expanded);
    if (p.has("biasOptional")) p.require(p.tensor("biasOptional").rank() == 2 && p.tensor("biasOptional").dims[1] == d[1], "biasOptional has shape %s", text(p.tensor("biasOptional").dims).c_str());
    if (p.has("expertIdxOptional")) p.shape("expertIdxOptional", {d[0], pairs / d[0]});
    if (!p.has("scalesOptional")) return p.require(pairs == d[0], "without scalesOptional each token has one expert");
    p.shape("scalesOptional", {d[0], pairs / d[0]});
    p.same_shape("scalesOptional", "gradScalesOut");
    p.require(p.has("expandedXOptional"), "scalesOptional needs expandedXOptional");
    p.require(!p.has("biasOptional") || p.has("expertIdxOptional"), "biasOptional needs expertIdxOptional");
}

void run_finalize(Run& r) {
    const Dims& d = r.tensor("gradY").dims;
    auto g = r.read<double>(r.tensor("gradY"));
    auto places = r.read<int64_t>(r.tensor("expandedRowIdx"));
    size_t k = places.size() / size_t(d[0]), length = size_t(d[1]);
    Values scales, x, bias, dx(size_t(r.tensor("gradExpandedXOut").numel()), 0), ds(places.size(), 0);
    std::vector<int64_t> experts;
    if (r.has("scalesOptional")) {
        scales = r.read<double>(r.tensor("scalesOptional"));
        x = r.read<double>(r.tensor("expandedXOptional"));
        if (r.has("biasOptional")) {
            bias = r.read<double>(r.tensor("biasOptional"));
            experts = r.read<int64_t>(r.tensor("expertIdxOptional"));
            for (int64_t e : experts) checked_index(e, r.tensor("biasOptional").dims[0], "expertIdxOptional");
        }
    }
    for (size_t pair = 0; pair < places.size(); ++pair) {
        size_t at = size_t(places[pair]) * length;
        bool kept = places[pair] >= 0 && at + length <= dx.size();
        for (size_t c = 0; c < length; ++c) {
            double incoming = g[pair / k * length + c];
            if (kept) dx[at + c] = incoming * (scales.empty() ? 1 : scales[pair]);
            if (scales.empty()) continue;
            double value = kept ? x[at + c] : 0;
            if (!bias.empty()) value += bias[size_t(experts[pair]) * length + c];
            ds[pair] += incoming * value;
        }
    }
    r.write(r.tensor("gradExpandedXOut"), dx);
    if (!scales.empty()) r.write(r.tensor("gradScalesOut"), ds);
}

}  // namespace

ACLNN(aclnnThreeInterpolateBackward, plan_three, run_three)
ACLNN(aclnnChamferDistanceBackward, plan_chamfer, run_chamfer)
ACLNN(aclnnModulateBackward, plan_modulate, run_modulate)
ACLNN(aclnnGroupedBiasAddGrad, plan_bias, RUN { run_bias(r, false); })
ACLNN(aclnnGroupedBiasAddGradV2,
      PLAN {
          int64_t type = p.integer("groupIdxType");
          p.require(type == 0 || type == 1, "groupIdxType is %lld, expected 0 or 1", static_cast<long long>(type));
          plan_bias(p);
      },
      RUN { run_bias(r, r.integer("groupIdxType") == 1); })
ACLNN(aclnnMoeFinalizeRoutingV2Grad, plan_finalize, run_finalize)
