// Mixtures of experts: which experts a token goes to, tokens in the order of their experts, and back.
#include "moe.h"
#include "moving.h"
#include "norm.h"
#include "optional.h"

using namespace emu;

namespace {

// -- gating ----------------------------------------------------------------------------------------------------------
Dims chosen(const Plan& p) {
    Dims out = p.tensor("x").dims;
    int64_t k = p.integer("k");
    p.require(k >= 1 && k <= out.back(), "k is %lld, expected [1, %lld]", static_cast<long long>(k),
              static_cast<long long>(out.back()));
    out[out.n - 1] = k;
    return out;
}

void plan_finished(const Plan& p) {
    if (!p.has("finishedOptional")) return;
    Dims rows = p.tensor("x").dims;
    --rows.n;
    p.shape("finishedOptional", rows);
}

void plan_softmax_gate(Plan& p) {
    Dims want = chosen(p);
    for (const char* name : {"yOut", "expertIdxOut", "rowIdxOut"}) p.shape(name, want);
    plan_finished(p);
}

void plan_softmax_gate_again(Plan& p) {
    Dims want = chosen(p);
    for (const char* name : {"yOut", "expertIdxOut"}) p.shape(name, want);
    p.require(p.integer("renorm") == 0 || p.integer("renorm") == 1, "renorm must be 0 or 1");
    plan_finished(p);
    if (p.flag("outputSoftmaxResultFlag") && p.integer("renorm") == 0) {
        if (!p.has("softmaxResultOutOptional"))
            refuse(ACLNN_ERR_PARAM_NULLPTR, "softmaxResultOutOptional must not be null: it is asked for");
        p.same_shape("x", "softmaxResultOutOptional");
    }
}

// Experts of a finished row have the number of experts as their name: nobody's.
template <bool again>
void run_softmax_gate(Run& r) {
    auto x = r.read<double>(r.tensor("x"));
    int64_t size = r.tensor("x").dims.back(), k = r.integer("k"), rows = int64_t(x.size()) / size;
    std::vector<int64_t> finished(size_t(rows), 0), experts, places(size_t(rows * k));
    if (r.has("finishedOptional")) finished = r.read<int64_t>(r.tensor("finishedOptional"));
    std::vector<double> y;
    bool renorm = false;
    if constexpr (again) renorm = r.integer("renorm") == 1;
    for (int64_t i = 0; i < rows; ++i) {
        double* row = x.data() + i * size;
        auto best = largest(row, size, k);
        std::vector<double> picked;
        if (!renorm) softmax_row(row, size);
        for (int64_t e : best) picked.push_back(row[e]);
        if (renorm) softmax_row(picked.data(), k);
        y.insert(y.end(), picked.begin(), picked.end());
        for (int64_t j = 0; j < k; ++j) {
            experts.push_back(finished[size_t(i)] ? size : best[size_t(j)]);
            places[size_t(i * k + j)] = j * rows + i;
        }
    }
    r.write(r.tensor("yOut"), y);
    r.write(r.tensor("expertIdxOut"), experts);
    if constexpr (again) {
        if (r.flag("outputSoftmaxResultFlag") && !renorm) r.write(r.tensor("softmaxResultOutOptional"), x);
    } else {
        r.write(r.tensor("rowIdxOut"), places);
    }
}

// Scores are softmax or sigmoid; experts come from the best groups only.
void plan_gate(Plan& p) {
    Dims want = chosen(p);
    const Dims& d = p.tensor("x").dims;
    for (const char* name : {"yOut", "expertIdxOut"}) p.shape(name, want);
    int64_t groups = p.integer("groupCount"), some = p.integer("kGroup");
    p.require(groups >= 1 && d[1] % groups == 0 && some >= 1 && some <= groups,
              "kGroup is %lld of groupCount %lld, which does not fit %lld experts", static_cast<long long>(some),
              static_cast<long long>(groups), static_cast<long long>(d[1]));
    p.require(p.integer("k") <= some * (d[1] / groups), "k is more than the chosen groups have");
    for (const char* name : {"groupSelectMode", "renorm", "normType"})
        p.require(p.integer(name) == 0 || p.integer(name) == 1, "%s must be 0 or 1", name);
    if (p.has("biasOptional")) p.shape("biasOptional", {d[1]});
    if (p.flag("outFlag")) p.same_shape("x", "outOut");
}

void run_gate(Run& r) {
    auto x = r.read<double>(r.tensor("x"));
    int64_t size = r.tensor("x").dims[1], k = r.integer("k"), groups = r.integer("groupCount");
    int64_t each = size / groups, some = r.integer("kGroup");
    std::vector<double> bias(size_t(size), 0), y;
    if (r.has("biasOptional")) bias = r.read<double>(r.tensor("biasOptional"));
    std::vector<int64_t> experts;
    for (size_t row = 0; row < x.size(); row += size_t(size)) {
        double* score = x.data() + row;
        if (r.integer("normType") == 0) softmax_row(score, size);
        else
            for (int64_t e = 0; e < size; ++e) score[e] = 1 / (1 + std::exp(-score[e]));
        std::vector<double> judged(score, score + size), of_groups;
        for (int64_t e = 0; e < size; ++e) judged[size_t(e)] += bias[size_t(e)];
        for (int64_t g = 0; g < groups; ++g) {
            std::vector<double> members(judged.begin() + g * each, judged.begin() + (g + 1) * each);
            std::sort(members.rbegin(), members.rend());
            of_groups.push_back(members[0] + (r.integer("groupSelectMode") == 1 && each > 1 ? members[1] : 0));
        }
        auto best = largest(of_groups.data(), groups, some);
        for (int64_t e = 0; e < size; ++e)
            if (std::find(best.begin(), best.end(), e / each) == best.end()) judged[size_t(e)] = -INFINITY;
        auto found = largest(judged.data(), size, k);
        double sum = 0;
        for (int64_t e : found) sum += score[e];
        bool divides = r.integer("normType") == 1 || r.integer("renorm") == 1;
        for (int64_t e : found) {
            y.push_back(score[e] / (divides ? sum + r.real("eps") : 1) * r.real("routedScalingFactor"));
            experts.push_back(e);
        }
    }
    r.write(r.tensor("yOut"), y);
    r.write(r.tensor("expertIdxOut"), experts);
    if (r.flag("outFlag")) r.write(r.tensor("outOut"), x);
}

// -- tokens in the order of their experts ----------------------------------------------------------------------------
void plan_init(Plan& p) {
    const Dims &d = p.tensor("x").dims, &k = p.tensor("expertIdx").dims;
    p.require(d.n == 2 && k.n == 2 && k[0] == d[0], "x has shape %s and expertIdx %s, which do not fit", text(d).c_str(),
              text(k).c_str());
    p.same_shape("expertIdx", "rowIdx");
    int64_t active = p.integer("activeNum");
    p.require(active >= 0, "activeNum must not be negative");
    p.shape("expandedXOut", {std::min(d[0], active) * k[1], d[1]});
    for (const char* name : {"expandedRowIdxOut", "expandedExpertIdxOut"}) p.shape(name, {d[0] * k[1]});
}

// rowIdx numbers the pairs of token and expert, column by column.
void run_init(Run& r) {
    const Dims& d = r.tensor("x").dims;
    auto experts = r.read<int64_t>(r.tensor("expertIdx")), rows = r.read<int64_t>(r.tensor("rowIdx"));
    auto order = order_of(experts);
    std::vector<int64_t> sorted, places(experts.size());
    for (size_t i = 0; i < order.size(); ++i) {
        sorted.push_back(experts[size_t(order[i])]);
        int64_t row = rows[size_t(order[i])];
        if (row < 0 || row >= int64_t(places.size())) fault("rowIdx holds %lld", static_cast<long long>(row));
        places[size_t(row)] = int64_t(i);
    }
    write_rows(r, r.tensor("x"), r.tensor("expandedXOut"),
               [&](int64_t i) { return rows[size_t(order[size_t(i)])] % d[0]; });
    r.write(r.tensor("expandedRowIdxOut"), places);
    r.write(r.tensor("expandedExpertIdxOut"), sorted);
}

int64_t choices(const Call& c) {
    const Dims& k = c.tensor("expertIdx").dims;
    return k.n == 2 ? k[1] : 1;
}

void plan_init_again(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    int64_t k = choices(p), active = p.integer("activeNumOptional");
    p.require(p.tensor("expertIdx").dims[0] == d[0], "expertIdx has shape %s for %lld tokens",
              text(p.tensor("expertIdx").dims).c_str(), static_cast<long long>(d[0]));
    p.shape("expandedRowIdxOut", {d[0] * k});
    if (p.integer("dropPadModeOptional") == 1) {
        int64_t experts = p.integer("expertNumOptional"), room = p.integer("expertCapacityOptional");
        p.require(experts > 0 && room > 0, "dropPadMode 1 needs expertNum and expertCapacity");
        p.shape("expandedXOut", {experts, room, d[1]});
    } else {
        p.require(p.integer("dropPadModeOptional") == 0, "dropPadMode must be 0 or 1");
        p.shape("expandedXOut", {active > 0 ? std::min(active, d[0] * k) : d[0] * k, d[1]});
    }
    int64_t flag = p.integer("expertTokensCountOrCumsumFlagOptional");
    p.require(flag >= 0 && flag <= 2, "expertTokensCountOrCumsumFlag must be 0, 1 or 2");
    if (flag != 0 && p.integer("dropPadModeOptional") == 0)
        p.shape("expertTokensCountOrCumsumOutOptional", {p.integer("expertNumOptional")});
    if (p.flag("expertTokensBeforeCapacityFlagOptional") && p.integer("dropPadModeOptional") == 1)
        p.shape("expertTokensBeforeCapacityOutOptional", {p.integer("expertNumOptional")});
}

void run_init_again(Run& r) {
    int64_t k = choices(r), room = r.integer("expertCapacityOptional"), flag = 0;
    auto experts = r.read<int64_t>(r.tensor("expertIdx"));
    auto order = order_of(experts), places = inverse_of(order);
    bool drops = r.integer("dropPadModeOptional") == 1;
    std::vector<int64_t> counts(size_t(std::max<int64_t>(r.integer("expertNumOptional"), 0)));
    for (int64_t e : experts)
        if (e >= 0 && e < int64_t(counts.size())) ++counts[size_t(e)];
    if (drops) {
        std::vector<int64_t> source(counts.size() * size_t(room), -1), taken(counts.size());
        std::fill(places.begin(), places.end(), -1);
        for (int64_t pair : order) {
            int64_t e = experts[size_t(pair)];
            if (e < 0 || e >= int64_t(counts.size())) fault("expertIdx holds %lld", static_cast<long long>(e));
            if (taken[size_t(e)] == room) continue;
            int64_t at = e * room + taken[size_t(e)]++;
            source[size_t(at)] = pair / k;
            places[size_t(pair)] = at;
        }
        write_rows(r, r.tensor("x"), r.tensor("expandedXOut"), [&](int64_t i) { return source[size_t(i)]; });
        if (r.flag("expertTokensBeforeCapacityFlagOptional"))
            r.write(r.tensor("expertTokensBeforeCapacityOutOptional"), counts);
    } else {
        write_rows(r, r.tensor("x"), r.tensor("expandedXOut"),
                   [&](int64_t i) { return order[size_t(i)] / k; });
        flag = r.integer("expertTokensCountOrCumsumFlagOptional");
        if (flag == 1) std::partial_sum(counts.begin(), counts.end(), counts.begin());
        if (flag != 0) r.write(r.tensor("expertTokensCountOrCumsumOutOptional"), counts);
    }
    // Place of each pair, where pairs are counted token by token.
    r.write(r.tensor("expandedRowIdxOut"), places);
}

void plan_init_grad(Plan& p) {
    plan_number(p, "dropPadMode", 1);
    int64_t pairs = p.tensor("expandedRowIdx").numel(), k = p.integer("topK");
    p.require(k > 0 && pairs % k == 0, "topK is %lld for %lld pairs", static_cast<long long>(k),
              static_cast<long long>(pairs));
    p.shape("out", {pairs / k, p.tensor("gradExpandedX").dims.back()});
}

// Each token receives what its pairs' rows receive.
void run_init_grad(Run& r) {
    const Tensor& g = r.tensor("gradExpandedX");
    int64_t length = g.dims.back(), rows = g.numel() / length, k = r.integer("topK");
    auto dy = r.read<double>(g);
    auto places = r.read<int64_t>(r.tensor("expandedRowIdx"));
    std::vector<double> out(size_t(r.tensor("out").numel()));
    for (size_t pair = 0; pair < places.size(); ++pair) {
        int64_t at = places[pair];
        if (at < 0 || at >= rows) continue;
        for (int64_t d = 0; d < length; ++d) out[pair / size_t(k) * size_t(length) + size_t(d)] += dy[size_t(at * length + d)];
    }
    r.write(r.tensor("out"), out);
}

void plan_counts(Plan& p) {
    p.require(p.integer("numExperts") > 0, "numExperts must be positive");
    p.shape("out", {p.integer("numExperts")});
}

// Up to which place the experts go: cumulative.
void run_counts(Run& r) {
    auto sorted = r.read<int64_t>(r.tensor("sortedExperts"));
    std::vector<int64_t> out(size_t(r.integer("numExperts")));
    for (int64_t e : sorted)
        if (e >= 0 && e < int64_t(out.size())) ++out[size_t(e)];
    std::partial_sum(out.begin(), out.end(), out.begin());
    r.write(r.tensor("out"), out);
}

// -- and back --------------------------------------------------------------------------------------------------------
struct Names {
    const char *x1, *x2, *bias, *scales, *experts;
    bool by_column;  // how pairs are numbered
};
constexpr Names kFirst{"x1", "x2Optional", "bias", "scales", "expandedExpertIdx", true};
constexpr Names kSecond{"x1Optional", "x2Optional", "biasOptional", "scalesOptional", "expertIdxOptional", false};

void plan_finalize(Plan& p, const Names& n) {
    const Dims& out = p.tensor("out").dims;
    int64_t pairs = p.tensor("expandedRowIdx").numel();
    p.require(out.n == 2 && out[0] > 0 && pairs % out[0] == 0 && p.tensor("expandedX").dims.back() == out[1],
              "out has shape %s, which does not fit", text(out).c_str());
    for (const char* name : {n.x1, n.x2})
        if (p.has(name)) p.shape(name, out);
    Dims per_pair{out[0], pairs / out[0]};
    for (const char* name : {n.scales, n.experts})
        if (p.has(name)) p.shape(name, per_pair);
    if (!p.has(n.bias)) return;
    p.require(p.has(n.experts), "%s needs %s", n.bias, n.experts);
    p.require(p.tensor(n.bias).dims.back() == out[1], "%s has shape %s", n.bias, text(p.tensor(n.bias).dims).c_str());
}

// Of experts without a matrix: one that gives nothing, one that gives the token itself, and one that gives
// a1 * token + a2 * v with numbers of its own. Which numbers they have is written as [first, end); the facts name the
// ranges and operands only, this is how they are commonly described.
bool among(const Call& c, const char* name, int64_t expert) {
    if (!has_parameter(c, name) || c.ints(name).empty()) return false;
    return expert >= c.ints(name)[0] && expert < c.ints(name)[1];
}

constexpr const char* kConstants[] = {"a1Optional", "a2Optional", "vOptional"};

bool has_range(const Call& c, const char* name) { return has_parameter(c, name) && !c.ints(name).empty(); }

void run_finalize(Run& r, const Names& n) {
    const Dims& out = r.tensor("out").dims;
    auto x = r.read<double>(r.tensor("expandedX"));
    auto places = r.read<int64_t>(r.tensor("expandedRowIdx"));
    int64_t rows = out[0], length = out[1], k = int64_t(places.size()) / rows;
    std::vector<double> y(size_t(rows * length)), scales(places.size(), 1), bias;
    std::vector<int64_t> experts(places.size());
    for (const char* name : {n.x1, n.x2})
        if (r.has(name)) {
            auto added = r.read<double>(r.tensor(name));
            for (size_t i = 0; i < y.size(); ++i) y[i] += added[i];
        }
    if (r.has(n.scales)) scales = r.read<double>(r.tensor(n.scales));
    if (r.has(n.experts)) experts = r.read<int64_t>(r.tensor(n.experts));
    auto nothing = [&](int64_t e) { return among(r, "zeroExpertRange", e); };
    auto itself = [&](int64_t e) { return among(r, "copyExpertRange", e); };
    auto constant = [&](int64_t e) { return among(r, "constantExpertRange", e); };
    if (r.has(n.bias)) {
        bias = r.read<double>(r.tensor(n.bias));
        for (int64_t e : experts)
            if (!nothing(e) && !itself(e) && !constant(e))
                checked_index(e, int64_t(bias.size()) / std::max<int64_t>(length, 1), n.experts);
    }
    std::vector<double> tokens, constants[3];
    if (has_range(r, "copyExpertRange") || has_range(r, "constantExpertRange")) tokens = r.read<double>(r.tensor("xOptional"));
    for (int i = 0; i < 3 && has_range(r, "constantExpertRange"); ++i) constants[i] = r.read<double>(r.tensor(kConstants[i]));
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < k; ++j) {
            int64_t at = places[size_t(n.by_column ? j * rows + i : i * k + j)];
            size_t pair = size_t(i * k + j);
            if (nothing(experts[pair])) continue;
            if (itself(experts[pair])) {
                for (int64_t d = 0; d < length; ++d)
                    y[size_t(i * length + d)] += scales[pair] * tokens[size_t(i * length + d)];
                continue;
            }
            if (constant(experts[pair])) {
                size_t e = size_t(experts[pair] - r.ints("constantExpertRange")[0]);
                for (size_t d = 0; d < size_t(length); ++d)
                    y[size_t(i * length) + d] += scales[pair] * (constants[0][e] * tokens[size_t(i * length) + d] +
                                                                 constants[1][e] * constants[2][e * size_t(length) + d]);
                continue;
            }
            bool kept = at >= 0 && (at + 1) * length <= int64_t(x.size());
            for (int64_t d = 0; d < length; ++d) {
                double value = kept ? x[size_t(at * length + d)] : 0;
                if (!bias.empty()) value += bias[size_t(experts[pair] * length + d)];
                y[size_t(i * length + d)] += scales[pair] * value;
            }
        }
    r.write(r.tensor("out"), y);
}

