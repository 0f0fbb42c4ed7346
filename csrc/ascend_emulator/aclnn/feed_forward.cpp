// Feed-forward networks: two products around an activation, with matrices of their own for each expert.
//
// Quantized networks as the functions' public descriptions have them: x and weights of INT8,
//     y = (int8(activation((x @ w1 + b1) * deqScale1) * scale + offset) @ w2 + b2) * deqScale2
// or floats and weights of INT8 or INT4, each standing for (w + antiquantOffset) * antiquantScale. Factors belong to
// columns, and where there are several rows of them, to as many groups of the inner dimension.
#include "activation.h"
#include "optional.h"
#include "quantize.h"

using namespace emu;

namespace {

using Values = std::vector<double>;

// The third version calls optional arguments so.
std::string named(const Call& c, const char* name) {
    std::string longer = std::string(name) + "Optional";
    for (int i = 0; i < c.function->count; ++i)
        if (longer == c.function->parameters[i].name) return longer;
    return name;
}

bool gated(const std::string& activation) {
    return activation == "geglu" || activation == "swiglu" || activation == "reglu";
}

double applied(double x, const std::string& a) {
    if (a == "relu" || a == "reglu") return std::fmax(x, 0);
    if (a == "silu" || a == "swiglu") return silu(x);
    return a == "fastgelu" ? fast_gelu(x) : gelu_tanh(x);
}

int64_t expert_count(const Call& c) {
    const Dims& w = c.tensor("weight1").dims;
    return w.n == 3 ? w[0] : 1;
}

// -- factors of quantized networks -----------------------------------------------------------------------------------
enum class Kind { plain, whole, weights };  // nothing is quantized, everything, the weights

Kind kind_of(const Call& c) {
    if (!is_real(c.tensor("x").dtype)) return Kind::whole;
    return is_real(c.tensor("weight1").dtype) ? Kind::plain : Kind::weights;
}

bool given_as(const Call& c, const char* name) { return c.has(named(c, name).c_str()); }

// Factors of a matrix: (groups, columns) for each expert; one number stands for all.
void plan_factors(const Plan& p, const char* name, const char* weight, bool in_groups) {
    std::string as = named(p, name);
    if (!p.has(as.c_str())) return;
    const Dims &w = p.tensor(weight).dims, &d = p.tensor(as.c_str()).dims;
    int64_t n = p.tensor(as.c_str()).numel(), each = expert_count(p) * w.back();
    bool fits = n == 1 || n == expert_count(p) || n == each || (in_groups && each > 0 && n % each == 0 && w[w.n - 2] % (n / each) == 0 && d.back() == w.back());
    p.require(fits, "%s has shape %s for %s of %s", as.c_str(), text(d).c_str(), weight, text(w).c_str());
}

void plan_quantized(const Plan& p) {
    Kind kind = kind_of(p);
    p.require(kind != Kind::whole || (p.tensor("x").dtype == ACL_INT8 && p.tensor("weight1").dtype == ACL_INT8), "x has dtype %s, weight1 %s",
              dtype_name(p.tensor("x").dtype), dtype_name(p.tensor("weight1").dtype));
    p.same_dtype("weight1", "weight2");
    for (const char* name : {"scale", "offset", "deqScale1", "deqScale2"})
        p.require(given_as(p, name) == (kind == Kind::whole) || (kind == Kind::whole && std::strcmp(name, "offset") == 0), "%s %s", name,
                  kind == Kind::whole ? "is needed where x has dtype INT8" : "belongs to an x of INT8");
    for (const char* name : {"antiquantScale1", "antiquantScale2"})
        p.require(given_as(p, name) == (kind == Kind::weights), "%s %s", name, kind == Kind::weights ? "is needed where weights are integers" : "belongs to weights of integers");
    for (const char* name : {"antiquantOffset1", "antiquantOffset2"}) p.require(kind == Kind::weights || !given_as(p, name), "%s belongs to weights of integers", name);
    for (const char* name : {"scale", "offset", "deqScale1"}) plan_factors(p, name, "weight1", false);
    plan_factors(p, "deqScale2", "weight2", false);
    for (const char* name : {"antiquantScale1", "antiquantOffset1"}) plan_factors(p, name, "weight1", true);
    for (const char* name : {"antiquantScale2", "antiquantOffset2"}) plan_factors(p, name, "weight2", true);
}

struct Factors {
    Values all;
    int64_t experts, inner, columns;

