// Reading and writing by index: gather, scatter, index_select, index_add, advanced indexing, embedding.
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
//   index_get(src, offset, strides, code, indices, dims, sizes, steps, out|None.., shape) -> out
//   index_put(dst, offset, strides, code, indices, dims, sizes, steps, src.., shape, accumulate) -> None
//       `shape` is the broadcast shape of the result; `strides` are the source's over it, 0 where an index decides.
//       indices: a tuple or list of (storage, offset, strides over shape), int64. For each of them `dims` has the
//       number named in the error, `sizes` the size of the indexed dimension, `steps` its stride in the source;
//       negative indices count from the end. src may be a number.
//   embedding(weight.., index.. [dense], out|None.. [dense], n, rows, dim) -> out  weight: strides (row, column)
//   embedding_backward(grad.., index.. [dense], out|None.. [dense], n, rows, dim, padding_idx, scale_by_freq) -> out
//       grad: strides (row, column) over (n, dim); out: (rows, dim), all written
#include "lanes.h"

#include <algorithm>
#include <atomic>
#include <optional>

namespace mt {
namespace {

// ---------------------------------------------------------------- elements

template <class T> MT_INLINE T add(T a, T b) {
    if constexpr (IsComplex<T>::value) return T{a.re + b.re, a.im + b.im};
    else if constexpr (std::is_same<T, Bool>::value) return Bool{(uint8_t)(widen(a) | widen(b))};
    else if constexpr (std::is_integral<T>::value) return (T)((uint64_t)a + (uint64_t)b);  // wraps
    else return convert<T>(widen(a) + widen(b));
}
template <class T> MT_INLINE T multiply(T a, T b) {
    if constexpr (IsComplex<T>::value) return T{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    else if constexpr (std::is_same<T, Bool>::value) return Bool{(uint8_t)(widen(a) & widen(b))};
    else if constexpr (std::is_integral<T>::value) return (T)((uint64_t)a * (uint64_t)b);
    else return convert<T>(widen(a) * widen(b));
}

enum Reduce { ASSIGN = 0, ADD = 1, MULTIPLY = 2, AMAX = 3, AMIN = 4, ADD_SCALED = 5 };

// What becomes of `old` when `value` is written to it.
template <class T, int R> MT_INLINE T combine(T old, T value, T alpha) {
    if constexpr (R == ASSIGN) {
        return value;
    } else if constexpr (R == ADD) {
        return add(old, value);
    } else if constexpr (R == MULTIPLY) {
        return multiply(old, value);
    } else if constexpr (R == ADD_SCALED) {
        if constexpr (is_small_float<T>) return convert<T>(widen(old) + widen(alpha) * widen(value));  // rounded once
        else return add(old, multiply(alpha, value));
    } else {  // NaN wins
        const auto x = widen(old), y = widen(value);
        return x != x || (R == AMAX ? x > y : x < y) ? old : value;
    }
}

// An operand that may be a Python number; `value` holds the number and must live as long as the operand.
void parse_operand_or_number(PyObject* const* args, const Shape& shape, int code, Operand& op, char* value) {
    if (is_storage(args[0])) {
        parse_operand(args, shape, op);
        return;
    }
    number_into(args[0], code, value);
    op.storage = nullptr;
    op.data = value;
    op.code = code;
    op.itemsize = ITEMSIZE[code];
    for (int i = 0; i < shape.ndim; ++i) op.stride[i] = 0;
}

// ---------------------------------------------------------------- indices

// int64 indices over a shape; int32 ones are widened into memory of their own.
class Indices {
  public:
    const char* data;
    int64_t stride[MAXD];

    Indices(PyObject* const* args, const Shape& shape) {
        Operand op;
        parse_operand(args, shape, op);
        take(op, shape);
    }
    // n indices in a line: dense ones, or with one stride; a scalar has none.
    Indices(PyObject* const* args, int64_t n, bool dense) {
        Shape line;
        set_shape(line, {n});
        Operand op;
        if (dense) {
            parse_dense(args, n, op);
            op.stride[0] = 1;
        } else if (n == 1 && PyTuple_Check(args[2]) && PyTuple_GET_SIZE(args[2]) == 0) {
            line.ndim = 0;
            parse_operand(args, line, op);
            line.ndim = 1;
            op.stride[0] = 1;
        } else {
            parse_operand(args, line, op);
        }
        take(op, line);
    }
    MT_INLINE int64_t operator[](int64_t i) const { return read_once(data + i * stride[0] * 8); }

  private:
    std::optional<Scratch> wide_;

    void take(const Operand& op, const Shape& shape) {
        if (op.code == I64) {
            data = op.data;
            for (int i = 0; i < shape.ndim; ++i) stride[i] = op.stride[i];
            return;
        }
        if (op.code != I32)
            fail(PyExc_RuntimeError, "expected an index of dtype Long or Int, but got %s", CODE_NAME[op.code]);
        wide_.emplace(shape.numel, 8);
        data = wide_->as<char>();
        dense_strides(shape, stride);
        copy_tensor(shape, wide_->as<char>(), stride, I64, op.data, op.stride, I32);
    }
};

MT_CLONES bool any_outside(const int64_t* x, int64_t n, uint64_t size) {
    uint64_t bad = 0;
    for (int64_t i = 0; i < n; ++i) bad |= (uint64_t)x[i] >= size;
    return bad;
}

// What an index must be: in [0, size). `complain` raises PyTorch's error of the operator.
struct Bounds {
    int64_t size;
    int dim;
    void (*complain)(int64_t index, const Bounds&);

    // The index at p, read once and safe to use.
    MT_INLINE int64_t read(const void* p) const {
        const int64_t x = read_once(p);
        if (MT_UNLIKELY((uint64_t)x >= (uint64_t)size)) outside(x);
        return x;
    }
    [[noreturn]] MT_NOINLINE void outside(int64_t x) const {
        complain(x, *this);
        fail(PyExc_IndexError, "index out of range in self");
    }
};
void out_of_bounds(int64_t index, const Bounds& b) {
    fail(PyExc_RuntimeError, "index %lld is out of bounds for dimension %d with size %lld", (long long)index, b.dim,
         (long long)b.size);
}
void out_of_self(int64_t, const Bounds&) { fail(PyExc_IndexError, "index out of range in self"); }
void out_of_data(int64_t index, const Bounds& b) {
    fail(PyExc_RuntimeError, "INDICES element is out of DATA bounds, id=%lld axis_dim=%lld", (long long)index,
         (long long)b.size);
}

// Complains about the first index, in row-major order, that is outside.
void check_indices(const Shape& shape, const char* data, const int64_t* stride, const Bounds& bounds) {
    const int64_t size = bounds.size;
    Shape own;  // without the dimensions along which the index only repeats
    own.ndim = shape.ndim;
    if (shape.numel == 0) return;
    for (int i = 0; i < shape.ndim; ++i) own.dim[i] = stride[i] ? shape.dim[i] : 1;
    own.numel = checked_numel(own.dim, own.ndim);
    Loop<1> loop;
    loop_begin(loop, own);
    loop_operand(loop, 0, const_cast<char*>(data), own, stride, 8);
    loop_finish(loop);
    const int64_t step = loop.step[0][0];
    std::atomic<bool> bad{false};
    run_rows(loop, GRAIN, [&](char* const* p, int64_t n) {
        bool found = false;
        if (step == 8) found = any_outside(reinterpret_cast<const int64_t*>(p[0]), n, (uint64_t)size);
        else
            for (int64_t i = 0; i < n; ++i)
                found |= *reinterpret_cast<const uint64_t*>(p[0] + i * step) >= (uint64_t)size;
        if (found) bad = true;
    });
    if (MT_LIKELY(!bad)) return;
    Loop<2> ordered;
    loop_begin(ordered, own);
    loop_positions(ordered, own);
    loop_operand(ordered, 1, const_cast<char*>(data), own, stride, 8);
    loop_finish(ordered);
    run_rows(ordered, SERIAL, [&](char* const* p, int64_t n) {
        for (int64_t i = 0; i < n; ++i) bounds.read(p[1] + i * ordered.step[1][0]);
    });
}

void expect_within(const char* what, const Shape& inner, const Shape& outer, int dim) {
    if (inner.ndim != outer.ndim)
        fail(PyExc_RuntimeError, "%s: index has %d dimensions, expected %d", what, inner.ndim, outer.ndim);
    for (int i = 0; i < inner.ndim; ++i)
        if (i != dim && inner.dim[i] > outer.dim[i])
            fail(PyExc_RuntimeError, "%s: index of size %lld is larger than %lld at dimension %d", what,
                 (long long)inner.dim[i], (long long)outer.dim[i], i);
}

// ---------------------------------------------------------------- gather and scatter

// Offsets that this file has made itself, in memory of its own, need no check.
struct Trusted {
    MT_INLINE int64_t read(const void* p) const { return *static_cast<const int64_t*>(p); }
};

// out[i] = src[i, x[i]]: the index adds x * jump to the address. Steps in bytes. B: Bounds or Trusted.
template <class T, class B>
void gather_row(char* o, int64_t os, const char* x, int64_t xs, const char* s, int64_t ss, int64_t jump, int64_t n,
                const B& bounds) {
    if (xs == 0) {
        s += bounds.read(x) * jump;
        if (os == (int64_t)sizeof(T) && ss == (int64_t)sizeof(T)) std::memcpy(o, s, (size_t)n * sizeof(T));
        else
            for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(o + i * os) = *reinterpret_cast<const T*>(s + i * ss);
    } else if (xs == 8 && os == (int64_t)sizeof(T)) {
        T* d = reinterpret_cast<T*>(o);
        const int64_t* index = reinterpret_cast<const int64_t*>(x);
        if (ss == 0 && jump == (int64_t)sizeof(T)) {
            const T* line = reinterpret_cast<const T*>(s);
            for (int64_t i = 0; i < n; ++i) d[i] = line[bounds.read(index + i)];
        } else {
            for (int64_t i = 0; i < n; ++i)
                d[i] = *reinterpret_cast<const T*>(s + i * ss + bounds.read(index + i) * jump);
        }
    } else {
        for (int64_t i = 0; i < n; ++i)
            *reinterpret_cast<T*>(o + i * os) =
                *reinterpret_cast<const T*>(s + i * ss + bounds.read(x + i * xs) * jump);
    }
}

template <class T> MT_CLONES void add_dense(T* o, const T* s, int64_t n) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] += s[i];
}

// What scatter_row writes with.
struct Writes {
    int64_t jump;       // bytes between neighbours along the indexed dimension
    const char* scale;  // the alpha of ADD_SCALED, in the element type
    Bounds bounds;      // not asked by Trusted rows
};

// out[i, x[i]] = combine(itself, src[i])
template <class T, int R, bool TRUSTED>
void scatter_row(char* o, int64_t os, const char* x, int64_t xs, const char* s, int64_t ss, int64_t n,
                 const Writes& writes) {
    const int64_t jump = writes.jump;
    const char* scale = writes.scale;
    auto read = [&](const void* p) __attribute__((always_inline)) {
        if constexpr (TRUSTED) return Trusted().read(p);
        else return writes.bounds.read(p);
    };
    T alpha{};
    if (R == ADD_SCALED) std::memcpy(&alpha, scale, sizeof alpha);
    if (xs == 0) {
        o += read(x) * jump;
        if constexpr (R == ADD && std::is_floating_point<T>::value)
            if (os == (int64_t)sizeof(T) && ss == (int64_t)sizeof(T))
                return add_dense(reinterpret_cast<T*>(o), reinterpret_cast<const T*>(s), n);
        for (int64_t i = 0; i < n; ++i) {
            T* p = reinterpret_cast<T*>(o + i * os);
            *p = combine<T, R>(*p, *reinterpret_cast<const T*>(s + i * ss), alpha);
        }
        return;
    }
    if (xs == 8 && os == 0 && ss == (int64_t)sizeof(T) && jump == (int64_t)sizeof(T)) {
        T* line = reinterpret_cast<T*>(o);
        const int64_t* index = reinterpret_cast<const int64_t*>(x);
        const T* from = reinterpret_cast<const T*>(s);
        for (int64_t i = 0; i < n; ++i) {
            T& place = line[read(index + i)];
            place = combine<T, R>(place, from[i], alpha);
        }
        return;
    }
    for (int64_t i = 0; i < n; ++i) {
        T* p = reinterpret_cast<T*>(o + i * os + read(x + i * xs) * jump);
        *p = combine<T, R>(*p, *reinterpret_cast<const T*>(s + i * ss), alpha);
    }
}
using ScatterRow = void (*)(char*, int64_t, const char*, int64_t, const char*, int64_t, int64_t, const Writes&);

// The row kernel for a dtype; `name` is the kernel PyTorch would name when there is none.
template <int R, bool TRUSTED = false> ScatterRow scatter_row_of(int code, const char* name) {
    ScatterRow row = nullptr;
    if constexpr (R == ASSIGN) {
        dispatch_size(ITEMSIZE[code], [&](auto t) { row = scatter_row<decltype(t), R, TRUSTED>; });
    } else {
        dispatch_arithmetic(code, name, [&](auto t) {
            using T = decltype(t);
            if constexpr (IsComplex<T>::value && (R == AMAX || R == AMIN)) fail_dtype(name, code);
            else row = scatter_row<T, R, TRUSTED>;
        });
    }
    return row;
}

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

// Runs part(sub-shape, dimension, begin) over pieces of dimension `along`, or once over all when that does not pay.
template <class F> void split(const Shape& shape, int along, F&& part) {
    if (along < 0 || shape.numel <= GRAIN || shape.dim[along] < 2) {
        part(shape, 0, 0);
        return;
    }
    const int64_t size = shape.dim[along];
    parallel_for(size, std::max<int64_t>(1, GRAIN / (shape.numel / size)), [&](int64_t begin, int64_t end) {
        Shape mine = shape;
        mine.dim[along] = end - begin;
        mine.numel = shape.numel / size * (end - begin);
        part(mine, along, begin);
    });
}
MT_INLINE char* moved(char* data, const int64_t* stride, int itemsize, int along, int64_t begin) {
    return begin ? data + begin * stride[along] * itemsize : data;
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
        run_rows(loop, SERIAL,
                 [&](char* const* p, int64_t n) { row(p[0], os, p[1], xs, p[2], ss, n, writes); });
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
        select_chunks(outer, out, jump_of(out, shape, dim), src, jump_of(src, shape, dim), index, n, bytes,
                      bounds);
        return;
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
        const ScatterRow row = plain ? scatter_row_of<ADD>(wide ? F32 : o.code, "index_add_")
                                     : scatter_row_of<ADD_SCALED>(o.code, "index_add_");
        if (shape.numel == 0) return none();
        {
            GilRelease unlocked(shape.numel);
            if (wide) scatter_wide(shape, out_shape, o, src, index.data, istride, dim, row, bounds);
            else scatter_all(shape, o, src, index.data, istride, dim, row, scale, bounds);
        }
        return none();
    });
}

