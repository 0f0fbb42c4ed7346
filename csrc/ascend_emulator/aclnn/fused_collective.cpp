// Products and collectives in one function. The formulas are those of the functions' public descriptions; the facts have
// shapes and types only. Sums over ranks are exact in double and rounded once.
#include "collective.h"
#include "quantize.h"

using namespace emu;

namespace {

long long wide(int64_t x) { return static_cast<long long>(x); }

// Names differ between versions: the first one the function has and was given; else null.
const char* named(const Call& c, std::initializer_list<const char*> names) {
    for (const char* name : names)
        if (given(c, name)) return name;
    return nullptr;
}

Tensor turned(Tensor t, const Call& c, const char* flag) {
    int n = t.rank();
    if (has_parameter(c, flag) && c.flag(flag)) std::swap(t.dims[n - 1], t.dims[n - 2]), std::swap(t.strides[n - 1], t.strides[n - 2]);
    return t;
}

// -- x1 @ x2 of one rank, with scales ------------------------------------------------------------------------------------
struct Operands {
    Tensor a, b;
    int64_t rows, inner, columns;
    const char *bias, *scale, *row_scale, *anti, *shift, *x3;
};

Operands operands(const Call& c) {
    Operands o;
    bool packed = given(c, "antiquantScale");
    o.a = turned(c.tensor("x1"), c, "transposeX1");
    o.b = turned(packed ? half_bytes(c.tensor("x2")) : c.tensor("x2"), c, "transposeX2");
    o.inner = o.a.dims.back(), o.columns = o.b.dims.back();
    o.rows = o.inner > 0 ? o.a.numel() / o.inner : 0;
    o.bias = named(c, {"bias", "biasOptional"});
    o.scale = named(c, {"dequantScale", "x2Scale"});
    o.row_scale = named(c, {"pertokenScaleOptional", "x1ScaleOptional", "x1Scale"});
    o.anti = named(c, {"antiquantScale"});
    o.shift = named(c, {"antiquantOffset"});
    o.x3 = named(c, {"x3", "x3Optional"});
    return o;
}

Operands plan_operands(const Plan& p) {
    Operands o = operands(p);
    p.require(o.b.rank() == 2 && (o.a.rank() == 2 || o.a.rank() == 3), "x1 has shape %s, x2 %s", text(o.a.dims).c_str(), text(o.b.dims).c_str());
    bool small = !is_real(o.a.dtype);
    p.require(small ? o.scale != nullptr || o.row_scale == nullptr : o.scale == nullptr || has_parameter(p, "quantScale"),
              "scales belong to integers and 8-bit floats");
    for (const char* name : {"quantScale", "commQuantScale1Optional", "commQuantScale2Optional", "commScaleOptional", "x1OffsetOptional", "x2OffsetOptional"})
        p.require(!given(p, name), "%s is not computed by the emulator: the documents state no formula for it", name);
    for (const char* name : {"groupSize", "blockSize", "commTurn", "commQuantMode"})
        p.require(!has_parameter(p, name) || p.integer(name) == 0, "%s is %lld, expected 0", name, wide(has_parameter(p, name) ? p.integer(name) : 0));
    if (has_parameter(p, "streamMode")) p.require(p.integer("streamMode") == 1, "streamMode is %lld, expected 1", wide(p.integer("streamMode")));
    if (has_parameter(p, "reduceOp")) p.require(!p.has("reduceOp") || p.string("reduceOp") == "sum", "reduceOp is \"%s\", expected sum", p.string("reduceOp").c_str());
    if (o.bias) p.require(p.tensor(o.bias).numel() == o.columns, "%s has shape %s", o.bias, text(p.tensor(o.bias).dims).c_str());
    for (const char* name : {o.scale}) {
        if (name == nullptr) continue;
        int64_t n = p.tensor(name).numel();
        p.require(n == 1 || n == o.columns, "%s has %lld elements, expected 1 or %lld", name, wide(n), wide(o.columns));
    }
    if (o.anti) {
        int64_t n = p.tensor(o.anti).numel(), group = p.integer("antiquantGroupSize");
        int64_t blocks = group > 0 ? (o.inner + group - 1) / group : 1;
        p.require(group >= 0 && (n == blocks * o.columns || n == 1), "antiquantScale has shape %s", text(p.tensor(o.anti).dims).c_str());
        if (o.shift) p.require(p.tensor(o.shift).numel() == n, "antiquantOffset has shape %s", text(p.tensor(o.shift).dims).c_str());
    }
    return o;
}

void multiplies(const Plan& p, const Operands& o, int64_t inner) {
    p.require(inner == o.b.dims[0], "shapes %s and %s cannot be multiplied", text(o.a.dims).c_str(), text(o.b.dims).c_str());
}

Values weights(const Run& r, const Operands& o) {
    Values w = r.read<double>(o.b);
    if (o.anti == nullptr) return w;
    Values scale = r.read<double>(r.tensor(o.anti)), shift(scale.size(), 0);
    if (o.shift) shift = r.read<double>(r.tensor(o.shift));
    int64_t group = r.integer("antiquantGroupSize");
    for (size_t i = 0; i < w.size(); ++i) {
        size_t row = i / size_t(o.columns), column = i % size_t(o.columns);
        size_t at = scale.size() == 1 ? 0 : (group > 0 ? row / size_t(group) * size_t(o.columns) : 0) + column;
        w[i] = (w[i] + shift[at]) * scale[at];
    }
    return w;
}

// `row_scale` has one number for each row, or one.
Values product(const Run& r, const Operands& o, const Values& x, const Values& row_scale) {
    Values w = weights(r, o), scale{1}, bias(size_t(o.columns), 0);
    int64_t inner = o.b.dims[0], rows = inner > 0 ? int64_t(x.size()) / inner : 0;
    if (o.scale) scale = read_scale(r, r.tensor(o.scale));
    if (o.bias) bias = r.read<double>(r.tensor(o.bias));
    bool whole = o.bias && r.tensor(o.bias).dtype == ACL_INT32;
    Values y(size_t(rows * o.columns), 0);
    for (int64_t i = 0; i < rows; ++i) {
        double* row = y.data() + i * o.columns;
        for (int64_t k = 0; k < inner; ++k)
            for (int64_t j = 0; j < o.columns; ++j) row[j] += x[size_t(i * inner + k)] * w[size_t(k * o.columns + j)];
        double by_row = row_scale.empty() ? 1 : row_scale[row_scale.size() == 1 ? 0 : size_t(i)];
        for (int64_t j = 0; j < o.columns; ++j) {
            double factor = scale[scale.size() == 1 ? 0 : size_t(j)] * by_row;
            row[j] = whole ? (row[j] + bias[size_t(j)]) * factor : row[j] * factor + bias[size_t(j)];
        }
    }
    return y;
}

Values row_scales(const Run& r, const Operands& o) { return o.row_scale ? r.read<double>(r.tensor(o.row_scale)) : Values{}; }

void plan_row_scales(const Plan& p, const Operands& o) {
    if (o.row_scale == nullptr) return;
    int64_t n = p.tensor(o.row_scale).numel();
    p.require(n == 1 || n == o.rows, "%s has %lld elements for %lld rows", o.row_scale, wide(n), wide(o.rows));
}

Dims with_columns(Dims d, int64_t columns) {
    d[d.n - 1] = columns;
    return d;
}

// -- a product, then the sum over the ranks --------------------------------------------------------------------------------
void plan_all_reduce(Plan& p) {
    Operands o = plan_operands(p);
    multiplies(p, o, o.inner);
    plan_row_scales(p, o);
    plan_group(p);
    p.shape("output", with_columns(o.a.dims, o.columns));
    if (o.x3) p.require(p.tensor(o.x3).numel() == o.rows * o.columns, "%s has shape %s", o.x3, text(p.tensor(o.x3).dims).c_str());
}

Values summed_product(const Run& r) {
    Operands o = operands(r);
    Values y = product(r, o, r.read<double>(o.a), row_scales(r, o));
    if (o.x3) {
        Values x3 = r.read<double>(r.tensor(o.x3));
        for (size_t i = 0; i < y.size(); ++i) y[i] += x3[i];
    }
    return Group(r).sum(y);
}

void run_all_reduce(Run& r) { r.write(r.tensor("output"), summed_product(r)); }

// -- ... to which a residual is added, and its norm ------------------------------------------------------------------------
void plan_normed(Plan& p) {
    Operands o = plan_operands(p);
    multiplies(p, o, o.inner);
    plan_group(p);
    p.require(p.tensor("residual").numel() == o.rows * o.columns, "residual has shape %s", text(p.tensor("residual").dims).c_str());
    p.shape("gamma", {o.columns});
    p.require(p.has("normOut"), "normOut must be given");
    p.shape("normOut", p.tensor("residual").dims);
    if (has_parameter(p, "y")) {
        p.require(p.has("y"), "y must be given");
        p.shape("y", p.tensor("residual").dims);
    }
}

void run_normed(Run& r) {
    Values y = summed_product(r), residual = r.read<double>(r.tensor("residual")), gamma = r.read<double>(r.tensor("gamma"));
    for (size_t i = 0; i < y.size(); ++i) y[i] += residual[i];
    Values normed = y;
    for (size_t row = 0; row < y.size(); row += gamma.size()) {
        double square = 0;
        for (size_t j = 0; j < gamma.size(); ++j) square += y[row + j] * y[row + j];
        double factor = 1 / std::sqrt(square / double(gamma.size()) + r.real("epsilon"));
        for (size_t j = 0; j < gamma.size(); ++j) normed[row + j] = y[row + j] * factor * gamma[j];
    }
    r.write(r.tensor(has_parameter(r, "y") ? "y" : "residual"), y);
    r.write(r.tensor("normOut"), normed);
}

// -- a product, then each rank keeps its rows of the sum ---------------------------------------------------------------------
void plan_reduce_scatter(Plan& p) {
    Operands o = plan_operands(p);
    multiplies(p, o, o.inner);
    plan_row_scales(p, o);
    int64_t ranks = plan_group(p)->size;
    p.require(o.rows % ranks == 0, "x1 has %lld rows for %lld ranks", wide(o.rows), wide(ranks));
    p.shape("output", {o.rows / ranks, o.columns});
}

void run_reduce_scatter(Run& r) {
    Operands o = operands(r);
    Values y = product(r, o, r.read<double>(o.a), row_scales(r, o));
    Group group(r);
    size_t share = y.size() / group.size();
    std::vector<Values> pieces;
    for (uint32_t i = 0; i < group.size(); ++i) pieces.emplace_back(y.begin() + long(i * share), y.begin() + long((i + 1) * share));
    Values total(share, 0);
    for (const Values& part : group.all_to_all(pieces, std::vector<size_t>(group.size(), share)))
        for (size_t i = 0; i < share; ++i) total[i] += part[i];
    r.write(r.tensor("output"), total);
}

// -- rows of all ranks, then a product ------------------------------------------------------------------------------------
Values joined(const std::vector<Values>& parts) {
    Values out;
    for (const Values& part : parts) out.insert(out.end(), part.begin(), part.end());
    return out;
}

void plan_all_gather(Plan& p) {
    Operands o = plan_operands(p);
    multiplies(p, o, o.inner);
    plan_row_scales(p, o);
    int64_t ranks = plan_group(p)->size;
    p.require(p.integer("gatherIndex") == 0, "gatherIndex is %lld, expected 0", wide(p.integer("gatherIndex")));
    p.shape("output", {o.rows * ranks, o.columns});
    if (p.has("gatherOut") && p.tensor("gatherOut").numel() > 0) {
        p.shape("gatherOut", {o.rows * ranks, o.inner});
        p.same_dtype("x1", "gatherOut");
    }
}

void run_all_gather(Run& r) {
    Operands o = operands(r);
    Group group(r);
    Values x = joined(group.gather(r.read<double>(o.a))), scales = row_scales(r, o);
    if (scales.size() > 1) scales = joined(group.gather(scales));
    r.write(r.tensor("output"), product(r, o, x, scales));
    if (r.has("gatherOut") && r.tensor("gatherOut").numel() > 0) r.write(r.tensor("gatherOut"), x);
}

// -- between exchanged columns and rows -------------------------------------------------------------------------------------
// Rank r gets the r-th share of the rows from everybody; the shares of one row stand side by side.
Values rows_exchanged(Group& group, const Values& x, int64_t rows, int64_t columns) {
    int64_t ranks = group.size(), share = rows / ranks;
    std::vector<Values> pieces;
    for (int64_t i = 0; i < ranks; ++i) pieces.emplace_back(x.begin() + i * share * columns, x.begin() + (i + 1) * share * columns);
    auto got = group.all_to_all(pieces, std::vector<size_t>(size_t(ranks), size_t(share * columns)));
    Values out;
    for (int64_t i = 0; i < share; ++i)
        for (const Values& part : got) out.insert(out.end(), part.begin() + i * columns, part.begin() + (i + 1) * columns);
    return out;
}

void plan_exchange(const Plan& p) {
    const auto& axes = p.ints("alltoAllAxesOptional");
    p.require(axes.empty() || axes.size() == 2, "alltoAllAxesOptional has %zu elements, expected 2", axes.size());
}

void plan_exchanged_product(Plan& p) {
    Operands o = plan_operands(p);
    plan_exchange(p);
    int64_t ranks = plan_group(p)->size;
    p.require(o.a.rank() == 2 && o.rows % ranks == 0, "x1 has shape %s for %lld ranks", text(o.a.dims).c_str(), wide(ranks));
    multiplies(p, o, o.inner * ranks);
    p.shape("output", {o.rows / ranks, o.columns});
    if (p.has("alltoAllOutOptional")) p.shape("alltoAllOutOptional", {o.rows / ranks, o.inner * ranks});
}

void run_exchanged_product(Run& r) {
    Operands o = operands(r);
    Group group(r);
    Values x = rows_exchanged(group, r.read<double>(o.a), o.rows, o.inner);
    r.write(r.tensor("output"), product(r, o, x, {}));
    if (r.has("alltoAllOutOptional")) r.write(r.tensor("alltoAllOutOptional"), x);
}

void plan_product_exchanged(Plan& p) {
    Operands o = plan_operands(p);
    plan_exchange(p);
    int64_t ranks = plan_group(p)->size;
    multiplies(p, o, o.inner);
    plan_row_scales(p, o);
    p.require(o.a.rank() == 2 && o.columns % ranks == 0, "x2 has %lld columns for %lld ranks", wide(o.columns), wide(ranks));
    p.shape("output", {o.rows * ranks, o.columns / ranks});
}

void run_product_exchanged(Run& r) {
    Operands o = operands(r);
    Values y = product(r, o, r.read<double>(o.a), row_scales(r, o));
    Group group(r);
    int64_t ranks = group.size(), share = o.columns / ranks;
    std::vector<Values> pieces;
    for (int64_t i = 0; i < ranks; ++i) {
        pieces.emplace_back();
        for (int64_t row = 0; row < o.rows; ++row)
            pieces.back().insert(pieces.back().end(), y.begin() + row * o.columns + i * share, y.begin() + row * o.columns + (i + 1) * share);
    }
    r.write(r.tensor("output"), joined(group.all_to_all(pieces, std::vector<size_t>(size_t(ranks), size_t(o.rows * share)))));
}

// -- exchanged rows, quantized as they come, and a product --------------------------------------------------------------------
// Each row has the scale that brings its largest number to the end of x1QuantDtype; x1ScaleOptional are factors of the
// columns before. What comes small already keeps the scale of its row, if there is one.
bool quantizes(const Call& c) { return is_real(c.tensor("x1").dtype); }

void plan_exchanged_quantized(Plan& p) {
    Operands o = operands(p);
    plan_exchange(p);
    int64_t ranks = plan_group(p)->size;
    p.require(o.a.rank() == 2 && o.b.rank() == 2 && o.rows % ranks == 0, "x1 has shape %s, x2 %s for %lld ranks", text(o.a.dims).c_str(), text(o.b.dims).c_str(), wide(ranks));
    p.require(!p.flag("transposeX1"), "transposeX1 must be false");
    multiplies(p, o, o.inner * ranks);
    for (const char* name : {"commScaleOptional", "x1OffsetOptional", "x2OffsetOptional"}) p.require(!p.has(name), "%s is reserved and must be null", name);
    p.require(p.integer("commQuantMode") == 0 && p.integer("groupSize") == 0, "commQuantMode and groupSize must be 0; the emulator computes scales of rows and columns");
    p.require(p.tensor("x2Scale").dtype == ACL_FLOAT && p.tensor("x2Scale").numel() == o.columns, "x2Scale has dtype %s and shape %s", dtype_name(p.tensor("x2Scale").dtype),
              text(p.tensor("x2Scale").dims).c_str());
    int to = int(p.integer("x1QuantDtype"));
    p.require(!quantizes(p) || to == ACL_INT8 || is_narrow(to), "x1QuantDtype is %d", to);
    if (o.row_scale) {
        int64_t n = p.tensor(o.row_scale).numel();
        p.require(n == (quantizes(p) ? o.inner * ranks : o.rows / ranks), "%s has shape %s", o.row_scale, text(p.tensor(o.row_scale).dims).c_str());
    }
    if (o.bias) p.require(p.tensor(o.bias).numel() == o.columns, "%s has shape %s", o.bias, text(p.tensor(o.bias).dims).c_str());
    p.shape("output", {o.rows / ranks, o.columns});
    if (p.has("alltoAllOutOptional")) p.shape("alltoAllOutOptional", {o.rows / ranks, o.inner * ranks});
}

void run_exchanged_quantized(Run& r) {
    Operands o = operands(r);
    Group group(r);
    Values x = rows_exchanged(group, r.read<double>(o.a), o.rows, o.inner), scales;
    if (r.has("alltoAllOutOptional")) r.write(r.tensor("alltoAllOutOptional"), x);
    Values told = row_scales(r, o);
    size_t columns = size_t(o.b.dims[0]);
    int to = int(r.integer("x1QuantDtype"));
    for (size_t row = 0; quantizes(r) && row < x.size(); row += columns) {
        double largest = 0;
        for (size_t k = 0; k < columns; ++k) {
            if (!told.empty()) x[row + k] *= told[k];
            largest = std::fmax(largest, std::fabs(x[row + k]));
        }
        scales.push_back(largest / top_of(to));
        for (size_t k = 0; k < columns; ++k) {
            double v = scales.back() > 0 ? x[row + k] / scales.back() : 0;
            x[row + k] = is_narrow_float(to) ? narrow_value(to, narrow_code(to, v)) : within({v}, to)[0];
        }
    }
    r.write(r.tensor("output"), product(r, o, x, quantizes(r) ? scales : told));
}

// -- experts of several ranks ----------------------------------------------------------------------------------------------
// Counts are by rank, then by the rank's experts. Rows a rank keeps for its experts are by expert, then by the rank they
// belong to.
struct Experts {
    int64_t ranks, experts;
    std::vector<int64_t> out, in;
    Tensor weight;
};

Experts experts(const Call& c) {
    Tensor w = turned(c.tensor("gmmWeight"), c, "transGmmWeight");
    return {c.integer("epWorldSize"), w.dims[0], c.ints("sendCounts"), c.ints("recvCounts"), w};
}

int64_t total(const std::vector<int64_t>& counts) {
    int64_t sum = 0;
    for (int64_t n : counts) sum += n;
    return sum;
}

// One scale for all rows and one for all weights, or for each expert: what quantMode 1 says.
void plan_expert_scales(const Plan& p, int64_t experts) {
    if (!has_parameter(p, "gmmXScale")) return;
    for (const char* name : {"gmmXQuantMode", "gmmWeightQuantMode"})
        p.require(p.integer(name) == 1, "%s is %lld; the emulator computes 1 (one scale)", name, wide(p.integer(name)));
    p.require(p.integer("groupSize") == 0, "groupSize is %lld, expected 0", wide(p.integer("groupSize")));
    if (has_parameter(p, "commQuantMode")) p.require(p.integer("commQuantMode") == 0, "commQuantMode is %lld, expected 0", wide(p.integer("commQuantMode")));
    p.require(!given(p, "commQuantScaleOptional"), "commQuantScaleOptional belongs to other modes");
    p.require(p.tensor("gmmXScale").numel() == 1, "gmmXScale has shape %s", text(p.tensor("gmmXScale").dims).c_str());
    int64_t n = p.tensor("gmmWeightScale").numel();
    p.require(n == 1 || n == experts, "gmmWeightScale has shape %s", text(p.tensor("gmmWeightScale").dims).c_str());
    for (const char* name : {"mmXScaleOptional", "mmWeightScaleOptional"}) {
        p.require(given(p, name) == given(p, "mmXOptional"), "%s belongs to mmXOptional", name);
        if (given(p, name)) p.require(p.tensor(name).numel() == 1, "%s has shape %s", name, text(p.tensor(name).dims).c_str());
    }
}

Experts plan_experts(const Plan& p, const char* y) {
    auto group = plan_group(p);
    Experts e = experts(p);
    p.require(e.ranks == int64_t(group->size), "epWorldSize is %lld, the communicator has %u ranks", wide(e.ranks), group->size);
    for (const char* name : {"sendCounts", "recvCounts"}) {
        const auto& counts = p.ints(name);
        p.require(int64_t(counts.size()) == e.ranks * e.experts, "%s has %zu elements, expected %lld", name, counts.size(), wide(e.ranks * e.experts));
        for (int64_t n : counts) p.require(n >= 0, "%s holds %lld", name, wide(n));
    }
    for (const char* name : {"sendCountsTensorOptional", "recvCountsTensorOptional"}) p.require(!given(p, name), "%s is reserved and must be null", name);
    const Dims& x = p.tensor("gmmX").dims;
    p.require(x.n == 2 && e.weight.rank() == 3 && x[1] == e.weight.dims[1], "gmmX has shape %s, gmmWeight %s", text(x).c_str(), text(e.weight.dims).c_str());
    p.require(given(p, "mmXOptional") == given(p, "mmWeightOptional") && given(p, "mmXOptional") == given(p, "mmYOptional"),
              "mmXOptional, mmWeightOptional and mmYOptional belong together");
    if (given(p, "mmXOptional")) {
        Tensor w = turned(p.tensor("mmWeightOptional"), p, "transMmWeight");
        const Dims& mm = p.tensor("mmXOptional").dims;
        p.require(mm.n == 2 && w.rank() == 2 && mm[1] == w.dims[0], "mmXOptional has shape %s, mmWeightOptional %s", text(mm).c_str(), text(w.dims).c_str());
        p.shape("mmYOptional", {mm[0], w.dims[1]});
    }
    p.require(p.tensor(y).rank() == 2 && p.tensor(y).dims[1] == e.weight.dims[2], "%s has shape %s", y, text(p.tensor(y).dims).c_str());
    plan_expert_scales(p, e.experts);
    return e;
}

double one_number(const Run& r, const char* name) { return given(r, name) ? r.read<double>(r.tensor(name))[0] : 1; }

Values times(Values x, double factor) {
    for (double& v : x) v *= factor;
    return x;
}

Values plain_product(const Values& x, const double* w, int64_t inner, int64_t columns) {
    int64_t rows = inner > 0 ? int64_t(x.size()) / inner : 0;
    Values y(size_t(rows * columns), 0);
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t k = 0; k < inner; ++k)
            for (int64_t j = 0; j < columns; ++j) y[size_t(i * columns + j)] += x[size_t(i * inner + k)] * w[k * columns + j];
    return y;
}

