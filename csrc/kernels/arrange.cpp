// Kernels that only place elements: flip, triangles, ranges, the identity (in the table of index.cpp).
// Invariant: every element of the result is written. All dtypes unless said otherwise.
//
// An operand is 4 arguments: storage, offset, strides, code. `out` may be None and is returned. A new range or identity
// is dense and starts at the storage's first byte.
//   flip(a.., out|None.., shape, dims)                      dims: tuple of dimensions; a and out must not overlap
//   tri(a.., out|None.., shape, k, upper)                   a and out may be the same
//   arange(out|None, code, n, start, step)                  integers, float16, bfloat16, float32, float64
//   linspace(out|None, code, n, start, end)                 the same and complex
//   eye(out|None, code, rows, columns)
//   triangle(out|None, code, n, rows, columns, k, upper)    integers: the rows, then the columns, of its n places
#include "cpu.h"
#include "lanes.h"

#include <algorithm>

namespace mt {
namespace {

template <class T> void copy_row(char* o, int64_t os, const char* a, int64_t as, int64_t n) {
    if (os == (int64_t)sizeof(T) && as == (int64_t)sizeof(T)) {
        if (o != a) std::memcpy(o, a, (size_t)n * sizeof(T));
    } else if (os == (int64_t)sizeof(T) && as == -(int64_t)sizeof(T)) {
        at_level(MT_BODY { reverse_row(reinterpret_cast<T*>(o), reinterpret_cast<const T*>(a), n); });
    } else {
        for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(o + i * os) = *reinterpret_cast<const T*>(a + i * as);
    }
}
template <class T> void zero_row(char* o, int64_t os, int64_t n) {
    if (os == (int64_t)sizeof(T)) std::memset(o, 0, (size_t)n * sizeof(T));
    else
        for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(o + i * os) = T{};
}

// ---------------------------------------------------------------- ranges

// PyTorch fills a range in pairs of 32-byte vectors: the first element of a vector is start + i * step rounded to the
// dtype, the others are counted from it. What is left after the last pair is computed one by one. Values follow that to
// the bit; products and sums are fused, as they are there.
template <class T> MT_CLONES void fill_arange(T* out, int64_t n, double start, double step) {
    using A = typename std::conditional<is_small_float<T>, float, double>::type;
    constexpr int64_t width = 32 / sizeof(T);
    const A first = (A)start, by = (A)step;
    int64_t i = 0;
    for (; i + 2 * width <= n; i += 2 * width)
        for (int64_t v = i; v < i + 2 * width; v += width) {
            const A base = (A)widen(convert<T>(std::fma(by, (A)v, first)));
            for (int64_t j = 0; j < width; ++j) out[v + j] = convert<T>(std::fma(by, (A)j, base));
        }
    for (; i < n; ++i) out[i] = convert<T>(std::fma(by, (A)i, first));
}

// Counted from the nearer end, in the arithmetic of the dtype (double for integers).
template <class T, class V> MT_CLONES void fill_linspace(T* out, int64_t n, V start, V end) {
    using S = typename std::conditional<std::is_same<T, float>::value, float, double>::type;
    const T first = convert<T>(start), last = convert<T>(end);
    if constexpr (is_small_float<T>) {
        // Rounded after every step: (last - first) / (n - 1), step * i, first + that.
        auto rounded = [](float x) __attribute__((always_inline)) { return (float)widen(convert<T>(x)); };
        const float a = widen(first), b = widen(last), step = rounded(rounded(b - a) / rounded((float)(n - 1)));
        for (int64_t i = 0; i < n; ++i)
            out[i] = convert<T>(i < n / 2 ? a + rounded(step * rounded((float)i))
                                          : b - rounded(step * rounded((float)(n - i - 1))));
    } else {
        const S a = (S)first, b = (S)last, step = (b - a) / (S)(n - 1);
        for (int64_t i = 0; i < n / 2; ++i) out[i] = convert<T>(std::fma(step, (S)i, a));
        for (int64_t i = n / 2; i < n; ++i) out[i] = convert<T>(std::fma(-step, (S)(n - i - 1), b));
    }
}
template <class R>
MT_CLONES void fill_linspace(Complex<R>* out, int64_t n, Complex<double> start, Complex<double> end) {
    const Complex<R> a{(R)start.re, (R)start.im}, b{(R)end.re, (R)end.im};
    const Complex<R> step{(b.re - a.re) / (R)(n - 1), (b.im - a.im) / (R)(n - 1)};
    // As PyTorch's compiler contracts them, said here so that every compiler does.
    const auto at = [](Complex<R> from, Complex<R> by, R i) {
        return Complex<R>{std::fma(by.re, i, from.re), std::fma(by.im, i, from.im)};
    };
    for (int64_t i = 0; i < n / 2; ++i) out[i] = at(a, step, (R)i);
    for (int64_t i = n / 2; i < n; ++i) out[i] = at(b, {-step.re, -step.im}, (R)(n - i - 1));
}

// A dense result at the start of a storage: args are storage|None, code.
PyObject* parse_new(PyObject* const* args, int64_t numel, Operand& o) {
    static PyObject* const zero = PyLong_FromLong(0);
    PyObject* operand[4] = {args[0], zero, nullptr, args[1]};
    return parse_dense_output(operand, numel, o);
}

int64_t as_int64(PyObject* number) {
    int64_t v;
    number_into(number, I64, reinterpret_cast<char*>(&v));
    return v;
}
double as_float64(PyObject* number) {
    double v;
    number_into(number, F64, reinterpret_cast<char*>(&v));
    return v;
}
Complex<double> as_complex128(PyObject* number) {
    Complex<double> v;
    number_into(number, C128, reinterpret_cast<char*>(&v));
    return v;
}

}  // namespace

PyObject* flip(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("flip", nargs, 10);
        Shape shape;
        Operand a, o;
        parse_shape(args[8], shape);
        parse_operand(args, shape, a);
        Ref out(parse_output(args + 4, shape, o));
        expect_code("flip", o.code, a.code);
        if (!PyTuple_Check(args[9])) fail(PyExc_TypeError, "dims must be a tuple, got %s", Py_TYPE(args[9])->tp_name);
        bool flipped[MAXD] = {};
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[9]); ++i) {
            const int dim = parse_dim(PyTuple_GET_ITEM(args[9], i), shape);
            if (dim < shape.ndim) flipped[dim] = true;
        }
        if (shape.numel == 0) return out.release();
        for (int i = 0; i < shape.ndim; ++i)
            if (flipped[i]) {
                a.data += (shape.dim[i] - 1) * a.stride[i] * a.itemsize;
                a.stride[i] = -a.stride[i];
            }
        Loop<2> loop;
        loop_begin(loop, shape);
        loop_operand(loop, 0, o.data, shape, o.stride, o.itemsize);
        loop_operand(loop, 1, a.data, shape, a.stride, a.itemsize);
        loop_finish(loop);
        GilRelease unlocked(shape.numel);
        dispatch_size(a.itemsize, [&](auto t) {
            run_rows(loop, GRAIN, [&](char* const* p, int64_t n) {
                copy_row<decltype(t)>(p[0], loop.step[0][0], p[1], loop.step[1][0], n);
            });
        });
        return out.release();
    });
}

