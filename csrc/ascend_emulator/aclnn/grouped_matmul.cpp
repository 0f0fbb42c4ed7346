// Products of groups of rows, each with a matrix of its own, and of small integers with scales.
//
// Computed for floats, INT8 and weights of 4 bits; where documents are silent on the order of bias and scale, an INT32 bias is
// added before the scale and any other after it.
#include "activation.h"
#include "block_scales.h"
#include "optional.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

// (rows, inner) @ (inner, columns)
Values product(const double* x, const double* w, int64_t rows, int64_t inner, int64_t columns) {
    Values out(size_t(rows * columns), 0);
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t k = 0; k < inner; ++k)
            for (int64_t j = 0; j < columns; ++j) out[size_t(i * columns + j)] += x[i * inner + k] * w[k * columns + j];
    return out;
}

Values to_bytes(Values x) {
    for (double& v : x) v = std::fmin(std::fmax(std::nearbyint(v), -128), 127);
    return x;
}

// -- groups ----------------------------------------------------------------------------------------------------------
enum Activation : int64_t { kNone = 0, kRelu = 1, kGeluTanh = 2, kGelu = 3, kFastGelu = 4, kSilu = 5 };

double activated(double x, int64_t type) {
    switch (type) {
        case kRelu: return std::fmax(x, 0);
        case kGeluTanh: return gelu_tanh(x);
        case kGelu: return gelu(x);
        case kFastGelu: return fast_gelu(x);
        case kSilu: return silu(x);
        default: return x;
    }
}

struct Group {
    int dtype;  // of the result
    int64_t rows;
    size_t index;
};

const char* out_name(const Call& c) {
    std::string name = c.function->name;
    return name == "aclnnGroupedMatmulV4" || name == "aclnnGroupedMatmulV5" || name == "aclnnGroupedMatmulWeightNz" ? "out" : "y";
}

// INT32 beside floats or INT8 holds packed weights of four bits.
std::vector<Tensor> matrices(const Call& c) {
    std::vector<Tensor> out;
    for (const Tensor& t : c.tensors("weight")) out.push_back(half_bytes(t));
    return out;
}

bool listed(const Call& c, const char* name) { return given(c, name) && !c.tensors(name).empty(); }

// Weights are integers that become floats before the product.
bool antiquantized(const Call& c) { return listed(c, "antiquantScaleOptional"); }

// Both operands have scales in pairs.
bool paired(const Call& c) {
    return listed(c, "perTokenScaleOptional") && listed(c, "scaleOptional") && in_pairs(c.tensors("perTokenScaleOptional")[0]);
}

size_t group_count(const Call& c) {
    const auto& w = c.tensors("weight");
    return w.size() == 1 && w[0].rank() == 3 ? size_t(w[0].dims[0]) : w.size();
}

// How many groups the list names, whether it is a tensor or an array.
int64_t listed_groups(const Call& c) {
    const Value& list = c.at("groupListOptional");
    return list.tensor.dtype != ACL_DT_UNDEFINED ? list.tensor.numel() : int64_t(list.ints.size());
}

bool splits_inner(const Call& c) { return has_parameter(c, "groupType") && c.integer("groupType") == 2; }

// Groups along the dimension that is summed over: (rows, inner) @ (inner, columns) gives a matrix for each group.
void plan_inner_groups(Plan& p) {
    const auto &x = p.tensors("x"), &w = p.tensors("weight"), &y = p.tensors(out_name(p));
    p.require(x.size() == 1 && w.size() == 1 && y.size() == 1, "groupType 2 takes one tensor of each");
    p.require(given(p, "groupListOptional") && listed_groups(p) > 0, "groupType 2 needs groupListOptional");
    for (const char* name : {"biasOptional", "scaleOptional", "antiquantScaleOptional", "perTokenScaleOptional"})
        p.require(!listed(p, name), "%s does not belong to groupType 2", name);
    const Dims &a = x[0].dims, &b = w[0].dims;
    p.require(a.n == 2 && b.n == 2 && a[1] == b[0], "x has shape %s, weight %s", text(a).c_str(), text(b).c_str());
    p.require(is_real(x[0].dtype) && x[0].dtype == w[0].dtype, "groupType 2 takes x and weight of one float type");
    Dims want{listed_groups(p), a[0], b[1]};
    p.require(y[0].dims == want, "the output has shape %s, expected %s", text(y[0].dims).c_str(), text(want).c_str());
}