void run_shared(const Run& r) {
    if (!given(r, "mmXOptional")) return;
    Tensor w = turned(r.tensor("mmWeightOptional"), r, "transMmWeight");
    Values matrix = r.read<double>(w);
    double factor = one_number(r, "mmXScaleOptional") * one_number(r, "mmWeightScaleOptional");
    r.write(r.tensor("mmYOptional"), times(plain_product(r.read<double>(r.tensor("mmXOptional")), matrix.data(), w.dims[0], w.dims[1]), factor));
}

// Runs of rows: lengths[i] rows of the i-th of `order`.
Values by_runs(const Values& x, const std::vector<int64_t>& lengths, const std::vector<size_t>& order, int64_t columns) {
    std::vector<int64_t> start;
    int64_t at = 0;
    for (int64_t n : lengths) start.push_back(at), at += n;
    Values out;
    for (size_t i : order) out.insert(out.end(), x.begin() + start[i] * columns, x.begin() + (start[i] + lengths[i]) * columns);
    return out;
}

// Place of (rank, expert) in counts, expert by expert; and the counts in that order.
std::vector<size_t> expert_major(const Experts& e) {
    std::vector<size_t> order;
    for (int64_t j = 0; j < e.experts; ++j)
        for (int64_t rank = 0; rank < e.ranks; ++rank) order.push_back(size_t(rank * e.experts + j));
    return order;
}