// ---------------------------------------------------------------- advanced indexing

// The index tensors of one call, checked, and made into one tensor of byte offsets. It covers only the dimensions of
// the result along which some index moves; along the others its stride is 0.
class Offsets {
  public:
    // args: indices, dims, sizes, steps.
    Offsets(PyObject* const* args, const Shape& shape, int itemsize) : count_(parse(args, shape)), room_(numel_) {
        int64_t* offset = room_.get();
        std::fill_n(offset, numel_, 0);
        for (int k = 0; k < count_; ++k) add_index(k, itemsize);
        data = room_.bytes();
    }
    char* data;
    int64_t stride[MAXD];

    // The elements an indexed operand can reach, and whether they lie in its storage.
    void check_reach(const Shape& shape, const Operand& op, int64_t offset) const {
        if (shape.numel == 0) return;
        int64_t low = offset, high = offset;
        bool overflow = false;
        auto extend = [&](int64_t step, int64_t size) {
            int64_t reach;
            overflow |= __builtin_mul_overflow(step, size - 1, &reach);
            overflow |= __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
        };

        for (int i = 0; i < shape.ndim; ++i) extend(op.stride[i], shape.dim[i]);
        for (int k = 0; k < count_; ++k) extend(step_[k], size_[k]);
        if (overflow || low < 0 || high >= op.storage->nbytes / op.itemsize)
            fail_reach(low, high, op);
    }

