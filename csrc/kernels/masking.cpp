// Kernels driven by truth values: nonzero, masked_fill, masked_select, masked_scatter (in the table of index.cpp).
// Invariant: elements are numbered in row-major order of the shape, and nothing is written before it is known that
// everything fits. Data is moved by item size: all dtypes.
//
// An operand is 4 arguments: storage, offset, strides, code. A mask is bool or uint8, with strides over `shape`.
//   nonzero_count(a.., shape) -> int
//   nonzero(a.., shape, out.., n) -> None            out: int64, strides (element, dimension) over (n, ndim)
//   masked_fill(a.., mask.., out|None.., shape, value) -> out                      out = mask ? value : a
//   masked_select(src.., mask.., shape, out|None, offset) -> (storage, count)      out: dense from `offset` on
//   masked_scatter(out.., mask.., source.. [dense], numel, shape) -> None
//       source: `numel` elements one after the other, its strides are not read; those under the mask are replaced
#include "lanes.h"

#include <algorithm>
#include <atomic>

namespace mt {
namespace {

template <class T> MT_INLINE bool truth(T x) {
    if constexpr (IsComplex<T>::value) return (x.re != 0) | (x.im != 0);
    else if constexpr (std::is_same<T, Half>::value) return (x.bits & 0x7fff) != 0;
    else if constexpr (std::is_same<T, Float8E5M2>::value) return (x.bits & 0x7f) != 0;
    else return x != 0;
}
// One type for all dtypes that are zero in the same way.
// clang-format off: a table
template <class F> MT_INLINE void dispatch_truth(int code, F&& f) {
    switch (code) {
        case U8: case I8: case BOOL: f(uint8_t()); return;
        case I16: case U16: f(uint16_t()); return;
        case I32: case U32: f(uint32_t()); return;
        case I64: case U64: f(uint64_t()); return;
        case F16: case BF16: f(Half()); return;
        case F8E5M2: case F8E4M3FN: f(Float8E5M2()); return;
        case F32: f(float()); return;
        case F64: f(double()); return;
        case C64: f(Complex<float>()); return;
        default: f(Complex<double>()); return;
    }
}
// clang-format on

template <class T> MT_CLONES int64_t count_dense(const T* x, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i += 4096) {
        const int m = int(std::min<int64_t>(4096, n - i));
        uint32_t part = 0;  // a narrow counter keeps the vectors full
        for (int j = 0; j < m; ++j) part += truth(x[i + j]);
        count += part;
    }
    return count;
}
template <class T> int64_t count_row(const char* p, int64_t step, int64_t n) {
    if (step == (int64_t)sizeof(T)) return count_dense(reinterpret_cast<const T*>(p), n);
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += truth(*reinterpret_cast<const T*>(p + i * step));
    return count;
}

int64_t count_all(const Shape& shape, const Operand& a) {
    if (shape.numel == 0) return 0;
    Loop<1> loop;
    loop_begin(loop, shape);
    loop_operand(loop, 0, a.data, shape, a.stride, a.itemsize);
    loop_finish(loop);
    std::atomic<int64_t> count{0};
    dispatch_truth(a.code, [&](auto t) {
        run_rows(loop, 2 * GRAIN,
                 [&](char* const* p, int64_t n) { count += count_row<decltype(t)>(p[0], loop.step[0][0], n); });
    });
    return count;
}

// ---------------------------------------------------------------- nonzero

struct Coordinates {
    int64_t* out;
    int64_t element, dimension;  // strides
    int64_t room;                // elements that may be written
};

// Rows [first, last) of the last dimension; writes from element `at` on and returns where it stopped.
template <class T>
int64_t find_rows(const Shape& shape, const Loop<2>& rows, int64_t step, int64_t first, int64_t last, int64_t at,
                  const Coordinates& to) {
    const int outer = shape.ndim - 1;
    const int64_t length = shape.dim[outer];
    int64_t index[MAXD], rest = first;
    for (int d = outer - 1; d >= 0; --d) {
        index[d] = rest % shape.dim[d];
        rest /= shape.dim[d];
    }
    Cursor<2> row(rows, 0, first);
    constexpr int64_t PIECE = 512;
    int64_t where[PIECE];
    for (int64_t r = first; r < last; ++r, row.next()) {
        for (int64_t start = 0; start < length; start += PIECE) {
            // Every position is stored, the next one overwrites those not wanted: no branch depends on the data.
            const int64_t stop = std::min(length, start + PIECE);
            int64_t found = 0;
            for (int64_t i = start; i < stop; ++i) {
                where[found] = i;
                found += truth(*reinterpret_cast<const T*>(row.ptr[1] + i * step));
            }
            if (MT_UNLIKELY(at + found > to.room)) return at + found;
            int64_t* o = to.out + at * to.element;
            for (int d = 0; d < outer; ++d)
                for (int64_t i = 0; i < found; ++i) o[d * to.dimension + i * to.element] = index[d];
            for (int64_t i = 0; i < found; ++i) o[outer * to.dimension + i * to.element] = where[i];
            at += found;
        }
        for (int d = outer - 1; d >= 0 && ++index[d] == shape.dim[d]; --d) index[d] = 0;
    }
    return at;
}

int64_t find_all(const Shape& shape, const Operand& a, const Coordinates& to) {
    Shape outer = shape;
    const int64_t length = shape.dim[shape.ndim - 1], step = a.stride[shape.ndim - 1] * a.itemsize;
    outer.dim[shape.ndim - 1] = 1;
    outer.numel = shape.numel / length;
    Loop<2> rows;
    loop_begin(rows, outer);
    loop_positions(rows, outer);
    loop_operand(rows, 1, a.data, outer, a.stride, a.itemsize);
    loop_finish(rows);
    int64_t end = 0;
    dispatch_truth(a.code, [&](auto t) {
        using T = decltype(t);
        if (shape.numel <= 2 * GRAIN) {
            end = find_rows<T>(shape, rows, step, 0, outer.numel, 0, to);
            return;
        }
        // Blocks of rows are counted first, so that every one knows where its elements go.
        const int64_t block = std::max<int64_t>(1, GRAIN / length), blocks = ceil_div(outer.numel, block);
        Scratch room(blocks + 1, 8);
        int64_t* start = room.as<int64_t>();
        start[0] = 0;
        parallel_for(blocks, 1, [&](int64_t begin, int64_t finish) {
            for (int64_t b = begin; b < finish; ++b) {
                const int64_t last = std::min(outer.numel, (b + 1) * block);
                Cursor<2> row(rows, 0, b * block);
                start[b + 1] = 0;
                for (int64_t r = b * block; r < last; ++r, row.next())
                    start[b + 1] += count_row<T>(row.ptr[1], step, length);
            }
        });
        for (int64_t b = 0; b < blocks; ++b) start[b + 1] += start[b];
        end = start[blocks];
        if (end > to.room) return;
        parallel_for(blocks, 1, [&](int64_t begin, int64_t finish) {
            for (int64_t b = begin; b < finish; ++b)
                find_rows<T>(shape, rows, step, b * block, std::min(outer.numel, (b + 1) * block), start[b], to);
        });
    });
    return end;
}

// ---------------------------------------------------------------- masks

void parse_mask(PyObject* const* args, const Shape& shape, Operand& mask) {
    parse_operand(args, shape, mask);
    expect_time_for(shape.numel);
    if (mask.code != BOOL && mask.code != U8)
        fail(PyExc_RuntimeError, "expected a mask of dtype Bool, but got %s", CODE_NAME[mask.code]);
}

[[noreturn]] void fail_source() { fail(PyExc_RuntimeError, "Number of elements of source < number of ones in mask"); }

template <class T> MT_CLONES void choose_dense(T* o, const T* a, const uint8_t* mask, T value, int64_t n) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = mask[i] ? value : a[i];
}

