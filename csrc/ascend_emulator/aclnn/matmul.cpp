// Products of vectors, matrices and batches of them, alone or added to something.
#include "cube.h"
#include "quantize.h"
#include "view.h"

using namespace emu;

namespace {

Product planned_product(const Plan& p, const Tensor& a, const Tensor& b) {
    Product product;
    p.require(product_of(a.dims, b.dims, &product), "shapes %s and %s cannot be multiplied", text(a.dims).c_str(),
              text(b.dims).c_str());
    return product;
}

Product product_again(const Tensor& a, const Tensor& b) {
    Product product;
    product_of(a.dims, b.dims, &product);
    return product;
}

std::vector<double> cube_product(const Run& r, const Tensor& a, const Tensor& b, int64_t math) {
    int dtype = promote(a.dtype, b.dtype);
    auto x = r.read<double>(a), y = r.read<double>(b);
    cube_round(x, dtype, math);
    cube_round(y, dtype, math);
    return multiply(product_again(a, b), x, y);
}

void output_shape(const Plan& p, const Dims& want) {
    p.require(p.output().dims == want, "the output has shape %s, expected %s", text(p.output().dims).c_str(),
              text(want).c_str());
}

void output_takes(const Plan& p, int dtype) {
    p.require(castable(dtype, p.output().dtype), "a result of dtype %s cannot be cast to %s, the dtype of the output",
              dtype_name(dtype), dtype_name(p.output().dtype));
}

// -- a @ b -----------------------------------------------------------------------------------------------------------
void plan_product(Plan& p) {
    const Tensor &a = p.input(0), &b = p.input(1);
    int dtype = plan_cube(p, a, b, p.integer("cubeMathType"));
    output_shape(p, planned_product(p, a, b).out);
    output_takes(p, dtype);
    p.workspace = uint64_t(p.output().numel()) * 4;
}

void run_product(Run& r) {
    r.write(r.output(), cube_product(r, r.input(0), r.input(1), r.integer("cubeMathType")));
}

// -- beta * self + alpha * (a @ b) -----------------------------------------------------------------------------------
// Addbmm adds all products of the batch.
template <bool sums>
void plan_added(Plan& p) {
    const Tensor &self = p.input(0), &a = p.input(1), &b = p.input(2);
    p.scalar("alpha"), p.scalar("beta");
    int dtype = promote(a.dtype, b.dtype);
    p.require(dtype != ACL_DT_UNDEFINED && promote(dtype, self.dtype) != ACL_DT_UNDEFINED,
              "the dtypes of the operands do not promote");
    if (is_real(dtype)) plan_cube(p, a, b, p.integer("cubeMathType"));
    Product product = planned_product(p, a, b);
    Dims want = sums ? Dims{product.rows, product.columns} : product.out, both;
    p.require(broadcast(self.dims, want, &both) && both == want, "self has shape %s, which does not broadcast to %s",
              text(self.dims).c_str(), text(want).c_str());
    output_shape(p, want);
    output_takes(p, promote(dtype, self.dtype));
    p.workspace = uint64_t(product.out.product()) * 4;
}

template <class T>
std::vector<T> added(const Run& r, std::vector<T> product, const Dims& shape) {
    T alpha = r.scalar("alpha").as<T>(), beta = r.scalar("beta").as<T>();
    for (T& v : product) v *= alpha;
    if (beta != T(0)) {  // NaN in an ignored self does not spread
        auto self = r.read<T>(r.input(0), shape);
        for (size_t i = 0; i < product.size(); ++i) product[i] += beta * self[i];
    }
    return product;
}

template <bool sums>
void run_added(Run& r) {
    const Tensor &a = r.input(1), &b = r.input(2);
    if (is_integer(promote(a.dtype, b.dtype)) && is_integer(r.output().dtype)) {
        auto product = multiply(product_again(a, b), r.read<int64_t>(a), r.read<int64_t>(b));
        return r.write(r.output(), added(r, std::move(product), r.output().dims));
    }
    auto product = cube_product(r, a, b, r.integer("cubeMathType"));
    if (sums) {
        size_t size = size_t(r.output().numel());
        std::vector<double> total(size);
        for (size_t i = 0; i < product.size(); ++i) total[i % size] += product[i];
        product.swap(total);
    }
    r.write(r.output(), added(r, std::move(product), r.output().dims));
}

// -- Gemm ------------------------------------------------------------------------------------------------------------
Dims maybe_transposed(const Dims& d, bool transposed) { return transposed ? Dims{d[1], d[0]} : d; }

std::vector<double> transposed(const std::vector<double>& x, int64_t rows, int64_t columns) {
    std::vector<double> y(x.size());
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) y[size_t(j * rows + i)] = x[size_t(i * columns + j)];
    return y;
}

