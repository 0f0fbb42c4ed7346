// What kernels of windows that slide over planes share: their sizes and their operands.
// Invariant: sizes are multiplied and windows measured, checked, before anything is computed with them.
#pragma once
#include "common.h"

#include <vector>

#pragma GCC visibility push(hidden)
namespace mt {

struct Triple {
    int64_t d, h, w;
    int64_t size() const { return d * h * w; }  // fits: `parse_sizes` has multiplied it
};

// Three numbers, none below `least`.
inline Triple parse_triple(PyObject* tuple, int64_t least) {
    int64_t v[3];
    parse_ints(tuple, 3, v);
    for (const int64_t x : v)
        if (x < least)
            fail(PyExc_ValueError, "expected numbers from %lld on, got %lld", (long long)least, (long long)x);
    return {v[0], v[1], v[2]};
}
inline Triple parse_sizes(PyObject* tuple) {
    const Triple sizes = parse_triple(tuple, 0);
    checked_mul(checked_mul(sizes.d, sizes.h), sizes.w);
    return sizes;
}
inline std::vector<int64_t> parse_list(PyObject* tuple, int64_t n) {
    std::vector<int64_t> values((size_t)n);
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != (Py_ssize_t)n)
        fail(PyExc_ValueError, "expected a tuple of %lld ints", (long long)n);
    for (int64_t i = 0; i < n; ++i) values[(size_t)i] = as_int(PyTuple_GET_ITEM(tuple, i));
    return values;
}

struct Dense {
    char* data;
    int code;
    template <class T> T* as() const { return reinterpret_cast<T*>(data); }
};
inline Dense parse_dense(PyObject* const* args, int64_t numel) {
    StorageObject* storage = as_storage(args[0]);
    const int64_t offset = as_int(args[1]);
    const int code = as_code(args[2]);
    const int64_t room = storage->nbytes / ITEMSIZE[code];
    if (offset < 0 || numel < 0 || (numel != 0 && numel > room - offset))
        fail_reach(offset, saturated_add(offset, numel - 1), Operand{storage, nullptr, code, (int)ITEMSIZE[code], {}});
    return {storage->ptr + (numel ? offset * ITEMSIZE[code] : 0), code};
}

struct Window {
    Triple in, out, kernel, stride, padding, dilation;
    explicit Window(PyObject* const* args)
        : in(parse_sizes(args[0])), out(parse_sizes(args[1])), kernel(parse_sizes(args[2])),
          stride(parse_triple(args[3], 1)), padding(parse_triple(args[4], 0)), dilation(parse_triple(args[5], 1)) {
        settle(in.d, out.d, kernel.d, stride.d, padding.d, dilation.d);
        settle(in.h, out.h, kernel.h, stride.h, padding.h, dilation.h);
        settle(in.w, out.w, kernel.w, stride.w, padding.w, dilation.w);
    }

private:
    // No place that a window reaches, counted from either end of the padded plane, exceeds 64 bits. A step that is never
    // made may have any length.
    static void settle(int64_t in, int64_t out, int64_t kernel, int64_t& stride, int64_t padding, int64_t& dilation) {
        if (out <= 1) stride = 1;
        if (kernel <= 1) dilation = 1;
        const int64_t window = checked_add(checked_mul(out, stride), checked_mul(kernel, dilation));
        checked_add(checked_add(window, stride), checked_add(in, checked_mul(2, padding)));
    }
};

// Elements that windows consist of.
template <class F> void dispatch_columns(int code, const char* op, F&& f) {
    switch (code) {
        case F32: f(float()); return;
        case F64: f(double()); return;
        case U8: f(uint8_t()); return;
        case I8: f(int8_t()); return;
        case I16: f(int16_t()); return;
        case I32: f(int32_t()); return;
        case I64: f(int64_t()); return;
        case C64: f(Complex<float>()); return;
        case C128: f(Complex<double>()); return;
        default: fail_dtype(op, code);
    }
}

// An empty window may begin anywhere; but two such numbers can be added.
constexpr int64_t FAR = std::numeric_limits<int64_t>::max() / 4;