template <class T>
void choose_row(char* o, int64_t os, const char* a, int64_t as, const char* mask, int64_t ms, T value, int64_t n) {
    if constexpr (!std::is_same<T, Raw16>::value) {
        if (os == (int64_t)sizeof(T) && as == (int64_t)sizeof(T) && ms == 1) {
            choose_dense(reinterpret_cast<T*>(o), reinterpret_cast<const T*>(a), reinterpret_cast<const uint8_t*>(mask),
                         value, n);
            return;
        }
    }
    for (int64_t i = 0; i < n; ++i)
        *reinterpret_cast<T*>(o + i * os) = mask[i * ms] ? value : *reinterpret_cast<const T*>(a + i * as);
}

// Packs the elements under the mask: written is what has been packed so far, room the total.
template <class T>
int64_t pack_row(char* out, int64_t written, int64_t room, const char* s, int64_t ss, const char* mask, int64_t ms,
                 int64_t n) {
    T* o = reinterpret_cast<T*>(out);
    // Every element is stored; the ones not wanted are overwritten by the next. No branch depends on the mask.
    for (int64_t i = 0; i < n && written < room; ++i) {
        o[written] = *reinterpret_cast<const T*>(s + i * ss);
        written += mask[i * ms] != 0;
    }
    return written;
}

// `numel` is what the source has. The mask was counted before, but another thread may have changed it since.
template <class T>
int64_t unpack_row(char* o, int64_t os, const char* mask, int64_t ms, const char* source, int64_t taken, int64_t numel,
                   int64_t n) {
    const T* s = reinterpret_cast<const T*>(source);
    for (int64_t i = 0; i < n; ++i) {
        if (!mask[i * ms]) continue;
        if (MT_UNLIKELY(taken >= numel)) fail_source();
        *reinterpret_cast<T*>(o + i * os) = s[taken++];
    }
    return taken;
}

}  // namespace

