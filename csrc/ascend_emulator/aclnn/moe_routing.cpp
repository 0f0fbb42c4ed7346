// Mixtures of experts, newer routing: by a map of tokens and experts, by a range of places, with quantization.
//
// The facts give shapes and dtypes only. Places are numbered as in MoeTokenPermute: pairs of a token and one of its
// experts, token by token; sortedIndices[pair] is the pair's row in the order of experts. Results of quantization are INT8.
#include "moe_room.h"
#include "microscaled.h"

using namespace emu;

namespace {

using Values = std::vector<double>;
using Places = std::vector<int64_t>;

long long wide(int64_t x) { return static_cast<long long>(x); }

void not_padded(const Plan& p, const char* name) { p.require(!p.flag(name), "%s is documented as false only", name); }

// -- a range of places: [first, last) of the rows in the order of experts ---------------------------------------------
struct Span {
    int64_t first, last;
    int64_t size() const { return last - first; }
    bool has(int64_t at) const { return at >= first && at < last; }
};

Span span_of(const Call& c, int64_t pairs) {
    const auto& range = c.ints("rangeOptional");
    return range.size() == 2 ? Span{range[0], range[1]} : Span{0, pairs};
}

Span plan_span(const Plan& p, int64_t pairs) {
    const auto& range = p.ints("rangeOptional");
    p.require(range.empty() || range.size() == 2, "rangeOptional has %zu elements, expected 2", range.size());
    Span s = span_of(p, pairs);
    p.require(s.first >= 0 && s.first <= s.last && s.last <= pairs, "rangeOptional is [%lld, %lld) of %lld rows",
              wide(s.first), wide(s.last), wide(pairs));
    return s;
}

int64_t choices(const Call& c, const char* name) {
    const Dims& d = c.tensor(name).dims;
    return d.n == 2 ? d[1] : 1;
}

void plan_part(Plan& p) {
    not_padded(p, "paddedMode");
    const Dims& d = p.tensor("tokens").dims;
    int64_t pairs = d[0] * choices(p, "indices");
    p.require(p.tensor("indices").dims[0] == d[0], "indices has shape %s for %lld tokens",
              text(p.tensor("indices").dims).c_str(), wide(d[0]));
    Span s = plan_span(p, pairs);
    p.shape("permuteTokensOut", {s.size(), d[1]});
    p.shape("sortedIndicesOut", {pairs});
    if (!p.has("probsOptional")) return;
    p.same_shape("indices", "probsOptional");
    p.shape("permuteProbsOut", {s.size()});
}

void run_part(Run& r) {
    auto order = order_of(r.read<int64_t>(r.tensor("indices")));
    int64_t k = choices(r, "indices");
    Span s = span_of(r, int64_t(order.size()));
    write_rows(r, r.tensor("tokens"), r.tensor("permuteTokensOut"),
               [&](int64_t i) { return order[size_t(s.first + i)] / k; });
    r.write(r.tensor("sortedIndicesOut"), inverse_of(order));
    if (!r.has("probsOptional")) return;
    auto probs = r.read<double>(r.tensor("probsOptional"));
    Values out;
    for (int64_t i = s.first; i < s.last; ++i) out.push_back(probs[size_t(order[size_t(i)])]);
    r.write(r.tensor("permuteProbsOut"), out);
}

int64_t plan_pairs(const Plan& p, const char* name) {
    int64_t k = p.integer(name), pairs = p.tensor("sortedIndices").numel();
    p.require(k > 0 && pairs % k == 0, "%s is %lld for %lld pairs", name, wide(k), wide(pairs));
    return pairs / k;
}

void plan_rows_of_span(const Plan& p, const char* name, const Span& s, int64_t length) {
    p.shape(name, {s.size(), length});
}

void plan_part_grad(Plan& p) {
    not_padded(p, "paddedMode");
    int64_t rows = plan_pairs(p, "numTopk"), k = p.integer("numTopk");
    Span s = plan_span(p, rows * k);
    const Dims& g = p.tensor("permutedTokensOutputGrad").dims;
    p.require(g.n == 2 && g[0] == s.size(), "permutedTokensOutputGrad has shape %s for %lld rows", text(g).c_str(),
              wide(s.size()));
    p.shape("tokenGradOut", {rows, g[1]});
    if (!p.has("permutedProbsOutputGradOptional")) return;
    p.shape("permutedProbsOutputGradOptional", {s.size()});
    p.shape("probsGradOut", {rows, k});
}

void run_part_grad(Run& r) {
    const Dims& out = r.tensor("tokenGradOut").dims;
    auto g = r.read<double>(r.tensor("permutedTokensOutputGrad"));
    auto places = r.read<int64_t>(r.tensor("sortedIndices"));
    size_t k = size_t(r.integer("numTopk"));
    Span s = span_of(r, int64_t(places.size()));
    Values y(size_t(out.product())), dp(places.size()), gp;
    if (r.has("permutedProbsOutputGradOptional")) gp = r.read<double>(r.tensor("permutedProbsOutputGradOptional"));
    for (size_t pair = 0; pair < places.size(); ++pair) {
        if (!s.has(places[pair])) continue;
        size_t at = size_t(places[pair] - s.first);
        for (size_t d = 0; d < size_t(out[1]); ++d) y[pair / k * size_t(out[1]) + d] += g[at * size_t(out[1]) + d];
        if (!gp.empty()) dp[pair] = gp[at];
    }
    r.write(r.tensor("tokenGradOut"), y);
    if (!gp.empty()) r.write(r.tensor("probsGradOut"), dp);
}

void plan_back(Plan& p) {
    not_padded(p, "paddedMode");
    int64_t rows = plan_pairs(p, "numTopk"), k = p.integer("numTopk");
    const Dims& x = p.tensor("permutedTokens").dims;
    Span s = plan_span(p, rows * k);
    p.require(x.n == 2 && x[0] == s.size(), "permutedTokens has shape %s for %lld rows", text(x).c_str(), wide(s.size()));
    if (p.has("probsOptional")) p.shape("probsOptional", {rows, k});
    p.shape("out", {rows, x[1]});
}

void run_back(Run& r) {
    const Dims& out = r.tensor("out").dims;
    auto x = r.read<double>(r.tensor("permutedTokens"));
    auto places = r.read<int64_t>(r.tensor("sortedIndices"));
    size_t k = size_t(r.integer("numTopk"));
    Span s = span_of(r, int64_t(places.size()));
    Values y(size_t(out.product())), probs(places.size(), 1);
    if (r.has("probsOptional")) probs = r.read<double>(r.tensor("probsOptional"));
    for (size_t pair = 0; pair < places.size(); ++pair) {
        if (!s.has(places[pair])) continue;
        size_t at = size_t(places[pair] - s.first) * size_t(out[1]);
        for (size_t d = 0; d < size_t(out[1]); ++d) y[pair / k * size_t(out[1]) + d] += probs[pair] * x[at + d];
    }
    r.write(r.tensor("out"), y);
}

void plan_back_grad(Plan& p) {
    not_padded(p, "paddedMode");
    int64_t rows = plan_pairs(p, "topkNum"), k = p.integer("topkNum");
    const Dims& g = p.tensor("unpermutedTokensGrad").dims;
    Span s = plan_span(p, rows * k);
    p.require(g.n == 2 && g[0] == rows, "unpermutedTokensGrad has shape %s for %lld tokens", text(g).c_str(), wide(rows));
    plan_rows_of_span(p, "permutedTokensGradOut", s, g[1]);
    if (!p.has("probsOptional")) return;
    p.shape("probsOptional", {rows, k});
    p.require(p.has("permutedTokensOptional"), "probsOptional needs permutedTokensOptional");
    plan_rows_of_span(p, "permutedTokensOptional", s, g[1]);
    p.shape("probsGradOut", {rows, k});
}

void run_back_grad(Run& r) {
    const Dims& d = r.tensor("unpermutedTokensGrad").dims;
    auto g = r.read<double>(r.tensor("unpermutedTokensGrad"));
    auto places = r.read<int64_t>(r.tensor("sortedIndices"));
    size_t k = size_t(r.integer("topkNum")), length = size_t(d[1]);
    Span s = span_of(r, int64_t(places.size()));
    bool weighted = r.has("probsOptional");
    Values dx(size_t(s.size()) * length), probs(places.size(), 1), dp(places.size()), x;
    if (weighted) probs = r.read<double>(r.tensor("probsOptional")), x = r.read<double>(r.tensor("permutedTokensOptional"));
    for (size_t pair = 0; pair < places.size(); ++pair) {
        if (!s.has(places[pair])) continue;
        size_t at = size_t(places[pair] - s.first) * length, from = pair / k * length;
        for (size_t i = 0; i < length; ++i) {
            dx[at + i] = g[from + i] * probs[pair];
            if (weighted) dp[pair] += g[from + i] * x[at + i];
        }
    }
    r.write(r.tensor("permutedTokensGradOut"), dx);
    if (weighted) r.write(r.tensor("probsGradOut"), dp);
}

// -- a map of tokens and experts: rows in the order of experts, then of tokens ----------------------------------------
struct Map {
    Places tokens, experts;  // of each row
    Places rows;             // of each pair, pairs counted token by token
};

Map read_map(const Run& r, const char* name, int64_t rows) {
    const Dims& d = r.tensor(name).dims;
    auto map = r.read<int64_t>(r.tensor(name));
    Map m;
    for (int64_t e = 0; e < d[1]; ++e)
        for (int64_t t = 0; t < d[0]; ++t)
            if (map[size_t(t * d[1] + e)]) m.tokens.push_back(t), m.experts.push_back(e);
    if (int64_t(m.tokens.size()) != rows) fault("%s names %zu pairs, there are %lld rows", name, m.tokens.size(), wide(rows));
    m.rows = order_of(m.tokens);  // the rows of token 0, of token 1, ...
    return m;
}

void plan_mapped(Plan& p) {
    const Dims &d = p.tensor("tokens").dims, &m = p.tensor("routingMap").dims;
    int64_t rows = p.integer("numOutTokens");
    p.require(m[0] == d[0], "routingMap has shape %s for %lld tokens", text(m).c_str(), wide(d[0]));
    if (p.flag("dropAndPad")) room::plan_room(p, rows, m[1], d[0]);
    else p.require(rows > 0 && d[0] > 0 && rows % d[0] == 0, "numOutTokens is %lld for %lld tokens", wide(rows), wide(d[0]));
    p.shape("permuteTokensOut", {rows, d[1]});
    p.shape("sortedIndicesOut", {rows});
    if (!p.has("probsOptional")) return;
    p.same_shape("routingMap", "probsOptional");
    if (!p.has("permuteProbsOutOptional")) refuse(ACLNN_ERR_PARAM_NULLPTR, "permuteProbsOutOptional must not be null");
    p.shape("permuteProbsOutOptional", {rows});
}

void run_mapped(Run& r) {
    if (r.flag("dropAndPad")) return room::run_out(r);
    Map m = read_map(r, "routingMap", r.integer("numOutTokens"));
    write_rows(r, r.tensor("tokens"), r.tensor("permuteTokensOut"), [&](int64_t i) { return m.tokens[size_t(i)]; });
    r.write(r.tensor("sortedIndicesOut"), m.rows);
    if (!r.has("probsOptional")) return;
    auto probs = r.read<double>(r.tensor("probsOptional"));
    int64_t experts = r.tensor("probsOptional").dims[1];
    Values out;
    for (size_t i = 0; i < m.tokens.size(); ++i) out.push_back(probs[size_t(m.tokens[i] * experts + m.experts[i])]);
    r.write(r.tensor("permuteProbsOutOptional"), out);
}

void plan_mapped_grad(Plan& p) {
    if (p.flag("dropAndPad")) return room::plan_out_grad(p);
    const Dims& g = p.tensor("permutedTokenOutputGrad").dims;
    int64_t tokens = p.integer("tokensNum"), experts = p.integer("numExperts");
    p.require(g.n == 2 && tokens > 0 && g[0] % tokens == 0, "permutedTokenOutputGrad has shape %s for %lld tokens",
              text(g).c_str(), wide(tokens));
    p.shape("sortedIndices", {g[0]});
    p.shape("tokensGradOut", {tokens, g[1]});
    if (!p.has("permutedProbsOutputGradOptional")) return;
    p.shape("permutedProbsOutputGradOptional", {g[0]});
    p.require(p.has("routingMapOptional"), "permutedProbsOutputGradOptional needs routingMapOptional");
    p.shape("routingMapOptional", {tokens, experts});
    if (!p.has("probsGradOutOptional")) refuse(ACLNN_ERR_PARAM_NULLPTR, "probsGradOutOptional must not be null");
    p.shape("probsGradOutOptional", {tokens, experts});
}

void run_mapped_grad(Run& r) {
    if (r.flag("dropAndPad")) return room::run_out_grad(r);
    const Dims& d = r.tensor("tokensGradOut").dims;
    auto g = r.read<double>(r.tensor("permutedTokenOutputGrad"));
    auto places = r.read<int64_t>(r.tensor("sortedIndices"));
    size_t k = places.size() / size_t(d[0]), length = size_t(d[1]);
    Values y(size_t(d.product()));
    for (size_t pair = 0; pair < places.size(); ++pair) {
        size_t at = size_t(checked_index(places[pair], int64_t(places.size()))) * length;
        for (size_t i = 0; i < length; ++i) y[pair / k * length + i] += g[at + i];
    }
    r.write(r.tensor("tokensGradOut"), y);
    if (!r.has("permutedProbsOutputGradOptional")) return;
    auto gp = r.read<double>(r.tensor("permutedProbsOutputGradOptional"));
    Map m = read_map(r, "routingMapOptional", int64_t(gp.size()));
    int64_t experts = r.integer("numExperts");
    Values dp(size_t(d[0] * experts));
    for (size_t i = 0; i < gp.size(); ++i) dp[size_t(m.tokens[i] * experts + m.experts[i])] = gp[i];
    r.write(r.tensor("probsGradOutOptional"), dp);
}

void plan_unmapped(Plan& p) {
    if (p.flag("paddedMode")) return room::plan_back(p);
    const Dims &x = p.tensor("permutedTokens").dims, &out = p.tensor("unpermutedTokens").dims;
    p.require(x.n == 2 && out.n == 2 && out[0] > 0 && x[0] % out[0] == 0 && x[1] == out[1],
              "permutedTokens has shape %s, unpermutedTokens %s", text(x).c_str(), text(out).c_str());
    const auto& shape = p.ints("restoreShapeOptional");
    p.require(shape.empty() || (shape.size() == 2 && shape[0] == out[0] && shape[1] == out[1]),
              "restoreShapeOptional is not the shape of unpermutedTokens");
    for (const char* name : {"sortedIndices", "outIndex", "permuteTokenId"}) p.shape(name, {x[0]});
    if (!p.has("probsOptional")) return;
    p.require(p.has("routingMapOptional"), "probsOptional needs routingMapOptional");
    p.require(p.tensor("routingMapOptional").dims[0] == out[0], "routingMapOptional has shape %s for %lld tokens",
              text(p.tensor("routingMapOptional").dims).c_str(), wide(out[0]));
    p.same_shape("routingMapOptional", "probsOptional");
    p.shape("permuteProbs", {x[0]});
}

Values row_probs(const Run& r, int64_t rows) {
    Map m = read_map(r, "routingMapOptional", rows);
    auto probs = r.read<double>(r.tensor("probsOptional"));
    int64_t experts = r.tensor("probsOptional").dims[1];
    Values out;
    for (size_t i = 0; i < m.tokens.size(); ++i) out.push_back(probs[size_t(m.tokens[i] * experts + m.experts[i])]);
    return out;
}

void run_unmapped(Run& r) {
    if (r.flag("paddedMode")) return room::run_back(r);
    const Dims& out = r.tensor("unpermutedTokens").dims;
    auto x = r.read<double>(r.tensor("permutedTokens"));
    auto places = r.read<int64_t>(r.tensor("sortedIndices"));
    size_t k = places.size() / size_t(out[0]), length = size_t(out[1]);
    Values probs(places.size(), 1), y(size_t(out.product()));
    if (r.has("probsOptional")) {
        probs = row_probs(r, int64_t(places.size()));
        r.write(r.tensor("permuteProbs"), probs);
    }
    for (size_t pair = 0; pair < places.size(); ++pair) {
        size_t at = size_t(checked_index(places[pair], int64_t(places.size())));
        for (size_t i = 0; i < length; ++i) y[pair / k * length + i] += probs[at] * x[at * length + i];
    }
    auto order = order_of(places);
    Places sorted;
    for (int64_t i : order) sorted.push_back(places[size_t(i)]);
    r.write(r.tensor("unpermutedTokens"), y);
    r.write(r.tensor("outIndex"), order);
    r.write(r.tensor("permuteTokenId"), sorted);
}

void plan_unmapped_grad(Plan& p) {
    if (p.flag("dropAndPad")) return room::plan_back_grad(p);
    const Dims& g = p.tensor("unpermutedTokensGrad").dims;
    int64_t rows = p.tensor("outIndex").numel();
    p.require(g.n == 2 && g[0] > 0 && rows % g[0] == 0, "unpermutedTokensGrad has shape %s for %lld rows", text(g).c_str(),
              wide(rows));
    const auto& shape = p.ints("restoreShapeOptional");
    p.require(shape.empty() || (shape.size() == 2 && shape[0] == g[0] && shape[1] == g[1]),
              "restoreShapeOptional is not the shape of unpermutedTokensGrad");
    p.same_shape("outIndex", "permuteTokenId");
    p.shape("permutedTokensGradOut", {rows, g[1]});
    if (!p.has("probsOptional")) return;
    for (const char* name : {"routingMapOptional", "permutedTokensOptional"})
        p.require(p.has(name), "probsOptional needs %s", name);
    p.same_shape("routingMapOptional", "probsOptional");
    p.shape("permutedTokensOptional", {rows, g[1]});
    if (!p.has("probsGradOutOptional")) refuse(ACLNN_ERR_PARAM_NULLPTR, "probsGradOutOptional must not be null");
    p.same_shape("probsOptional", "probsGradOutOptional");
}

void run_unmapped_grad(Run& r) {
    if (r.flag("dropAndPad")) return room::run_back_grad(r);
    const Dims& d = r.tensor("unpermutedTokensGrad").dims;
    auto g = r.read<double>(r.tensor("unpermutedTokensGrad"));
    auto pairs = r.read<int64_t>(r.tensor("outIndex")), rows = r.read<int64_t>(r.tensor("permuteTokenId"));
    size_t k = pairs.size() / size_t(d[0]), length = size_t(d[1]);
    bool weighted = r.has("probsOptional");
    Values probs(pairs.size(), 1), dx(pairs.size() * length), x, of_rows(pairs.size());
    if (weighted) probs = row_probs(r, int64_t(pairs.size())), x = r.read<double>(r.tensor("permutedTokensOptional"));
    for (size_t n = 0; n < pairs.size(); ++n) {
        size_t at = size_t(checked_index(rows[n], int64_t(rows.size())));
        size_t token = size_t(checked_index(pairs[n], int64_t(pairs.size()))) / k;
        for (size_t i = 0; i < length; ++i) {
            dx[at * length + i] = g[token * length + i] * probs[at];
            if (weighted) of_rows[at] += g[token * length + i] * x[at * length + i];
        }
    }
    r.write(r.tensor("permutedTokensGradOut"), dx);
    if (!weighted) return;
    Map m = read_map(r, "routingMapOptional", int64_t(pairs.size()));
    int64_t experts = r.tensor("probsOptional").dims[1];
    Values dp(size_t(r.tensor("probsOptional").numel()));
    for (size_t i = 0; i < of_rows.size(); ++i) dp[size_t(m.tokens[i] * experts + m.experts[i])] = of_rows[i];
    r.write(r.tensor("probsGradOutOptional"), dp);
}

// -- with quantization -----------------------------------------------------------------------------------------------
// Modes behind the dynamic one have blocks with scales: powers of two for each 32 numbers (FLOAT8_E8M0), or a FLOAT for each
// 128. The facts do not say which mode is which: the dtype of the scales does.
enum QuantMode : int64_t { kPlain = -1, kStatic = 0, kDynamic = 1, kLast = 7 };
constexpr int64_t kTile = 128;

void plan_modes(const Plan& p, const char* out, const char* scale, int64_t rows, int64_t length) {
    int64_t mode = p.integer("quantMode");
    p.require(mode >= kPlain && mode <= kLast, "quantMode is %lld, expected -1 to %lld", wide(mode), wide(kLast));
    if (mode == kPlain) return;
    const Tensor& y = p.tensor(out);
    p.require(((y.dtype == ACL_INT8 || y.dtype == ACL_INT4) && mode <= kDynamic) || is_narrow_float(y.dtype), "%s has dtype %s in quantMode %lld", out, dtype_name(y.dtype), wide(mode));
    if (mode == kStatic) return;
    p.require(p.has(scale), "quantMode %lld needs %s", wide(mode), scale);
    const Tensor& s = p.tensor(scale);
    p.require((s.dtype == ACL_FLOAT8_E8M0) <= (mode > kDynamic), "%s has dtype %s in quantMode %lld", scale, dtype_name(s.dtype), wide(mode));
    if (mode == kDynamic) return p.shape(scale, {rows});
    int64_t have = rows > 0 ? s.numel() / rows : 0;
    p.require(s.rank() >= 2 && s.dims[0] == rows && scale_places(length, have, s.dtype == ACL_FLOAT8_E8M0, kTile) > 0, "%s has shape %s for %lld rows of %lld", scale, text(s.dims).c_str(),
              wide(rows), wide(length));
}

void write_modes(const Run& r, Values y, int64_t length, const char* out, const char* scale, int64_t mode) {
    const Tensor& to = r.tensor(out);
    if (mode == kDynamic) return write_dynamic(r, y, length, out, scale);
    if (mode <= kDynamic) return r.write(to, mode == kStatic ? within(y, to.dtype) : y);
    const Tensor& s = r.tensor(scale);
    bool exponents = s.dtype == ACL_FLOAT8_E8M0;
    RowBlocks blocks{length, exponents ? kBlock : kTile, s.numel() / std::max<int64_t>(s.dims[0], 1), to.dtype, narrow_largest(to.dtype), exponents, false};
    Values scales = blocks.divide(y);
    r.write(to, y);
    r.write(s, scales);
}

void plan_init_quant(Plan& p) {
    const Dims &d = p.tensor("x").dims, &k = p.tensor("expertIdx").dims;
    p.require(k[0] == d[0], "expertIdx has shape %s for %lld tokens", text(k).c_str(), wide(d[0]));
    p.same_shape("expertIdx", "rowIdx");
    int64_t active = p.integer("activeNum");
    p.require(active >= 0, "activeNum must not be negative");
    p.shape("expandedXOut", {std::min(d[0], active) * k[1], d[1]});
    for (const char* name : {"expandedRowIdxOut", "expandedExpertIdxOut"}) p.shape(name, {d[0] * k[1]});
}

void run_init_quant(Run& r) {
    const Dims& d = r.tensor("x").dims;
    auto experts = r.read<int64_t>(r.tensor("expertIdx")), numbers = r.read<int64_t>(r.tensor("rowIdx"));
    auto order = order_of(experts);
    auto x = r.read<double>(r.tensor("x"));
    Places sorted, rows(experts.size());
    for (size_t i = 0; i < order.size(); ++i) {
        sorted.push_back(experts[size_t(order[i])]);
        rows[size_t(checked_index(numbers[size_t(order[i])], int64_t(rows.size()), "rowIdx"))] = int64_t(i);
    }
    Values y;
    size_t length = size_t(d[1]);
    for (int64_t i = 0; i < r.tensor("expandedXOut").dims[0]; ++i) {
        size_t token = size_t(numbers[size_t(order[size_t(i)])] % d[0]);
        for (size_t k = 0; k < length; ++k) y.push_back(x[token * length + k] * r.real("scale") + r.real("offset"));
    }
    r.write(r.tensor("expandedXOut"), within(y, ACL_INT8));
    r.write(r.tensor("expandedRowIdxOut"), rows);
    r.write(r.tensor("expandedExpertIdxOut"), sorted);
}

void plan_static(const Plan& p, const char* scale, const char* offset) {
    for (const char* name : {scale, offset}) {
        p.require(p.has(name), "static quantization needs %s", name);
        p.shape(name, {1});
    }
}

void plan_smooth(const Plan& p, const char* scale, int64_t experts, int64_t length) {
    if (!p.has(scale)) return;
    const Dims& s = p.tensor(scale).dims;
    p.require(s.n == 2 && (s[0] == 1 || s[0] == experts) && s[1] == length, "%s has shape %s, expected (1 or %lld, %lld)",
              scale, text(s).c_str(), wide(experts), wide(length));
}

// The rows of tokens, quantized; `expert(i)` is that of row i.
template <class F, class G>
void write_expanded(const Run& r, const char* out, const char* scale_out, int64_t mode, F token, G expert) {
    const Dims& d = r.tensor("x").dims;
    size_t length = size_t(d[1]), rows = size_t(r.tensor(out).numel()) / std::max<size_t>(length, 1);
    auto x = r.read<double>(r.tensor("x"));
    Values y(rows * length), factors;
    if (r.has("scaleOptional")) factors = r.read<double>(r.tensor("scaleOptional"));
    double offset = mode == kStatic ? r.read<double>(r.tensor("offsetOptional"))[0] : 0;
    for (size_t i = 0; i < rows; ++i) {
        int64_t from = token(int64_t(i));
        if (from < 0) continue;
        for (size_t k = 0; k < length; ++k) {
            double value = x[size_t(from) * length + k];
            if (mode == kStatic) value = value * factors[0] + offset;
            else if (mode >= kDynamic && !factors.empty())
                value *= factors[(factors.size() == length ? 0 : size_t(expert(int64_t(i))) * length) + k];
            y[i * length + k] = value;
        }
    }
    write_modes(r, y, int64_t(length), out, scale_out, mode);
}

void plan_init_quant_again(Plan& p) {
    const Dims &d = p.tensor("x").dims, &k = p.tensor("expertIdx").dims;
    p.require(k[0] == d[0], "expertIdx has shape %s for %lld tokens", text(k).c_str(), wide(d[0]));
    int64_t pairs = d[0] * k[1], active = p.integer("activeNum"), mode = p.integer("quantMode");
    int64_t rows = active > 0 ? std::min(active, pairs) : pairs, experts = p.integer("expertNum");
    p.require(mode == kStatic || mode == kDynamic, "quantMode is %lld, expected 0 (static) or 1 (dynamic)", wide(mode));
    bool drops = p.integer("dropPadMode") == 1;
    if (drops) {  // each expert has room for as many tokens
        int64_t room = p.integer("expertCapacity");
        p.require(experts > 0 && room > 0 && room <= INT32_MAX / experts, "dropPadMode 1 needs expertNum and expertCapacity");
        p.shape("expandedXOut", {experts, room, d[1]});
        rows = experts * room;
        if (p.flag("expertTokensBeforeCapacityFlag")) p.shape("expertTokensBeforeCapacityOutOptional", {experts});
    } else {
        p.require(p.integer("dropPadMode") == 0, "dropPadMode is %lld, expected 0 or 1", wide(p.integer("dropPadMode")));
        p.shape("expandedXOut", {rows, d[1]});
    }
    p.shape("expandedRowIdxOut", {pairs});
    int64_t flag = p.integer("expertTokensCountOrCumsumFlag");
    p.require(flag >= 0 && flag <= 2, "expertTokensCountOrCumsumFlag must be 0, 1 or 2");
    if (flag != 0 && !drops) p.shape("expertTokensCountOrCumsumOutOptional", {experts});
    if (mode == kStatic) return plan_static(p, "scaleOptional", "offsetOptional");
    plan_smooth(p, "scaleOptional", experts, d[1]);
    p.shape("dynamicQuantScaleOutOptional", {rows});
}

Places counts_of(const Places& experts, int64_t first, int64_t last) {
    Places out(size_t(std::max<int64_t>(last - first, 0)));
    for (int64_t e : experts)
        if (e >= first && e < last) ++out[size_t(e - first)];
    return out;
}

// Tokens beyond the room of their expert are dropped; room that is left is zero.
void run_init_quant_dropping(Run& r, const Places& experts, const Places& order, int64_t k) {
    int64_t many = r.integer("expertNum"), room = r.integer("expertCapacity");
    Places source(size_t(many * room), -1), taken(size_t(many), 0), places(experts.size(), -1);
    for (int64_t pair : order) {
        int64_t e = checked_index(experts[size_t(pair)], many, "expertIdx");
        if (taken[size_t(e)] == room) continue;
        int64_t at = e * room + taken[size_t(e)]++;
        source[size_t(at)] = pair / k;
        places[size_t(pair)] = at;
    }
    write_expanded(
        r, "expandedXOut", "dynamicQuantScaleOutOptional", r.integer("quantMode"),
        [&](int64_t i) { return source[size_t(i)]; }, [&](int64_t i) { return i / room; });
    r.write(r.tensor("expandedRowIdxOut"), places);
    if (r.flag("expertTokensBeforeCapacityFlag"))
        r.write(r.tensor("expertTokensBeforeCapacityOutOptional"), counts_of(experts, 0, many));
}

void run_init_quant_again(Run& r) {
    auto experts = r.read<int64_t>(r.tensor("expertIdx"));
    auto order = order_of(experts);
    int64_t k = r.tensor("expertIdx").dims[1], many = r.integer("expertNum");
    if (r.integer("dropPadMode") == 1) return run_init_quant_dropping(r, experts, order, k);
    for (int64_t e : experts)
        if (r.integer("quantMode") == kDynamic) checked_index(e, std::max<int64_t>(many, 1), "expertIdx");
    write_expanded(
        r, "expandedXOut", "dynamicQuantScaleOutOptional", r.integer("quantMode"),
        [&](int64_t i) { return order[size_t(i)] / k; }, [&](int64_t i) { return experts[size_t(order[size_t(i)])]; });
    r.write(r.tensor("expandedRowIdxOut"), inverse_of(order));
    int64_t flag = r.integer("expertTokensCountOrCumsumFlag");
    if (flag == 0) return;
    auto counts = counts_of(experts, 0, many);
    if (flag == 1) std::partial_sum(counts.begin(), counts.end(), counts.begin());
    r.write(r.tensor("expertTokensCountOrCumsumOutOptional"), counts);
}

// The third version keeps the experts of a range, and numbers rows by pairs (0) or pairs by rows (1). With dropPadMode 1 each
// expert of the range has room for expertCapacity tokens, as in the second; those that find none are dropped, what is left is zero.
Span experts_of(const Call& c) {
    const auto& range = c.ints("activeExpertRangeOptional");
    return range.size() == 2 ? Span{range[0], range[1]} : Span{0, c.integer("expertNum")};
}

void plan_init_third(Plan& p) {
    const Dims &d = p.tensor("x").dims, &k = p.tensor("expertIdx").dims;
    p.require(k[0] == d[0], "expertIdx has shape %s for %lld tokens", text(k).c_str(), wide(d[0]));
    int64_t drop = p.integer("dropPadMode"), room = p.integer("expertCapacity");
    p.require(drop == 0 || drop == 1, "dropPadMode is %lld, expected 0 or 1", wide(drop));
    int64_t mode = p.integer("quantMode"), type = p.integer("expertTokensNumType"), row = p.integer("rowIdxType");
    p.require(type >= 0 && type <= 2, "expertTokensNumType is %lld, expected 0 (ends), 1 (counts) or 2 (experts and counts)", wide(type));
    p.require(row == 0 || row == 1, "rowIdxType is %lld, expected 0 or 1", wide(row));
    Span s = experts_of(p);
    p.require(s.first >= 0 && s.first < s.last && s.last <= p.integer("expertNum"),
              "activeExpertRangeOptional is [%lld, %lld) of %lld experts", wide(s.first), wide(s.last),
              wide(p.integer("expertNum")));
    int64_t pairs = d[0] * k[1], active = p.integer("activeNum"), rows = active > 0 ? std::min(active, pairs) : pairs;
    if (drop == 1) {
        p.require(room > 0 && room <= INT32_MAX / s.size(), "expertCapacity is %lld with dropPadMode 1", wide(room));
        p.require(row == 0, "rowIdxType is 1, which numbers no rows of padding");
        rows = room * s.size();
    }
    p.shape("expandedXOut", {rows, d[1]});
    p.shape("expandedRowIdxOut", {pairs});
    if (p.flag("expertTokensNumFlag"))
        p.shape("expertTokensCountOrCumsumOut", type == 2 ? Dims({p.integer("expertNum"), 2}) : Dims({s.size()}));
    if (mode == kPlain) {
        p.same_dtype("x", "expandedXOut");
        if (!p.has("scaleOptional")) return;
        Dims scale = p.tensor("scaleOptional").dims;  // of each token: it goes along
        p.require(scale.n >= 1 && scale[0] == d[0], "scaleOptional has shape %s for %lld tokens", text(scale).c_str(), wide(d[0]));
        p.same_dtype("scaleOptional", "expandedScaleOut");
        scale[0] = rows;
        return p.shape("expandedScaleOut", scale);
    }
    plan_modes(p, "expandedXOut", "expandedScaleOut", rows, d[1]);
    if (mode == kStatic) return plan_static(p, "scaleOptional", "offsetOptional");
    plan_smooth(p, "scaleOptional", s.size(), d[1]);
}

// Which pair stands in each row of the result; -1 is none.
Places pairs_of_rows(const Run& r, const Places& experts, Span s) {
    bool drops = r.integer("dropPadMode") == 1;
    int64_t room = r.integer("expertCapacity"), row = 0;
    Places keys = experts, taken(size_t(drops ? s.size() : 0), 0), out(size_t(r.tensor("expandedXOut").dims[0]), -1);
    for (int64_t& e : keys)
        if (!s.has(e)) e = INT64_MAX;  // behind all others
    for (int64_t pair : order_of(keys)) {
        int64_t e = keys[size_t(pair)], at = row;
        if (e == INT64_MAX || (!drops && row == int64_t(out.size()))) break;
        if (drops) {
            int64_t& used = taken[size_t(e - s.first)];
            if (used == room) continue;
            at = (e - s.first) * room + used++;
        }
        out[size_t(at)] = pair;
        ++row;
    }
    return out;
}

void run_init_third(Run& r) {
    auto experts = r.read<int64_t>(r.tensor("expertIdx"));
    Span s = experts_of(r);
    int64_t k = r.tensor("expertIdx").dims[1];
    auto pairs = pairs_of_rows(r, experts, s);
    write_expanded(
        r, "expandedXOut", "expandedScaleOut", r.integer("quantMode"),
        [&](int64_t i) { return pairs[size_t(i)] < 0 ? -1 : pairs[size_t(i)] / k; },
        [&](int64_t i) { return experts[size_t(pairs[size_t(i)])] - s.first; });
    Places rows(experts.size(), -1);
    for (size_t i = 0; i < pairs.size(); ++i) {
        if (pairs[i] < 0) continue;
        if (r.integer("rowIdxType") == 0) rows[size_t(pairs[i])] = int64_t(i);
        else rows[i] = pairs[i];
    }
    r.write(r.tensor("expandedRowIdxOut"), rows);
    if (r.integer("quantMode") == kPlain && r.has("scaleOptional")) {
        auto scale = r.read<double>(r.tensor("scaleOptional"));
        Values moved(size_t(r.tensor("expandedScaleOut").numel()), 0);
        int64_t each = int64_t(scale.size()) / std::max<int64_t>(r.tensor("x").dims[0], 1);
        for (size_t i = 0; i < pairs.size(); ++i)
            if (pairs[i] >= 0) std::copy_n(scale.begin() + pairs[i] / k * each, each, moved.begin() + int64_t(i) * each);
        r.write(r.tensor("expandedScaleOut"), moved);
    }
    if (!r.flag("expertTokensNumFlag")) return;
    auto counts = counts_of(experts, s.first, s.last);
    if (r.integer("expertTokensNumType") == 2) {  // those that have any, then zeros
        Places many;
        for (size_t e = 0; e < counts.size(); ++e)
            if (counts[e] > 0) many.insert(many.end(), {s.first + int64_t(e), counts[e]});
        many.resize(size_t(r.tensor("expertTokensCountOrCumsumOut").numel()), 0);
        return r.write(r.tensor("expertTokensCountOrCumsumOut"), many);
    }
    if (r.integer("expertTokensNumType") == 0) std::partial_sum(counts.begin(), counts.end(), counts.begin());
    r.write(r.tensor("expertTokensCountOrCumsumOut"), counts);
}

void plan_permute_again(Plan& p) {
    not_padded(p, "paddedMode");
    const Dims& d = p.tensor("tokens").dims;
    p.require(d.n == 2 && p.tensor("indices").dims[0] == d[0], "tokens has shape %s, indices %s", text(d).c_str(),
              text(p.tensor("indices").dims).c_str());
    int64_t pairs = d[0] * choices(p, "indices"), kept = p.integer("numOutTokens");
    kept = kept > 0 ? std::min(kept, pairs) : std::max<int64_t>(pairs + kept, 0);
    p.require(p.integer("quantMode") != kStatic, "quantMode is 0, which needs a scale");
    if (p.integer("quantMode") == kPlain) p.same_dtype("tokens", "permuteTokensOut");
    p.shape("permuteTokensOut", {kept, d[1]});
    p.shape("sortedIndicesOut", {pairs});
    plan_modes(p, "permuteTokensOut", "expandedScaleOut", kept, d[1]);
}

void run_permute_again(Run& r) {
    auto order = order_of(r.read<int64_t>(r.tensor("indices")));
    int64_t k = choices(r, "indices");
    auto x = r.read<double>(r.tensor("tokens"));
    int64_t length = r.tensor("tokens").dims[1];
    Values y;
    for (int64_t i = 0; i < r.tensor("permuteTokensOut").dims[0]; ++i) {
        auto from = x.begin() + order[size_t(i)] / k * length;
        y.insert(y.end(), from, from + length);
    }
    write_modes(r, y, length, "permuteTokensOut", "expandedScaleOut", r.integer("quantMode"));
    r.write(r.tensor("sortedIndicesOut"), inverse_of(order));
}

// -- gating ----------------------------------------------------------------------------------------------------------
// Groups are judged by the sum of their topN best; scores are sigmoids, addNum only helps in choosing. An expert may stand
// in several places: its row of mappingTable has their numbers, as many as mappingNum says. The facts do not tell which of
// them a token takes; here tokens take them in turn.
void plan_fused(Plan& p) {
    const Dims& d = p.tensor("x").dims;
    int64_t groups = p.integer("groupNum"), some = p.integer("groupTopk"), top = p.integer("topN"), k = p.integer("topK");
    p.require(p.integer("activateType") == 0, "activateType is %lld, expected 0 (sigmoid)", wide(p.integer("activateType")));
    p.require(groups >= 1 && d[1] % groups == 0 && some >= 1 && some <= groups, "groupTopk is %lld of %lld groups of %lld experts",
              wide(some), wide(groups), wide(d[1]));
    p.require(top >= 1 && top <= d[1] / groups, "topN is %lld of %lld", wide(top), wide(d[1] / groups));
    p.require(k >= 1 && k <= some * (d[1] / groups), "topK is %lld of %lld", wide(k), wide(some * (d[1] / groups)));
    p.shape("addNum", {d[1]});
    for (const char* name : {"y", "indices"}) p.shape(name, {d[0], k});
    if (!p.flag("enableExpertMapping")) return;
    const Dims& table = p.tensor("mappingTable").dims;
    p.shape("mappingNum", {d[1]});
    p.require(table.n == 2 && table[0] == d[1], "mappingTable has shape %s for %lld experts", text(table).c_str(), wide(d[1]));
}

void run_fused(Run& r) {
    auto x = r.read<double>(r.tensor("x")), add = r.read<double>(r.tensor("addNum"));
    int64_t size = r.tensor("x").dims[1], groups = r.integer("groupNum"), each = size / groups, k = r.integer("topK");
    Values y;
    Places found;
    for (size_t row = 0; row < x.size(); row += size_t(size)) {
        Values score, judged, sums;
        for (int64_t e = 0; e < size; ++e) {
            score.push_back(1 / (1 + std::exp(-x[row + size_t(e)])));
            judged.push_back(score.back() + add[size_t(e)]);
        }
        for (int64_t g = 0; g < groups; ++g) {
            double sum = 0;
            for (int64_t e : largest(judged.data() + g * each, each, r.integer("topN"))) sum += judged[size_t(g * each + e)];
            sums.push_back(sum);
        }
        auto best = largest(sums.data(), groups, r.integer("groupTopk"));
        for (int64_t e = 0; e < size; ++e)
            if (std::find(best.begin(), best.end(), e / each) == best.end()) judged[size_t(e)] = -INFINITY;
        auto chosen = largest(judged.data(), size, k);
        double sum = 0;
        for (int64_t e : chosen) sum += score[size_t(e)];
        for (int64_t e : chosen) {
            y.push_back(score[size_t(e)] / (r.flag("isNorm") ? sum : 1) * r.real("scale"));
            found.push_back(e);
        }
    }
    if (r.flag("enableExpertMapping")) {
        auto many = r.read<int64_t>(r.tensor("mappingNum")), table = r.read<int64_t>(r.tensor("mappingTable"));
        int64_t width = r.tensor("mappingTable").dims[1];
        for (size_t i = 0; i < found.size(); ++i) {
            int64_t e = found[i];
            if (many[size_t(e)] < 1 || many[size_t(e)] > width) fault("mappingNum holds %lld, mappingTable has %lld columns", wide(many[size_t(e)]), wide(width));
            found[i] = table[size_t(e * width + int64_t(i) / k % many[size_t(e)])];
        }
    }
    r.write(r.tensor("y"), y);
    r.write(r.tensor("indices"), found);
}

// xNorm: the scores, softmax (normType 0) or sigmoid (1), of which the chosen ones are divided by their sum.
void plan_gate_grad(Plan& p) {
    p.same_shape("gradY", "expertIdx");
    p.same_shape("xNorm", "out");
    p.require(p.tensor("gradY").dims[0] == p.tensor("xNorm").dims[0], "gradY has shape %s, xNorm %s",
              text(p.tensor("gradY").dims).c_str(), text(p.tensor("xNorm").dims).c_str());
    for (const char* name : {"renorm", "normType"})
        p.require(p.integer(name) == 0 || p.integer(name) == 1, "%s must be 0 or 1", name);
    p.same_dtype("gradY", "out");
}

void run_gate_grad(Run& r) {
    const Dims &d = r.tensor("xNorm").dims, &k = r.tensor("gradY").dims;
    auto score = r.read<double>(r.tensor("xNorm")), g = r.read<double>(r.tensor("gradY"));
    auto chosen = r.read<int64_t>(r.tensor("expertIdx"));
    bool sigmoids = r.integer("normType") == 1, divides = sigmoids || r.integer("renorm") == 1;
    double by = r.real("routedScalingFactor");
    Values out(score.size());
    for (int64_t row = 0; row < d[0]; ++row) {
        double* x = score.data() + row * d[1];
        double* dx = out.data() + row * d[1];
        double sum = divides ? r.real("eps") : 1, along = 0;
        for (int64_t j = 0; j < k[1]; ++j) {
            int64_t e = checked_index(chosen[size_t(row * k[1] + j)], d[1], "expertIdx");
            if (divides) sum += x[e];
        }
        for (int64_t j = 0; j < k[1]; ++j) {
            size_t pair = size_t(row * k[1] + j);
            along += g[pair] * by * x[chosen[pair]] / (sum * sum);
        }
        for (int64_t j = 0; j < k[1]; ++j) {
            size_t pair = size_t(row * k[1] + j);
            dx[chosen[pair]] += g[pair] * by / sum - (divides ? along : 0);
        }
        double dot = 0;
        for (int64_t e = 0; e < d[1]; ++e) dot += dx[e] * x[e];
        for (int64_t e = 0; e < d[1]; ++e) dx[e] = sigmoids ? dx[e] * x[e] * (1 - x[e]) : x[e] * (dx[e] - dot);
    }
    r.write(r.tensor("out"), out);
}

}  // namespace