std::vector<size_t> rank_shares(const Experts& e, const std::vector<int64_t>& counts, int64_t columns, std::vector<size_t>* starts) {
    std::vector<size_t> sizes;
    size_t at = 0;
    for (int64_t rank = 0; rank < e.ranks; ++rank) {
        int64_t rows = 0;
        for (int64_t j = 0; j < e.experts; ++j) rows += counts[size_t(rank * e.experts + j)];
        if (starts) starts->push_back(at);
        sizes.push_back(size_t(rows * columns)), at += sizes.back();
    }
    return sizes;
}

Values exchanged(Group& group, const Experts& e, const Values& x, int64_t columns) {
    std::vector<size_t> starts, out = rank_shares(e, e.out, columns, &starts), in = rank_shares(e, e.in, columns, nullptr);
    std::vector<Values> pieces;
    for (size_t i = 0; i < out.size(); ++i) pieces.emplace_back(x.begin() + long(starts[i]), x.begin() + long(starts[i] + out[i]));
    return joined(group.all_to_all(pieces, in));
}

Values expert_products(const Run& r, const Experts& e, const Values& x, const std::vector<int64_t>& counts) {
    Values w = r.read<double>(e.weight), y, scale{1};
    if (given(r, "gmmWeightScale")) scale = times(r.read<double>(r.tensor("gmmWeightScale")), one_number(r, "gmmXScale"));
    int64_t inner = e.weight.dims[1], columns = e.weight.dims[2], at = 0;
    for (int64_t j = 0; j < e.experts; ++j) {
        int64_t rows = 0;
        for (int64_t rank = 0; rank < e.ranks; ++rank) rows += counts[size_t(rank * e.experts + j)];
        Values part = plain_product(Values(x.begin() + at * inner, x.begin() + (at + rows) * inner), w.data() + j * inner * columns, inner, columns);
        part = times(part, scale[scale.size() == 1 ? 0 : size_t(j)]);
        y.insert(y.end(), part.begin(), part.end());
        at += rows;
    }
    return y;
}