// One tensor of each: rows of x with their pairs, matrices with theirs.
void plan_paired(const Plan& p) {
    const auto &rows = p.tensors("perTokenScaleOptional"), &columns = p.tensors("scaleOptional");
    const Tensor &x = p.tensors("x")[0], w = matrices(p)[0];
    p.require(p.tensors("x").size() == 1 && p.tensors("weight").size() == 1 && rows.size() == 1 && columns.size() == 1, "scales in pairs take one tensor of each");
    p.require(is_narrow_float(x.dtype) && is_narrow_float(w.dtype) && x.rank() == 2, "scales in pairs belong to small floats, x has dtype %s and shape %s", dtype_name(x.dtype),
              text(x.dims).c_str());
    Dims first = pair_dims(x.dims[0], x.dims[1], 1), second = pair_dims(w.dims[w.rank() - 2], w.dims.back(), 0), each{int64_t(group_count(p)), second[0], second[1], 2};
    p.require(rows[0].dims == first, "perTokenScaleOptional has shape %s, expected %s", text(rows[0].dims).c_str(), text(first).c_str());
    p.require(in_pairs(columns[0]) && (columns[0].dims == each || (each[0] == 1 && columns[0].dims == second)), "scaleOptional has shape %s, expected %s",
              text(columns[0].dims).c_str(), text(each).c_str());
}

void plan_grouped(Plan& p) {
    plan_number(p, "groupListType", 1);
    if (splits_inner(p)) return plan_inner_groups(p);
    const auto &x = p.tensors("x"), &y = p.tensors(out_name(p));
    const auto w = matrices(p);
    size_t groups = group_count(p);
    p.require(!x.empty() && !w.empty() && !y.empty(), "x, weight and the output must not be empty");
    for (const char* name : {"offsetOptional", "activationInputOptional", "activationQuantScaleOptional",
                             "activationQuantOffsetOptional"})
        p.require(!given(p, name) || p.tensors(name).empty(), "%s is not computed by the emulator: the documents state no formula for it", name);
    int64_t split = p.integer("splitItem"), type = has_parameter(p, "groupType") ? p.integer("groupType") : -1;
    p.require(split >= 0 && split <= 3, "splitItem is %lld, expected 0 to 3", static_cast<long long>(split));
    p.require(type == -1 || type == 0, "groupType is %lld, expected -1, 0 or 2", static_cast<long long>(type));
    if (has_parameter(p, "actType"))
        p.require(p.integer("actType") >= 0 && p.integer("actType") <= kSilu, "actType is %lld, expected 0 to 5",
                  static_cast<long long>(p.integer("actType")));
    bool shared = x.size() == 1 && groups > 1;
    p.require(x.size() == groups || shared, "x has %zu tensors for %zu matrices", x.size(), groups);
    p.require(!shared || given(p, "groupListOptional"), "groupListOptional is needed where groups share a tensor");
    p.require(y.size() == 1 || y.size() == groups, "the output has %zu tensors for %zu groups", y.size(), groups);
    int64_t inner = w[0].dims[w[0].rank() - 2];
    for (const Tensor& t : x)
        p.require(t.rank() >= 2 && (x.size() > 1 || t.dims.back() == inner), "x has shape %s, weight %s",
                  text(t.dims).c_str(), text(w[0].dims).c_str());
    for (size_t i = 0; i < w.size(); ++i) {
        const Dims &d = w[i].dims, &out = y[y.size() == 1 ? 0 : i].dims;
        p.require(w[i].rank() == (groups == w.size() ? 2 : 3) || (groups == 1 && w[i].rank() == 3),
                  "weight %zu has shape %s", i, text(d).c_str());
        p.require(out.back() == d.back(), "an output has shape %s, weight %s", text(out).c_str(), text(d).c_str());
        if (x.size() > 1)
            p.require(x[i].dims.back() == d[d.n - 2], "x %zu has shape %s, weight %s", i, text(x[i].dims).c_str(),
                      text(d).c_str());
    }
    if (paired(p)) return plan_paired(p);
    bool whole = x[0].dtype == ACL_INT8, small = w[0].dtype == ACL_INT8 || w[0].dtype == ACL_INT4;
    if (antiquantized(p)) {
        p.require(!whole && small, "antiquantScaleOptional belongs to float x and INT8 or INT4 weight");
        return;
    }
    p.require(whole == small || is_narrow_float(x[0].dtype), "x and weight must both be integers or both floats");
    p.require(!whole || given(p, "scaleOptional") || y[0].dtype == ACL_INT32, "INT8 needs scaleOptional");
    p.workspace = 1 << 16;
}

