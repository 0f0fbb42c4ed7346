// Tokens sent to the ranks of their experts, and the experts' answers brought back.
//
// Shared experts, which see every token, have the first ranks; the others stand in order on the rest. A shared expert on
// several ranks gets the tokens of rank r on its (r mod copies)-th. The rows a rank receives stand expert by expert, then
// by the member of the tensor-parallel group that received them, then by the rank they came from, then in the order of
// that rank's tokens; epRecvCounts are their running ends in this order. Members of that group see each other's rows, and
// on the way back each row is the sum of theirs. What travels between both functions beside that (expandIdx,
// assistInfoForCombine) is private to the vendor; here it is the place of each pair among its expert's rows, and where
// rows came from: (rank, token, which of its experts). An expert that gives nothing, and one that gives the token back,
// have the numbers behind the true ones and are nowhere. The formulas are not in the facts.
//
// Each way may also be gone in two steps, between which a rank may do other work: ...Setup makes the messages, ...Teardown
// exchanges them. A message is a row, followed by its factor where it was stretched to INT8; a command is 16 numbers, of which
// the first says which place a message goes to, or the first three where a row came from; no message has -1. Both are private
// to the vendor, only their sizes are in the facts.
#include <numeric>

#include "collective.h"
#include "microscaled.h"

using namespace emu;

namespace {

long long wide(int64_t x) { return static_cast<long long>(x); }

const char* one_of(const Call& c, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (has_parameter(c, name)) return name;
    throw std::logic_error("no such parameter");
}

struct Layout {
    int64_t ranks, rank, experts, tokens, picks;
    int64_t shared = 0, shared_ranks = 0;    // experts that see every token, and their ranks
    int64_t zero = 0, copies = 0;            // experts that are nowhere
    int64_t members = 1, member = 0;         // of the tensor-parallel group
    int64_t local = 0;                       // experts of this rank

