// What reading and writing by index share: indices and their bounds, and the loops over one row.
// Invariant: an index is checked where it is used, on the very number that becomes an address.
#pragma once
#include "lanes.h"

#include <algorithm>
#include <atomic>
#include <optional>

namespace mt {
// ---------------------------------------------------------------- elements

template <class T> MT_INLINE T add(T a, T b) {
    if constexpr (IsComplex<T>::value) return T{add(a.re, b.re), add(a.im, b.im)};
    else if constexpr (std::is_same<T, Bool>::value) return Bool{(uint8_t)(widen(a) | widen(b))};
    else if constexpr (std::is_integral<T>::value) return (T)((uint64_t)a + (uint64_t)b);  // wraps
    else return convert<T>(widen(a) + widen(b));
}
template <class T> MT_INLINE T multiply(T a, T b) {
    if constexpr (std::is_same<T, Complex<Half>>::value) {
        using Wide = Complex<float>;
        return convert<T>(multiply(convert<Wide>(a), convert<Wide>(b)));
    } else if constexpr (IsComplex<T>::value) return T{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
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
inline void parse_operand_or_number(PyObject* const* args, const Shape& shape, int code, Operand& op, char* value) {
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

MT_CLONES inline bool any_outside(const int64_t* x, int64_t n, uint64_t size) {
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
inline void out_of_bounds(int64_t index, const Bounds& b) {
    fail(PyExc_RuntimeError, "index %lld is out of bounds for dimension %d with size %lld", (long long)index, b.dim,
         (long long)b.size);
}
inline void out_of_self(int64_t, const Bounds&) { fail(PyExc_IndexError, "index out of range in self"); }
inline void out_of_data(int64_t index, const Bounds& b) {
    fail(PyExc_RuntimeError, "INDICES element is out of DATA bounds, id=%lld axis_dim=%lld", (long long)index,
         (long long)b.size);
}

// Complains about the first index, in row-major order, that is outside.
inline void check_indices(const Shape& shape, const char* data, const int64_t* stride, const Bounds& bounds) {
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

inline void expect_within(const char* what, const Shape& inner, const Shape& outer, int dim) {
    if (inner.ndim != outer.ndim)
        fail(PyExc_RuntimeError, "%s: index has %d dimensions, expected %d", what, inner.ndim, outer.ndim);
    for (int i = 0; i < inner.ndim; ++i)
        if (i != dim && inner.dim[i] > outer.dim[i])
            fail(PyExc_RuntimeError, "%s: index of size %lld is larger than %lld at dimension %d", what,
                 (long long)inner.dim[i], (long long)outer.dim[i], i);
}

// ---------------------------------------------------------------- gather and scatter

// Offsets that the kernels have made themselves, in memory of its own, need no check.
struct Trusted {
    MT_INLINE int64_t read(const void* p) const { return *static_cast<const int64_t*>(p); }
};

// out[i] = src[i, x[i]]: the index adds x * jump to the address. Steps in bytes. B: Bounds or Trusted.
template <class T, class B>
inline void gather_row(char* o, int64_t os, const char* x, int64_t xs, const char* s, int64_t ss, int64_t jump,
                       int64_t n, const B& bounds) {
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

template <class T, int R> MT_CLONES void combine_dense(T* o, const T* s, int64_t n) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = combine<T, R>(o[i], s[i], T());
}

// What scatter_row writes with.
struct Writes {
    int64_t jump;       // bytes between neighbours along the indexed dimension
    const char* scale;  // the alpha of ADD_SCALED, in the element type
    Bounds bounds;      // not asked by Trusted rows
};

// out[i, x[i]] = combine(itself, src[i])
template <class T, int R, bool TRUSTED>
inline void scatter_row(char* o, int64_t os, const char* x, int64_t xs, const char* s, int64_t ss, int64_t n,
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
        if constexpr (R != ASSIGN && R != ADD_SCALED && std::is_floating_point<T>::value)
            if (os == (int64_t)sizeof(T) && ss == (int64_t)sizeof(T))
                return combine_dense<T, R>(reinterpret_cast<T*>(o), reinterpret_cast<const T*>(s), n);
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

// The same for kernels that also take half complex numbers, and float8 where advanced indexing adds.
template <int R, bool TRUSTED = false> ScatterRow index_row_of(int code, const char* name) {
    if (code == C32) return scatter_row<Complex<Half>, R, TRUSTED>;
    if constexpr (TRUSTED) {
        if (code == F8E5M2) return scatter_row<Float8E5M2, R, TRUSTED>;
        if (code == F8E4M3FN) return scatter_row<Float8E4M3, R, TRUSTED>;
        if (code == F8E5M2FNUZ) return scatter_row<Float8E5M2Fnuz, R, TRUSTED>;
        if (code == F8E4M3FNUZ) return scatter_row<Float8E4M3Fnuz, R, TRUSTED>;
    }
    return scatter_row_of<R, TRUSTED>(code, name);
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

}  // namespace mt