void plan_to_experts(Plan& p) {
    Experts e = plan_experts(p, "gmmY");
    p.require(p.tensor("gmmX").dims[0] == total(e.out), "gmmX has %lld rows, sendCounts %lld", wide(p.tensor("gmmX").dims[0]), wide(total(e.out)));
    p.require(p.tensor("gmmY").dims[0] == total(e.in), "gmmY has %lld rows, recvCounts %lld", wide(p.tensor("gmmY").dims[0]), wide(total(e.in)));
    p.require(p.flag("permuteOutFlag") == given(p, "permuteOutOptional"), "permuteOutOptional is what permuteOutFlag asks for");
    if (given(p, "permuteOutOptional")) p.shape("permuteOutOptional", {total(e.in), e.weight.dims[1]});
}

void run_to_experts(Run& r) {
    Experts e = experts(r);
    Group group(r);
    int64_t inner = e.weight.dims[1];
    Values x = by_runs(exchanged(group, e, r.read<double>(r.tensor("gmmX")), inner), e.in, expert_major(e), inner);
    r.write(r.tensor("gmmY"), expert_products(r, e, x, e.in));
    if (given(r, "permuteOutOptional")) r.write(r.tensor("permuteOutOptional"), x);
    run_shared(r);
}

void plan_from_experts(Plan& p) {
    Experts e = plan_experts(p, "y");
    p.require(p.tensor("gmmX").dims[0] == total(e.out), "gmmX has %lld rows, sendCounts %lld", wide(p.tensor("gmmX").dims[0]), wide(total(e.out)));
    p.require(p.tensor("y").dims[0] == total(e.in), "y has %lld rows, recvCounts %lld", wide(p.tensor("y").dims[0]), wide(total(e.in)));
}

