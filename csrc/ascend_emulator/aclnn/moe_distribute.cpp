// Tokens sent to the ranks of their experts, and the experts' answers brought back.
//
// The rows a rank receives stand expert by expert, then by the rank they came from, then in the order of that rank's
// tokens; epRecvCounts are their running ends in this order. What travels between both functions beside that
// (expandIdx, assistInfoForCombine) is private to the vendor; here it is the place of each pair among its expert's rows,
// and where rows came from: (rank, token, which of its experts). The formulas are not in the facts.
#include <numeric>

#include "collective.h"
#include "quantize.h"

using namespace emu;

namespace {

long long wide(int64_t x) { return static_cast<long long>(x); }

const char* one_of(const Call& c, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (has_parameter(c, name)) return name;
    throw std::logic_error("no such parameter");
}

struct Layout {
    int64_t ranks, rank, experts, local, tokens, picks;
};

Layout plan_layout(const Plan& p) {
    auto group = plan_group(p, "groupEp");
    Layout l{p.integer("epWorldSize"), p.integer("epRankId"), p.integer("moeExpertNum"), 0, 0, 0};
    p.require(l.ranks == int64_t(group->size), "epWorldSize is %lld, the communicator has %u ranks", wide(l.ranks), group->size);
    p.require(l.rank == int64_t(group->rank), "epRankId is %lld, this rank is %u", wide(l.rank), group->rank);
    p.require(l.experts > 0 && l.experts % l.ranks == 0, "moeExpertNum is %lld for %lld ranks", wide(l.experts), wide(l.ranks));
    p.require(p.integer("tpWorldSize") <= 1, "tpWorldSize is %lld; the emulator computes 0 and 1", wide(p.integer("tpWorldSize")));
    for (const char* name : {"sharedExpertRankNum", "zeroExpertNum", "copyExpertNum", "constExpertNum", "expertShardType"})
        p.require(!has_parameter(p, name) || p.integer(name) == 0, "%s: the emulator computes 0", name);
    for (const char* name : {"elasticInfoOptional", "oriXOptional", "constExpertAlpha1Optional", "constExpertAlpha2Optional", "constExpertVOptional",
                             "performanceInfoOptional", "activationScale", "weightScale", "groupList", "activationScaleOptional", "weightScaleOptional",
                             "groupListOptional"})
        p.require(!given(p, name), "%s is not computed by the emulator", name);
    const Dims& ids = p.tensor("expertIds").dims;
    p.require(ids.n == 2, "expertIds has shape %s", text(ids).c_str());
    l.local = l.experts / l.ranks, l.tokens = ids[0], l.picks = ids[1];
    p.require(p.integer("globalBs") == 0 || p.integer("globalBs") >= l.tokens * l.ranks, "globalBs is %lld for %lld tokens of %lld ranks",
              wide(p.integer("globalBs")), wide(l.tokens), wide(l.ranks));
    return l;
}

Layout layout(const Run& r) {
    const Dims& ids = r.tensor("expertIds").dims;
    Layout l{r.integer("epWorldSize"), r.integer("epRankId"), r.integer("moeExpertNum"), 0, ids[0], ids[1]};
    l.local = l.experts / l.ranks;
    return l;
}

// For each expert the pairs (token * picks + which) this rank sends it, in order; masked tokens send nothing.
std::vector<std::vector<int64_t>> pairs(const Run& r, const Layout& l) {
    auto ids = r.read<int64_t>(r.tensor("expertIds"));
    std::vector<int64_t> active(size_t(l.tokens), 1);
    const char* mask = one_of(r, {"xActiveMaskOptional", "xActiveMask"});
    if (r.has(mask)) active = r.read<int64_t>(r.tensor(mask));
    std::vector<std::vector<int64_t>> out(size_t(l.experts), std::vector<int64_t>{});
    for (int64_t i = 0; i < int64_t(ids.size()); ++i) {
        if (ids[size_t(i)] < 0 || ids[size_t(i)] >= l.experts) fault("expertIds holds %lld, there are %lld experts", wide(ids[size_t(i)]), wide(l.experts));
        if (active[size_t(i / l.picks)]) out[size_t(ids[size_t(i)])].push_back(i);
    }
    return out;
}

void plan_mask(const Plan& p, const Layout& l) {
    const char* mask = one_of(p, {"xActiveMaskOptional", "xActiveMask"});
    if (p.has(mask)) p.shape(mask, {l.tokens});
}

// -- there -----------------------------------------------------------------------------------------------------------------
void plan_dispatch(Plan& p) {
    Layout l = plan_layout(p);
    plan_mask(p, l);
    const Dims& x = p.tensor("x").dims;
    p.require(x.n == 2 && x[0] == l.tokens, "x has shape %s, expertIds has %lld rows", text(x).c_str(), wide(l.tokens));
    const char* y = one_of(p, {"expandXOut", "expandX"});
    int64_t mode = p.integer("quantMode");
    p.require(mode == 0 || mode == 2, "quantMode is %lld; the emulator computes 0 and 2", wide(mode));
    p.require(p.tensor(y).rank() == 2 && p.tensor(y).dims[1] == x[1], "%s has shape %s", y, text(p.tensor(y).dims).c_str());
    p.require(mode == 0 ? p.tensor(y).dtype == p.tensor("x").dtype : p.tensor(y).dtype == ACL_INT8, "%s has dtype %s", y, dtype_name(p.tensor(y).dtype));
    const char* scales = one_of(p, {"scalesOptional", "scales"});
    if (p.has(scales)) {
        p.require(mode == 2, "%s belongs to quantMode 2", scales);
        p.shape(scales, {l.experts, x[1]});
    }
    p.require(p.integer("expertTokenNumsType") == 0 || p.integer("expertTokenNumsType") == 1, "expertTokenNumsType must be 0 or 1");
    p.shape(one_of(p, {"expertTokenNumsOut", "expertTokenNums"}), {l.local});
    const char* counts = one_of(p, {"epRecvCountsOut", "epRecvCounts"});
    p.require(p.tensor(counts).numel() >= l.local * l.ranks, "%s has shape %s, expected at least %lld", counts, text(p.tensor(counts).dims).c_str(),
              wide(l.local * l.ranks));
}

void write_front(const Run& r, const char* name, std::vector<int64_t> values) {
    if (!r.has(name)) return;
    values.resize(size_t(r.tensor(name).numel()), 0);
    r.write(r.tensor(name), values);
}

using Counts = std::vector<std::vector<int64_t>>;

// The factor of each row, for ranks that scale before they send back.
void write_factors(const Run& r, const Layout& l, Group& group, const Counts& chosen, const Counts& arriving) {
    const char* given_factors = one_of(r, {"expertScalesOptional", "expertScales"});
    const char* expanded = one_of(r, {"expandScalesOut", "expandScales"});
    if (!r.has(expanded)) return;
    std::vector<Values> factors(size_t(l.ranks), Values{});
    Values mine = r.has(given_factors) ? r.read<double>(r.tensor(given_factors)) : Values(size_t(l.tokens * l.picks), 1);
    for (int64_t e = 0; e < l.experts; ++e)
        for (int64_t pair : chosen[size_t(e)]) factors[size_t(e / l.local)].push_back(mine[size_t(pair)]);
    std::vector<size_t> counts;
    for (const auto& from : arriving) counts.push_back(size_t(std::accumulate(from.begin(), from.end(), int64_t(0))));
    auto theirs = group.all_to_all(factors, counts);
    Values out;
    std::vector<int64_t> at(size_t(l.ranks), 0);
    for (int64_t j = 0; j < l.local; ++j)
        for (size_t rank = 0; rank < size_t(l.ranks); ++rank)
            for (int64_t k = 0; k < arriving[rank][size_t(j)]; ++k) out.push_back(theirs[rank][size_t(at[rank]++)]);
    check_room(r, expanded, int64_t(out.size()));
    out.resize(size_t(r.tensor(expanded).numel()), 0);
    r.write(r.tensor(expanded), out);
}

// Each row stretched to the range of INT8; its scale is written.
void quantize_rows(const Run& r, Values& y, int64_t used, int64_t width) {
    const char* steps = one_of(r, {"dynamicScalesOut", "dynamicScales"});
    if (r.tensor(steps).numel() < used) fault("%s has too few elements", steps);
    Values found;
    for (int64_t i = 0; i < used; ++i) {
        double largest = 0;
        for (int64_t k = 0; k < width; ++k) largest = std::fmax(largest, std::fabs(y[size_t(i * width + k)]));
        found.push_back(largest / 127);
        for (int64_t k = 0; k < width; ++k) y[size_t(i * width + k)] = largest > 0 ? y[size_t(i * width + k)] / found.back() : 0;
    }
    found.resize(size_t(r.tensor(steps).numel()), 0);
    r.write(r.tensor(steps), found);
    y = within(y, ACL_INT8);
}

void run_dispatch(Run& r) {
    Layout l = layout(r);
    auto chosen = pairs(r, l);
    auto x = r.read<double>(r.tensor("x"));
    int64_t width = r.tensor("x").dims[1];
    Group group(r, "groupEp");
    // How many rows for each of the other's experts, then the rows with where they come from.
    std::vector<std::vector<int64_t>> counts, origins;
    std::vector<Values> rows;
    for (int64_t rank = 0; rank < l.ranks; ++rank) {
        counts.emplace_back(), origins.emplace_back(), rows.emplace_back();
        for (int64_t j = 0; j < l.local; ++j) {
            const auto& mine = chosen[size_t(rank * l.local + j)];
            counts.back().push_back(int64_t(mine.size()));
            for (int64_t pair : mine) {
                origins.back().insert(origins.back().end(), {l.rank, pair / l.picks, pair % l.picks});
                rows.back().insert(rows.back().end(), x.begin() + pair / l.picks * width, x.begin() + (pair / l.picks + 1) * width);
            }
        }
    }
    auto arriving = group.all_to_all(counts, std::vector<size_t>(size_t(l.ranks), size_t(l.local)));
    std::vector<size_t> row_counts, origin_counts;
    for (const auto& from : arriving) {
        int64_t n = std::accumulate(from.begin(), from.end(), int64_t(0));
        row_counts.push_back(size_t(n * width)), origin_counts.push_back(size_t(n * 3));
    }
    auto got = group.all_to_all(rows, row_counts);
    auto got_origins = group.all_to_all(origins, origin_counts);
    Values y;
    std::vector<int64_t> where, ends, sums, expert_of;
    std::vector<int64_t> taken(size_t(l.ranks), 0);
    for (int64_t j = 0; j < l.local; ++j) {
        for (size_t rank = 0; rank < size_t(l.ranks); ++rank) {
            int64_t n = arriving[rank][size_t(j)], at = taken[rank];
            y.insert(y.end(), got[rank].begin() + at * width, got[rank].begin() + (at + n) * width);
            where.insert(where.end(), got_origins[rank].begin() + at * 3, got_origins[rank].begin() + (at + n) * 3);
            expert_of.insert(expert_of.end(), size_t(n), l.rank * l.local + j);
            taken[rank] += n;
            ends.push_back((ends.empty() ? 0 : ends.back()) + n);
        }
        sums.push_back(ends.back());
    }
    const char* name = one_of(r, {"expandXOut", "expandX"});
    int64_t used = ends.empty() ? 0 : ends.back();
    check_room(r, name, used * width);
    const char* scales = one_of(r, {"scalesOptional", "scales"});
    if (r.has(scales)) {
        auto factors = r.read<double>(r.tensor(scales));
        for (int64_t i = 0; i < used * width; ++i) y[size_t(i)] *= factors[size_t(expert_of[size_t(i / width)] * width + i % width)];
    }
    y.resize(size_t(r.tensor(name).numel()), 0);
    if (r.integer("quantMode") == 2) quantize_rows(r, y, used, width);
    r.write(r.tensor(name), y);
    if (r.integer("expertTokenNumsType") == 1)
        for (size_t j = sums.size(); j-- > 1;) sums[j] -= sums[j - 1];
    r.write(r.tensor(one_of(r, {"expertTokenNumsOut", "expertTokenNums"})), sums);
    write_front(r, one_of(r, {"epRecvCountsOut", "epRecvCounts"}), ends);
    write_front(r, one_of(r, {"tpRecvCountsOut", "tpRecvCounts"}), {used});
    const char* info = one_of(r, {"assistInfoForCombineOut", "expandIdx"});
    if (std::strcmp(info, "expandIdx") == 0) {
        where.assign(size_t(l.tokens * l.picks), 0);
        for (const auto& mine : chosen)
            for (size_t k = 0; k < mine.size(); ++k) where[size_t(mine[k])] = int64_t(k);
    }
    check_room(r, info, int64_t(where.size()));
    write_front(r, info, where);
    write_factors(r, l, group, chosen, arriving);
}

// -- and back --------------------------------------------------------------------------------------------------------------
void plan_combine(Plan& p) {
    Layout l = plan_layout(p);
    plan_mask(p, l);
    const Dims& x = p.tensor("expandX").dims;
    const char* y = one_of(p, {"yOut", "xOut", "x"});
    p.require(x.n == 2, "expandX has shape %s", text(x).c_str());
    p.shape("expertScales", {l.tokens, l.picks});
    p.require(p.tensor("epSendCounts").numel() >= l.local * l.ranks, "epSendCounts has shape %s", text(p.tensor("epSendCounts").dims).c_str());
    p.require(p.integer("commQuantMode") == 0 || p.integer("commQuantMode") == 2, "commQuantMode must be 0 or 2");
    p.require(p.integer("commQuantMode") == 0, "commQuantMode is 2; the emulator sends what it has");
    p.require(p.tensor(y).numel() == l.tokens * x[1], "%s has shape %s", y, text(p.tensor(y).dims).c_str());
    if (given(p, "sharedExpertXOptional"))
        p.require(p.tensor("sharedExpertXOptional").numel() == l.tokens * x[1], "sharedExpertXOptional has shape %s",
                  text(p.tensor("sharedExpertXOptional").dims).c_str());
    if (has_parameter(p, "residualX")) {
        p.require(p.tensor("residualX").numel() == l.tokens * x[1], "residualX has shape %s", text(p.tensor("residualX").dims).c_str());
        p.require(p.tensor("gamma").numel() == x[1], "gamma has shape %s", text(p.tensor("gamma").dims).c_str());
        p.require(p.tensor("xOut").numel() == l.tokens * x[1], "xOut has shape %s", text(p.tensor("xOut").dims).c_str());
        p.require(p.tensor("rstdOut").numel() == l.tokens, "rstdOut has shape %s", text(p.tensor("rstdOut").dims).c_str());
    }
}

Values combined(const Run& r, const Layout& l) {
    auto chosen = pairs(r, l);
    auto x = r.read<double>(r.tensor("expandX"));
    auto ends = r.read<int64_t>(r.tensor("epSendCounts"));
    int64_t width = r.tensor("expandX").dims[1], room = r.tensor("expandX").dims[0];
    std::vector<Values> back(size_t(l.ranks), Values{});
    int64_t from = 0;
    for (int64_t j = 0; j < l.local; ++j)
        for (int64_t rank = 0; rank < l.ranks; ++rank) {
            int64_t to = ends[size_t(j * l.ranks + rank)];
            if (to < from || to > room) fault("epSendCounts holds %lld after %lld; expandX has %lld rows", wide(to), wide(from), wide(room));
            back[size_t(rank)].insert(back[size_t(rank)].end(), x.begin() + from * width, x.begin() + to * width);
            from = to;
        }
    std::vector<size_t> expected;
    for (int64_t rank = 0; rank < l.ranks; ++rank) {
        size_t n = 0;
        for (int64_t j = 0; j < l.local; ++j) n += chosen[size_t(rank * l.local + j)].size();
        expected.push_back(n * size_t(width));
    }
    Group group(r, "groupEp");
    auto got = group.all_to_all(back, expected);
    auto scales = r.read<double>(r.tensor("expertScales"));
    Values y(size_t(l.tokens * width), 0);
    for (int64_t rank = 0; rank < l.ranks; ++rank) {
        size_t at = 0;
        for (int64_t j = 0; j < l.local; ++j)
            for (int64_t pair : chosen[size_t(rank * l.local + j)])
                for (int64_t k = 0; k < width; ++k) y[size_t(pair / l.picks * width + k)] += scales[size_t(pair)] * got[size_t(rank)][at++];
    }
    if (given(r, "sharedExpertXOptional")) {
        auto shared = r.read<double>(r.tensor("sharedExpertXOptional"));
        for (size_t i = 0; i < y.size(); ++i) y[i] += shared[i];
    }
    return y;
}

void run_combine(Run& r) {
    Layout l = layout(r);
    Values y = combined(r, l);
    if (!has_parameter(r, "residualX")) return r.write(r.tensor(one_of(r, {"xOut", "x"})), y);
    auto residual = r.read<double>(r.tensor("residualX")), gamma = r.read<double>(r.tensor("gamma"));
    for (size_t i = 0; i < y.size(); ++i) y[i] += residual[i];
    Values normed = y, rstd;
    for (size_t row = 0; row < y.size(); row += gamma.size()) {
        double square = 0;
        for (size_t k = 0; k < gamma.size(); ++k) square += y[row + k] * y[row + k];
        rstd.push_back(1 / std::sqrt(square / double(gamma.size()) + r.real("normEps")));
        for (size_t k = 0; k < gamma.size(); ++k) normed[row + k] = y[row + k] * rstd.back() * gamma[k];
    }
    r.write(r.tensor("yOut"), normed);
    r.write(r.tensor("rstdOut"), rstd);
    r.write(r.tensor("xOut"), y);
}

}  // namespace

ACLNN(aclnnMoeDistributeDispatch, plan_dispatch, run_dispatch)
ACLNN(aclnnMoeDistributeDispatchV2, plan_dispatch, run_dispatch)
ACLNN(aclnnMoeDistributeDispatchV3, plan_dispatch, run_dispatch)
ACLNN(aclnnMoeDistributeDispatchV4, plan_dispatch, run_dispatch)
ACLNN(aclnnMoeDistributeCombine, plan_combine, run_combine)
ACLNN(aclnnMoeDistributeCombineV2, plan_combine, run_combine)
ACLNN(aclnnMoeDistributeCombineV3, plan_combine, run_combine)
ACLNN(aclnnMoeDistributeCombineV4, plan_combine, run_combine)
ACLNN(aclnnMoeDistributeCombineAddRmsNorm, plan_combine, run_combine)
ACLNN(aclnnMoeDistributeCombineAddRmsNormV2, plan_combine, run_combine)