PyObject* nonzero_count(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("nonzero_count", nargs, 5);
        Shape shape;
        Operand a;
        parse_shape(args[4], shape);
        parse_operand(args, shape, a);
        expect_time_for(shape.numel);
        int64_t count;
        {
            GilRelease unlocked(shape.numel);
            count = count_all(shape, a);
        }
        return PyLong_FromLongLong(count);
    });
}

PyObject* nonzero(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("nonzero", nargs, 10);
        Shape shape, result;
        Operand a, o;
        parse_shape(args[4], shape);
        parse_operand(args, shape, a);
        expect_time_for(shape.numel);
        const int64_t n = parse_count(args[9]);
        set_shape(result, {n, shape.ndim});
        parse_operand(args + 5, result, o);
        expect_code("nonzero", o.code, I64);
        int64_t found;
        {
            GilRelease unlocked(shape.numel);
            const Coordinates to{o.as<int64_t>(), o.stride[0], o.stride[1], n};
            found = shape.ndim && shape.numel ? find_all(shape, a, to) : count_all(shape, a);
        }
        if (found != n)
            fail(PyExc_RuntimeError, "nonzero: the number of elements changed from %lld to %lld", (long long)n,
                 (long long)found);
        return none();
    });
}

PyObject* masked_fill(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("masked_fill", nargs, 14);
        Shape shape;
        Operand a, mask, o;
        parse_shape(args[12], shape);
        parse_operand(args, shape, a);
        parse_mask(args + 4, shape, mask);
        alignas(16) char number[16];
        number_into(args[13], a.code, number);
        Ref out(parse_output(args + 8, shape, o));
        expect_code("masked_fill", o.code, a.code);
        if (shape.numel == 0) return out.release();
        Loop<3> loop;
        loop_begin(loop, shape);
        loop_operand(loop, 0, o.data, shape, o.stride, o.itemsize);
        loop_operand(loop, 1, a.data, shape, a.stride, a.itemsize);
        loop_operand(loop, 2, mask.data, shape, mask.stride, 1);
        loop_finish(loop);
        GilRelease unlocked(shape.numel);
        dispatch_size(a.itemsize, [&](auto t) {
            decltype(t) value;
            std::memcpy(&value, number, sizeof value);
            run_rows(loop, GRAIN, [&](char* const* p, int64_t n) {
                choose_row(p[0], loop.step[0][0], p[1], loop.step[1][0], p[2], loop.step[2][0], value, n);
            });
        });
        return out.release();
    });
}

PyObject* masked_select(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("masked_select", nargs, 11);
        Shape shape;
        Operand src, mask, o;
        parse_shape(args[8], shape);
        parse_operand(args, shape, src);
        parse_mask(args + 4, shape, mask);
        int64_t count;
        {
            GilRelease unlocked(shape.numel);
            count = count_all(shape, mask);
        }
        PyObject* result[4] = {args[9], args[10], nullptr, args[3]};
        Ref out(parse_dense_output(result, count, o));
        if (count) {
            Loop<3> loop;
            loop_begin(loop, shape);
            loop_positions(loop, shape);
            loop_operand(loop, 1, src.data, shape, src.stride, src.itemsize);
            loop_operand(loop, 2, mask.data, shape, mask.stride, 1);
            loop_finish(loop);
            GilRelease unlocked(shape.numel);
            int64_t written = 0;
            dispatch_size(src.itemsize, [&](auto t) {
                run_rows(loop, SERIAL, [&](char* const* p, int64_t n) {
                    written =
                        pack_row<decltype(t)>(o.data, written, count, p[1], loop.step[1][0], p[2], loop.step[2][0], n);
                });
            });
            if (MT_UNLIKELY(written != count))
                fail(PyExc_RuntimeError, "masked_select: the number of elements changed from %lld to %lld",
                     (long long)count, (long long)written);
        }
        return Py_BuildValue("(OL)", out.get(), (long long)count);
    });
}

PyObject* masked_scatter(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("masked_scatter", nargs, 14);
        Shape shape;
        Operand o, mask, source;
        parse_shape(args[13], shape);
        const int64_t numel = parse_count(args[12]);
        parse_operand(args, shape, o);
        parse_mask(args + 4, shape, mask);
        parse_dense(args + 8, numel, source);
        expect_code("masked_scatter", source.code, o.code);
        {
            GilRelease unlocked(shape.numel);
            if (count_all(shape, mask) > numel) fail_source();
            if (shape.numel) {
                Loop<3> loop;
                loop_begin(loop, shape);
                loop_positions(loop, shape);
                loop_operand(loop, 1, o.data, shape, o.stride, o.itemsize);
                loop_operand(loop, 2, mask.data, shape, mask.stride, 1);
                loop_finish(loop);
                int64_t taken = 0;
                dispatch_size(o.itemsize, [&](auto t) {
                    run_rows(loop, SERIAL, [&](char* const* p, int64_t n) {
                        taken = unpack_row<decltype(t)>(p[1], loop.step[1][0], p[2], loop.step[2][0], source.data,
                                                        taken, numel, n);
                    });
                });
            }
        }
        return none();
    });
}

}  // namespace mt