  private:
    int64_t dim_[MAXD], size_[MAXD], step_[MAXD];
    const char* index_[MAXD];
    int64_t index_stride_[MAXD][MAXD];
    Shape own_;  // the shape of the offsets: 1 where no index moves
    int64_t numel_;
    int count_;
    Row<int64_t> room_;

    int parse(PyObject* const* args, const Shape& shape) {
        if (!PyTuple_Check(args[0]) && !PyList_Check(args[0]))
            fail(PyExc_TypeError, "indices must be a tuple or a list, got %s", Py_TYPE(args[0])->tp_name);
        const int count = (int)PySequence_Fast_GET_SIZE(args[0]);
        if (count > MAXD) fail(PyExc_ValueError, "too many indices: %d", count);
        parse_ints(args[1], count, dim_);
        parse_ints(args[2], count, size_);
        parse_ints(args[3], count, step_);
        static PyObject* const long_code = PyLong_FromLong(I64);
        own_.ndim = shape.ndim;
        for (int i = 0; i < shape.ndim; ++i) own_.dim[i] = 1;
        for (int k = 0; k < count; ++k) {
            PyObject* item = PySequence_Fast_GET_ITEM(args[0], k);
            if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 3)
                fail(PyExc_TypeError, "an index is a tuple (storage, offset, strides)");
            PyObject* operand[4] = {PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1), PyTuple_GET_ITEM(item, 2),
                                    long_code};
            Operand op;
            parse_operand(operand, shape, op);
            index_[k] = op.data;
            for (int i = 0; i < shape.ndim; ++i) {
                index_stride_[k][i] = op.stride[i];
                if (op.stride[i]) own_.dim[i] = shape.dim[i];
            }
        }
        numel_ = own_.numel = shape.numel ? checked_numel(own_.dim, own_.ndim) : 0;
        dense_strides(own_, stride);
        for (int i = 0; i < shape.ndim; ++i)
            if (own_.dim[i] <= 1) stride[i] = 0;
        return count;
    }

    void add_index(int k, int itemsize) {
        if (numel_ == 0) return;
        if (size_[k] == 0) fail(PyExc_IndexError, "index is out of bounds for dimension with size 0");
        const int64_t size = size_[k], step = wrapping_mul(step_[k], itemsize);
        Loop<2> loop;
        loop_begin(loop, own_);
        loop_operand(loop, 0, room_.bytes(), own_, stride, 8);
        loop_operand(loop, 1, const_cast<char*>(index_[k]), own_, index_stride_[k], 8);
        loop_finish(loop);
        const int64_t os = loop.step[0][0], xs = loop.step[1][0];
        run_rows(loop, GRAIN, [&](char* const* p, int64_t n) {
            for (int64_t i = 0; i < n; ++i) {
                const int64_t given = read_once(p[1] + i * xs);
                const int64_t x = given < 0 ? given + size : given;
                if (MT_UNLIKELY((uint64_t)x >= (uint64_t)size))
                    fail(PyExc_IndexError, "index %lld is out of bounds for dimension %lld with size %lld",
                         (long long)given, (long long)dim_[k], (long long)size);
                int64_t& offset = *reinterpret_cast<int64_t*>(p[0] + i * os);
                offset = (int64_t)((uint64_t)offset + (uint64_t)wrapping_mul(x, step));  // fits: see check_reach
            }
        });
    }
};

