// Reading and writing by index: gather, scatter, index_select, index_add, embedding (advanced: index_advanced.cpp).
// Invariant: every index is checked before anything is written, so a call that fails leaves its result untouched; and
// where an element is written more than once, the writes happen in row-major order of the index, whatever the threads.
// An index is checked again where it is used, on the very number that becomes an address: another thread, or the call's
// own writes, may have changed the memory it lies in.
//
// An operand is 4 arguments: storage, offset, strides, code. Where it says [dense] the elements lie one after the other
// and the strides are not read. Indices are int64 or int32. Data is moved by item size: all dtypes.
//   gather(src.., index.., out|None.., index_shape, src_shape, dim) -> out
//   scatter(out.., index.., src.., index_shape, out_shape, dim, reduce) -> None
//       reduce: 0 assign, 1 add, 2 multiply, 3 amax, 4 amin. src may be a number: then pass (number, 0, (), 0).
//   index_select(src.., src_shape, dim, index.., n, out|None..) -> out            index: one stride, or () for a scalar
//   index_add(out.., out_shape, dim, index.., n, src.., alpha) -> None
//   embedding(weight.., index.. [dense], out|None.. [dense], n, rows, dim) -> out  weight: strides (row, column)
//   embedding_backward(grad.., index.. [dense], out|None.. [dense], n, rows, dim, padding_idx, scale_by_freq) -> out
//       grad: strides (row, column) over (n, dim); out: (rows, dim), all written
#include "cpu.h"
#include "indexing.h"

namespace mt {
namespace {

// ---------------------------------------------------------------- gather and scatter

// The operand that is indexed does not move along `dim` by itself.
Operand without_dim(const Operand& op, const Shape& shape, int dim) {
    Operand still = op;
    if (dim < shape.ndim) still.stride[dim] = 0;
    return still;
}
int64_t jump_of(const Operand& op, const Shape& shape, int dim) {
    return shape.ndim ? wrapping_mul(op.stride[dim], op.itemsize) : 0;
}

void gather_all(const Shape& shape, const Operand& out, const Operand& src, const char* index, const int64_t* istride,
                int dim, const Bounds& bounds) {
    const Operand still = without_dim(src, shape, dim);
    const int64_t jump = jump_of(src, shape, dim);
    Loop<3> loop;
    loop_begin(loop, shape);
    loop_operand(loop, 0, out.data, shape, out.stride, out.itemsize);
    loop_operand(loop, 1, const_cast<char*>(index), shape, istride, 8);
    loop_operand(loop, 2, still.data, shape, still.stride, src.itemsize);
    loop_finish(loop);
    const int64_t os = loop.step[0][0], xs = loop.step[1][0], ss = loop.step[2][0];
    dispatch_size(src.itemsize, [&](auto t) {
        run_rows(loop, GRAIN / 2, [&](char* const* p, int64_t n) {
            gather_row<decltype(t)>(p[0], os, p[1], xs, p[2], ss, jump, n, bounds);
        });
    });
}

void scatter_all(const Shape& shape, const Operand& out, const Operand& src, const char* index, const int64_t* istride,
                 int dim, ScatterRow row, const char* scale, const Bounds& bounds) {
    const Operand still = without_dim(out, shape, dim);
    const Writes writes{jump_of(out, shape, dim), scale, bounds};
    // Two elements can meet only if they differ along `dim` alone; so threads share another dimension.
    int along = -1;
    for (int i = 0; i < shape.ndim; ++i)
        if (i != dim && (along < 0 || shape.dim[i] > shape.dim[along])) along = i;
    split(shape, along, [&](const Shape& mine, int d, int64_t begin) {
        Loop<3> loop;
        loop_begin(loop, mine);
        loop_operand(loop, 0, moved(out.data, still.stride, out.itemsize, d, begin), mine, still.stride, out.itemsize);
        loop_operand(loop, 1, moved(const_cast<char*>(index), istride, 8, d, begin), mine, istride, 8);
        loop_operand(loop, 2, moved(src.data, src.stride, src.itemsize, d, begin), mine, src.stride, src.itemsize);
        loop_finish(loop);
        const int64_t os = loop.step[0][0], xs = loop.step[1][0], ss = loop.step[2][0];
        run_rows(loop, SERIAL, [&](char* const* p, int64_t n) { row(p[0], os, p[1], xs, p[2], ss, n, writes); });
    });
}

// A dense float32 copy of an operand.
class Widened {
public:
    Operand self;