// Where the groups of a shared tensor end: stated as ends, or as counts.
std::vector<int64_t> group_ends(const Run& r, size_t groups) {
    std::vector<int64_t> list;
    for (int i = 0; i < r.function->count; ++i)
        if (std::strcmp(r.function->parameters[i].name, "groupListOptional") == 0)
            list = r.function->parameters[i].role == Role::tensor ? r.read<int64_t>(r.tensor("groupListOptional"))
                                                                  : r.ints("groupListOptional");
    if (list.size() != groups) fault("groupListOptional has %zu elements for %zu groups", list.size(), groups);
    if (has_parameter(r, "groupListType") && r.integer("groupListType") == 1)
        for (size_t i = 1; i < list.size(); ++i) list[i] += list[i - 1];
    for (size_t i = 0; i < list.size(); ++i)
        if (list[i] < (i ? list[i - 1] : 0)) fault("groupListOptional must not fall");
    return list;
}

Values finish(const Run& r, const Group& g, Values acc, int64_t columns, int64_t first_row) {
    Values bias(size_t(columns), 0), scale(size_t(columns), 1), rows(size_t(g.rows), 1);
    auto part = [&](const char* name, bool scales) {
        const auto& list = r.tensors(name);
        const Tensor& t = list[list.size() == 1 ? 0 : g.index];
        Values all = scales ? read_scale(r, t) : r.read<double>(t);
        if (int64_t(all.size()) == columns) return all;
        if (all.size() == 1) return Values(size_t(columns), all[0]);
        int64_t at = int64_t(g.index) * columns;
        if (int64_t(all.size()) < at + columns) fault("%s is too short", name);
        return Values(all.begin() + at, all.begin() + at + columns);
    };
    bool biased = given(r, "biasOptional") && !r.tensors("biasOptional").empty();
    if (biased) bias = part("biasOptional", false);
    if (listed(r, "scaleOptional") && !paired(r)) scale = part("scaleOptional", true);
    if (listed(r, "perTokenScaleOptional") && !paired(r)) {
        const auto& list = r.tensors("perTokenScaleOptional");
        Values all = r.read<double>(list[list.size() == 1 ? 0 : g.index]);
        int64_t at = list.size() == 1 ? first_row : 0;
        if (int64_t(all.size()) < at + g.rows) fault("perTokenScaleOptional is too short");
        rows = Values(all.begin() + at, all.begin() + at + g.rows);
    }
    bool whole = biased && r.tensors("biasOptional")[0].dtype == ACL_INT32;
    int64_t act = has_parameter(r, "actType") ? r.integer("actType") : 0;
    for (size_t i = 0; i < acc.size(); ++i) {
        size_t column = i % size_t(columns);
        double factor = scale[column] * rows[i / size_t(columns)];
        acc[i] = activated(whole ? (acc[i] + bias[column]) * factor : acc[i] * factor + bias[column], act);
    }
    return g.dtype == ACL_INT8 ? to_bytes(acc) : acc;
}

// (weight + offset) * scale: numbers of each column, or of each column for each block of rows.
void make_floats(const Run& r, double* matrix, int64_t inner, int64_t columns, size_t group) {
    auto part = [&](const char* name, double otherwise) {
        if (!listed(r, name)) return Values(size_t(columns), otherwise);
        const auto& list = r.tensors(name);
        const Tensor& t = list[list.size() == 1 ? 0 : group];
        Values all = r.read<double>(t);
        int64_t share = list.size() == 1 ? int64_t(all.size()) / std::max<int64_t>(t.rank() > 1 ? t.dims[0] : 1, 1) : int64_t(all.size());
        int64_t from = list.size() == 1 && t.rank() > 1 ? int64_t(group) * share : 0;
        if (share < columns || share % columns != 0 || from + share > int64_t(all.size())) fault("%s has shape %s", name, text(t.dims).c_str());
        return Values(all.begin() + from, all.begin() + from + share);
    };
    Values scale = part("antiquantScaleOptional", 1), offset = part("antiquantOffsetOptional", 0);
    auto at = [&](const Values& v, int64_t row, int64_t column) {
        int64_t blocks = int64_t(v.size()) / columns, height = (inner + blocks - 1) / blocks;
        return v[size_t(row / height * columns + column)];
    };
    for (int64_t k = 0; k < inner; ++k)
        for (int64_t j = 0; j < columns; ++j) {
            double& w = matrix[k * columns + j];
            w = (w + at(offset, k, j)) * at(scale, k, j);
        }
}