// Where windows of pooling begin and end: of all depths, then heights, then widths.
struct Ranges {
    Triple in, out;
    std::vector<int64_t> start, end;
    Ranges(PyObject* in_, PyObject* out_, PyObject* starts, PyObject* ends)
        : in(parse_sizes(in_)), out(parse_sizes(out_)), start(parse_list(starts, count())),
          end(parse_list(ends, count())) {
        const int64_t size[3] = {in.d, in.h, in.w}, count[3] = {out.d, out.h, out.w};
        size_t at = 0;
        for (int d = 0; d < 3; ++d)
            for (int64_t i = 0; i < count[d]; ++i, ++at)
                if (start[at] < 0 || start[at] > FAR || end[at] < 0 || end[at] > size[d])
                    fail(PyExc_ValueError, "a window leaves its plane");
    }

private:
    int64_t count() const { return checked_add(checked_add(out.d, out.h), out.w); }
};

// The number of elements a window counts, as PyTorch multiplies it.
MT_INLINE int64_t window_count(int64_t a, int64_t b, int64_t c) { return wrapping_mul(wrapping_mul(a, b), c); }

// Integers: a sum divided by a number of elements. What a processor would trap at is an error, or wraps.
template <class T> MT_INLINE T mean_of_sum(T sum, int64_t count) {
    if constexpr (std::is_integral<T>::value) {
        if (MT_UNLIKELY(count == 0)) fail(PyExc_RuntimeError, "ZeroDivisionError");
        if (MT_UNLIKELY(count == -1)) return (T)(0 - (uint64_t)sum);
    }
    return (T)(sum / (T)count);
}

// Of resampling: out place o of dimension d is the sum over its taps of weight * x[place].
// args: in, out, taps, places, weights
struct Resampling {
    Triple in, out, number;
    std::vector<int64_t> place[3];
    std::vector<double> weight[3];
    explicit Resampling(PyObject* const* args)
        : in(parse_sizes(args[0])), out(parse_sizes(args[1])), number(parse_sizes(args[2])) {
        const int64_t from[3] = {in.d, in.h, in.w}, to[3] = {out.d, out.h, out.w};
        const int64_t each[3] = {number.d, number.h, number.w};
        int64_t all = 0;
        for (int d = 0; d < 3; ++d) all = checked_add(all, checked_mul(to[d], each[d]));
        const std::vector<int64_t> places = parse_list(args[3], all);
        if (!PyTuple_Check(args[4]) || PyTuple_GET_SIZE(args[4]) != (Py_ssize_t)all)
            fail(PyExc_ValueError, "expected a tuple of %lld weights", (long long)all);
        int64_t at = 0;
        for (int d = 0; d < 3; ++d)
            for (int64_t i = 0; i < to[d] * each[d]; ++i, ++at) {
                if (places[(size_t)at] < 0 || places[(size_t)at] >= from[d])
                    fail(PyExc_ValueError, "a tap leaves its plane");
                place[d].push_back(places[(size_t)at]);
                weight[d].push_back(as_double(PyTuple_GET_ITEM(args[4], at)));
            }
    }
};

// The way back along one dimension: which results show each place, and how much.
template <class T> struct Shown {
    std::vector<size_t> begin;  // of each place; one more than places
    std::vector<int64_t> result;
    std::vector<T> weight;
    Shown(const Resampling& taps, int d, bool wanted) {
        const int64_t places[3] = {taps.in.d, taps.in.h, taps.in.w};
        const int64_t each[3] = {taps.number.d, taps.number.h, taps.number.w};
        begin.assign((size_t)places[d] + 1, 0);
        if (!wanted) return;
        const std::vector<int64_t>& place = taps.place[d];
        for (const int64_t p : place) ++begin[(size_t)p + 1];
        for (size_t p = 1; p < begin.size(); ++p) begin[p] += begin[p - 1];
        result.resize(place.size());
        weight.resize(place.size());
        std::vector<size_t> at(begin.begin(), begin.end() - 1);
        for (size_t k = 0; k < place.size(); ++k) {
            const size_t to = at[(size_t)place[k]]++;
            result[to] = (int64_t)k / each[d];
            weight[to] = (T)taps.weight[d][k];
        }
    }
};

}  // namespace mt
#pragma GCC visibility pop