void run_from_experts(Run& r) {
    Experts e = experts(r);
    int64_t columns = e.weight.dims[2];
    Values y = expert_products(r, e, r.read<double>(r.tensor("gmmX")), e.out);
    // From the order of experts to the order of ranks: the runs are listed expert by expert.
    std::vector<int64_t> lengths;
    for (size_t i : expert_major(e)) lengths.push_back(e.out[i]);
    std::vector<size_t> order;
    for (int64_t rank = 0; rank < e.ranks; ++rank)
        for (int64_t j = 0; j < e.experts; ++j) order.push_back(size_t(j * e.ranks + rank));
    Group group(r);
    r.write(r.tensor("y"), exchanged(group, e, by_runs(y, lengths, order, columns), columns));
    run_shared(r);
}

// -- products of lists, each summed over the ranks ---------------------------------------------------------------------------
void plan_lists(Plan& p) {
    plan_group(p);
    const auto &x = p.tensors("x"), &w = p.tensors("weight"), &y = p.tensors("y");
    p.require(!x.empty() && x.size() == w.size() && x.size() == y.size(), "x, weight and y have %zu, %zu and %zu tensors", x.size(), w.size(), y.size());
    p.require(p.integer("splitItem") == 0 && p.ints("groupListOptional").empty(), "splitItem is %lld; the emulator computes 0", wide(p.integer("splitItem")));
    p.require(p.integer("commTurn") == 0 && p.integer("streamMode") == 1, "commTurn must be 0 and streamMode 1");
    p.require(!p.has("reduceOp") || p.string("reduceOp") == "sum", "reduceOp is \"%s\", expected sum", p.string("reduceOp").c_str());
    bool biased = p.has("bias") && !p.tensors("bias").empty();
    p.require(!biased || p.tensors("bias").size() == x.size(), "bias has %zu tensors", biased ? p.tensors("bias").size() : 0);
    for (size_t i = 0; i < x.size(); ++i) {
        p.require(x[i].rank() >= 2 && w[i].rank() == 2 && x[i].dims.back() == w[i].dims[0], "x %zu has shape %s, weight %s", i, text(x[i].dims).c_str(),
                  text(w[i].dims).c_str());
        p.require(y[i].dims == with_columns(x[i].dims, w[i].dims[1]), "y %zu has shape %s", i, text(y[i].dims).c_str());
        if (biased) p.require(p.tensors("bias")[i].numel() == w[i].dims[1], "bias %zu has shape %s", i, text(p.tensors("bias")[i].dims).c_str());
    }
}