void plan_gemm(Plan& p) {
    const Tensor &a = p.tensor("A"), &b = p.tensor("B"), &c = p.tensor("C");
    for (const char* name : {"transA", "transB"})
        p.require(p.integer(name) == 0 || p.integer(name) == 1, "%s is %lld, expected 0 or 1", name,
                  static_cast<long long>(p.integer(name)));
    int dtype = plan_cube(p, a, b, p.integer("cubeMathType"));
    Product product;
    p.require(product_of(maybe_transposed(a.dims, p.integer("transA")), maybe_transposed(b.dims, p.integer("transB")),
                         &product),
              "shapes %s and %s cannot be multiplied", text(a.dims).c_str(), text(b.dims).c_str());
    Dims both;
    p.require(broadcast(c.dims, product.out, &both) && both == product.out,
              "C has shape %s, which does not broadcast to %s", text(c.dims).c_str(), text(product.out).c_str());
    p.shape("out", product.out);
    output_takes(p, dtype);
}

void run_gemm(Run& r) {
    const Tensor &a = r.tensor("A"), &b = r.tensor("B"), &out = r.tensor("out");
    int dtype = promote(a.dtype, b.dtype);
    auto x = r.read<double>(a), y = r.read<double>(b);
    if (r.integer("transA")) x = transposed(x, a.dims[0], a.dims[1]);
    if (r.integer("transB")) y = transposed(y, b.dims[0], b.dims[1]);
    cube_round(x, dtype, r.integer("cubeMathType"));
    cube_round(y, dtype, r.integer("cubeMathType"));
    Product product;
    product_of(maybe_transposed(a.dims, r.integer("transA")), maybe_transposed(b.dims, r.integer("transB")), &product);
    auto z = multiply(product, x, y);
    auto c = r.read<double>(r.tensor("C"), out.dims);
    double alpha = r.real("alpha"), beta = r.real("beta");
    for (size_t i = 0; i < z.size(); ++i) z[i] = alpha * z[i] + (beta == 0 ? 0 : beta * c[i]);
    r.write(out, z);
}

// -- outer products --------------------------------------------------------------------------------------------------
void plan_outer(Plan& p) {
    const Tensor &a = p.tensor("self"), &b = p.tensor("vec2");
    int dtype = promote(a.dtype, b.dtype);
    p.require(dtype != ACL_DT_UNDEFINED, "the dtypes of the operands do not promote");
    p.shape("out", {a.dims[0], b.dims[0]});
    p.casts(dtype, "out");
}

template <class T>
std::vector<T> outer(const std::vector<T>& a, const std::vector<T>& b) {
    std::vector<T> out;
    out.reserve(a.size() * b.size());
    for (const T& x : a)
        for (const T& y : b) out.push_back(x * y);
    return out;
}

void run_outer(Run& r) {
    const Tensor &a = r.tensor("self"), &b = r.tensor("vec2");
    by_category(category(promote(a.dtype, b.dtype)), [&](auto zero) {
        using T = decltype(zero);
        r.write(r.tensor("out"), outer(r.read<T>(a), r.read<T>(b)));
    });
}

int addr_dtype(const Call& c) {
    return promote(promote(c.tensor("vec1").dtype, c.tensor("vec2").dtype), c.input(0).dtype);
}

void plan_addr(Plan& p) {
    const Tensor &self = p.input(0), &a = p.tensor("vec1"), &b = p.tensor("vec2");
    p.require(a.rank() == 1 && b.rank() == 1, "vec1 and vec2 must have 1 dimension, got %d and %d", a.rank(), b.rank());
    int dtype = addr_dtype(p);
    p.require(dtype != ACL_DT_UNDEFINED, "the dtypes of the operands do not promote");
    Dims want{a.dims[0], b.dims[0]}, both;
    p.require(broadcast(self.dims, want, &both) && both == want, "self has shape %s, which does not broadcast to %s",
              text(self.dims).c_str(), text(want).c_str());
    output_shape(p, want);
    output_takes(p, dtype);
    for (const char* name : {"betaOptional", "alphaOptional"}) {
        if (!p.has(name)) continue;
        int given = p.scalar(name).dtype;
        p.require(!(is_integer(dtype) && !is_integer(given)), "%s is %s, tensors of %s take an integer", name,
                  dtype_name(given), dtype_name(dtype));
        p.require(!(given == ACL_BOOL && dtype != ACL_BOOL), "%s is BOOL, only BOOL tensors take that", name);
    }
}