    double at(int64_t e, int64_t k, int64_t j) const {
        int64_t n = int64_t(all.size());
        if (n == 1) return all[0];
        if (n == experts) return all[size_t(e)];
        int64_t groups = n / (experts * columns);
        return all[size_t((e * groups + k / (inner / groups)) * columns + j)];
    }
};

Factors factors(const Run& r, const char* name, const Dims& w, double otherwise) {
    std::string as = named(r, name);
    Values all{otherwise};
    if (r.has(as.c_str())) all = read_scale(r, r.tensor(as.c_str()));
    return {all, expert_count(r), w[w.n - 2], w.back()};
}

// A matrix as the floats that it stands for.
Values read_weight(const Run& r, const char* weight, const char* scale, const char* offset) {
    const Dims& w = r.tensor(weight).dims;
    auto all = r.read<double>(r.tensor(weight));
    if (kind_of(r) != Kind::weights) return all;
    Factors by = factors(r, scale, w, 1), add = factors(r, offset, w, 0);
    for (size_t i = 0; i < all.size(); ++i) {
        int64_t j = int64_t(i) % by.columns, k = int64_t(i) / by.columns % by.inner, e = int64_t(i) / (by.columns * by.inner);
        all[i] = (all[i] + add.at(e, k, j)) * by.at(e, k, j);
    }
    return all;
}

void plan_network(Plan& p) {
    const Dims &x = p.tensor("x").dims, &a = p.tensor("weight1").dims, &b = p.tensor("weight2").dims;
    const std::string& activation = p.string("activation");
    static const char* const known[] = {"relu", "gelu", "fastgelu", "silu", "geglu", "swiglu", "reglu"};
    p.require(std::any_of(std::begin(known), std::end(known), [&](const char* k) { return activation == k; }),
              "activation is \"%s\"; there are relu, gelu, fastgelu, silu, geglu, swiglu, reglu", activation.c_str());
    p.require(a.n == b.n && (a.n == 2 || (a.n == 3 && a[0] == b[0])), "weight1 %s and weight2 %s do not fit",
              text(a).c_str(), text(b).c_str());
    need_elements(p, {"weight1", "weight2"});
    for (const char* name : {"scale", "offset", "deqScale1", "deqScale2", "antiquantScale1", "antiquantOffset1", "antiquantScale2", "antiquantOffset2"})
        need_elements(p, {named(p, name).c_str()});
    int64_t hidden = a.back() / (gated(activation) ? 2 : 1);
    p.require(x.back() == a[a.n - 2] && hidden == b[b.n - 2] && (!gated(activation) || a.back() % 2 == 0),
              "x %s, weight1 %s and weight2 %s do not fit", text(x).c_str(), text(a).c_str(), text(b).c_str());
    Dims want = x;
    want[want.n - 1] = b.back();
    p.shape("y", want);
    p.require(a.n == 2 || p.has(named(p, "expertTokens").c_str()), "experts need expertTokens");
    int64_t experts = expert_count(p);
    for (const char* name : {"bias1", "bias2"}) {
        std::string given = named(p, name);
        if (!p.has(given.c_str())) continue;
        int64_t n = p.tensor(given.c_str()).numel(), columns = std::strcmp(name, "bias1") == 0 ? a.back() : b.back();
        p.require(n == experts * columns, "%s has %lld elements, expected %lld", given.c_str(),
                  static_cast<long long>(n), static_cast<long long>(experts * columns));
    }
    plan_quantized(p);
}

// Where the rows of each expert end.
std::vector<int64_t> expert_ends(const Run& r, int64_t rows) {
    std::string name = named(r, "expertTokens");
    if (!r.has(name.c_str())) return {rows};
    std::vector<int64_t> tokens;
    for (int i = 0; i < r.function->count; ++i)
        if (name == r.function->parameters[i].name)
            tokens = r.function->parameters[i].role == Role::tensor ? r.read<int64_t>(r.tensor(name.c_str()))
                                                                    : r.ints(name.c_str());
    bool ends = std::string(r.function->name) != "aclnnFFN" && r.flag("tokensIndexFlag");
    if (!ends)
        for (size_t i = 1; i < tokens.size(); ++i) tokens[i] += tokens[i - 1];
    if (int64_t(tokens.size()) != expert_count(r) || tokens.back() > rows) fault("expertTokens do not fit");
    return tokens;
}

// out += x @ w + bias, for one row
void product(const double* x, const double* w, const double* bias, int64_t inner, int64_t columns, double* out) {
    for (int64_t j = 0; j < columns; ++j) out[j] = bias ? bias[j] : 0;
    for (int64_t k = 0; k < inner; ++k)
        for (int64_t j = 0; j < columns; ++j) out[j] += x[k] * w[k * columns + j];
}

void run_network(Run& r) {
    const Dims &a = r.tensor("weight1").dims, &b = r.tensor("weight2").dims;
    auto x = r.read<double>(r.tensor("x")), w1 = read_weight(r, "weight1", "antiquantScale1", "antiquantOffset1"),
         w2 = read_weight(r, "weight2", "antiquantScale2", "antiquantOffset2");
    bool whole = kind_of(r) == Kind::whole;
    Factors open1 = factors(r, "deqScale1", a, 1), open2 = factors(r, "deqScale2", b, 1), scale = factors(r, "scale", a, 1), shift = factors(r, "offset", a, 0);
    Values bias1, bias2;
    std::string first = named(r, "bias1"), second = named(r, "bias2");
    if (r.has(first.c_str())) bias1 = r.read<double>(r.tensor(first.c_str()));
    if (r.has(second.c_str())) bias2 = r.read<double>(r.tensor(second.c_str()));
    const std::string& activation = r.string("activation");
    int64_t inner = a[a.n - 2], middle = a.back(), hidden = b[b.n - 2], columns = b.back();
    int64_t rows = int64_t(x.size()) / inner, row = 0;
    Values y(size_t(rows * columns), 0), z(static_cast<size_t>(middle));
    auto ends = expert_ends(r, rows);
    for (int64_t e = 0; e < int64_t(ends.size()); ++e)
        for (; row < ends[size_t(e)]; ++row) {
            product(x.data() + row * inner, w1.data() + e * inner * middle,
                    bias1.empty() ? nullptr : bias1.data() + e * middle, inner, middle, z.data());
            for (int64_t k = 0; whole && k < middle; ++k) z[size_t(k)] *= open1.at(e, 0, k);
            for (int64_t k = 0; k < hidden; ++k) {
                double& v = z[size_t(k)];
                v = applied(v, activation);
                if (gated(activation)) v *= z[size_t(hidden + k)];
                if (whole) v = std::fmin(std::fmax(rounded(v * scale.at(e, 0, k) + shift.at(e, 0, k)), -128), 127);
            }
            product(z.data(), w2.data() + e * hidden * columns, bias2.empty() ? nullptr : bias2.data() + e * columns,
                    hidden, columns, y.data() + row * columns);
            for (int64_t j = 0; whole && j < columns; ++j) y[size_t(row * columns + j)] *= open2.at(e, 0, j);
        }
    r.write(r.tensor("y"), y);
}

}  // namespace

ACLNN(aclnnFFN, plan_network, run_network, NARROW)
ACLNN(aclnnFFNV2, plan_network, run_network, NARROW)
ACLNN(aclnnFFNV3, plan_network, run_network, NARROW)