    Widened(const Operand& op, const Shape& shape) : room_(shape.numel, 4) {
        self.storage = nullptr;
        self.data = room_.as<char>();
        self.code = F32;
        self.itemsize = 4;
        dense_strides(shape, self.stride);
        copy_tensor(shape, self.data, self.stride, F32, op.data, op.stride, op.code);
    }

private:
    Scratch room_;
};

// Sums and products of float16 and bfloat16 are kept in float32 until the end, as PyTorch does.
void scatter_wide(const Shape& shape, const Shape& out_shape, const Operand& out, const Operand& src, const char* index,
                  const int64_t* istride, int dim, ScatterRow float_row, const Bounds& bounds) {
    const Widened wide(out, out_shape), from(src, shape);
    scatter_all(shape, wide.self, from.self, index, istride, dim, float_row, nullptr, bounds);
    copy_tensor(out_shape, out.data, out.stride, out.code, wide.self.data, wide.self.stride, F32);
}
bool is_half(int code) { return code == F16 || code == BF16; }

PyObject* gather(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("gather", nargs, 15);
        Shape shape, src_shape;
        parse_shape(args[12], shape);
        parse_shape(args[13], src_shape);
        const int dim = parse_dim(args[14], shape);
        expect_within("gather", shape, src_shape, dim);
        Operand src, o;
        parse_operand(args, src_shape, src);
        const Indices index(args + 4, shape);
        const Bounds bounds{shape.ndim ? src_shape.dim[dim] : 1, dim, out_of_bounds};
        check_indices(shape, index.data, index.stride, bounds);
        Ref out(parse_output(args + 8, shape, o));
        expect_code("gather", o.code, src.code);
        if (shape.numel) {
            GilRelease unlocked(shape.numel);
            gather_all(shape, o, src, index.data, index.stride, dim, bounds);
        }
        return out.release();
    });
}

PyObject* scatter(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("scatter", nargs, 16);
        Shape shape, out_shape;
        parse_shape(args[12], shape);
        parse_shape(args[13], out_shape);
        const int dim = parse_dim(args[14], shape);
        const int64_t reduce = as_int(args[15]);
        if (reduce < ASSIGN || reduce > AMIN)
            fail(PyExc_ValueError, "reduce must be 0..4, got %lld", (long long)reduce);
        expect_within("scatter", shape, out_shape, dim);
        Operand o, src;
        alignas(16) char number[16];
        parse_operand(args, out_shape, o);
        parse_operand_or_number(args + 8, shape, o.code, src, number);
        expect_time_for(shape.numel);
        expect_code("scatter", src.code, o.code);
        const Indices index(args + 4, shape);
        const Bounds bounds{shape.ndim ? out_shape.dim[dim] : 1, dim, out_of_bounds};
        check_indices(shape, index.data, index.stride, bounds);
        if (shape.numel == 0) return none();
        const bool wide = is_half(o.code) && (reduce == ADD || reduce == MULTIPLY);
        const int code = wide ? F32 : o.code;
        ScatterRow row = nullptr;
        switch (reduce) {
            case ASSIGN: row = scatter_row_of<ASSIGN>(code, ""); break;
            case ADD: row = scatter_row_of<ADD>(code, "scatter_gather_tensor_cpu"); break;
            case MULTIPLY: row = scatter_row_of<MULTIPLY>(code, "scatter_gather_tensor_cpu"); break;
            case AMAX: row = scatter_row_of<AMAX>(o.code, "scatter_gather_tensor_cpu_reduce_amax"); break;
            default: row = scatter_row_of<AMIN>(o.code, "scatter_gather_tensor_cpu_reduce_amin"); break;
        }
        {
            GilRelease unlocked(shape.numel);
            if (wide) scatter_wide(shape, out_shape, o, src, index.data, index.stride, dim, row, bounds);
            else scatter_all(shape, o, src, index.data, index.stride, dim, row, nullptr, bounds);
        }
        return none();
    });
}