void run_inner_groups(Run& r) {
    const Tensor &a = r.tensors("x")[0], &b = r.tensors("weight")[0], &y = r.tensors(out_name(r))[0];
    int64_t rows = a.dims[0], inner = a.dims[1], columns = b.dims[1];
    auto ends = group_ends(r, size_t(y.dims[0]));
    auto x = r.read<double>(a), w = r.read<double>(b);
    Values out(size_t(y.numel()), 0);
    for (size_t g = 0; g < ends.size(); ++g) {
        if (ends[g] > inner) fault("groupListOptional goes beyond the columns of x");
        for (int64_t k = g ? ends[g - 1] : 0; k < ends[g]; ++k)
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t j = 0; j < columns; ++j)
                    out[size_t((int64_t(g) * rows + i) * columns + j)] += x[size_t(i * inner + k)] * w[size_t(k * columns + j)];
    }
    r.write(y, out);
}

void run_grouped(Run& r) {
    if (splits_inner(r)) return run_inner_groups(r);
    const auto &x = r.tensors("x"), &y = r.tensors(out_name(r));
    const auto w = matrices(r);
    size_t groups = group_count(r);
    std::vector<int64_t> ends;
    if (x.size() == 1 && groups > 1) ends = group_ends(r, groups);
    std::vector<Values> outputs;
    for (const Tensor& t : y) outputs.emplace_back(size_t(t.numel()), 0.0);
    int64_t row = 0;
    for (size_t i = 0; i < groups; ++i) {
        const Tensor& a = x[x.size() == 1 ? 0 : i];
        const Tensor& b = w[w.size() == 1 ? 0 : i];
        int64_t inner = a.dims.back(), columns = b.dims.back(), all = a.numel() / std::max<int64_t>(inner, 1);
        int64_t first = ends.empty() ? 0 : (i ? ends[i - 1] : 0), last = ends.empty() ? all : ends[i];
        if (last > all) fault("groupListOptional goes beyond the rows of x");
        auto values = r.read<double>(a), matrix = r.read<double>(b);
        if (paired(r)) {
            scale_pairs(values, r.read<double>(r.tensors("perTokenScaleOptional")[0]), all, inner, 1);
            scale_pairs(matrix, r.read<double>(r.tensors("scaleOptional")[0]), inner, columns, 0);
        }
        double* at = matrix.data() + (w.size() == 1 && b.rank() == 3 ? int64_t(i) * inner * columns : 0);
        if (antiquantized(r)) make_floats(r, at, inner, columns, i);
        Group g{y[y.size() == 1 ? 0 : i].dtype, last - first, i};
        Values acc = finish(r, g, product(values.data() + first * inner, at, g.rows, inner, columns), columns, row);
        Values& out = outputs[y.size() == 1 ? 0 : i];
        int64_t to = y.size() == 1 ? row * columns : 0;
        if (to + int64_t(acc.size()) > int64_t(out.size())) fault("an output has too few rows");
        std::copy(acc.begin(), acc.end(), out.begin() + to);
        row += g.rows;
    }
    for (size_t i = 0; i < y.size(); ++i) r.write(y[i], outputs[i]);
}

// y += x_g^T w_g for each group of rows: gradients of the matrices.
void plan_added(Plan& p) {
    const Dims &x = p.tensor("x").dims, &w = p.tensor("weight").dims;
    p.require(p.flag("transposeX") && !p.flag("transposeWeight"), "transposeX must be true, transposeWeight false");
    p.require(p.integer("groupType") == 2, "groupType is %lld, expected 2", static_cast<long long>(p.integer("groupType")));
    plan_number(p, "groupListType", 1);
    p.require(x[0] == w[0], "x has shape %s, weight %s", text(x).c_str(), text(w).c_str());
    int64_t groups = p.tensor("groupList").numel();
    p.require(p.tensor("yRef").numel() == groups * x[1] * w[1], "yRef has shape %s, expected %lld matrices of (%lld, %lld)",
              text(p.tensor("yRef").dims).c_str(), static_cast<long long>(groups), static_cast<long long>(x[1]),
              static_cast<long long>(w[1]));
}

