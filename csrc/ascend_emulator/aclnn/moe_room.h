// A map of tokens and experts where each expert has room for as many tokens (dropAndPad, paddedMode).
//
// The facts name the mode only; it is that of the training library whose routing maps these are: an expert takes its tokens in
// their order, then, while it has room, those that are not its own. Row r belongs to expert r / room; sortedIndices holds the
// row's token. For the way back outIndex holds rows in the order of their tokens, permuteTokenId those tokens.
#pragma once

#include "moe.h"
#include "moving.h"
#include "optional.h"

namespace emu::room {

using Values = std::vector<double>;
using Places = std::vector<int64_t>;

inline long long wide(int64_t x) { return static_cast<long long>(x); }

inline void plan_room(const Plan& p, int64_t rows, int64_t experts, int64_t tokens) {
    p.require(experts > 0 && rows > 0 && rows % experts == 0 && rows / experts <= tokens, "%lld rows for %lld experts and %lld tokens: every expert has room for as many, at most all tokens",
              wide(rows), wide(experts), wide(tokens));
}

// The weight of each row: what its token has for its expert.
inline Values weights(const Run& r, const Places& tokens, const char* probs) {
    if (!r.has(probs)) return Values(tokens.size(), 1);
    const Dims& d = r.tensor(probs).dims;
    auto all = r.read<double>(r.tensor(probs));
    Values out;
    for (size_t i = 0; i < tokens.size(); ++i) out.push_back(all[size_t(checked_index(tokens[i], d[0], "a row's token") * d[1]) + i / (tokens.size() / size_t(d[1]))]);
    return out;
}

// The other way: a number for each row to where its token and expert meet.
inline void scatter(const Run& r, const Places& tokens, const Values& rows, int64_t experts, const char* to) {
    Values out(size_t(r.tensor(to).numel()));
    for (size_t i = 0; i < tokens.size(); ++i) {
        size_t at = size_t(checked_index(tokens[i], int64_t(out.size()) / experts, "a row's token") * experts) + i / (tokens.size() / size_t(experts));
        out[at] += rows[i];
    }
    r.write(r.tensor(to), out);
}

// -- to the experts ----------------------------------------------------------------------------------------------------------
inline void run_out(Run& r) {
    const Dims& m = r.tensor("routingMap").dims;
    auto map = r.read<int64_t>(r.tensor("routingMap"));
    int64_t each = r.integer("numOutTokens") / m[1];
    Places tokens;
    for (int64_t e = 0; e < m[1]; ++e) {
        int64_t left = each;
        for (bool own : {true, false})
            for (int64_t t = 0; t < m[0] && left > 0; ++t)
                if ((map[size_t(t * m[1] + e)] != 0) == own) tokens.push_back(t), --left;
    }
    write_rows(r, r.tensor("tokens"), r.tensor("permuteTokensOut"), [&](int64_t i) { return tokens[size_t(i)]; });
    r.write(r.tensor("sortedIndicesOut"), tokens);
    if (r.has("probsOptional")) r.write(r.tensor("permuteProbsOutOptional"), weights(r, tokens, "probsOptional"));
}

// Rows added up where their tokens are.
inline Values gathered(const Values& rows, const Places& tokens, const Values& weight, const Dims& d) {
    Values out(size_t(d.product()));
    for (size_t i = 0; i < tokens.size(); ++i)
        for (int64_t k = 0; k < d[1]; ++k) out[size_t(checked_index(tokens[i], d[0], "sortedIndices") * d[1] + k)] += rows[i * size_t(d[1]) + size_t(k)] * weight[i];
    return out;
}

inline void plan_out_grad(Plan& p) {
    const Dims& g = p.tensor("permutedTokenOutputGrad").dims;
    int64_t tokens = p.integer("tokensNum"), experts = p.integer("numExperts");
    p.require(g.n == 2, "permutedTokenOutputGrad has shape %s", text(g).c_str());
    plan_room(p, g[0], experts, tokens);
    p.shape("sortedIndices", {g[0]});
    p.shape("tokensGradOut", {tokens, g[1]});
    if (!p.has("permutedProbsOutputGradOptional")) return;
    p.shape("permutedProbsOutputGradOptional", {g[0]});
    if (!p.has("probsGradOutOptional")) refuse(ACLNN_ERR_PARAM_NULLPTR, "probsGradOutOptional must not be null");
    p.shape("probsGradOutOptional", {tokens, experts});
}

inline void run_out_grad(Run& r) {
    auto tokens = r.read<int64_t>(r.tensor("sortedIndices"));
    const Tensor& to = r.tensor("tokensGradOut");
    r.write(to, gathered(r.read<double>(r.tensor("permutedTokenOutputGrad")), tokens, Values(tokens.size(), 1), to.dims));
    if (r.has("permutedProbsOutputGradOptional"))
        scatter(r, tokens, r.read<double>(r.tensor("permutedProbsOutputGradOptional")), r.integer("numExperts"), "probsGradOutOptional");
}

// -- and back ----------------------------------------------------------------------------------------------------------------
inline void plan_weights(const Plan& p, int64_t rows, int64_t tokens) {
    if (!p.has("probsOptional")) return;
    const Dims& d = p.tensor("probsOptional").dims;
    p.require(d.n == 2 && d[0] == tokens, "probsOptional has shape %s for %lld tokens", text(d).c_str(), wide(tokens));
    plan_room(p, rows, d[1], tokens);
}

inline void plan_back(Plan& p) {
    const Dims &x = p.tensor("permutedTokens").dims, &out = p.tensor("unpermutedTokens").dims;
    p.require(x.n == 2 && out.n == 2 && x[1] == out[1], "permutedTokens has shape %s, unpermutedTokens %s", text(x).c_str(), text(out).c_str());
    for (const char* name : {"sortedIndices", "outIndex", "permuteTokenId"}) p.shape(name, {x[0]});
    plan_weights(p, x[0], out[0]);
    if (p.has("probsOptional")) p.shape("permuteProbs", {x[0]});
}

inline void run_back(Run& r) {
    auto tokens = r.read<int64_t>(r.tensor("sortedIndices"));
    Values weight = weights(r, tokens, "probsOptional");
    const Tensor& to = r.tensor("unpermutedTokens");
    r.write(to, gathered(r.read<double>(r.tensor("permutedTokens")), tokens, weight, to.dims));
    if (r.has("probsOptional")) r.write(r.tensor("permuteProbs"), weight);
    auto order = order_of(tokens);
    Places sorted;
    for (int64_t row : order) sorted.push_back(tokens[size_t(row)]);
    r.write(r.tensor("outIndex"), order);
    r.write(r.tensor("permuteTokenId"), sorted);
}

inline void plan_back_grad(Plan& p) {
    const Dims& g = p.tensor("unpermutedTokensGrad").dims;
    int64_t rows = p.tensor("outIndex").numel();
    p.same_shape("outIndex", "permuteTokenId");
    p.shape("permutedTokensGradOut", {rows, g[1]});
    plan_weights(p, rows, g[0]);
    if (!p.has("probsOptional")) return;
    p.require(p.has("permutedTokensOptional"), "probsOptional needs permutedTokensOptional");
    p.shape("permutedTokensOptional", {rows, g[1]});
    if (!p.has("probsGradOutOptional")) refuse(ACLNN_ERR_PARAM_NULLPTR, "probsGradOutOptional must not be null");
    p.same_shape("probsOptional", "probsGradOutOptional");
}

inline void run_back_grad(Run& r) {
    const Dims& d = r.tensor("unpermutedTokensGrad").dims;
    auto g = r.read<double>(r.tensor("unpermutedTokensGrad"));
    auto rows = r.read<int64_t>(r.tensor("outIndex")), sorted = r.read<int64_t>(r.tensor("permuteTokenId"));
    Places tokens(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) tokens[size_t(checked_index(rows[i], int64_t(rows.size()), "outIndex"))] = checked_index(sorted[i], d[0], "permuteTokenId");
    Values weight = weights(r, tokens, "probsOptional"), dx, x, along(tokens.size());
    if (r.has("probsOptional")) x = r.read<double>(r.tensor("permutedTokensOptional"));
    size_t width = size_t(d[1]);
    for (size_t i = 0; i < tokens.size(); ++i)
        for (size_t k = 0; k < width; ++k) {
            double flow = g[size_t(tokens[i]) * width + k];
            dx.push_back(flow * weight[i]);
            if (!x.empty()) along[i] += flow * x[i * width + k];
        }
    r.write(r.tensor("permutedTokensGradOut"), dx);
    if (r.has("probsOptional")) scatter(r, tokens, along, r.tensor("probsOptional").dims[1], "probsGradOutOptional");
}

}  // namespace emu::room