// ---------------------------------------------------------------- index_select and index_add

// Whether the dimensions from `first` on are one dense run.
bool dense_from(const Shape& shape, const Operand& op, int first) {
    int64_t expected = 1;
    for (int i = shape.ndim - 1; i >= first; --i) {
        if (shape.dim[i] == 1) continue;
        if (op.stride[i] != expected) return false;
        expected *= shape.dim[i];
    }
    return true;
}

// Copies out[.., i, ..] = src[.., index[i], ..] in chunks of `bytes`.
void select_chunks(const Shape& outer, const Operand& out, int64_t ostep, const Operand& src, int64_t sstep,
                   const Indices& index, int64_t n, int64_t bytes, const Bounds& bounds) {
    Loop<2> loop;
    loop_begin(loop, outer);
    loop_operand(loop, 0, out.data, outer, out.stride, out.itemsize);
    loop_operand(loop, 1, src.data, outer, src.stride, src.itemsize);
    loop_finish(loop);
    parallel_for(outer.numel * n, std::max<int64_t>(1, 4 * GRAIN / bytes), [&](int64_t begin, int64_t end) {
        Cursor<2> at(loop, 0, begin / n);
        for (int64_t i = begin % n; begin < end; ++begin) {
            const int64_t from = bounds.read(index.data + i * index.stride[0] * 8);
            std::memcpy(at.ptr[0] + i * ostep, at.ptr[1] + from * sstep, (size_t)bytes);
            if (++i == n) {
                i = 0;
                at.next();
            }
        }
    });
}

// Columns of dense rows: indices are read and checked once, for all rows.
template <class T>
void select_columns(const Shape& outer, const Operand& out, const Operand& src, const Indices& index, int64_t n,
                    const Bounds& bounds) {
    const Scratch room(n, sizeof(int32_t));
    int32_t* place = room.as<int32_t>();
    for (int64_t i = 0; i < n; ++i) place[i] = (int32_t)bounds.read(index.data + i * index.stride[0] * 8);
    Loop<2> loop;
    loop_begin(loop, outer);
    loop_operand(loop, 0, out.data, outer, out.stride, out.itemsize);
    loop_operand(loop, 1, src.data, outer, src.stride, src.itemsize);
    loop_finish(loop);
    parallel_for(outer.numel, std::max<int64_t>(1, GRAIN / n), [&](int64_t begin, int64_t end) {
        Cursor<2> at(loop, 0, begin);
        for (; begin < end; ++begin, at.next()) {
            T* to = reinterpret_cast<T*>(at.ptr[0]);
            const T* from = reinterpret_cast<const T*>(at.ptr[1]);
            int64_t i = 0;
            for (; i + 4 <= n; i += 4) {
                const T a = from[place[i]], b = from[place[i + 1]], c = from[place[i + 2]], d = from[place[i + 3]];
                to[i] = a, to[i + 1] = b, to[i + 2] = c, to[i + 3] = d;
            }
            for (; i < n; ++i) to[i] = from[place[i]];
        }
    });
}