// Later versions know experts that are no matrices.
void plan_finalize_plain(Plan& p) {
    for (const char* name : {"zeroExpertRange", "copyExpertRange", "constantExpertRange"}) {
        const auto& range = p.ints(name);
        if (range.empty()) continue;
        p.require(range.size() == 2 && range[0] >= 0 && range[1] >= range[0], "%s must be a first expert and an end", name);
        if (!p.has(kSecond.experts)) refuse(ACLNN_ERR_PARAM_NULLPTR, "%s must not be null beside %s", kSecond.experts, name);
    }
    auto needed = [&](const char* name, const char* range) {
        if (!p.has(name)) refuse(ACLNN_ERR_PARAM_NULLPTR, "%s must not be null beside %s", name, range);
    };
    for (const char* range : {"copyExpertRange", "constantExpertRange"})
        if (has_range(p, range)) {
            needed("xOptional", range);
            p.shape("xOptional", p.tensor("out").dims);
        }
    if (has_range(p, "constantExpertRange")) {
        const auto& range = p.ints("constantExpertRange");
        for (const char* name : kConstants) {
            needed(name, "constantExpertRange");
            if (name != kConstants[2])
                p.require(p.tensor(name).numel() == range[1] - range[0], "%s has shape %s for %lld experts", name,
                          text(p.tensor(name).dims).c_str(), static_cast<long long>(range[1] - range[0]));
        }
        p.shape(kConstants[2], {range[1] - range[0], p.tensor("out").dims[1]});
    }
    int64_t mode = p.integer("dropPadMode");
    p.require(mode >= 0 && mode <= 3, "dropPadMode is %lld, expected 0 to 3", static_cast<long long>(mode));
    plan_finalize(p, kSecond);
}