void run_addr(Run& r) {
    by_real_or_integer(category(addr_dtype(r)), [&](auto zero) {
        using T = decltype(zero);
        T beta = r.has("betaOptional") ? r.scalar("betaOptional").as<T>() : T(1);
        T alpha = r.has("alphaOptional") ? r.scalar("alphaOptional").as<T>() : T(1);
        auto z = outer(r.read<T>(r.tensor("vec1")), r.read<T>(r.tensor("vec2")));
        auto self = r.read<T>(r.input(0), r.output().dims);
        for (size_t i = 0; i < z.size(); ++i) z[i] = alpha * z[i] + (beta == T(0) ? T(0) : beta * self[i]);
        r.write(r.output(), z);
    });
}

// -- Dot -------------------------------------------------------------------------------------------------------------
void run_dot(Run& r) {
    by_real_or_integer(category(r.tensor("self").dtype), [&](auto zero) {
        using T = decltype(zero);
        auto a = r.read<T>(r.tensor("self")), b = r.read<T>(r.tensor("tensor"));
        T total = T(0);
        for (size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
        r.write(r.tensor("out"), std::vector<T>{total});
    });
}

// -- Einsum: the two equations there are -----------------------------------------------------------------------------
bool is_outer(const Call& c) { return c.string("equation") == "a,b->ab"; }

void plan_einsum(Plan& p) {
    const auto& in = p.tensors("tensors");
    const std::string& equation = p.string("equation");
    p.require(is_outer(p) || equation == "abcd,abced->abce",
              "equation is \"%s\", expected \"a,b->ab\" or \"abcd,abced->abce\"", equation.c_str());
    p.require(in.size() == 2, "tensors has %zu tensors, expected 2", in.size());
    const Dims &a = in[0].dims, &b = in[1].dims;
    p.require(in[0].dtype == in[1].dtype && in[0].dtype == p.tensor("output").dtype,
              "all tensors must have the same dtype");
    if (is_outer(p)) {
        p.require(a.n == 1 && b.n == 1, "both tensors must have 1 dimension, got %d and %d", a.n, b.n);
        p.shape("output", {a[0], b[0]});
    } else {
        p.require(a.n == 4 && b.n == 5 && a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[4],
                  "shapes %s and %s do not fit \"%s\"", text(a).c_str(), text(b).c_str(), equation.c_str());
        p.shape("output", {a[0], a[1], a[2], b[3]});
    }
}

void run_einsum(Run& r) {
    const auto& in = r.tensors("tensors");
    by_real_or_integer(category(in[0].dtype), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(in[0]), y = r.read<T>(in[1]);
        if (is_outer(r)) return r.write(r.tensor("output"), outer(x, y));
        const Dims& b = in[1].dims;
        Product product;
        product_of({b[0] * b[1] * b[2], b[3], b[4]}, {b[0] * b[1] * b[2], b[4], 1}, &product);
        r.write(r.tensor("output"), multiply(product, y, x));
    });
}

// -- TransposeBatchMatMul --------------------------------------------------------------------------------------------
// y = permY(permX1(x1) @ permX2(x2)). With a scale a row is all of its batches, and an integer of 8 bits each; with a
// batchSplitFactor the rows are cut into as many parts, which stand behind each other.
// The facts name both parameters and not the shapes that come of them: those here are a common description.
std::vector<int64_t> order_of(const Call& c, const char* name, std::vector<int64_t> otherwise) {
    return c.has(name) && !c.ints(name).empty() ? c.ints(name) : otherwise;
}