// The indexed operand of index_get and index_put: bounds are checked with the indices, not by strides alone.
void parse_indexed(PyObject* const* args, const Shape& shape, const Offsets& offsets, Operand& op) {
    op.storage = as_storage(args[0]);
    const int64_t offset = as_int(args[1]);
    parse_ints(args[2], shape.ndim, op.stride);
    op.code = as_code(args[3]);
    op.itemsize = ITEMSIZE[op.code];
    offsets.check_reach(shape, op, offset);
    op.data = op.storage->ptr + (shape.numel ? offset * op.itemsize : 0);
}

PyObject* index_get(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("index_get", nargs, 13);
        Shape shape;
        parse_shape(args[12], shape);
        const Offsets offsets(args + 4, shape, ITEMSIZE[as_code(args[3])]);
        Operand src, o;
        parse_indexed(args, shape, offsets, src);
        Ref out(parse_output(args + 8, shape, o));
        expect_code("index", o.code, src.code);
        if (shape.numel == 0) return out.release();
        Loop<3> loop;
        loop_begin(loop, shape);
        loop_operand(loop, 0, o.data, shape, o.stride, o.itemsize);
        loop_operand(loop, 1, offsets.data, shape, offsets.stride, 8);
        loop_operand(loop, 2, src.data, shape, src.stride, src.itemsize);
        loop_finish(loop);
        const int64_t os = loop.step[0][0], xs = loop.step[1][0], ss = loop.step[2][0];
        GilRelease unlocked(shape.numel);
        dispatch_size(src.itemsize, [&](auto t) {
            run_rows(loop, GRAIN / 2, [&](char* const* p, int64_t n) {
                gather_row<decltype(t)>(p[0], os, p[1], xs, p[2], ss, 1, n, Trusted());
            });
        });
        return out.release();
    });
}