PyObject* tri(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("tri", nargs, 11);
        Shape shape;
        Operand a, o;
        parse_shape(args[8], shape);
        const bool upper = as_bool(args[10]);
        if (shape.ndim < 2) fail(PyExc_RuntimeError, "tri: expected at least 2 dimensions, got %d", shape.ndim);
        parse_operand(args, shape, a);
        Ref out(parse_output(args + 4, shape, o));
        expect_code("tri", o.code, a.code);
        if (shape.numel == 0) return out.release();
        const int last = shape.ndim - 1;
        const int64_t rows = shape.dim[last - 1], columns = shape.dim[last];
        // A diagonal outside of the matrix is as good as one just outside.
        const int64_t k = std::max(-rows, std::min(columns, as_int(args[9])));
        const int64_t os = o.stride[last] * o.itemsize, as = a.stride[last] * a.itemsize;
        Shape lines = shape;
        lines.dim[last] = 1;
        lines.numel = shape.numel / columns;
        Loop<3> loop;
        loop_begin(loop, lines);
        loop_positions(loop, lines);
        loop_operand(loop, 1, o.data, lines, o.stride, o.itemsize);
        loop_operand(loop, 2, a.data, lines, a.stride, a.itemsize);
        loop_finish(loop);
        GilRelease unlocked(shape.numel);
        dispatch_size(a.itemsize, [&](auto t) {
            using T = decltype(t);
            run_rows(loop, lane_grain(columns, 1), [&](char* const* p, int64_t n) {
                for (int64_t i = 0; i < n; ++i) {
                    const int64_t row = (reinterpret_cast<intptr_t>(p[0]) + i * loop.step[0][0]) % rows;
                    char* to = p[1] + i * loop.step[1][0];
                    const char* from = p[2] + i * loop.step[2][0];
                    // The triangle is [cut, columns) of the row, or [0, cut).
                    const int64_t wanted = row + k + (upper ? 0 : 1);
                    const int64_t cut = std::max<int64_t>(0, std::min(columns, wanted));
                    if (upper) {
                        zero_row<T>(to, os, cut);
                        copy_row<T>(to + cut * os, os, from + cut * as, as, columns - cut);
                    } else {
                        copy_row<T>(to, os, from, as, cut);
                        zero_row<T>(to + cut * os, os, columns - cut);
                    }
                }
            });
        });
        return out.release();
    });
}