// -- permute and unpermute -------------------------------------------------------------------------------------------
int64_t top_k(const Call& c) {
    const Dims& d = c.tensor("indices").dims;
    return d.n == 2 ? d[1] : 1;
}

void plan_permute(Plan& p) {
    p.require(!p.flag("paddedMode"), "paddedMode is documented as false only");
    int64_t rows = p.tensor("tokens").dims[0], pairs = rows * top_k(p), kept = p.integer("numOutTokens");
    p.require(p.tensor("indices").dims[0] == rows, "indices has shape %s for %lld tokens",
              text(p.tensor("indices").dims).c_str(), static_cast<long long>(rows));
    kept = kept > 0 ? std::min(kept, pairs) : std::max<int64_t>(pairs + kept, 0);
    p.shape("permuteTokensOut", {kept, p.tensor("tokens").dims[1]});
    p.shape("sortedIndicesOut", {pairs});
}

void run_permute(Run& r) {
    auto order = order_of(r.read<int64_t>(r.tensor("indices")));
    int64_t k = top_k(r);
    write_rows(r, r.tensor("tokens"), r.tensor("permuteTokensOut"), [&](int64_t i) { return order[size_t(i)] / k; });
    r.write(r.tensor("sortedIndicesOut"), inverse_of(order));
}