void put_all(const Shape& shape, const Operand& dst, const Offsets& offsets, const Operand& src, ScatterRow row) {
    // Two writes cannot meet where they differ along a dimension in which no index moves: threads share such a one.
    int along = -1;
    for (int i = 0; i < shape.ndim; ++i)
        if (offsets.stride[i] == 0 && dst.stride[i] && (along < 0 || shape.dim[i] > shape.dim[along])) along = i;
    const Writes writes{1, nullptr, {}};
    split(shape, along, [&](const Shape& mine, int d, int64_t begin) {
        Loop<4> loop;
        loop_begin(loop, mine);
        loop_positions(loop, mine);
        loop_operand(loop, 1, moved(dst.data, dst.stride, dst.itemsize, d, begin), mine, dst.stride, dst.itemsize);
        loop_operand(loop, 2, offsets.data, mine, offsets.stride, 8);
        loop_operand(loop, 3, moved(src.data, src.stride, src.itemsize, d, begin), mine, src.stride, src.itemsize);
        loop_finish(loop);
        const int64_t ds = loop.step[1][0], xs = loop.step[2][0], ss = loop.step[3][0];
        run_rows(loop, SERIAL,
                 [&](char* const* p, int64_t n) { row(p[1], ds, p[2], xs, p[3], ss, n, writes); });
    });
}