void plan_transposed(Plan& p) {
    for (const char* name : {"permX1", "permX2", "permY"}) {
        auto order = order_of(p, name, {0, 1, 2});
        int64_t seen = 0;
        for (int64_t axis : order) seen |= axis >= 0 && axis < 3 ? int64_t{1} << axis : 0;
        p.require(order.size() == 3 && seen == 7, "%s is not an order of 3 axes", name);
    }
    p.require(!p.has("bias"), "bias is not supported");
    const Tensor &a = p.tensor("x1"), &b = p.tensor("x2");
    int dtype = plan_cube(p, a, b, p.integer("cubeMathType"));
    Product product;
    Dims x = permuted(a.dims, order_of(p, "permX1", {0, 1, 2})), y = permuted(b.dims, order_of(p, "permX2", {0, 1, 2}));
    p.require(product_of(x, y, &product), "shapes %s and %s cannot be multiplied", text(x).c_str(), text(y).c_str());
    Dims y_dims = permuted(product.out, order_of(p, "permY", {0, 1, 2}));
    int64_t parts = p.integer("batchSplitFactor"), wide_row = y_dims[1] * y_dims[2];
    p.require(parts >= 1 && wide_row % parts == 0, "batchSplitFactor is %lld for rows of %lld", static_cast<long long>(parts), static_cast<long long>(wide_row));
    if (p.has("scale")) {
        p.require(parts == 1, "batchSplitFactor must be 1 where scale is given");
        p.require(p.tensor("scale").numel() == wide_row, "scale has shape %s, expected %lld numbers", text(p.tensor("scale").dims).c_str(), static_cast<long long>(wide_row));
        p.require(p.tensor("out").dtype == ACL_INT8, "out has dtype %s; with scale it is INT8", dtype_name(p.tensor("out").dtype));
        p.shape("out", {y_dims[0], 1, wide_row});
        return;
    }
    p.shape("out", parts == 1 ? y_dims : Dims{parts, y_dims[0], wide_row / parts});
    p.casts(dtype, "out");
}

void run_transposed(Run& r) {
    Tensor a = permuted(r.tensor("x1"), order_of(r, "permX1", {0, 1, 2}));
    Tensor b = permuted(r.tensor("x2"), order_of(r, "permX2", {0, 1, 2}));
    auto z = cube_product(r, a, b, r.integer("cubeMathType"));
    auto order = order_of(r, "permY", {0, 1, 2});
    Product product;
    product_of(a.dims, b.dims, &product);
    Dims y_dims = permuted(product.out, order);
    std::vector<double> y(z.size());
    int64_t parts = r.integer("batchSplitFactor"), wide_row = y_dims[1] * y_dims[2], part = parts > 0 ? wide_row / parts : 0;
    Dims steps = permuted(contiguous_strides(product.out), order);
    for (int64_t i = 0; i < int64_t(y.size()); ++i) {
        int64_t row = i / wide_row, column = i % wide_row;
        double value = z[size_t(row * steps[0] + column / y_dims[2] * steps[1] + column % y_dims[2] * steps[2])];
        y[size_t(parts == 1 ? i : (column / part * y_dims[0] + row) * part + column % part)] = value;
    }
    if (!r.has("scale")) return r.write(r.tensor("out"), y);
    auto scale = read_scale(r, r.tensor("scale"));
    for (size_t i = 0; i < y.size(); ++i) y[i] *= scale[i % size_t(wide_row)];
    r.write(r.tensor("out"), within(y, ACL_INT8));
}

}  // namespace

ACLNN(aclnnMm, plan_product, run_product)
ACLNN(aclnnMatmul, plan_product, run_product)
ACLNN(aclnnBatchMatMul, plan_product, run_product)
ACLNN(aclnnMatmulWeightNz, plan_product, run_product)
ACLNN(aclnnBatchMatMulWeightNz, plan_product, run_product)
ACLNN(aclnnMv, plan_product, run_product)
ACLNN(aclnnAddmm, plan_added<false>, run_added<false>)
ACLNN(aclnnAddmmWeightNz, plan_added<false>, run_added<false>)
ACLNN(aclnnInplaceAddmm, plan_added<false>, run_added<false>)
ACLNN(aclnnBaddbmm, plan_added<false>, run_added<false>)
ACLNN(aclnnInplaceBaddbmm, plan_added<false>, run_added<false>)
ACLNN(aclnnAddbmm, plan_added<true>, run_added<true>)
ACLNN(aclnnInplaceAddbmm, plan_added<true>, run_added<true>)
ACLNN(aclnnAddmv, plan_added<false>, run_added<false>)
ACLNN(aclnnGemm, plan_gemm, run_gemm)
ACLNN(aclnnGer, plan_outer, run_outer)
ACLNN(aclnnAddr, plan_addr, run_addr)
ACLNN(aclnnInplaceAddr, plan_addr, run_addr)
ACLNN(aclnnDot, PLAN { p.same_shape("self", "tensor"); p.same_dtype("self", "tensor"); p.same_dtype("self", "out"); },
      run_dot)
ACLNN(aclnnEinsum, plan_einsum, run_einsum)
ACLNN(aclnnTransposeBatchMatMul, plan_transposed, run_transposed)
ACLNN(aclnnTransposeBatchMatMulWeightNz, plan_transposed, run_transposed)