ACLNN(aclnnMoeTokenPermuteWithEp, plan_part, run_part)
ACLNN(aclnnMoeTokenPermuteWithEpGrad, plan_part_grad, run_part_grad)
ACLNN(aclnnMoeTokenUnpermuteWithEp, plan_back, run_back)
ACLNN(aclnnMoeTokenUnpermuteWithEpGrad, plan_back_grad, run_back_grad)
ACLNN(aclnnMoeTokenPermuteWithRoutingMap, plan_mapped, run_mapped)
ACLNN(aclnnMoeTokenPermuteWithRoutingMapGrad, plan_mapped_grad, run_mapped_grad)
ACLNN(aclnnMoeTokenUnpermuteWithRoutingMap, plan_unmapped, run_unmapped)
ACLNN(aclnnMoeTokenUnpermuteWithRoutingMapGrad, plan_unmapped_grad, run_unmapped_grad)
ACLNN(aclnnMoeTokenPermuteV2, plan_permute_again, run_permute_again, NARROW)
ACLNN(aclnnMoeInitRoutingQuant, plan_init_quant, run_init_quant)
ACLNN(aclnnMoeInitRoutingQuantV2, plan_init_quant_again, run_init_quant_again, NARROW)
ACLNN(aclnnMoeInitRoutingV3, plan_init_third, run_init_third, NARROW)
ACLNN(aclnnMoeFusedTopk, plan_fused, run_fused)
ACLNN(aclnnMoeGatingTopKBackward, plan_gate_grad, run_gate_grad)