PyObject* index_put(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("index_put", nargs, 14);
        Shape shape;
        parse_shape(args[12], shape);
        const bool accumulate = as_bool(args[13]);
        const Offsets offsets(args + 4, shape, ITEMSIZE[as_code(args[3])]);
        Operand dst, src;
        alignas(16) char number[16];
        parse_indexed(args, shape, offsets, dst);
        parse_operand_or_number(args + 8, shape, dst.code, src, number);
        expect_code("index_put", src.code, dst.code);
        const ScatterRow row =
            accumulate ? scatter_row_of<ADD, true>(dst.code, "index_put") : scatter_row_of<ASSIGN, true>(dst.code, "");
        if (shape.numel == 0) return none();
        {
            GilRelease unlocked(shape.numel);
            put_all(shape, dst, offsets, src, row);
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
void embedding_backward_rows(const Operand& grad, const Indices& index, T* out, int64_t n, int64_t dim, int64_t padding,
                             const int64_t* counts, int64_t first, int64_t last) {
    using A = acc_t<T>;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t row = index[i];
        if (row < first || row >= last || row == padding) continue;  // which keeps it inside `out` as well
        const T* g = grad.as<T>() + i * grad.stride[0];
        T* o = out + row * dim;
        const A scale = counts ? (A)(1.0 / (double)counts[row]) : A(1);
        const int64_t step = grad.stride[1];
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
            parallel_for(rows, grain, [&](int64_t first, int64_t last) {
                std::memset(o.data + first * dim * sizeof(T), 0, (size_t)((last - first) * dim) * sizeof(T));
                embedding_backward_rows<T>(grad, index, o.as<T>(), n, dim, padding, counts, first, last);
            });
        });
        return out.release();
    });
}

}  // namespace

// masking.cpp, scan.cpp, arrange.cpp: families too small for a table of their own.
PyObject* nonzero_count(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* nonzero(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* masked_fill(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* masked_select(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* masked_scatter(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* cumsum(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* sort(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* flip(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* tri(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* arange(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* linspace(PyObject*, PyObject* const*, Py_ssize_t);
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
    MT_METHOD("sort", sort, "sort(a.., values.., indices.., shape, dim, descending): stable, NaN is the largest."),
    MT_METHOD("flip", flip, "flip(a.., out.., shape, dims)."),
    MT_METHOD("tri", tri, "tri(a.., out.., shape, k, upper): a triangle of the last two dimensions, zeros elsewhere."),
    MT_METHOD("arange", arange, "arange(out, code, n, start, step)."),
    MT_METHOD("linspace", linspace, "linspace(out, code, n, start, end)."),
    MT_METHOD("eye", eye, "eye(out, code, rows, columns)."),
    {nullptr, nullptr, 0, nullptr}};
extern const mt::IntConstant index_constants[] = {{nullptr, 0}};