    int64_t slots() const { return picks + shared; }
    int64_t each() const { return experts / (ranks - shared_ranks); }
    // Experts by place: shared ranks first, then the true ones.
    int64_t places() const { return shared_ranks + experts; }
    int64_t first_of(int64_t at) const { return at < shared_ranks ? at : shared_ranks + (at - shared_ranks) * each(); }
    int64_t local_of(int64_t at) const { return at < shared_ranks ? 1 : each(); }
    int64_t rank_of(int64_t place) const {
        return place < shared_ranks ? place : shared_ranks + (place - shared_ranks) / each();
    }
    // The row of the scales that an expert has: shared ones come first.
    int64_t scale_of(int64_t place) const {
        return place < shared_ranks ? place / (shared_ranks / shared) : (shared_ranks ? shared : 0) + place - shared_ranks;
    }
};

int64_t optional_number(const Call& c, const char* name) { return has_parameter(c, name) ? c.integer(name) : 0; }

Layout layout(const Call& c) {
    const Dims& ids = c.tensor("expertIds").dims;
    Layout l{c.integer("epWorldSize"), c.integer("epRankId"), c.integer("moeExpertNum"), ids[0], ids[1]};
    l.shared_ranks = c.integer("sharedExpertRankNum");
    l.shared = l.shared_ranks ? c.integer("sharedExpertNum") : 0;
    l.zero = optional_number(c, "zeroExpertNum"), l.copies = optional_number(c, "copyExpertNum");
    if (optional_number(c, "tpWorldSize") > 1) l.members = c.integer("tpWorldSize"), l.member = c.integer("tpRankId");
    l.local = l.local_of(l.rank);
    return l;
}

void plan_members(const Plan& p) {
    if (!has_parameter(p, "tpWorldSize")) return;
    int64_t members = p.integer("tpWorldSize"), member = p.integer("tpRankId");
    p.require(members >= 0 && members <= 2, "tpWorldSize is %lld, expected 0 to 2", wide(members));
    if (members < 2) return;
    auto group = plan_group(p, "groupTp");
    p.require(members == int64_t(group->size), "tpWorldSize is %lld, the communicator has %u ranks", wide(members), group->size);
    p.require(member == int64_t(group->rank), "tpRankId is %lld, this rank is %u", wide(member), group->rank);
}

Layout plan_layout(const Plan& p) {
    auto group = plan_group(p, "groupEp");
    int64_t ranks = p.integer("epWorldSize"), rank = p.integer("epRankId"), experts = p.integer("moeExpertNum");
    int64_t shared = p.integer("sharedExpertNum"), shared_ranks = p.integer("sharedExpertRankNum");
    p.require(ranks == int64_t(group->size), "epWorldSize is %lld, the communicator has %u ranks", wide(ranks), group->size);
    p.require(rank == int64_t(group->rank), "epRankId is %lld, this rank is %u", wide(rank), group->rank);
    p.require(shared_ranks >= 0 && shared_ranks < ranks, "sharedExpertRankNum is %lld of %lld ranks", wide(shared_ranks), wide(ranks));
    p.require(shared_ranks == 0 || (shared > 0 && shared_ranks % shared == 0), "sharedExpertNum is %lld on %lld ranks", wide(shared), wide(shared_ranks));
    p.require(experts > 0 && experts % (ranks - shared_ranks) == 0, "moeExpertNum is %lld for %lld ranks", wide(experts), wide(ranks - shared_ranks));
    plan_members(p);
    const char* shard = one_of(p, {"expertShardType", "expertSharedType"});
    p.require(p.integer(shard) == 0, "%s is %lld, expected 0", shard, wide(p.integer(shard)));
    p.require(optional_number(p, "zeroExpertNum") >= 0 && optional_number(p, "copyExpertNum") >= 0, "numbers of experts must not be negative");
    p.require(optional_number(p, "constExpertNum") == 0, "constExpertNum: the emulator computes 0");
    for (const char* name : {"elasticInfoOptional", "constExpertAlpha1Optional", "constExpertAlpha2Optional", "constExpertVOptional", "performanceInfoOptional",
                             "activationScale", "weightScale", "groupList", "activationScaleOptional", "weightScaleOptional", "groupListOptional"})
        p.require(!given(p, name), "%s is not computed by the emulator: the documents state no formula for it", name);
    const Dims& ids = p.tensor("expertIds").dims;
    p.require(ids.n == 2, "expertIds has shape %s", text(ids).c_str());
    p.require(p.integer("globalBs") == 0 || p.integer("globalBs") >= ids[0] * ranks, "globalBs is %lld for %lld tokens of %lld ranks",
              wide(p.integer("globalBs")), wide(ids[0]), wide(ranks));
    return layout(p);
}

std::vector<int64_t> active_tokens(const Run& r, const Layout& l) {
    const char* mask = one_of(r, {"xActiveMaskOptional", "xActiveMask"});
    return r.has(mask) ? r.read<int64_t>(r.tensor(mask)) : std::vector<int64_t>(size_t(l.tokens), 1);
}

// For each place the pairs (token * slots + which) this rank sends it, in order; masked tokens send nothing.
std::vector<std::vector<int64_t>> pairs(const Run& r, const Layout& l) {
    auto ids = r.read<int64_t>(r.tensor("expertIds"));
    auto active = active_tokens(r, l);
    std::vector<std::vector<int64_t>> out(size_t(l.places()), std::vector<int64_t>{});
    int64_t end = l.experts + l.zero + l.copies, same = l.shared ? l.shared_ranks / l.shared : 1;
    for (int64_t t = 0; t < l.tokens; ++t) {
        for (int64_t k = 0; k < l.picks; ++k) {
            int64_t expert = ids[size_t(t * l.picks + k)];
            if (expert < 0 || expert >= end) fault("expertIds holds %lld, there are %lld experts", wide(expert), wide(end));
            if (active[size_t(t)] && expert < l.experts) out[size_t(l.shared_ranks + expert)].push_back(t * l.slots() + k);
        }
        for (int64_t k = 0; active[size_t(t)] && k < l.shared; ++k)
            out[size_t(k * same + l.rank % same)].push_back(t * l.slots() + l.picks + k);
    }
    return out;
}

void plan_mask(const Plan& p, const Layout& l) {
    const char* mask = one_of(p, {"xActiveMaskOptional", "xActiveMask"});
    if (p.has(mask)) p.shape(mask, {l.tokens});
}

// Modes 3 and 4 have a scale for each 128 numbers of a row, and a power of two for each 32 (FLOAT8_E8M0).
constexpr int64_t kTile = 128;

void plan_tiles(const Plan& p, const char* y, int64_t width) {
    const char* name = one_of(p, {"dynamicScalesOut", "dynamicScales"});
    const Tensor& s = p.tensor(name);
    int64_t rows = p.tensor(y).dims[0], have = rows > 0 ? s.numel() / rows : 0;
    bool exponents = p.integer("quantMode") == 4;
    p.require((s.dtype == ACL_FLOAT8_E8M0) == exponents, "%s has dtype %s in quantMode %lld", name, dtype_name(s.dtype), wide(p.integer("quantMode")));
    p.require(s.rank() >= 2 && s.dims[0] == rows && scale_places(width, have, exponents, kTile) > 0, "%s has shape %s for %lld rows of %lld", name, text(s.dims).c_str(), wide(rows), wide(width));
}

// -- there -----------------------------------------------------------------------------------------------------------------
void plan_dispatch(Plan& p) {
    Layout l = plan_layout(p);
    plan_mask(p, l);
    const Dims& x = p.tensor("x").dims;
    p.require(x.n == 2 && x[0] == l.tokens, "x has shape %s, expertIds has %lld rows", text(x).c_str(), wide(l.tokens));
    const char* y = one_of(p, {"expandXOut", "expandX"});
    int64_t mode = p.integer("quantMode");
    p.require(mode >= 0 && mode <= 4, "quantMode is %lld, expected 0 to 4", wide(mode));
    p.require(p.tensor(y).rank() == 2 && p.tensor(y).dims[1] == x[1], "%s has shape %s", y, text(p.tensor(y).dims).c_str());
    int dtype = p.tensor(y).dtype;
    bool bytes = dtype == ACL_INT8 && mode <= 2, floats = is_narrow_float(dtype) && mode >= 2;
    p.require(mode == 0 ? dtype == p.tensor("x").dtype : bytes || floats, "%s has dtype %s in quantMode %lld", y, dtype_name(dtype), wide(mode));
    if (mode > 2) plan_tiles(p, y, x[1]);
    const char* scales = one_of(p, {"scalesOptional", "scales"});
    p.require(mode != 1 || p.has(scales), "quantMode 1 needs %s", scales);
    if (p.has(scales)) {
        p.require(mode != 0, "%s belongs to quantMode 1 and 2", scales);
        const Dims& d = p.tensor(scales).dims;
        bool common = mode == 1 && d.n == 1 && (d[0] == 1 || d[0] == x[1]);
        p.require(common || (d.n == 2 && d[1] == x[1] && (d[0] == l.experts + p.integer("sharedExpertNum") || (l.shared == 0 && d[0] == l.experts))),
                  "%s has shape %s for %lld experts", scales, text(d).c_str(), wide(l.experts));
    }
    p.require(p.integer("expertTokenNumsType") == 0 || p.integer("expertTokenNumsType") == 1, "expertTokenNumsType must be 0 or 1");
    p.shape(one_of(p, {"expertTokenNumsOut", "expertTokenNums"}), {l.local});
    const char* counts = one_of(p, {"epRecvCountsOut", "epRecvCounts"});
    p.require(p.tensor(counts).numel() >= l.local * l.ranks * l.members, "%s has shape %s, expected at least %lld", counts,
              text(p.tensor(counts).dims).c_str(), wide(l.local * l.ranks * l.members));
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
    for (int64_t place = 0; place < l.places(); ++place)
        for (int64_t pair : chosen[size_t(place)]) {
            int64_t token = pair / l.slots(), which = pair % l.slots();
            factors[size_t(l.rank_of(place))].push_back(which < l.picks ? mine[size_t(token * l.picks + which)] : 1);
        }
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

// Each row, or each of its blocks, as small floats; the scales are written.
void quantize_tiles(const Run& r, Values& y, int64_t used, int64_t width, int dtype) {
    const Tensor& steps = r.tensor(one_of(r, {"dynamicScalesOut", "dynamicScales"}));
    bool exponents = r.integer("quantMode") == 4, whole = r.integer("quantMode") == 2;
    int64_t rows = int64_t(y.size()) / std::max<int64_t>(width, 1), places = whole ? 1 : steps.numel() / std::max<int64_t>(rows, 1);
    if (steps.numel() < used * places) fault("dynamicScales has too few elements");
    Values front(y.begin(), y.begin() + used * width);
    Values scales = RowBlocks{width, whole ? width : exponents ? kBlock : kTile, places, dtype, narrow_largest(dtype), exponents, false}.divide(front);
    std::copy(front.begin(), front.end(), y.begin());
    scales.resize(size_t(steps.numel()), 0);
    r.write(steps, scales);
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

// What one rank has received, expert by expert, then by the rank rows came from.
struct Received {
    std::vector<int64_t> counts, where;  // (experts, ranks); three numbers for each row
    Values rows;
};

// `by_pair`: x has a row for each pair instead of one for each token.
Received receive(const Layout& l, Group& group, const Counts& chosen, const Values& x, int64_t width, Counts& arriving, bool by_pair = false) {
    // How many rows for each of the other's experts, then the rows with where they come from.
    Counts counts, origins;
    std::vector<Values> rows;
    for (int64_t rank = 0; rank < l.ranks; ++rank) {
        counts.emplace_back(), origins.emplace_back(), rows.emplace_back();
        for (int64_t j = 0; j < l.local_of(rank); ++j) {
            const auto& mine = chosen[size_t(l.first_of(rank) + j)];
            counts.back().push_back(int64_t(mine.size()));
            for (int64_t pair : mine) {
                int64_t token = pair / l.slots(), row = by_pair ? pair : token;
                origins.back().insert(origins.back().end(), {l.rank, token, pair % l.slots()});
                rows.back().insert(rows.back().end(), x.begin() + row * width, x.begin() + (row + 1) * width);
            }
        }
    }
    arriving = group.all_to_all(counts, std::vector<size_t>(size_t(l.ranks), size_t(l.local)));
    std::vector<size_t> row_counts, origin_counts;
    for (const auto& from : arriving) {
        int64_t n = std::accumulate(from.begin(), from.end(), int64_t(0));
        row_counts.push_back(size_t(n * width)), origin_counts.push_back(size_t(n * 3));
    }
    auto got = group.all_to_all(rows, row_counts);
    auto got_origins = group.all_to_all(origins, origin_counts);
    Received out;
    std::vector<int64_t> taken(size_t(l.ranks), 0);
    for (int64_t j = 0; j < l.local; ++j)
        for (size_t rank = 0; rank < size_t(l.ranks); ++rank) {
            int64_t n = arriving[rank][size_t(j)], at = taken[rank];
            out.rows.insert(out.rows.end(), got[rank].begin() + at * width, got[rank].begin() + (at + n) * width);
            out.where.insert(out.where.end(), got_origins[rank].begin() + at * 3, got_origins[rank].begin() + (at + n) * 3);
            out.counts.push_back(n);
            taken[rank] += n;
        }
    return out;
}

// What the members of the tensor-parallel group have received, by member.
std::vector<Received> shared_with_members(const Run& r, const Layout& l, Received mine, int64_t width) {
    if (l.members == 1) return {std::move(mine)};
    Group group(r, "groupTp");
    auto to_all = [&](const auto& values, const std::vector<size_t>& counts) {
        return group.all_to_all(std::vector<std::decay_t<decltype(values)>>(size_t(l.members), values), counts);
    };
    auto counts = group.gather(mine.counts);
    std::vector<size_t> rows, origins;
    for (const auto& theirs : counts) {
        auto n = size_t(std::accumulate(theirs.begin(), theirs.end(), int64_t(0)));
        rows.push_back(n * size_t(width)), origins.push_back(n * 3);
    }
    auto where = to_all(mine.where, origins);
    auto values = to_all(mine.rows, rows);
    std::vector<Received> out;
    for (size_t t = 0; t < size_t(l.members); ++t) out.push_back({counts[t], where[t], values[t]});
    return out;
}

// Rows of all members, with their ends and the row of scales that each has.
struct Expanded {
    Values rows;
    std::vector<int64_t> where, ends, sums, totals, scale_of;
};

Expanded expand(const Layout& l, const std::vector<Received>& from, int64_t width) {
    Expanded out;
    std::vector<int64_t> taken(size_t(l.members), 0);
    for (int64_t j = 0; j < l.local; ++j) {
        for (size_t t = 0; t < from.size(); ++t)
            for (int64_t rank = 0; rank < l.ranks; ++rank) {
                int64_t n = from[t].counts[size_t(j * l.ranks + rank)], at = taken[t];
                out.rows.insert(out.rows.end(), from[t].rows.begin() + at * width, from[t].rows.begin() + (at + n) * width);
                out.where.insert(out.where.end(), from[t].where.begin() + at * 3, from[t].where.begin() + (at + n) * 3);
                out.scale_of.insert(out.scale_of.end(), size_t(n), l.scale_of(l.first_of(l.rank) + j));
                out.ends.push_back((out.ends.empty() ? 0 : out.ends.back()) + n);
                taken[t] += n;
            }
        out.sums.push_back(out.ends.back());
    }
    out.totals = taken;
    return out;
}

void run_dispatch(Run& r) {
    Layout l = layout(r);
    auto chosen = pairs(r, l);
    int64_t width = r.tensor("x").dims[1];
    Group group(r, "groupEp");
    Counts arriving;
    Received mine = receive(l, group, chosen, r.read<double>(r.tensor("x")), width, arriving);
    write_factors(r, l, group, chosen, arriving);
    Expanded out = expand(l, shared_with_members(r, l, std::move(mine), width), width);
    const char* name = one_of(r, {"expandXOut", "expandX"});
    int64_t used = out.ends.empty() ? 0 : out.ends.back();
    check_room(r, name, used * width);
    const char* scales = one_of(r, {"scalesOptional", "scales"});
    if (r.has(scales)) {
        auto factors = r.read<double>(r.tensor(scales));
        // Without shared ranks the rows of shared experts, which come first, are nobody's.
        const Dims& d = r.tensor(scales).dims;
        int64_t skip = l.shared ? 0 : d[0] - l.experts;
        for (int64_t i = 0; i < used * width; ++i) {
            int64_t row = d.n == 1 ? 0 : skip + out.scale_of[size_t(i / width)];
            out.rows[size_t(i)] *= factors[size_t(row * width + (factors.size() == 1 ? 0 : i % width))];
        }
    }
    out.rows.resize(size_t(r.tensor(name).numel()), 0);
    // Fixed scales, one for all or by expert and column: the facts name the mode only, this is how it is commonly described.
    if (r.integer("quantMode") == 1) out.rows = within(out.rows, ACL_INT8);
    if (is_narrow_float(r.tensor(name).dtype) && r.integer("quantMode") >= 2) quantize_tiles(r, out.rows, used, width, r.tensor(name).dtype);
    else if (r.integer("quantMode") == 2) quantize_rows(r, out.rows, used, width);
    r.write(r.tensor(name), out.rows);
    if (r.integer("expertTokenNumsType") == 1)
        for (size_t j = out.sums.size(); j-- > 1;) out.sums[j] -= out.sums[j - 1];
    r.write(r.tensor(one_of(r, {"expertTokenNumsOut", "expertTokenNums"})), out.sums);
    write_front(r, one_of(r, {"epRecvCountsOut", "epRecvCounts"}), out.ends);
    write_front(r, one_of(r, {"tpRecvCountsOut", "tpRecvCounts"}), out.totals);
    const char* info = one_of(r, {"assistInfoForCombineOut", "expandIdx"});
    if (std::strcmp(info, "expandIdx") == 0) {
        out.where.assign(size_t(l.tokens * l.picks), 0);
        for (const auto& to : chosen)
            for (size_t k = 0; k < to.size(); ++k)
                if (to[k] % l.slots() < l.picks) out.where[size_t(to[k] / l.slots() * l.picks + to[k] % l.slots())] = int64_t(k);
    }
    check_room(r, info, int64_t(out.where.size()));
    write_front(r, info, out.where);
}

// -- and back --------------------------------------------------------------------------------------------------------------
void plan_combine(Plan& p) {
    Layout l = plan_layout(p);
    plan_mask(p, l);
    const Dims& x = p.tensor("expandX").dims;
    const char* y = one_of(p, {"yOut", "xOut", "x"});
    p.require(x.n == 2, "expandX has shape %s", text(x).c_str());
    p.shape("expertScales", {l.tokens, l.picks});
    p.require(p.tensor("epSendCounts").numel() >= l.local * l.ranks * l.members, "epSendCounts has shape %s", text(p.tensor("epSendCounts").dims).c_str());
    p.require(p.integer("commQuantMode") == 0 || p.integer("commQuantMode") == 2, "commQuantMode must be 0 or 2");
    if (l.copies > 0) {
        if (!given(p, "oriXOptional")) refuse(ACLNN_ERR_PARAM_NULLPTR, "oriXOptional must not be null where copyExpertNum is not 0");
        p.shape("oriXOptional", {l.tokens, x[1]});
    }
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

// What one rank has for each of the others, expert by expert: of the rows of its tensor-parallel group its own, each the
// sum of what the members made of it.
std::vector<Values> own_rows(const Run& r, const Layout& l) {
    auto x = r.read<double>(r.tensor("expandX"));
    auto ends = r.read<int64_t>(r.tensor("epSendCounts"));
    int64_t width = r.tensor("expandX").dims[1], room = r.tensor("expandX").dims[0], from = 0;
    std::vector<std::vector<Values>> by_member(size_t(l.members), std::vector<Values>(size_t(l.ranks)));
    for (int64_t i = 0; i < l.local * l.members * l.ranks; ++i) {
        int64_t to = ends[size_t(i)];
        if (to < from || to > room) fault("epSendCounts holds %lld after %lld; expandX has %lld rows", wide(to), wide(from), wide(room));
        Values& out = by_member[size_t(i / l.ranks % l.members)][size_t(i % l.ranks)];
        out.insert(out.end(), x.begin() + from * width, x.begin() + to * width);
        from = to;
    }
    std::vector<Values> mine = by_member[size_t(l.member)];
    if (l.members == 1) return mine;
    std::vector<Values> flat(size_t(l.members), Values{});
    for (size_t t = 0; t < flat.size(); ++t)
        for (const Values& rows : by_member[t]) flat[t].insert(flat[t].end(), rows.begin(), rows.end());
    Group group(r, "groupTp");
    auto parts = group.all_to_all(flat, std::vector<size_t>(size_t(l.members), flat[size_t(l.member)].size()));
    size_t at = 0;
    for (Values& rows : mine)
        for (double& value : rows) {
            value = 0;
            for (const Values& part : parts) value += part[at];
            ++at;
        }
    return mine;
}

// Rows as they are after they have travelled as INT8 with a factor each.
void narrow_rows(std::vector<Values>& pieces, int64_t width) {
    for (Values& rows : pieces)
        for (size_t from = 0; from < rows.size(); from += size_t(width)) {
            double largest = 0;
            for (size_t k = 0; k < size_t(width); ++k) largest = std::fmax(largest, std::fabs(rows[from + k]));
            for (size_t k = 0; largest > 0 && k < size_t(width); ++k) rows[from + k] = std::nearbyint(rows[from + k] * 127 / largest) * largest / 127;
        }
}

// Experts that are nowhere: those behind the true ones that give the token itself; others give nothing.
void add_copies(const Run& r, const Layout& l, const Values& scales, Values& y, int64_t width) {
    if (l.copies == 0) return;
    auto ids = r.read<int64_t>(r.tensor("expertIds"));
    auto active = active_tokens(r, l);
    auto x = r.read<double>(r.tensor("oriXOptional"));
    for (size_t pair = 0; pair < ids.size(); ++pair) {
        size_t token = pair / size_t(l.picks);
        if (ids[pair] < l.experts + l.zero || !active[token]) continue;
        for (size_t k = token * size_t(width); k < (token + 1) * size_t(width); ++k) y[k] += scales[pair] * x[k];
    }
}

// `back`: the rows for each rank.
Values combined(const Run& r, const Layout& l, const std::vector<Values>& back) {
    auto chosen = pairs(r, l);
    int64_t width = r.tensor("expandX").dims[1];
    std::vector<size_t> expected;
    for (int64_t rank = 0; rank < l.ranks; ++rank) {
        size_t n = 0;
        for (int64_t j = 0; j < l.local_of(rank); ++j) n += chosen[size_t(l.first_of(rank) + j)].size();
        expected.push_back(n * size_t(width));
    }
    Group group(r, "groupEp");
    auto got = group.all_to_all(back, expected);
    auto scales = r.read<double>(r.tensor("expertScales"));
    Values y(size_t(l.tokens * width), 0);
    for (int64_t rank = 0; rank < l.ranks; ++rank) {
        size_t at = 0;
        for (int64_t j = 0; j < l.local_of(rank); ++j)
            for (int64_t pair : chosen[size_t(l.first_of(rank) + j)]) {
                int64_t token = pair / l.slots(), which = pair % l.slots();
                double scale = which < l.picks ? scales[size_t(token * l.picks + which)] : 1;
                for (int64_t k = 0; k < width; ++k) y[size_t(token * width + k)] += scale * got[size_t(rank)][at++];
            }
    }
    add_copies(r, l, scales, y, width);
    if (given(r, "sharedExpertXOptional")) {
        auto shared = r.read<double>(r.tensor("sharedExpertXOptional"));
        for (size_t i = 0; i < y.size(); ++i) y[i] += shared[i];
    }
    return y;
}

void run_combine(Run& r) {
    Layout l = layout(r);
    std::vector<Values> back = own_rows(r, l);
    if (r.integer("commQuantMode") == 2) narrow_rows(back, r.tensor("expandX").dims[1]);
    Values y = combined(r, l, back);
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

// -- there and back in two steps each ----------------------------------------------------------------------------------------
constexpr int64_t kCommand = 16, kOrigin = 128;  // numbers of a command, and of a row's origin
constexpr int64_t kFactor = 4;                   // bytes of a factor behind a row of INT8

void plan_messages(const Plan& p, const char* name, int64_t rows, int64_t width) {
    const Tensor& t = p.tensor(name);
    int64_t needed = t.dtype == ACL_INT8 ? width + kFactor : width;
    p.require(t.rank() == 2 && t.dims[0] == rows && t.dims[1] >= needed, "%s has shape %s, expected (%lld, at least %lld)", name, text(t.dims).c_str(), wide(rows), wide(needed));
}

void plan_commands(const Plan& p, const char* name, int64_t commands) {
    p.require(p.tensor(name).numel() == commands * kCommand, "%s has shape %s, expected %lld commands of %lld numbers", name, text(p.tensor(name).dims).c_str(), wide(commands),
              wide(kCommand));
}

void plan_stage_modes(const Plan& p, const char* quant) {
    p.require(p.integer(quant) == 0 || p.integer(quant) == 2, "%s is %lld, expected 0 or 2", quant, wide(p.integer(quant)));
}

int64_t messages_of(const Layout& l, const Call& c) { return l.tokens * (l.picks + c.integer("sharedExpertNum")); }

Layout plan_there(const Plan& p, const char* messages, const char* commands) {
    Layout l = plan_layout(p);
    plan_stage_modes(p, "quantMode");
    const Dims& x = p.tensor("x").dims;
    p.require(x.n == 2 && x[0] == l.tokens, "x has shape %s, expertIds has %lld rows", text(x).c_str(), wide(l.tokens));
    bool bytes = p.integer("quantMode") == 2;
    p.require(bytes ? p.tensor(messages).dtype == ACL_INT8 : p.tensor(messages).dtype == p.tensor("x").dtype, "%s has dtype %s", messages, dtype_name(p.tensor(messages).dtype));
    plan_messages(p, messages, messages_of(l, p), x[1]);
    plan_commands(p, commands, messages_of(l, p) + l.ranks * l.local);
    return l;
}

// Rows of INT8 have their factor in the bytes behind them.
void put_factor(Values& row, int64_t width, double factor) {
    float value = float(factor);
    int8_t bytes[kFactor];
    std::memcpy(bytes, &value, sizeof bytes);
    for (int64_t k = 0; k < kFactor; ++k) row[size_t(width + k)] = bytes[k];
}

double factor_of(const double* row, int64_t width) {
    int8_t bytes[kFactor];
    for (int64_t k = 0; k < kFactor; ++k) bytes[k] = int8_t(row[width + k]);
    float value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

// A row as a message of `size` numbers, stretched to INT8 or as it is.
Values message(const double* x, int64_t width, int64_t size, bool bytes) {
    Values out(x, x + width);
    out.resize(size_t(size), 0);
    if (!bytes) return out;
    double top = 0;
    for (int64_t k = 0; k < width; ++k) top = std::fmax(top, std::fabs(x[k]));
    for (int64_t k = 0; k < width; ++k) out[size_t(k)] = top > 0 ? std::nearbyint(x[k] * 127 / top) : 0;
    put_factor(out, width, top / 127);
    return out;
}

void run_there_setup(Run& r) {
    Layout l = layout(r);
    auto chosen = pairs(r, l);
    auto x = r.read<double>(r.tensor("x"));
    int64_t width = r.tensor("x").dims[1], size = r.tensor("yOut").dims[1];
    Values scales, y(size_t(r.tensor("yOut").numel()), 0);
    if (r.has("scalesOptional")) scales = r.read<double>(r.tensor("scalesOptional"));
    std::vector<int64_t> commands(size_t(r.tensor("commCmdInfoOut").numel()), 0), index(size_t(l.tokens * l.picks), 0);
    int64_t skip = l.shared || scales.empty() ? 0 : int64_t(scales.size()) / width - l.experts;
    for (int64_t pair = 0; pair < messages_of(l, r); ++pair) commands[size_t(pair * kCommand)] = -1;
    for (int64_t place = 0; place < l.places(); ++place)
        for (size_t i = 0; i < chosen[size_t(place)].size(); ++i) {
            int64_t pair = chosen[size_t(place)][i], token = pair / l.slots(), which = pair % l.slots();
            Values row(x.begin() + token * width, x.begin() + (token + 1) * width);
            for (int64_t k = 0; k < width && !scales.empty(); ++k) row[size_t(k)] *= scales[size_t((skip + l.scale_of(place)) * width + k)];
            Values sent = message(row.data(), width, size, r.integer("quantMode") == 2);
            std::copy(sent.begin(), sent.end(), y.begin() + pair * size);
            commands[size_t(pair * kCommand)] = place;
            if (which < l.picks) index[size_t(token * l.picks + which)] = int64_t(i);
        }
    r.write(r.tensor("yOut"), y);
    r.write(r.tensor("expandIdxOut"), index);
    r.write(r.tensor("commCmdInfoOut"), commands);
}

void plan_there_teardown(Plan& p) {
    Layout l = plan_there(p, "y", "commCmdInfo");
    const Dims &y = p.tensor("expandXOut").dims, &x = p.tensor("x").dims;
    p.require(y.n == 2 && y[1] == x[1], "expandXOut has shape %s", text(y).c_str());
    p.same_dtype("y", "expandXOut");
    if (p.integer("quantMode") == 2) p.shape("dynamicScalesOut", {y[0]});
    p.shape("assistInfoForCombineOut", {y[0] * kOrigin});
    p.shape("expertTokenNumsOut", {l.local});
    plan_number(p, "expertTokenNumsType", 1);
}

void run_there_teardown(Run& r) {
    Layout l = layout(r);
    auto y = r.read<double>(r.tensor("y"));
    auto commands = r.read<int64_t>(r.tensor("commCmdInfo"));
    int64_t width = r.tensor("x").dims[1], size = r.tensor("y").dims[1], room = r.tensor("expandXOut").dims[0];
    Counts chosen(size_t(l.places()), std::vector<int64_t>{}), arriving;
    for (int64_t pair = 0; pair < l.tokens * l.slots(); ++pair) {
        int64_t place = commands[size_t(pair * kCommand)];
        if (place < -1 || place >= l.places()) fault("commCmdInfo holds %lld, there are %lld places", wide(place), wide(l.places()));
        if (place >= 0) chosen[size_t(place)].push_back(pair);
    }
    Group group(r, "groupEp");
    Expanded got = expand(l, {receive(l, group, chosen, y, size, arriving, true)}, size);
    int64_t used = got.ends.empty() ? 0 : got.ends.back();
    if (used > room) fault("expandXOut has %lld rows, %lld were received", wide(room), wide(used));
    Values rows(size_t(room * width), 0), factors(size_t(room), 0);
    std::vector<int64_t> origins(size_t(room * kOrigin), 0);
    for (int64_t i = 0; i < room; ++i) {
        for (int64_t k = 0; k < 3; ++k) origins[size_t(i * kOrigin + k)] = i < used ? got.where[size_t(i * 3 + k)] : -1;
        if (i >= used) continue;
        std::copy_n(got.rows.begin() + i * size, width, rows.begin() + i * width);
        if (r.integer("quantMode") == 2) factors[size_t(i)] = factor_of(got.rows.data() + i * size, width);
    }
    r.write(r.tensor("expandXOut"), rows);
    if (r.integer("quantMode") == 2) r.write(r.tensor("dynamicScalesOut"), factors);
    r.write(r.tensor("assistInfoForCombineOut"), origins);
    if (r.integer("expertTokenNumsType") == 1)
        for (size_t j = got.sums.size(); j-- > 1;) got.sums[j] -= got.sums[j - 1];
    r.write(r.tensor("expertTokenNumsOut"), got.sums);
}

Layout plan_back(const Plan& p, const char* messages, const char* commands) {
    Layout l = plan_layout(p);
    plan_stage_modes(p, "commQuantMode");
    const Dims& x = p.tensor("expandX").dims;
    p.require(x.n == 2, "expandX has shape %s", text(x).c_str());
    plan_messages(p, messages, x[0], x[1]);
    plan_commands(p, commands, x[0] + l.ranks);
    return l;
}

void run_back_setup(Run& r) {
    const Dims& d = r.tensor("expandX").dims;
    auto x = r.read<double>(r.tensor("expandX"));
    auto origins = r.read<int64_t>(r.tensor("assistInfoForCombine"));
    int64_t size = r.tensor("quantExpandXOut").dims[1];
    Values messages;
    std::vector<int64_t> commands(size_t(r.tensor("commCmdInfoOut").numel()), 0);
    for (int64_t i = 0; i < d[0]; ++i) {
        Values sent = message(x.data() + i * d[1], d[1], size, true);
        messages.insert(messages.end(), sent.begin(), sent.end());
        std::copy_n(origins.begin() + i * kOrigin, 3, commands.begin() + i * kCommand);
    }
    r.write(r.tensor("quantExpandXOut"), messages);
    r.write(r.tensor("commCmdInfoOut"), commands);
}

void plan_back_teardown(Plan& p) {
    Layout l = plan_back(p, "quantExpandX", "commCmdInfo");
    const Dims& x = p.tensor("expandX").dims;
    plan_mask(p, l);
    p.shape("expandIdx", {l.tokens * l.picks});
    p.shape("expertScales", {l.tokens, l.picks});
    p.shape("xOut", {l.tokens, x[1]});
    p.same_dtype("expandX", "xOut");
    if (p.has("sharedExpertXOptional"))
        p.require(p.tensor("sharedExpertXOptional").numel() == l.tokens * x[1], "sharedExpertXOptional has shape %s", text(p.tensor("sharedExpertXOptional").dims).c_str());
}

void run_back_teardown(Run& r) {
    Layout l = layout(r);
    const Dims& d = r.tensor("expandX").dims;
    bool bytes = r.integer("commQuantMode") == 2;
    auto x = r.read<double>(r.tensor(bytes ? "quantExpandX" : "expandX"));
    auto commands = r.read<int64_t>(r.tensor("commCmdInfo"));
    int64_t size = bytes ? r.tensor("quantExpandX").dims[1] : d[1];
    std::vector<Values> back(size_t(l.ranks), Values{});
    for (int64_t i = 0; i < d[0]; ++i) {
        int64_t to = commands[size_t(i * kCommand)];
        if (to < -1 || to >= l.ranks) fault("commCmdInfo holds %lld, there are %lld ranks", wide(to), wide(l.ranks));
        if (to < 0) continue;
        const double* row = x.data() + i * size;
        double factor = bytes ? factor_of(row, d[1]) : 1;
        for (int64_t k = 0; k < d[1]; ++k) back[size_t(to)].push_back(row[k] * factor);
    }
    r.write(r.tensor("xOut"), combined(r, l, back));
}

}  // namespace

ACLNN(aclnnMoeDistributeDispatch, plan_dispatch, run_dispatch, NARROW)
ACLNN(aclnnMoeDistributeDispatchV2, plan_dispatch, run_dispatch, NARROW)
ACLNN(aclnnMoeDistributeDispatchV3, plan_dispatch, run_dispatch, NARROW)
ACLNN(aclnnMoeDistributeDispatchV4, plan_dispatch, run_dispatch, NARROW)
ACLNN(aclnnMoeDistributeCombine, plan_combine, run_combine)
ACLNN(aclnnMoeDistributeCombineV2, plan_combine, run_combine)
ACLNN(aclnnMoeDistributeCombineV3, plan_combine, run_combine)
ACLNN(aclnnMoeDistributeCombineV4, plan_combine, run_combine)
ACLNN(aclnnMoeDistributeCombineAddRmsNorm, plan_combine, run_combine)
ACLNN(aclnnMoeDistributeCombineAddRmsNormV2, plan_combine, run_combine)
ACLNN(aclnnMoeDistributeDispatchSetup,
      PLAN {
          Layout l = plan_there(p, "yOut", "commCmdInfoOut");
          plan_mask(p, l);
          p.shape("expandIdxOut", {l.tokens * l.picks});
          if (!p.has("scalesOptional")) return;
          const Dims& d = p.tensor("scalesOptional").dims;
          p.require(p.integer("quantMode") == 2, "scalesOptional belongs to quantMode 2");
          p.require(d.n == 2 && d[1] == p.tensor("x").dims[1] && (d[0] == l.experts + p.integer("sharedExpertNum") || (l.shared == 0 && d[0] == l.experts)),
                    "scalesOptional has shape %s for %lld experts", text(d).c_str(), wide(l.experts));
      },
      run_there_setup)
ACLNN(aclnnMoeDistributeDispatchTeardown, plan_there_teardown, run_there_teardown)
ACLNN(aclnnMoeDistributeCombineSetup,
      PLAN {
          plan_back(p, "quantExpandXOut", "commCmdInfoOut");
          p.shape("assistInfoForCombine", {p.tensor("expandX").dims[0] * kOrigin});
      },
      run_back_setup)
ACLNN(aclnnMoeDistributeCombineTeardown, plan_back_teardown, run_back_teardown)