void run_lists(Run& r) {
    const auto &x = r.tensors("x"), &w = r.tensors("weight"), &y = r.tensors("y");
    Group group(r);
    for (size_t i = 0; i < x.size(); ++i) {
        Values matrix = r.read<double>(w[i]);
        Values out = plain_product(r.read<double>(x[i]), matrix.data(), w[i].dims[0], w[i].dims[1]);
        if (r.has("bias") && !r.tensors("bias").empty()) {
            Values bias = r.read<double>(r.tensors("bias")[i]);
            for (size_t k = 0; k < out.size(); ++k) out[k] += bias[k % bias.size()];
        }
        r.write(y[i], group.sum(out));
    }
}

// -- small ones ------------------------------------------------------------------------------------------------------------
void plan_gather_add(Plan& p) {
    int64_t ranks = plan_group(p)->size;
    const Dims& a = p.tensor("a").dims;
    p.require(p.integer("rankSize") == ranks, "rankSize is %lld, the communicator has %lld ranks", wide(p.integer("rankSize")), wide(ranks));
    for (const char* name : {"b", "cOut", "gatherOutOut"})
        if (p.has(name)) p.shape(name, {a[0] * ranks, a[1]});
}

void run_gather_add(Run& r) {
    Group group(r);
    Values x = joined(group.gather(r.read<double>(r.tensor("a")))), b = r.read<double>(r.tensor("b")), c = x;
    for (size_t i = 0; i < c.size(); ++i) c[i] += b[i];
    r.write(r.tensor("cOut"), c);
    if (r.has("gatherOutOut")) r.write(r.tensor("gatherOutOut"), x);
}

