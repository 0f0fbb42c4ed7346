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
    if (c.integer("tpWorldSize") > 1) l.members = c.integer("tpWorldSize"), l.member = c.integer("tpRankId");
    l.local = l.local_of(l.rank);
    return l;
}

void plan_members(const Plan& p) {
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
    p.require(p.integer("expertShardType") == 0, "expertShardType is %lld, expected 0", wide(p.integer("expertShardType")));
    p.require(optional_number(p, "zeroExpertNum") >= 0 && optional_number(p, "copyExpertNum") >= 0, "numbers of experts must not be negative");
    p.require(optional_number(p, "constExpertNum") == 0, "constExpertNum: the emulator computes 0");
    for (const char* name : {"elasticInfoOptional", "constExpertAlpha1Optional", "constExpertAlpha2Optional", "constExpertVOptional", "performanceInfoOptional",
                             "activationScale", "weightScale", "groupList", "activationScaleOptional", "weightScaleOptional", "groupListOptional"})
        p.require(!given(p, name), "%s is not computed by the emulator", name);
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

// -- there -----------------------------------------------------------------------------------------------------------------
void plan_dispatch(Plan& p) {
    Layout l = plan_layout(p);
    plan_mask(p, l);
    const Dims& x = p.tensor("x").dims;
    p.require(x.n == 2 && x[0] == l.tokens, "x has shape %s, expertIds has %lld rows", text(x).c_str(), wide(l.tokens));
    const char* y = one_of(p, {"expandXOut", "expandX"});
    int64_t mode = p.integer("quantMode");
    p.require(mode >= 0 && mode <= 2, "quantMode is %lld; the emulator computes 0 to 2", wide(mode));
    p.require(p.tensor(y).rank() == 2 && p.tensor(y).dims[1] == x[1], "%s has shape %s", y, text(p.tensor(y).dims).c_str());
    p.require(mode == 0 ? p.tensor(y).dtype == p.tensor("x").dtype : p.tensor(y).dtype == ACL_INT8, "%s has dtype %s", y, dtype_name(p.tensor(y).dtype));
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

Received receive(const Layout& l, Group& group, const Counts& chosen, const Values& x, int64_t width, Counts& arriving) {
    // How many rows for each of the other's experts, then the rows with where they come from.
    Counts counts, origins;
    std::vector<Values> rows;
    for (int64_t rank = 0; rank < l.ranks; ++rank) {
        counts.emplace_back(), origins.emplace_back(), rows.emplace_back();
        for (int64_t j = 0; j < l.local_of(rank); ++j) {
            const auto& mine = chosen[size_t(l.first_of(rank) + j)];
            counts.back().push_back(int64_t(mine.size()));
            for (int64_t pair : mine) {
                int64_t token = pair / l.slots();
                origins.back().insert(origins.back().end(), {l.rank, token, pair % l.slots()});
                rows.back().insert(rows.back().end(), x.begin() + token * width, x.begin() + (token + 1) * width);
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
    if (r.integer("quantMode") == 2) quantize_rows(r, out.rows, used, width);
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

Values combined(const Run& r, const Layout& l) {
    auto chosen = pairs(r, l);
    int64_t width = r.tensor("expandX").dims[1];
    std::vector<Values> back = own_rows(r, l);
    if (r.integer("commQuantMode") == 2) narrow_rows(back, width);
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