void select_all(const Shape& shape, int dim, const Operand& out, const Operand& src, const Indices& index, int64_t n,
                const Bounds& bounds) {
    Shape outer;
    outer.ndim = shape.ndim;
    outer.numel = 1;
    int64_t bytes = src.itemsize;
    for (int i = 0; i < shape.ndim; ++i) {
        outer.dim[i] = i < dim ? shape.dim[i] : 1;
        outer.numel *= outer.dim[i];
        if (i > dim) bytes *= shape.dim[i];
    }
    if (bytes >= 16 && dense_from(shape, out, dim + 1) && dense_from(shape, src, dim + 1)) {
        select_chunks(outer, out, jump_of(out, shape, dim), src, jump_of(src, shape, dim), index, n, bytes, bounds);
        return;
    }
    if (dim == shape.ndim - 1 && n > 0 && outer.numel > 1 && bounds.size < INT32_MAX &&
        jump_of(out, shape, dim) == bytes && jump_of(src, shape, dim) == bytes) {
        if (bytes == 4) return select_columns<uint32_t>(outer, out, src, index, n, bounds);
        if (bytes == 8) return select_columns<uint64_t>(outer, out, src, index, n, bounds);
        if (bytes == 2) return select_columns<uint16_t>(outer, out, src, index, n, bounds);
        if (bytes == 1) return select_columns<uint8_t>(outer, out, src, index, n, bounds);
    }
    int64_t istride[MAXD];
    for (int i = 0; i < shape.ndim; ++i) istride[i] = i == dim ? index.stride[0] : 0;
    gather_all(shape, out, src, index.data, istride, dim, bounds);
}

// A tensor without dimensions is indexed once.
void expect_single(const char* what, int64_t n) {
    if (n != 1) fail(PyExc_RuntimeError, "%s: %lld indices for a tensor without dimensions", what, (long long)n);
}

bool is_one(PyObject* number) {
    if (PyFloat_CheckExact(number)) return PyFloat_AS_DOUBLE(number) == 1.0;
    return PyLong_CheckExact(number) && number_as<double>(number, F64) == 1.0;
}

PyObject* index_select(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("index_select", nargs, 15);
        Shape shape, line;
        parse_shape(args[4], shape);
        const int dim = parse_dim(args[5], shape);
        const int64_t n = parse_count(args[10]);
        Operand src, o;
        parse_operand(args, shape, src);
        const Indices index(args + 6, n, false);
        const Bounds bounds{shape.ndim ? shape.dim[dim] : 1, dim, dim == 1 ? out_of_data : out_of_self};
        set_shape(line, {n});
        check_indices(line, index.data, index.stride, bounds);
        if (shape.ndim) {
            shape.dim[dim] = n;
            shape.numel = checked_numel(shape.dim, shape.ndim);
        } else {
            expect_single("index_select", n);
        }
        Ref out(parse_output(args + 11, shape, o));
        expect_code("index_select", o.code, src.code);
        if (shape.numel) {
            GilRelease unlocked(shape.numel);
            select_all(shape, dim, o, src, index, n, bounds);
        }
        return out.release();
    });
}

PyObject* index_add(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("index_add", nargs, 16);
        Shape shape, out_shape, line;
        parse_shape(args[4], out_shape);
        shape.ndim = out_shape.ndim;
        shape.numel = out_shape.numel;
        for (int i = 0; i < shape.ndim; ++i) shape.dim[i] = out_shape.dim[i];
        const int dim = parse_dim(args[5], shape);
        const int64_t n = parse_count(args[10]);
        Operand o, src;
        parse_operand(args, out_shape, o);
        const Indices index(args + 6, n, false);
        const int64_t size = shape.ndim ? shape.dim[dim] : 1;
        if (shape.ndim) {
            shape.dim[dim] = n;
            shape.numel = checked_numel(shape.dim, shape.ndim);
        } else {
            expect_single("index_add", n);
        }
        parse_operand(args + 11, shape, src);
        expect_time_for(shape.numel);
        expect_code("index_add", src.code, o.code);
        alignas(16) char scale[16];
        const bool plain = is_one(args[15]);
        if (!plain) number_into(args[15], o.code, scale);
        set_shape(line, {n});
        const Bounds bounds{size, dim, plain && shape.ndim > 1 ? out_of_bounds : out_of_self};
        check_indices(line, index.data, index.stride, bounds);
        int64_t istride[MAXD];
        for (int i = 0; i < shape.ndim; ++i) istride[i] = i == dim ? index.stride[0] : 0;
        const bool wide = plain && shape.ndim > 1 && is_half(o.code);
        const ScatterRow row = plain ? index_row_of<ADD>(wide ? F32 : o.code, "index_add_")
                                     : index_row_of<ADD_SCALED>(o.code, "index_add_");
        if (shape.numel == 0) return none();
        {
            GilRelease unlocked(shape.numel);
            if (wide) scatter_wide(shape, out_shape, o, src, index.data, istride, dim, row, bounds);
            else scatter_all(shape, o, src, index.data, istride, dim, row, scale, bounds);
        }
        return none();
    });
}