void plan_barrier(Plan& p) {
    auto group = plan_group(p);
    p.require(p.integer("worldSize") == int64_t(group->size), "worldSize is %lld, the communicator has %u ranks", wide(p.integer("worldSize")), group->size);
    for (const char* name : {"timeOut", "elasticInfo"}) p.require(!given(p, name), "%s is not computed by the emulator: every rank takes part, and waits as long as HCCL_EXEC_TIMEOUT says", name);
}

void run_barrier(Run& r) { Group(r).gather(Values{}); }

// What ranks send each other is not kept between calls, so there is nothing to reset, for whichever ranks elasticInfo
// names: what is left is that the ranks may wait for each other.
void plan_reset(Plan& p) {
    auto group = plan_group(p, "groupEp");
    p.require(p.integer("epWorldSize") == int64_t(group->size), "epWorldSize is %lld, the communicator has %u ranks", wide(p.integer("epWorldSize")), group->size);
    plan_number(p, "needSync", 1);
}

void run_reset(Run& r) {
    if (r.integer("needSync") == 1) Group(r, "groupEp").gather(Values{});
}

// Numbers with a scale for each block of columns (FLOAT: 128 of them, FLOAT8_E8M0: 32), summed over the ranks.
int64_t scale_block(const Call& c) { return c.tensor("scales").dtype == ACL_FLOAT8_E8M0 ? 32 : 128; }

void plan_scaled_sum(Plan& p, bool scatters) {
    int64_t ranks = plan_group(p)->size;
    const Dims& x = p.tensor("x").dims;
    int64_t columns = x.back(), rows = columns > 0 ? x.product() / columns : 0;
    p.require(!p.has("reduceOp") || p.string("reduceOp") == "sum", "reduceOp is \"%s\", expected sum", p.string("reduceOp").c_str());
    int64_t blocks = (columns + scale_block(p) - 1) / scale_block(p);
    p.require(p.tensor("scales").numel() == rows * blocks, "scales has shape %s for x of %s", text(p.tensor("scales").dims).c_str(), text(x).c_str());
    p.require(!scatters || rows % ranks == 0, "x has %lld rows for %lld ranks", wide(rows), wide(ranks));
    p.require(p.tensor("output").numel() == (scatters ? rows / ranks : rows) * columns && p.tensor("output").dims.back() == columns,
              "output has shape %s", text(p.tensor("output").dims).c_str());
}

void run_scaled_sum(Run& r, bool scatters) {
    Values x = r.read<double>(r.tensor("x")), scales = r.read<double>(r.tensor("scales"));
    size_t columns = size_t(r.tensor("x").dims.back()), block = size_t(scale_block(r)), blocks = (columns + block - 1) / block;
    for (size_t i = 0; i < x.size(); ++i) x[i] *= scales[i / columns * blocks + i % columns / block];
    Group group(r);
    Values sum = group.sum(x);
    size_t share = scatters ? sum.size() / group.size() : sum.size(), from = scatters ? share * group.rank() : 0;
    r.write(r.tensor("output"), Values(sum.begin() + long(from), sum.begin() + long(from + share)));
}

}  // namespace

