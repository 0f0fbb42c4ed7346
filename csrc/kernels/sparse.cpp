// Sparse matrices: a compressed one times a dense one, and the merge of two lists of coordinates. Invariant: every offset
// and every index is read once and checked before it is used; nothing outside the result is written.
//
//   sparse_product(outer, inner, values, dense, out, rows, inner_count, columns, nnz)    operands as storage, offset,
//       strides and code, without gaps; outer and inner of int32 or int64, the others of float or double. Returns out.
//   sparse_merge(first, second, places of first, places of second, n, m)    sorted or not, as PyTorch walks along both:
//       the smaller key goes first, equal ones meet in one place. Returns how many places there are.
#include "common.h"
#include "lanes.h"

namespace mt {
namespace {

template <class I> MT_INLINE int64_t index_at(const I* p) { return (int64_t)__atomic_load_n(p, __ATOMIC_RELAXED); }

template <class T> struct Product {
    const T* values;
    const T* dense;
    T* out;
    int64_t nnz, inner_count, columns;
};

// Why a row was refused.
template <class I>
[[noreturn]] MT_NOINLINE void fail_row(const I* outer, const I* inner, int64_t row, int64_t nnz, int64_t count) {
    const int64_t first = index_at(outer + row), last = index_at(outer + row + 1);
    if (first >= 0 && first <= last && last <= nnz)
        for (int64_t k = first; k < last; ++k) {
            const int64_t c = index_at(inner + k);
            if (c < 0 || c >= count)
                fail(PyExc_IndexError, "sparse product: index %lld is out of range for %lld rows", (long long)c,
                     (long long)count);
        }
    fail(PyExc_RuntimeError, "sparse product: the offsets of row %lld do not rise within the entries", (long long)row);
}

// NV vectors of columns of one row from `j` on, summed in registers, two entries at a time; false for an index that
// cannot be.
template <int BYTES, int NV, class T, class I>
MT_INLINE bool strip(const Product<T>& p, const I* inner, int64_t first, int64_t last, int64_t j, T* o) {
    using V = typename Vec<T, BYTES>::t;
    using L = typename Vec<T, BYTES>::loose;
    constexpr int64_t LANES = Vec<T, BYTES>::LANES;
    V even[NV] = {}, odd[NV] = {};
    int64_t k = first;
    for (; k + 2 <= last; k += 2) {
        const int64_t c = index_at(inner + k), e = index_at(inner + k + 1);
        if (MT_UNLIKELY((uint64_t)c >= (uint64_t)p.inner_count || (uint64_t)e >= (uint64_t)p.inner_count)) return false;
        const T v = p.values[k], w = p.values[k + 1];
        const T *d = p.dense + c * p.columns + j, *f = p.dense + e * p.columns + j;
#pragma GCC unroll 4
        for (int i = 0; i < NV; ++i) {
            even[i] += v * *reinterpret_cast<const L*>(d + i * LANES);
            odd[i] += w * *reinterpret_cast<const L*>(f + i * LANES);
        }
    }
    if (k < last) {
        const int64_t c = index_at(inner + k);
        if (MT_UNLIKELY((uint64_t)c >= (uint64_t)p.inner_count)) return false;
        const T* d = p.dense + c * p.columns + j;
#pragma GCC unroll 4
        for (int i = 0; i < NV; ++i) even[i] += p.values[k] * *reinterpret_cast<const L*>(d + i * LANES);
    }
#pragma GCC unroll 4
    for (int i = 0; i < NV; ++i) *reinterpret_cast<L*>(o + j + i * LANES) = even[i] + odd[i];
    return true;
}

// The same for N columns, fewer than a vector has.
template <int N, class T, class I>
MT_INLINE bool few(const Product<T>& p, const I* inner, int64_t first, int64_t last, int64_t j, T* o) {
    T even[N] = {}, odd[N] = {};
    int64_t k = first;
    for (; k + 2 <= last; k += 2) {
        const int64_t c = index_at(inner + k), e = index_at(inner + k + 1);
        if (MT_UNLIKELY((uint64_t)c >= (uint64_t)p.inner_count || (uint64_t)e >= (uint64_t)p.inner_count)) return false;
        const T v = p.values[k], w = p.values[k + 1];
        for (int i = 0; i < N; ++i) even[i] += v * p.dense[c * p.columns + j + i];
        for (int i = 0; i < N; ++i) odd[i] += w * p.dense[e * p.columns + j + i];
    }
    if (k < last) {
        const int64_t c = index_at(inner + k);
        if (MT_UNLIKELY((uint64_t)c >= (uint64_t)p.inner_count)) return false;
        for (int i = 0; i < N; ++i) even[i] += p.values[k] * p.dense[c * p.columns + j + i];
    }
    for (int i = 0; i < N; ++i) o[j + i] = even[i] + odd[i];
    return true;
}

// Returns the first row that cannot be, -1 if all are done: what is cloned for levels of instructions does not throw.
template <class T, class I>
MT_INLINE int64_t product_rows(const Product<T>& p, const I* outer, const I* inner, int64_t begin, int64_t end) {
    constexpr int64_t WIDE = Vec<T, 64>::LANES;
    const int64_t columns = p.columns;
    for (int64_t r = begin; r < end; ++r) {
        const int64_t first = index_at(outer + r), last = index_at(outer + r + 1);
        if (MT_UNLIKELY(first < 0 || last < first || last > p.nnz)) return r;
        T* o = p.out + r * columns;
        bool good = true;
        int64_t j = 0;
        for (; good && j + 4 * WIDE <= columns; j += 4 * WIDE) good = strip<64, 4>(p, inner, first, last, j, o);
        for (; good && j + 2 * WIDE <= columns; j += 2 * WIDE) good = strip<64, 2>(p, inner, first, last, j, o);
        for (; good && j + WIDE <= columns; j += WIDE) good = strip<64, 1>(p, inner, first, last, j, o);
        for (; good && j + WIDE / 2 <= columns; j += WIDE / 2) good = strip<32, 1>(p, inner, first, last, j, o);
        for (; good && j + WIDE / 4 <= columns; j += WIDE / 4) good = strip<16, 1>(p, inner, first, last, j, o);
        const int64_t left = columns - j;
        if (good && left == 1) good = few<1>(p, inner, first, last, j, o);
        else if (good && left == 2) good = few<2>(p, inner, first, last, j, o);
        else if (good && left == 3) good = few<3>(p, inner, first, last, j, o);
        if (MT_UNLIKELY(!good)) return r;
    }
    return -1;
}

// clang-format off: one for each pair of types
MT_CLONES int64_t rows_of(const Product<float>& p, const int64_t* o, const int64_t* i, int64_t b, int64_t e) { return product_rows(p, o, i, b, e); }
MT_CLONES int64_t rows_of(const Product<float>& p, const int32_t* o, const int32_t* i, int64_t b, int64_t e) { return product_rows(p, o, i, b, e); }
MT_CLONES int64_t rows_of(const Product<double>& p, const int64_t* o, const int64_t* i, int64_t b, int64_t e) { return product_rows(p, o, i, b, e); }
MT_CLONES int64_t rows_of(const Product<double>& p, const int32_t* o, const int32_t* i, int64_t b, int64_t e) { return product_rows(p, o, i, b, e); }
// clang-format on

template <class T, class I>
void product(const Operand& outer, const Operand& inner, const Operand& values, const Operand& dense,
             const Operand& out, int64_t rows, int64_t inner_count, int64_t columns, int64_t nnz) {
    const Product<T> p{values.as<T>(), dense.as<T>(), out.as<T>(), nnz, inner_count, columns};
    const int64_t work = saturated_mul(nnz, columns);
    const int64_t grain = work ? std::max<int64_t>(1, rows / std::max<int64_t>(1, work / GRAIN)) : rows;
    GilRelease unlocked(work);
    parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
        const int64_t bad = rows_of(p, outer.as<I>(), inner.as<I>(), begin, end);
        if (MT_UNLIKELY(bad >= 0)) fail_row(outer.as<I>(), inner.as<I>(), bad, nnz, inner_count);
    });
}