void plan_permute_grad(Plan& p) {
    int64_t k = p.integer("numTopk"), pairs = p.tensor("sortedIndices").numel();
    p.require(k > 0 && pairs % k == 0, "numTopk is %lld for %lld pairs", static_cast<long long>(k),
              static_cast<long long>(pairs));
    p.require(!p.flag("paddedMode"), "paddedMode is documented as false only");
    p.shape("out", {pairs / k, p.tensor("permutedOutputGrad").dims[1]});
}

// The sum over a token's pairs, weighted where there are probabilities.
std::vector<double> gathered(const std::vector<double>& x, const std::vector<int64_t>& places,
                             const std::vector<double>& weights, int64_t rows, int64_t length) {
    size_t k = places.size() / size_t(rows);
    std::vector<double> out(size_t(rows * length));
    for (size_t pair = 0; pair < places.size(); ++pair) {
        int64_t at = places[pair];
        if (at < 0 || (at + 1) * length > int64_t(x.size())) continue;
        for (int64_t d = 0; d < length; ++d)
            out[pair / k * size_t(length) + size_t(d)] +=
                x[size_t(at * length + d)] * (weights.empty() ? 1 : weights[pair]);
    }
    return out;
}

void run_permute_grad(Run& r) {
    const Dims& out = r.tensor("out").dims;
    r.write(r.tensor("out"), gathered(r.read<double>(r.tensor("permutedOutputGrad")),
                                      r.read<int64_t>(r.tensor("sortedIndices")), {}, out[0], out[1]));
}