// ---------------------------------------------------------------- embedding

Bounds check_rows(const Indices& index, int64_t n, int64_t rows) {
    const Bounds bounds{rows, 0, out_of_self};
    Shape line;
    set_shape(line, {n});
    check_indices(line, index.data, index.stride, bounds);
    return bounds;
}

PyObject* embedding(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("embedding", nargs, 15);
        const int64_t n = parse_count(args[12]), rows = parse_count(args[13]), dim = parse_count(args[14]);
        Shape table, result;
        set_shape(table, {rows, dim});
        set_shape(result, {n, dim});
        Operand weight, o;
        parse_operand(args, table, weight);
        const Indices index(args + 4, n, true);
        const Bounds bounds = check_rows(index, n, rows);
        Ref out(parse_dense_output(args + 8, result.numel, o));
        expect_code("embedding", o.code, weight.code);
        o.stride[0] = dim;
        o.stride[1] = 1;
        if (result.numel) {
            GilRelease unlocked(result.numel);
            select_all(result, 0, o, weight, index, n, bounds);
        }
        return out.release();
    });
}

template <class T>
MT_INLINE void embedding_backward_rows(const Operand& grad, const Indices& index, T* out, int64_t n, int64_t dim,
                                       int64_t padding, const int64_t* counts, int64_t first, int64_t last) {
    using A = acc_t<T>;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t row = index[i];
        if (row < first || row >= last || row == padding) continue;  // which keeps it inside `out` as well
        const T* MT_RESTRICT g = grad.as<T>() + i * grad.stride[0];
        T* MT_RESTRICT o = out + row * dim;
        const A scale = counts ? (A)(1.0 / (double)counts[row]) : A(1);
        const int64_t step = grad.stride[1];
        if (step == 1)
            for (int64_t j = 0; j < dim; ++j) o[j] = convert<T>((A)((A)widen(o[j]) + (A)widen(g[j]) * scale));
        else
            for (int64_t j = 0; j < dim; ++j) o[j] = convert<T>((A)((A)widen(o[j]) + (A)widen(g[j * step]) * scale));
    }
}

PyObject* embedding_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("embedding_backward", nargs, 17);
        const int64_t n = parse_count(args[12]), rows = parse_count(args[13]), dim = parse_count(args[14]);
        const int64_t padding = as_int(args[15]);
        const bool by_frequency = as_bool(args[16]);
        Shape gradients;
        set_shape(gradients, {n, dim});
        Operand grad, o;
        parse_operand(args, gradients, grad);
        const Indices index(args + 4, n, true);
        const Bounds bounds = check_rows(index, n, rows);
        const int64_t numel = checked_mul(rows, dim), work = saturated_add(gradients.numel, numel);
        Ref out(parse_dense_output(args + 8, numel, o));
        expect_code("embedding_backward", o.code, grad.code);
        dispatch_float(grad.code, "embedding_backward", [&](auto t) {
            using T = decltype(t);
            GilRelease unlocked(work);
            Scratch room(by_frequency ? rows : 0, 8);
            int64_t* counts = room.as<int64_t>();
            if (counts) {
                std::fill_n(counts, rows, 0);
                for (int64_t i = 0; i < n; ++i) ++counts[bounds.read(index.data + i * 8)];
            }
            // Every thread owns a range of rows and reads all indices: no two meet, and the order of sums is fixed.
            const int64_t grain = std::max<int64_t>(1, saturated_mul(rows, GRAIN) / saturated_add(work, 1));
            if (numel == 0) return;
            parallel_for(rows, grain, [&](int64_t first, int64_t last) {
                std::memset(o.data + first * dim * sizeof(T), 0, (size_t)((last - first) * dim) * sizeof(T));
                at_level(MT_BODY {
                    embedding_backward_rows<T>(grad, index, o.as<T>(), n, dim, padding, counts, first, last);
                });
            });
        });
        return out.release();
    });
}

}  // namespace

