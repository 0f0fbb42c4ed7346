// Products of experts' batches between two groups of ranks: experts are spread over one, their sizes over the other.
//
// The formulas are those of the functions' public descriptions; the facts have shapes and types. E experts, C rows of each rank,
// H and M their sizes; ep and tp the numbers of ranks. Rows of an expert are by rank of the first group, then by rank of the
// second where these hold rows (shard type 1) and not sizes (type 0).
#include "activation.h"
#include "collective.h"

using namespace emu;

namespace {

long long wide(int64_t x) { return static_cast<long long>(x); }

struct Ranks {
    int64_t ep, tp;
};

Ranks plan_ranks(const Plan& p, const char* shard) {
    Ranks n{p.integer("epWorldSize"), p.integer("tpWorldSize")};
    p.require(n.ep > 0 && n.ep == int64_t(plan_group(p, "groupEp")->size), "epWorldSize is %lld, groupEp has another number of ranks", wide(n.ep));
    p.require(n.tp > 0 && n.tp == int64_t(plan_group(p, "groupTp")->size), "tpWorldSize is %lld, groupTp has another number of ranks", wide(n.tp));
    p.require(p.integer(shard) == 0 || p.integer(shard) == 1, "%s is %lld, expected 0 or 1", shard, wide(p.integer(shard)));
    return n;
}

// (batch, rows, inner) @ (batch, inner, columns)
Values products(const Values& x, const Values& w, int64_t batch, int64_t rows, int64_t inner, int64_t columns) {
    Values y(size_t(batch * rows * columns), 0);
    for (int64_t i = 0; i < batch * rows; ++i)
        for (int64_t k = 0; k < inner; ++k)
            for (int64_t j = 0; j < columns; ++j) y[size_t(i * columns + j)] += x[size_t(i * inner + k)] * w[size_t((i / rows * inner + k) * columns + j)];
    return y;
}

void add_bias(const Run& r, Values& y, int64_t batch, int64_t columns) {
    if (!r.has("biasOptional")) return;
    auto bias = r.read<double>(r.tensor("biasOptional"));
    int64_t rows = int64_t(y.size()) / std::max<int64_t>(batch * columns, 1);
    for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i / size_t(rows * columns) * size_t(columns) + i % size_t(columns)];
}

// A tensor of `outer` runs, cut into `n` shares of each run; share s to rank s of the group, and what came from each.
std::vector<Values> shared_out(Group& group, const Values& x, int64_t outer) {
    size_t n = group.size(), run = x.size() / std::max<size_t>(size_t(outer), 1), share = run / n;
    std::vector<Values> pieces(n);
    for (int64_t o = 0; o < outer; ++o)
        for (size_t s = 0; s < n; ++s) {
            auto from = x.begin() + long(size_t(o) * run + s * share);
            pieces[s].insert(pieces[s].end(), from, from + long(share));
        }
    return group.all_to_all(pieces, std::vector<size_t>(n, size_t(outer) * share));
}

// Parts of `outer` runs each, run by run.
Values interleaved(const std::vector<Values>& parts, int64_t outer) {
    Values out;
    for (int64_t o = 0; o < outer; ++o)
        for (const Values& part : parts) {
            long run = long(part.size()) / long(std::max<int64_t>(outer, 1));
            out.insert(out.end(), part.begin() + o * run, part.begin() + (o + 1) * run);
        }
    return out;
}

// -- exchange, gather, multiply ----------------------------------------------------------------------------------------------
struct Gathered {
    int64_t experts, rows, inner, columns;
};

Gathered gathered(const Call& c, const Ranks& n) {
    const Dims& x = c.tensor("x").dims;
    bool sizes = c.integer("xShardType") == 0;
    return {x[0] / n.ep, n.ep * x[1] * (sizes ? 1 : n.tp), x[2] * (sizes ? n.tp : 1), c.tensor("weight").dims[2]};
}

double activated(double x, int64_t type) {
    switch (type) {
        case 1: return gelu(x);
        case 2: return silu(x);
        case 3: return std::fmax(x, 0);
        case 4: return fast_gelu(x);
        default: return x;
    }
}