void plan_unpermute(Plan& p) {
    p.require(!p.flag("paddedMode"), "paddedMode is documented as false only");
    int64_t pairs = p.tensor("sortedIndices").numel(), rows = p.tensor("out").dims[0];
    p.require(rows > 0 && pairs % rows == 0, "out has %lld rows for %lld pairs", static_cast<long long>(rows),
              static_cast<long long>(pairs));
    p.shape("out", {rows, p.tensor("permutedTokens").dims[1]});
    if (p.has("probsOptional")) p.shape("probsOptional", {rows, pairs / rows});
    else p.require(pairs == rows, "without probsOptional each token has one expert");
}

std::vector<double> probabilities(const Run& r) {
    return r.has("probsOptional") ? r.read<double>(r.tensor("probsOptional")) : std::vector<double>{};
}

void run_unpermute(Run& r) {
    const Dims& out = r.tensor("out").dims;
    r.write(r.tensor("out"), gathered(r.read<double>(r.tensor("permutedTokens")),
                                      r.read<int64_t>(r.tensor("sortedIndices")), probabilities(r), out[0], out[1]));
}

void plan_unpermute_grad(Plan& p) {
    const Dims& d = p.tensor("unpermutedTokensGrad").dims;
    int64_t pairs = p.tensor("sortedIndices").numel();
    p.require(!p.flag("paddedMode"), "paddedMode is documented as false only");
    p.require(d.n == 2 && d[0] > 0 && pairs % d[0] == 0, "unpermutedTokensGrad has shape %s for %lld pairs",
              text(d).c_str(), static_cast<long long>(pairs));
    p.shape("permutedTokensGradOut", {pairs, d[1]});
    if (!p.has("probsOptional")) return;
    p.shape("probsOptional", {d[0], pairs / d[0]});
    p.same_shape("probsOptional", "probsGradOut");
    p.require(p.has("permuteTokensOptional"), "probsOptional needs permuteTokensOptional");
    p.shape("permuteTokensOptional", {pairs, d[1]});
}