ACLNN(aclnnMatmulAllReduce, plan_all_reduce, run_all_reduce)
ACLNN(aclnnMatmulAllReduceV2, plan_all_reduce, run_all_reduce)
ACLNN(aclnnMatmulAllReduceV3, plan_all_reduce, run_all_reduce)
ACLNN(aclnnQuantMatmulAllReduce, plan_all_reduce, run_all_reduce, NARROW)
ACLNN(aclnnQuantMatmulAllReduceV2, plan_all_reduce, run_all_reduce, NARROW)
ACLNN(aclnnQuantMatmulAllReduceV3, plan_all_reduce, run_all_reduce, NARROW)
ACLNN(aclnnQuantMatmulAllReduceV4, plan_all_reduce, run_all_reduce, NARROW)
ACLNN(aclnnQuantMatmulAllReduceV5, plan_all_reduce, run_all_reduce, NARROW)
ACLNN(aclnnWeightQuantMatmulAllReduce, plan_all_reduce, run_all_reduce, NARROW)
ACLNN(aclnnWeightQuantMatmulAllReduceV2, plan_all_reduce, run_all_reduce, NARROW)
ACLNN(aclnnMatmulAllReduceAddRmsNorm, plan_normed, run_normed)
ACLNN(aclnnInplaceMatmulAllReduceAddRmsNorm, plan_normed, run_normed)
ACLNN(aclnnQuantMatmulAllReduceAddRmsNorm, plan_normed, run_normed)
ACLNN(aclnnInplaceQuantMatmulAllReduceAddRmsNorm, plan_normed, run_normed)
ACLNN(aclnnWeightQuantMatmulAllReduceAddRmsNorm, plan_normed, run_normed, NARROW)
ACLNN(aclnnInplaceWeightQuantMatmulAllReduceAddRmsNorm, plan_normed, run_normed, NARROW)
ACLNN(aclnnMatmulReduceScatter, plan_reduce_scatter, run_reduce_scatter)
ACLNN(aclnnMatmulReduceScatterV2, plan_reduce_scatter, run_reduce_scatter, NARROW)
ACLNN(aclnnAllGatherMatmul, plan_all_gather, run_all_gather)
ACLNN(aclnnAllGatherMatmulV2, plan_all_gather, run_all_gather, NARROW)
ACLNN(aclnnAlltoAllMatmul, plan_exchanged_product, run_exchanged_product)
ACLNN(aclnnAlltoAllMatmulV2, plan_exchanged_product, run_exchanged_product)
ACLNN(aclnnMatmulAlltoAll, plan_product_exchanged, run_product_exchanged)
ACLNN(aclnnMatmulAlltoAllV2, plan_product_exchanged, run_product_exchanged)
ACLNN(aclnnQuantMatmulAlltoAll, plan_product_exchanged, run_product_exchanged, NARROW)
ACLNN(aclnnQuantMatmulAlltoAllV2, plan_product_exchanged, run_product_exchanged, NARROW)
ACLNN(aclnnAlltoAllvGroupedMatMul, plan_to_experts, run_to_experts)
ACLNN(aclnnAlltoAllvGroupedMatMulV2, plan_to_experts, run_to_experts)
ACLNN(aclnnGroupedMatMulAlltoAllv, plan_from_experts, run_from_experts)
ACLNN(aclnnGroupedMatMulAlltoAllvV2, plan_from_experts, run_from_experts)
ACLNN(aclnnAlltoAllQuantMatmul, plan_exchanged_quantized, run_exchanged_quantized, NARROW)
ACLNN(aclnnAlltoAllQuantMatmulV2, plan_exchanged_quantized, run_exchanged_quantized, NARROW)
ACLNN(aclnnAlltoAllvQuantGroupedMatMul, plan_to_experts, run_to_experts, NARROW)
ACLNN(aclnnAlltoAllvQuantGroupedMatMulV2, plan_to_experts, run_to_experts, NARROW)
ACLNN(aclnnQuantGroupedMatMulAlltoAllv, plan_from_experts, run_from_experts, NARROW)
ACLNN(aclnnQuantGroupedMatMulAlltoAllvV2, plan_from_experts, run_from_experts, NARROW)
ACLNN(aclnnGroupedMatMulAllReduce, plan_lists, run_lists)
ACLNN(aclnnAllGatherAdd, plan_gather_add, run_gather_add)
ACLNN(aclnnDistributeBarrier, plan_barrier, run_barrier, NARROW)
ACLNN(aclnnDistributeBarrierV2, plan_barrier, run_barrier, NARROW)
ACLNN(aclnnInnerDistributeBarrier, plan_barrier, run_barrier, NARROW)
ACLNN(aclnnMoeDistributeBufferReset, plan_reset, run_reset)
ACLNN(aclnnQuantAllReduce, PLAN { plan_scaled_sum(p, false); }, RUN { run_scaled_sum(r, false); }, NARROW)
ACLNN(aclnnQuantReduceScatter, PLAN { plan_scaled_sum(p, true); }, RUN { run_scaled_sum(r, true); }, NARROW)