void run_added(Run& r) {
    const Dims &d = r.tensor("x").dims, &e = r.tensor("weight").dims;
    auto x = r.read<double>(r.tensor("x")), w = r.read<double>(r.tensor("weight")), y = r.read<double>(r.tensor("yRef"));
    auto ends = r.read<int64_t>(r.tensor("groupList"));
    if (has_parameter(r, "groupListType") && r.integer("groupListType") == 1)
        for (size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
    int64_t row = 0;
    for (size_t g = 0; g < ends.size(); ++g)
        for (; row < ends[g]; ++row) {
            if (row >= d[0]) fault("groupList goes beyond the rows of x");
            for (int64_t i = 0; i < d[1]; ++i)
                for (int64_t j = 0; j < e[1]; ++j)
                    y[size_t((int64_t(g) * d[1] + i) * e[1] + j)] += x[size_t(row * d[1] + i)] * w[size_t(row * e[1] + j)];
        }
    r.write(r.tensor("yRef"), y);
}

// -- small integers --------------------------------------------------------------------------------------------------
struct Quantized {
    const char *scale, *rows, *offset;  // names of parameters, null where there are none
    const char *transpose1, *transpose2;
};
constexpr Quantized kSecond{"deqScale", nullptr, nullptr, "adjX1", "adjX2"};
constexpr Quantized kThird{"scale", nullptr, "offset", "transposeX1", "transposeX2"};
constexpr Quantized kFourth{"scale", "pertokenScaleOptional", "offset", "transposeX1", "transposeX2"};
constexpr Quantized kFifth{"x2Scale", "x1Scale", "yOffset", "transposeX1", "transposeX2"};

Tensor turned(Tensor t, bool transposed) {
    int last = t.rank() - 1;
    if (transposed) std::swap(t.dims[last], t.dims[last - 1]), std::swap(t.strides[last], t.strides[last - 1]);
    return t;
}

Tensor operand(const Call& c, const char* name, const char* transposed) {
    return turned(half_bytes(c.tensor(name)), transposed && c.flag(transposed));
}

struct Batches {
    Dims out, first, second;  // shapes of the result and of both operands, broadcast to it
};

Batches plan_batches(const Plan& p, const Tensor& a, const Tensor& b) {
    Dims lead_a = a.dims, lead_b = b.dims, lead;
    lead_a.n -= 2, lead_b.n -= 2;
    p.require(a.dims.back() == b.dims[b.rank() - 2] && broadcast(lead_a, lead_b, &lead),
              "shapes %s and %s cannot be multiplied", text(a.dims).c_str(), text(b.dims).c_str());
    Batches out{lead, lead, lead};
    out.out.push(a.dims[a.rank() - 2]), out.out.push(b.dims.back());
    out.first.push(a.dims[a.rank() - 2]), out.first.push(a.dims.back());
    out.second.push(b.dims[b.rank() - 2]), out.second.push(b.dims.back());
    return out;
}

// The facts do not give the bits of groupSize nor the formula of groups; both are as the function is commonly described.
// groupSize holds the rows of a group in its lowest 16 bits, those of the other two dimensions above; groups of the inner
// dimension have a scale, and an offset, for each column: ((x1 @ ((x2 - x2Offset) * x2Scale)) + yOffset) * x1Scale + bias.
constexpr int64_t kGroupBits = 16, kGroupMask = (1 << kGroupBits) - 1;

bool in_groups(const Call& c, const Quantized& q) { return q.scale == kFifth.scale && c.integer("groupSize") != 0; }

// Both operands have scales of their own blocks: pairs of small floats, or squares, whose sizes groupSize holds.
bool blocks_scaled(const Call& c, const Quantized& q) {
    if (q.scale != kFifth.scale || !c.has(q.scale) || !c.has(q.rows)) return false;
    return in_pairs(c.tensor(q.scale)) || (c.integer("groupSize") >> kGroupBits & kGroupMask) > 1;
}

struct Square {
    int64_t rows, columns, inner;
};

Square square_of(const Call& c) {
    int64_t size = c.integer("groupSize");
    return {size >> 2 * kGroupBits & kGroupMask, size >> kGroupBits & kGroupMask, size & kGroupMask};
}

void plan_blocks(const Plan& p, const Quantized& q, const Batches& s, int64_t batches) {
    bool turned1 = p.flag(q.transpose1), turned2 = p.flag(q.transpose2);
    auto swapped = [](Dims d, bool swaps) {
        if (swaps) std::swap(d[d.n - 1], d[d.n - 2]);
        return d;
    };
    Dims first = swapped(s.first, turned1), second = swapped(s.second, turned2);
    for (const char* name : {"x2Offset", "yOffset"}) p.require(!p.has(name), "%s does not belong to scales of blocks", name);
    Square g = square_of(p);
    if (in_pairs(p.tensor(q.scale))) {
        p.require(p.integer("groupSize") == 0 || g.inner == kBlock, "groupSize is %lld, pairs belong to groups of 32", static_cast<long long>(p.integer("groupSize")));
        plan_pairs(p, q.rows, first, turned1 ? 0 : 1, batches);
        return plan_pairs(p, q.scale, second, turned2 ? 1 : 0, batches);
    }
    plan_squares(p, q.rows, first, turned1 ? g.inner : g.rows, turned1 ? g.rows : g.inner, batches);
    plan_squares(p, q.scale, second, turned2 ? g.columns : g.inner, turned2 ? g.inner : g.columns, batches);
}

// An operand as it is stored, times its scales, as it is multiplied.
Values read_block_scaled(const Run& r, const char* name, const char* scale_name, bool transposed, const Dims& matrices, int64_t outer, int64_t inner_size, int inner) {
    Tensor t = half_bytes(r.tensor(name));
    Dims stored = matrices;
    if (transposed) std::swap(stored[stored.n - 1], stored[stored.n - 2]), inner = 1 - inner;
    Values x = r.read<double>(t, stored), scales = r.read<double>(r.tensor(scale_name));
    int64_t rows = stored[stored.n - 2], columns = stored.back();
    if (in_pairs(r.tensor(scale_name))) scale_pairs(x, scales, rows, columns, inner);
    else scale_squares(x, scales, rows, columns, inner == 0 ? inner_size : outer, inner == 0 ? outer : inner_size);
    if (!transposed) return x;
    Values out(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
        int64_t row = int64_t(i) / columns % rows, column = int64_t(i) % columns, batch = int64_t(i) / (rows * columns);
        out[size_t((batch * columns + column) * rows + row)] = x[i];
    }
    return out;
}

void plan_scales_of_groups(const Plan& p, int64_t inner, int64_t columns) {
    int64_t size = p.integer("groupSize"), group = size & kGroupMask;
    int64_t others[] = {size >> kGroupBits & kGroupMask, size >> 2 * kGroupBits & kGroupMask};
    p.require(size > 0 && group > 0 && others[0] <= 1 && others[1] <= 1, "groupSize is %lld; groups of the inner dimension are computed",
              static_cast<long long>(size));
    for (const char* name : {"x2Scale", "x2Offset"})
        if (p.has(name)) p.shape(name, {(inner + group - 1) / group, columns});
}

// The second operand with the scales of its groups; `w` are matrices of (inner, columns).
void scale_groups(const Run& r, Values& w, int64_t inner, int64_t columns) {
    auto scale = read_scale(r, r.tensor("x2Scale"));
    Values offset(scale.size(), 0);
    if (r.has("x2Offset")) offset = r.read<double>(r.tensor("x2Offset"));
    int64_t group = r.integer("groupSize") & kGroupMask;
    for (size_t i = 0; i < w.size(); ++i) {
        int64_t row = int64_t(i) / columns % inner, column = int64_t(i) % columns;
        size_t at = size_t(row / group * columns + column);
        w[i] = (w[i] - offset[at]) * scale[at];
    }
}

void plan_quantized(Plan& p, const Quantized& q) {
    Tensor a = operand(p, "x1", q.transpose1), b = operand(p, "x2", q.transpose2);
    auto known = [](int dtype) { return dtype == ACL_INT8 || is_narrow(dtype); };
    p.require(known(a.dtype) && known(b.dtype), "x1 and x2 have dtypes %s and %s", dtype_name(a.dtype), dtype_name(b.dtype));
    Batches s = plan_batches(p, a, b);
    p.shape("out", s.out);
    int64_t columns = s.out.back(), rows = s.out[s.out.n - 2];
    auto one_or = [&](const char* name, int64_t count) {
        if (name == nullptr || !p.has(name)) return;
        int64_t n = p.tensor(name).numel();
        p.require(n == 1 || n == count, "%s has %lld elements, expected 1 or %lld", name, static_cast<long long>(n),
                  static_cast<long long>(count));
    };
    if (q.scale != nullptr && !p.has(q.scale)) refuse(ACLNN_ERR_PARAM_NULLPTR, "%s must not be null", q.scale);
    if (blocks_scaled(p, q)) {
        Dims lead = s.out;
        lead.n -= 2;
        plan_blocks(p, q, s, lead.product());
    } else {
        if (in_groups(p, q)) plan_scales_of_groups(p, a.dims.back(), columns);
        else one_or(q.scale, columns);
        one_or(q.rows, rows);
    }
    one_or(q.offset, columns);
    if (p.has("bias"))
        p.require(p.tensor("bias").dims.back() == columns, "bias has shape %s", text(p.tensor("bias").dims).c_str());
    if (q.scale == kFifth.scale) {
        for (const char* name : {"yScale", "x1Offset"}) p.require(!p.has(name), "%s is not computed by the emulator: the documents state no formula for it", name);
        p.require(in_groups(p, q) || !p.has("x2Offset"), "x2Offset belongs to scales of groups, groupSize is 0");
    }
    p.workspace = uint64_t(s.out.product()) * 4;
}

void run_quantized(Run& r, const Quantized& q) {
    Tensor a = operand(r, "x1", q.transpose1), b = operand(r, "x2", q.transpose2);
    const Tensor& to = r.tensor("out");
    Dims first = to.dims, second = to.dims;
    int64_t rows = to.dims[to.rank() - 2], columns = to.dims.back(), inner = a.dims.back();
    first[first.n - 1] = inner, second[second.n - 2] = inner;
    bool blocks = blocks_scaled(r, q), groups = !blocks && in_groups(r, q);
    Square g = blocks ? square_of(r) : Square{};
    auto x = blocks ? read_block_scaled(r, "x1", q.rows, r.flag(q.transpose1), first, g.rows, g.inner, 1) : r.read<double>(a, first);
    auto w = blocks ? read_block_scaled(r, "x2", q.scale, r.flag(q.transpose2), second, g.columns, g.inner, 0) : r.read<double>(b, second);
    if (groups) scale_groups(r, w, inner, columns);
    Values scale = groups || blocks ? Values{1} : q.scale ? read_scale(r, r.tensor(q.scale)) : Values{r.real("deqScale")};
    Values per_row{1}, offset{0}, bias;
    if (q.rows && r.has(q.rows) && !blocks) per_row = r.read<double>(r.tensor(q.rows));
    if (q.offset && r.has(q.offset)) offset = r.read<double>(r.tensor(q.offset));
    Dims wide = to.dims;
    wide[wide.n - 2] = 1;
    if (r.has("bias")) bias = r.read<double>(r.tensor("bias"), wide);
    bool whole = r.has("bias") && r.tensor("bias").dtype == ACL_INT32;
    Values out;
    int64_t batches = to.numel() / std::max<int64_t>(rows * columns, 1);
    for (int64_t n = 0; n < batches; ++n) {
        Values acc = product(x.data() + n * rows * inner, w.data() + n * inner * columns, rows, inner, columns);
        for (int64_t i = 0; i < rows * columns; ++i) {
            size_t column = size_t(i % columns), row = size_t(i / columns);
            double added = bias.empty() ? 0 : bias[size_t(n * columns) + column];
            double factor = scale[scale.size() == 1 ? 0 : column] * per_row[per_row.size() == 1 ? 0 : row];
            if (to.dtype == ACL_INT32 && !is_real(r.tensor(q.scale ? q.scale : "x1").dtype)) factor = 1;
            double shift = offset[offset.size() == 1 ? 0 : column];
            if (groups) {
                out.push_back((acc[size_t(i)] + shift) * factor + added);
                continue;
            }
            double value = whole ? (acc[size_t(i)] + added) * factor : acc[size_t(i)] * factor + added;
            out.push_back(value + shift);
        }
    }
    r.write(to, to.dtype == ACL_INT8 ? to_bytes(out) : out);
}

// y = x @ ((weight + offset) * scale) + bias; one scale, one for each column, or one for each column and block of
// antiquantGroupSize rows. A result of INT8 is quantized: * quantScale + quantOffset.
Tensor packed_weight(const Call& c) { return half_bytes(c.tensor("weight")); }

void plan_weights(Plan& p) {
    const Tensor& x = p.tensor("x");
    const Tensor w = packed_weight(p);
    p.require(w.dtype == ACL_INT8 || w.dtype == ACL_INT4 || is_narrow_float(w.dtype), "weight has dtype %s", dtype_name(w.dtype));
    p.require(x.rank() == 2 && w.rank() == 2 && x.dims[1] == w.dims[0], "x has shape %s, weight %s",
              text(x.dims).c_str(), text(w.dims).c_str());
    p.shape("y", {x.dims[0], w.dims[1]});
    bool bytes = p.tensor("y").dtype == ACL_INT8;
    p.require(p.has("quantScaleOptional") == bytes, "quantScaleOptional belongs to an INT8 y");
    int64_t group = p.integer("antiquantGroupSize"), columns = w.dims[1];
    p.require(group >= 0 && group < std::max<int64_t>(x.dims[1], 1), "antiquantGroupSize is %lld, x has %lld columns",
              static_cast<long long>(group), static_cast<long long>(x.dims[1]));
    int64_t blocks = group > 0 ? (x.dims[1] + group - 1) / group : 1;
    for (const char* name : {"antiquantScale", "antiquantOffsetOptional", "biasOptional", "quantScaleOptional", "quantOffsetOptional"}) {
        if (!p.has(name)) continue;
        int64_t n = p.tensor(name).numel();
        bool each = std::strncmp(name, "antiquant", 9) == 0;
        p.require(n == (each ? blocks * columns : columns) || (n == 1 && std::strcmp(name, "biasOptional") != 0),
                  "%s has shape %s", name, text(p.tensor(name).dims).c_str());
    }
}

void run_weights(Run& r) {
    const Tensor packed = packed_weight(r);
    const Dims& d = packed.dims;
    auto x = r.read<double>(r.tensor("x")), w = r.read<double>(packed);
    int64_t group = r.integer("antiquantGroupSize"), columns = d[1];
    auto part = [&](const char* name, double otherwise) {
        return r.has(name) ? read_scale(r, r.tensor(name)) : Values{otherwise};
    };
    // A view that lists the columns first has their blocks in its second dimension.
    auto scale = part("antiquantScale", 1), offset = part("antiquantOffsetOptional", 0);
    auto bias = part("biasOptional", 0), steps = part("quantScaleOptional", 1), shifts = part("quantOffsetOptional", 0);
    const Tensor& scales = r.tensor("antiquantScale");
    bool turned = group > 0 && scales.rank() == 2 && scales.dims[0] == columns && scales.dims[1] != columns;
    auto at = [&](const Values& v, int64_t row, int64_t column) {
        int64_t blocks = std::max<int64_t>(int64_t(v.size()) / columns, 1), block = group > 0 ? row / group : 0;
        return v.size() == 1 ? v[0] : v[size_t(turned ? column * blocks + block : block * columns + column)];
    };
    for (int64_t k = 0; k < d[0]; ++k)
        for (int64_t j = 0; j < columns; ++j) {
            double& v = w[size_t(k * columns + j)];
            v = (v + at(offset, k, j)) * at(scale, k, j);
        }
    Values y = product(x.data(), w.data(), r.tensor("x").dims[0], d[0], columns);
    auto of = [&](const Values& v, size_t i) { return v[v.size() == 1 ? 0 : i % size_t(columns)]; };
    for (size_t i = 0; i < y.size(); ++i) y[i] = (y[i] + of(bias, i)) * of(steps, i) + of(shifts, i);
    r.write(r.tensor("y"), r.tensor("y").dtype == ACL_INT8 ? to_bytes(y) : y);
}

}  // namespace