void plan_gathered(Plan& p) {
    Ranks n = plan_ranks(p, "xShardType");
    p.require(p.tensor("x").dims[0] % n.ep == 0, "x has %lld experts for %lld ranks", wide(p.tensor("x").dims[0]), wide(n.ep));
    Gathered g = gathered(p, n);
    int64_t act = p.integer("actType");
    p.require(act >= 0 && act <= 4, "actType is %lld, expected 0 to 4", wide(act));
    p.shape("weight", {g.experts, g.inner, g.columns});
    if (p.has("biasOptional")) p.require(p.tensor("biasOptional").numel() == g.experts * g.columns, "biasOptional has shape %s", text(p.tensor("biasOptional").dims).c_str());
    p.shape("y1Out", {g.experts, g.rows, g.columns});
    if (p.has("y2OutOptional")) p.shape("y2OutOptional", {g.experts, g.rows, g.inner});
    if (p.has("y3OutOptional")) {
        p.require(act != 0, "y3OutOptional belongs to an actType");
        p.shape("y3OutOptional", {g.experts, g.rows, g.columns});
    }
    for (const char* name : {"weight", "y1Out"}) p.same_dtype("x", name);
}

void run_gathered(Run& r) {
    Ranks n{r.integer("epWorldSize"), r.integer("tpWorldSize")};
    Gathered g = gathered(r, n);
    const Dims& d = r.tensor("x").dims;
    Values x;
    {
        Group group(r, "groupEp");
        x = interleaved(shared_out(group, r.read<double>(r.tensor("x")), 1), g.experts);  // (experts, ep * C, size)
    }
    {
        Group group(r, "groupTp");
        bool sizes = r.integer("xShardType") == 0;
        x = interleaved(group.gather(x), g.experts * n.ep * (sizes ? d[1] : 1));
    }
    Values y = products(x, r.read<double>(r.tensor("weight")), g.experts, g.rows, g.inner, g.columns);
    add_bias(r, y, g.experts, g.columns);
    if (r.has("y2OutOptional")) r.write(r.tensor("y2OutOptional"), x);
    if (r.has("y3OutOptional")) r.write(r.tensor("y3OutOptional"), y);
    for (double& v : y) v = activated(v, r.integer("actType"));
    r.write(r.tensor("y1Out"), y);
}

// -- multiply, sum and scatter, exchange back --------------------------------------------------------------------------------
void plan_scattered(Plan& p) {
    Ranks n = plan_ranks(p, "yShardType");
    const Dims &x = p.tensor("x").dims, &w = p.tensor("weight").dims;
    bool sizes = p.integer("yShardType") == 0;
    int64_t rows = x[1] / n.ep;
    p.require(w[0] == x[0] && w[1] == x[2], "x has shape %s, weight %s", text(x).c_str(), text(w).c_str());
    p.require(x[1] % n.ep == 0 && (sizes ? w[2] : rows) % n.tp == 0, "x has shape %s, weight %s for %lld and %lld ranks", text(x).c_str(), text(w).c_str(), wide(n.ep), wide(n.tp));
    int64_t columns = sizes ? w[2] / n.tp : w[2];
    if (p.has("biasOptional")) p.require(p.tensor("biasOptional").numel() == x[0] * columns, "biasOptional has shape %s", text(p.tensor("biasOptional").dims).c_str());
    p.shape("out", {x[0] * n.ep, sizes ? rows : rows / n.tp, columns});
    for (const char* name : {"weight", "out"}) p.same_dtype("x", name);
}

void run_scattered(Run& r) {
    int64_t ep = r.integer("epWorldSize"), tp = r.integer("tpWorldSize");
    const Dims &x = r.tensor("x").dims, &w = r.tensor("weight").dims;
    bool sizes = r.integer("yShardType") == 0;
    Values y = products(r.read<double>(r.tensor("x")), r.read<double>(r.tensor("weight")), x[0], x[1], x[2], w[2]), mine;
    {
        Group group(r, "groupTp");
        for (const Values& part : shared_out(group, y, sizes ? x[0] * x[1] : x[0] * ep)) {
            mine.resize(part.size());
            for (size_t i = 0; i < part.size(); ++i) mine[i] += part[i];
        }
    }
    add_bias(r, mine, x[0], sizes ? w[2] / tp : w[2]);
    Group group(r, "groupEp");
    r.write(r.tensor("out"), interleaved(shared_out(group, mine, x[0]), 1));
}

}  // namespace

ACLNN(aclnnAlltoAllAllGatherBatchMatMul, plan_gathered, run_gathered)
ACLNN(aclnnBatchMatMulReduceScatterAlltoAll, plan_scattered, run_scattered)