void run_unpermute_grad(Run& r) {
    const Dims& d = r.tensor("unpermutedTokensGrad").dims;
    auto g = r.read<double>(r.tensor("unpermutedTokensGrad"));
    auto places = r.read<int64_t>(r.tensor("sortedIndices"));
    auto weights = probabilities(r);
    std::vector<double> x, dx(places.size() * size_t(d[1])), dp(places.size());
    if (!weights.empty()) x = r.read<double>(r.tensor("permuteTokensOptional"));
    size_t k = places.size() / size_t(d[0]), length = size_t(d[1]);
    for (size_t pair = 0; pair < places.size(); ++pair) {
        if (places[pair] < 0 || size_t(places[pair]) >= places.size()) fault("sortedIndices is out of range");
        for (size_t c = 0; c < length; ++c) {
            double incoming = g[pair / k * length + c];
            size_t at = size_t(places[pair]) * length + c;
            dx[at] = incoming * (weights.empty() ? 1 : weights[pair]);
            if (!x.empty()) dp[pair] += incoming * x[at];
        }
    }
    r.write(r.tensor("permutedTokensGradOut"), dx);
    if (!weights.empty()) r.write(r.tensor("probsGradOut"), dp);
}

// -- copies of experts: which of them a token goes to ------------------------------------------------------------------------
// eplbTable has, for each expert, how many copies there are and where. balanceMode 0 spreads ranks over them, 1 tokens. The
// facts have shapes; a choice whose weight is below pruningThreshold times the sum of the token's weights is not active, nor
// are those of a token that activeMask hides.
void plan_copies(Plan& p) {
    const Dims& ids = p.tensor("expertIds").dims;
    int64_t mode = p.integer("balanceMode"), world = p.integer("worldSize"), rank = p.integer("localRankId");
    p.require(mode == 0 || mode == 1, "balanceMode is %lld, expected 0 or 1", static_cast<long long>(mode));
    p.require(mode == 1 || (world > 0 && rank >= 0 && rank < world), "localRankId is %lld of worldSize %lld", static_cast<long long>(rank), static_cast<long long>(world));
    p.require(p.tensor("eplbTable").dims[1] >= 2, "eplbTable has shape %s", text(p.tensor("eplbTable").dims).c_str());
    p.require(p.has("expertScalesOptional") == p.has("pruningThresholdOptional"), "expertScalesOptional and pruningThresholdOptional belong together");
    if (p.has("expertScalesOptional")) {
        p.same_shape("expertIds", "expertScalesOptional");
        p.require(p.tensor("pruningThresholdOptional").numel() == ids[1], "pruningThresholdOptional has shape %s", text(p.tensor("pruningThresholdOptional").dims).c_str());
    }
    if (p.has("activeMaskOptional")) p.shape("activeMaskOptional", {ids[0]});
    for (const char* name : {"balancedExpertIds", "balancedActiveMask"}) p.same_shape("expertIds", name);
    p.same_dtype("expertIds", "balancedExpertIds");
}