PyObject* index_get(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* index_put(PyObject*, PyObject* const*, Py_ssize_t);
// masking.cpp, scan.cpp, arrange.cpp: families too small for a table of their own.
PyObject* nonzero_count(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* nonzero(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* masked_fill(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* masked_select(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* masked_scatter(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* cumsum(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* sort(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* topk(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* cumulative_extreme(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* flip(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* tri(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* arange(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* linspace(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* triangle(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* eye(PyObject*, PyObject* const*, Py_ssize_t);
}  // namespace mt

using namespace mt;

PyMethodDef index_methods[] = {
    MT_METHOD("gather", gather, "gather(src.., index.., out.., index_shape, src_shape, dim)."),
    MT_METHOD("scatter", scatter, "scatter(out.., index.., src.., index_shape, out_shape, dim, reduce)."),
    MT_METHOD("index_select", index_select, "index_select(src.., src_shape, dim, index.., n, out..)."),
    MT_METHOD("index_add", index_add, "index_add(out.., out_shape, dim, index.., n, src.., alpha)."),
    MT_METHOD("index_get", index_get, "index_get(src.., indices, dims, sizes, steps, out.., shape)."),
    MT_METHOD("index_put", index_put, "index_put(dst.., indices, dims, sizes, steps, src.., shape, accumulate)."),
    MT_METHOD("embedding", embedding, "embedding(weight.., index.., out.., n, rows, dim)."),
    MT_METHOD("embedding_backward", embedding_backward,
              "embedding_backward(grad.., index.., out.., n, rows, dim, padding_idx, scale_by_freq)."),
    MT_METHOD("nonzero_count", nonzero_count, "nonzero_count(a.., shape): how many elements are not zero."),
    MT_METHOD("nonzero", nonzero, "nonzero(a.., shape, out.., n): their coordinates in row-major order."),
    MT_METHOD("masked_fill", masked_fill, "masked_fill(a.., mask.., out.., shape, value)."),
    MT_METHOD("masked_select", masked_select, "masked_select(src.., mask.., shape, out, offset): (storage, count)."),
    MT_METHOD("masked_scatter", masked_scatter, "masked_scatter(out.., mask.., source.., numel, shape)."),
    MT_METHOD("cumsum", cumsum, "cumsum(a.., out.., shape, dim, ccode, op): running sums or products."),
    MT_METHOD("cumulative_extreme", cumulative_extreme,
              "The largest or smallest so far along a dimension, and its place."),
    MT_METHOD("topk", topk, "topk(a.., values.., indices.., shape, dim, k, largest): sorted, NaN is the largest."),
    MT_METHOD("sort", sort, "sort(a.., values.., indices.., shape, dim, descending): stable, NaN is the largest."),
    MT_METHOD("flip", flip, "flip(a.., out.., shape, dims)."),
    MT_METHOD("tri", tri, "tri(a.., out.., shape, k, upper): a triangle of the last two dimensions, zeros elsewhere."),
    MT_METHOD("arange", arange, "arange(out, code, n, start, step)."),
    MT_METHOD("linspace", linspace, "linspace(out, code, n, start, end)."),
    MT_METHOD("triangle", triangle, "triangle(out, code, n, rows, columns, k, upper): places of a triangle."),
    MT_METHOD("eye", eye, "eye(out, code, rows, columns)."),
    {nullptr, nullptr, 0, nullptr}};
extern const mt::IntConstant index_constants[] = {{nullptr, 0}};