ACLNN(aclnnGroupedMatmul, plan_grouped, run_grouped)
ACLNN(aclnnGroupedMatmulV2, plan_grouped, run_grouped, NARROW)
ACLNN(aclnnGroupedMatmulV3, plan_grouped, run_grouped, NARROW)
ACLNN(aclnnGroupedMatmulV4, plan_grouped, run_grouped, NARROW)
ACLNN(aclnnGroupedMatmulV5, plan_grouped, run_grouped, NARROW)
ACLNN(aclnnGroupedMatmulWeightNz, plan_grouped, run_grouped, NARROW)
ACLNN(aclnnGroupedMatmulAdd, plan_added, run_added)
ACLNN(aclnnGroupedMatmulAddV2, plan_added, run_added)
ACLNN(aclnnQuantMatmul, PLAN { plan_quantized(p, {nullptr, nullptr, nullptr, nullptr, nullptr}); },
      RUN { run_quantized(r, {nullptr, nullptr, nullptr, nullptr, nullptr}); })
ACLNN(aclnnQuantMatmulV2, PLAN { plan_quantized(p, kSecond); }, RUN { run_quantized(r, kSecond); })
ACLNN(aclnnQuantMatmulV3, PLAN { plan_quantized(p, kThird); }, RUN { run_quantized(r, kThird); }, NARROW)
ACLNN(aclnnQuantMatmulV4, PLAN { plan_quantized(p, kFourth); }, RUN { run_quantized(r, kFourth); }, NARROW)
ACLNN(aclnnQuantMatmulV5, PLAN { plan_quantized(p, kFifth); }, RUN { run_quantized(r, kFifth); }, NARROW)
ACLNN(aclnnWeightQuantBatchMatmulV2, plan_weights, run_weights, NARROW)
ACLNN(aclnnWeightQuantBatchMatmulV3, plan_weights, run_weights, NARROW)
ACLNN(aclnnWeightQuantBatchMatmulNz, plan_weights, run_weights, NARROW)
ACLNN(aclnnQuantMatmulWeightNz, PLAN { plan_quantized(p, kFifth); }, RUN { run_quantized(r, kFifth); }, NARROW)