PyObject* arange(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("arange", nargs, 5);
        const int64_t n = parse_count(args[2]);
        Operand o;
        Ref out(parse_new(args, n, o));
        dispatch_arithmetic(o.code, "arange_cpu", [&](auto t) {
            using T = decltype(t);
            if constexpr (IsComplex<T>::value || std::is_same<T, Bool>::value) {
                fail_dtype("arange_cpu", o.code);
            } else if constexpr (std::is_integral<T>::value) {
                const uint64_t start = (uint64_t)as_int64(args[3]), step = (uint64_t)as_int64(args[4]);
                for (int64_t i = 0; i < n; ++i) o.as<T>()[i] = (T)(start + step * (uint64_t)i);
            } else {
                fill_arange(o.as<T>(), n, as_float64(args[3]), as_float64(args[4]));
            }
        });
        return out.release();
    });
}

PyObject* linspace(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("linspace", nargs, 5);
        const int64_t n = parse_count(args[2]);
        Operand o;
        Ref out(parse_new(args, n, o));
        dispatch_arithmetic(o.code, "linspace_cpu", [&](auto t) {
            using T = decltype(t);
            if constexpr (std::is_same<T, Bool>::value) {
                fail_dtype("linspace_cpu", o.code);
            } else if (n < 2) {
                if (n) number_into(args[3], o.code, o.data);
            } else if constexpr (IsComplex<T>::value) {
                fill_linspace(o.as<T>(), n, as_complex128(args[3]), as_complex128(args[4]));
            } else if constexpr (std::is_integral<T>::value) {
                fill_linspace(o.as<T>(), n, as_int64(args[3]), as_int64(args[4]));
            } else {
                fill_linspace(o.as<T>(), n, as_float64(args[3]), as_float64(args[4]));
            }
        });
        return out.release();
    });
}

PyObject* eye(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("eye", nargs, 4);
        const int64_t rows = parse_count(args[2]), columns = parse_count(args[3]);
        Operand o;
        const int64_t numel = checked_numel({rows, columns});
        Ref out(parse_new(args, numel, o));
        if (numel == 0) return out.release();
        alignas(16) char one[16];
        number_into(Py_True, o.code, one);
        if (numel) std::memset(o.data, 0, (size_t)numel * (size_t)o.itemsize);
        for (int64_t i = 0; i < std::min(rows, columns); ++i)
            std::memcpy(o.data + i * (columns + 1) * o.itemsize, one, (size_t)o.itemsize);
        return out.release();
    });
}

PyObject* triangle(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("triangle", nargs, 7);
        const int64_t n = parse_count(args[2]), rows = parse_count(args[3]), columns = parse_count(args[4]);
        const bool upper = as_bool(args[6]);
        // A diagonal outside of the matrix is as good as one just outside.
        const int64_t k = std::max(-rows, std::min(columns, as_int(args[5])));
        Operand o;
        Ref out(parse_new(args, checked_mul(n, 2), o));
        // Rows with at least one place, so that there are no more of them than places.
        const int64_t first = upper ? 0 : std::max<int64_t>(-k, 0), last = upper ? std::min(rows, columns - k) : rows;
        dispatch_arithmetic(o.code, "triangle_indices", [&](auto t) {
            using T = decltype(t);
            if constexpr (std::is_integral<T>::value) {
                T *row = o.as<T>(), *column = row + n;
                int64_t at = 0;
                for (int64_t i = first; i < last && at < n; ++i) {
                    const int64_t begin = upper ? std::max<int64_t>(i + k, 0) : 0;
                    const int64_t end = upper ? columns : std::min(columns, i + k + 1);
                    for (int64_t j = begin; j < end && at < n; ++j, ++at) {
                        row[at] = (T)i;
                        column[at] = (T)j;
                    }
                }
                if (at != n) fail(PyExc_RuntimeError, "triangle: there are %lld places", (long long)at);
            } else {
                fail_dtype("triangle_indices", o.code);
            }
        });
        return out.release();
    });
}

}  // namespace mt