PyObject* sparse_product(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("sparse_product", nargs, 24);
        const int64_t rows = parse_count(args[20]), inner_count = parse_count(args[21]);
        const int64_t columns = parse_count(args[22]), nnz = parse_count(args[23]);
        Shape ends, line, table, result;
        set_shape(ends, {checked_add(rows, 1)});
        set_shape(line, {nnz});
        set_shape(table, {inner_count, columns});
        set_shape(result, {rows, columns});
        Operand outer, inner, values, dense, o;
        parse_operand(args, ends, outer);
        parse_operand(args + 4, line, inner);
        parse_operand(args + 8, line, values);
        parse_operand(args + 12, table, dense);
        if (!is_contiguous(ends, outer) || !is_contiguous(line, inner) || !is_contiguous(line, values) ||
            !is_contiguous(table, dense))
            fail(PyExc_RuntimeError, "sparse_product: operands have gaps");
        Ref out(parse_dense_output(args + 16, result.numel, o));
        if (outer.code != inner.code || (outer.code != I32 && outer.code != I64))
            fail_dtype("sparse_product", outer.code);
        if (values.code != dense.code || values.code != o.code || (o.code != F32 && o.code != F64))
            fail_dtype("sparse_product", o.code);
        const bool wide = outer.code == I64;
        if (o.code == F32) {
            if (wide) product<float, int64_t>(outer, inner, values, dense, o, rows, inner_count, columns, nnz);
            else product<float, int32_t>(outer, inner, values, dense, o, rows, inner_count, columns, nnz);
        } else {
            if (wide) product<double, int64_t>(outer, inner, values, dense, o, rows, inner_count, columns, nnz);
            else product<double, int32_t>(outer, inner, values, dense, o, rows, inner_count, columns, nnz);
        }
        return out.release();
    });
}