void run_copies(Run& r) {
    const Dims &ids = r.tensor("expertIds").dims, &t = r.tensor("eplbTable").dims;
    auto chosen = r.read<int64_t>(r.tensor("expertIds")), table = r.read<int64_t>(r.tensor("eplbTable"));
    std::vector<int64_t> active(chosen.size(), 1);
    std::vector<double> weights, least;
    if (r.has("expertScalesOptional")) weights = r.read<double>(r.tensor("expertScalesOptional")), least = r.read<double>(r.tensor("pruningThresholdOptional"));
    for (size_t i = 0; i < chosen.size(); ++i) {
        int64_t expert = chosen[i], token = int64_t(i) / ids[1];
        if (expert < 0 || expert >= t[0]) fault("expertIds holds %lld, eplbTable has %lld experts", static_cast<long long>(expert), static_cast<long long>(t[0]));
        int64_t copies = table[size_t(expert * t[1])];
        if (copies < 1 || copies >= t[1]) fault("eplbTable says %lld copies in rows of %lld", static_cast<long long>(copies), static_cast<long long>(t[1]));
        int64_t world = r.integer("worldSize");
        int64_t which = r.integer("balanceMode") == 1 ? token % copies : std::min(r.integer("localRankId") / ((world + copies - 1) / copies), copies - 1);
        chosen[i] = table[size_t(expert * t[1] + 1 + which)];
        if (weights.empty()) continue;
        double sum = 0;
        for (int64_t k = 0; k < ids[1]; ++k) sum += weights[size_t(token * ids[1] + k)];
        active[i] = weights[i] >= least[i % size_t(ids[1])] * sum;
    }
    if (r.has("activeMaskOptional")) {
        auto mask = r.read<int64_t>(r.tensor("activeMaskOptional"));
        for (size_t i = 0; i < active.size(); ++i) active[i] = active[i] && mask[i / size_t(ids[1])];
    }
    r.write(r.tensor("balancedExpertIds"), chosen);
    r.write(r.tensor("balancedActiveMask"), active);
}

}  // namespace

