// Planes with surroundings made of themselves: mirrored, the edge again, or around the corner; or of a number.
// Invariant: where each place of the result comes from is worked out once per dimension and compared with the plane's
// size before anything is read; each plane is written by one thread only.
//
// An operand is 3 arguments: storage, offset, code; dense. Triples are tuples of three ints (depth, height, width).
//   pad_planes(x.., out.., planes, in, out, before, mode)        before: may be negative; mode: 0 mirror, 1 edge, 2 corner
//   pad_number(x.., out.., planes, in, out, before, value)       before: may be negative
//   pad_planes_backward(grad.., dx.., the same)                  dx is overwritten; float32, float64, integers, complex
#include "cpu.h"
#include "lanes.h"
#include "windows.h"

#include <algorithm>
#include <vector>

namespace mt {
namespace {

enum Mode : int64_t { MIRROR = 0, EDGE = 1, CORNER = 2, NUMBER = 3 };
constexpr int64_t OUTSIDE = -1;  // a place that shows the number

// For each place of one dimension of the result, the place of the plane that it shows.
struct Places {
    std::vector<int64_t> from;
    int64_t begin, end;  // where the plane itself lies: from[i] == i - before

    Places(int64_t in, int64_t out, int64_t before, int64_t mode) : from((size_t)out) {
        const int64_t far = std::numeric_limits<int64_t>::max() / 4;
        if (before < -far || before > far || out > far || in > far) fail(PyExc_ValueError, "a pad is too wide");
        for (int64_t i = 0; i < out; ++i) {
            int64_t at = i - before;
            if (mode == EDGE) at = std::min(std::max<int64_t>(at, 0), in - 1);
            else if (mode == CORNER) at = at < 0 ? at + in : at >= in ? at - in : at;
            else if (mode == NUMBER) at = at < 0 || at >= in ? OUTSIDE : at;
            else at = at < 0 ? -at : at >= in ? 2 * (in - 1) - at : at;
            if ((at < 0 || at >= in) && !(mode == NUMBER && at == OUTSIDE))
                fail(PyExc_ValueError, "a pad leaves its plane");
            from[(size_t)i] = at;
        }
        begin = std::min(out, std::max<int64_t>(before, 0));
        end = std::max(begin, std::min(out, in + before));
    }
};

struct Pads {
    int64_t planes;
    Triple in, out;
    Places d, h, w;
    Pads(PyObject* const* args, int64_t mode)
        : Pads(args, parse_triple(args[3], std::numeric_limits<int64_t>::min()), mode) {}

private:
    Pads(PyObject* const* args, const Triple& before, int64_t mode)
        : planes(parse_count(args[0])), in(parse_sizes(args[1])), out(parse_sizes(args[2])),
          d(in.d, out.d, before.d, mode), h(in.h, out.h, before.h, mode), w(in.w, out.w, before.w, mode) {}
};

int64_t parse_mode(PyObject* o) {
    const int64_t mode = as_int(o);
    if (mode < MIRROR || mode > CORNER) fail(PyExc_ValueError, "%lld is no mode of padding", (long long)mode);
    return mode;
}

// A row of the result that shows `value` outside of the plane's row; of the value alone where there is no such row.
template <class T> MT_INLINE void surround_row(const T* row, T* to, const Places& w, int64_t n, T value) {
    const int64_t begin = row ? w.begin : n, end = row ? w.end : n;
    repeat_row(to, value, begin);
    if (begin < end)
        copy_bytes(reinterpret_cast<char*>(to + begin), reinterpret_cast<const char*>(row + w.from[(size_t)begin]),
                   (end - begin) * (int64_t)sizeof(T));
    repeat_row(to + end, value, n - end);
}
template <class T> MT_INLINE void pad_row(const T* row, T* to, const Places& w, int64_t n) {
    const int64_t* from = w.from.data();
    for (int64_t i = 0; i < w.begin; ++i) to[i] = row[from[i]];
    if (w.begin < w.end)
        copy_bytes(reinterpret_cast<char*>(to + w.begin), reinterpret_cast<const char*>(row + from[w.begin]),
                   (w.end - w.begin) * (int64_t)sizeof(T));
    for (int64_t i = w.end; i < n; ++i) to[i] = row[from[i]];
}
template <class T> MT_INLINE void add_to(T& place, T value) {
    if constexpr (IsComplex<T>::value) {
        place.re += value.re;
        place.im += value.im;
    } else {
        place = (T)(place + value);
    }
}
template <class T> MT_INLINE void unpad_row(T* row, const T* grad, const Places& w, int64_t n) {
    const int64_t* from = w.from.data();
    for (int64_t i = 0; i < w.begin; ++i) add_to(row[from[i]], grad[i]);
    if (w.begin < w.end) {
        T* to = row + from[w.begin];
        const T* g = grad + w.begin;
#pragma GCC ivdep
        for (int64_t i = 0; i < w.end - w.begin; ++i) add_to(to[i], g[i]);
    }
    for (int64_t i = w.end; i < n; ++i) add_to(row[from[i]], grad[i]);
}

// f(row of the plane, row of the result) for every row of the results, by one thread for each plane.
template <class T, class F> void for_rows(const Pads& p, T* planes, T* results, bool clear, F&& f) {
    const int64_t each = saturated_add(p.in.size(), p.out.size());
    GilRelease unlocked(saturated_mul(p.planes, each));
    parallel_for(p.planes, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, each)), [&](int64_t begin, int64_t end) {
        at_level(MT_BODY {
            for (int64_t i = begin; i < end; ++i) {
                T* plane = planes + i * p.in.size();
                T* result = results + i * p.out.size();
                if (clear) std::fill_n(plane, p.in.size(), T{});
                for (int64_t z = 0; z < p.out.d; ++z)
                    for (int64_t y = 0; y < p.out.h; ++y, result += p.out.w) {
                        const int64_t slice = p.d.from[(size_t)z], line = p.h.from[(size_t)y];
                        const bool outside = slice == OUTSIDE || line == OUTSIDE;
                        f(outside ? nullptr : plane + (slice * p.in.h + line) * p.in.w, result);
                    }
            }
        });
    });
}