PyObject* sparse_merge(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("sparse_merge", nargs, 18);
        const int64_t n = parse_count(args[16]), m = parse_count(args[17]);
        Shape first, second;
        set_shape(first, {n});
        set_shape(second, {m});
        Operand a, b, pa, pb;
        parse_operand(args, first, a);
        parse_operand(args + 4, second, b);
        parse_operand(args + 8, first, pa);
        parse_operand(args + 12, second, pb);
        for (const Operand* x : {&a, &b, &pa, &pb})
            if (x->code != I64) fail_dtype("sparse_merge", x->code);
        if (!is_contiguous(first, a) || !is_contiguous(first, pa) || !is_contiguous(second, b) ||
            !is_contiguous(second, pb))
            fail(PyExc_RuntimeError, "sparse_merge: operands have gaps");
        int64_t count = 0;
        {
            GilRelease unlocked(checked_add(n, m));
            int64_t i = 0, j = 0;
            while (i < n || j < m) {
                int order = i >= n ? -1 : 1;
                if (i < n && j < m) {
                    const int64_t x = index_at(a.as<int64_t>() + i), y = index_at(b.as<int64_t>() + j);
                    order = x < y ? 1 : x > y ? -1 : 0;
                }
                if (order >= 0) pa.as<int64_t>()[i++] = count;
                if (order <= 0) pb.as<int64_t>()[j++] = count;
                ++count;
            }
        }
        return PyLong_FromLongLong(count);
    });
}

}  // namespace
}  // namespace mt

PyMethodDef sparse_methods[] = {
    MT_METHOD("sparse_product", mt::sparse_product, "A compressed sparse matrix times a dense one."),
    MT_METHOD("sparse_merge", mt::sparse_merge, "Places of two lists of coordinates in their merge."),
    {nullptr, nullptr, 0, nullptr}};