ACLNN(aclnnMoeGatingTopKSoftmax, plan_softmax_gate, run_softmax_gate<false>)
ACLNN(aclnnMoeGatingTopKSoftmaxV2, plan_softmax_gate_again, run_softmax_gate<true>)
ACLNN(aclnnMoeGatingTopK, plan_gate, run_gate)
ACLNN(aclnnMoeInitRouting, plan_init, run_init)
ACLNN(aclnnMoeInitRoutingV2, plan_init_again, run_init_again)
ACLNN(aclnnMoeInitRoutingV2Grad, plan_init_grad, run_init_grad)
ACLNN(aclnnMoeComputeExpertTokens, plan_counts, run_counts)
ACLNN(aclnnMoeFinalizeRouting, PLAN { plan_finalize(p, kFirst); }, RUN { run_finalize(r, kFirst); })
ACLNN(aclnnMoeFinalizeRoutingV2, PLAN { plan_number(p, "dropPadMode", 3); plan_finalize(p, kSecond); },
      RUN { run_finalize(r, kSecond); })
ACLNN(aclnnMoeFinalizeRoutingV3, plan_finalize_plain, RUN { run_finalize(r, kSecond); })
ACLNN(aclnnMoeFinalizeRoutingV4,
      PLAN {
          plan_finalize_plain(p);
          int64_t pairs = p.tensor("expandedRowIdx").numel(), rows = p.tensor("out").dims[0], k = p.integer("k");
          p.require(pairs == rows * k, "k is %lld for %lld pairs of %lld rows", static_cast<long long>(k),
                    static_cast<long long>(pairs), static_cast<long long>(rows));
      },
      RUN { run_finalize(r, kSecond); })
ACLNN(aclnnMoeTokenPermute, plan_permute, run_permute)
ACLNN(aclnnMoeTokenPermuteGrad, plan_permute_grad, run_permute_grad)
ACLNN(aclnnMoeTokenUnpermute, plan_unpermute, run_unpermute)
ACLNN(aclnnMoeTokenUnpermuteGrad, plan_unpermute_grad, run_unpermute_grad)
ACLNN(aclnnMoeUpdateExpert, plan_copies, run_copies)