PyObject* pad_planes(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("pad_planes", nargs, 11);
        const Pads p(args + 6, parse_mode(args[10]));
        const Dense x = parse_dense(args, checked_mul(p.planes, p.in.size()));
        const Dense o = parse_dense(args + 3, checked_mul(p.planes, p.out.size()));
        if (x.code != o.code) fail(PyExc_ValueError, "pad_planes: operands of two dtypes");
        dispatch_size(ITEMSIZE[x.code], [&](auto t) {
            using T = decltype(t);
            for_rows(p, x.as<T>(), o.as<T>(), false,
                     [&](const T* row, T* to) __attribute__((always_inline)) { pad_row(row, to, p.w, p.out.w); });
        });
        Py_RETURN_NONE;
    });
}

PyObject* pad_number(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("pad_number", nargs, 11);
        const Pads p(args + 6, NUMBER);
        const Dense x = parse_dense(args, checked_mul(p.planes, p.in.size()));
        const Dense o = parse_dense(args + 3, checked_mul(p.planes, p.out.size()));
        if (x.code != o.code) fail(PyExc_ValueError, "pad_number: operands of two dtypes");
        alignas(16) char number[16];
        number_into(args[10], o.code, number);
        dispatch_size(ITEMSIZE[x.code], [&](auto t) {
            using T = decltype(t);
            T value;
            std::memcpy(&value, number, sizeof value);
            for_rows(p, x.as<T>(), o.as<T>(), false, [&](const T* row, T* to) __attribute__((always_inline)) {
                surround_row(row, to, p.w, p.out.w, value);
            });
        });
        Py_RETURN_NONE;
    });
}

PyObject* pad_planes_backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("pad_planes_backward", nargs, 11);
        const Pads p(args + 6, parse_mode(args[10]));
        const Dense g = parse_dense(args, checked_mul(p.planes, p.out.size()));
        const Dense x = parse_dense(args + 3, checked_mul(p.planes, p.in.size()));
        if (x.code != g.code) fail(PyExc_ValueError, "pad_planes_backward: operands of two dtypes");
        dispatch_arithmetic(x.code, "pad_planes_backward", [&](auto t) {
            using T = decltype(t);
            if constexpr (is_small_float<T> || std::is_same<T, Bool>::value) {
                fail_dtype("pad_planes_backward", x.code);
            } else {
                for_rows(p, x.as<T>(), g.as<T>(), true, [&](T* row, const T* grad) __attribute__((always_inline)) {
                    unpad_row(row, grad, p.w, p.out.w);
                });
            }
        });
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef pad_methods[];  // no other file needs to know
PyMethodDef pad_methods[] = {MT_METHOD("pad_planes", pad_planes, "Planes with their surroundings."),
                             MT_METHOD("pad_number", pad_number, "Planes with a number around them."),
                             MT_METHOD("pad_planes_backward", pad_planes_backward, "The gradient of pad_planes."),
                             {nullptr, nullptr, 0, nullptr}};
