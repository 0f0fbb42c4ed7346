// Pooling over windows of one size whose places are listed for each plane: fractional pooling.
// Invariant: operands are dense and compared with the size of their storage; a start is read once and checked before it is
// used. What window.cpp says of ties and NaN holds; two-byte floats are converted plane by plane.
//   pool_fractional(x.., out.., places.., starts.., planes, in, out, kernel)
//       starts: of each plane, those of all out depths, then heights, then widths
#include "cpu.h"
#include "lanes.h"
#include "windows.h"

#include <algorithm>
#include <vector>

namespace mt {
namespace {

// A row of windows: one tap after the other, neighbouring windows together. Places are counted from the window's first.
template <class T, class I>
MT_INLINE void take_tap(const T* row, I shift, const I* first, T* best, I* at, int64_t n) {
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) {
        const T candidate = row[first[k]];
        const bool wins = (candidate > best[k]) | (candidate != candidate);
        best[k] = wins ? candidate : best[k];
        at[k] = wins ? shift : at[k];
    }
}

template <class T, class I>
void pool_plane(const T* x, T* out, int64_t* places, const int64_t* starts, const Triple& in, const Triple& size,
                const Triple& kernel, I* first, I* at) {
    const int64_t *d0 = starts, *h0 = d0 + size.d, *w0 = h0 + size.h;
    for (int64_t k = 0; k < size.w; ++k) first[k] = (I)w0[k];
    for (int64_t i = 0; i < size.d; ++i)
        for (int64_t j = 0; j < size.h; ++j, out += size.w, places += size.w) {
            const int64_t base = (d0[i] * in.h + h0[j]) * in.w;
            at_level(MT_BODY {
                for (int64_t k = 0; k < size.w; ++k) out[k] = -std::numeric_limits<T>::infinity(), at[k] = 0;
                for (int64_t z = 0; z < kernel.d; ++z)
                    for (int64_t y = 0; y < kernel.h; ++y)
                        for (int64_t c = 0; c < kernel.w; ++c) {
                            const int64_t shift = (z * in.h + y) * in.w + c;
                            take_tap<T, I>(x + base + shift, (I)shift, first, out, at, size.w);
                        }
                for (int64_t k = 0; k < size.w; ++k) places[k] = base + (int64_t)first[k] + (int64_t)at[k];
            });
        }
}

struct Fractional {
    Triple in, out, kernel;
    explicit Fractional(PyObject* const* args)
        : in(parse_sizes(args[0])), out(parse_sizes(args[1])), kernel(parse_sizes(args[2])) {
        if (kernel.d > in.d || kernel.h > in.h || kernel.w > in.w)
            fail(PyExc_ValueError, "pool_fractional: a window exceeds its plane");
    }
    int64_t count() const { return checked_add(checked_add(out.d, out.h), out.w); }
    // The starts of a plane, as nobody changes them any more.
    void read(const int64_t* from, int64_t* to) const {
        const int64_t size[3] = {in.d - kernel.d, in.h - kernel.h, in.w - kernel.w}, n[3] = {out.d, out.h, out.w};
        int64_t at = 0;
        for (int d = 0; d < 3; ++d)
            for (int64_t i = 0; i < n[d]; ++i, ++at) {
                const int64_t start = read_once(from + at);
                if (start < 0 || start > size[d]) fail(PyExc_ValueError, "a window leaves its plane");
                to[at] = start;
            }
    }
};

template <class T, class I>
void pool_planes(const Fractional& v, int64_t planes, const Dense& x, const Dense& o, const Dense& places,
                 const Dense& starts) {
    const int64_t work = saturated_add(v.in.size(), saturated_mul(v.out.size(), v.kernel.size()));
    const int64_t size = ITEMSIZE[x.code];
    const bool wide = x.code == CodeOf<T>::value;
    GilRelease unlocked(saturated_mul(planes, work));
    parallel_for(planes, lane_grain(work, 1), [&](int64_t begin, int64_t end) {
        const Scratch index(v.out.w, 2 * sizeof(I)), listed(v.count(), sizeof(int64_t));
        const Scratch from(wide ? 0 : v.in.size(), sizeof(T)), to(wide ? 0 : v.out.size(), sizeof(T));
        for (int64_t p = begin; p < end; ++p) {
            v.read(starts.as<const int64_t>() + p * v.count(), listed.as<int64_t>());
            char *plane = x.data + p * v.in.size() * size, *result = o.data + p * v.out.size() * size;
            if (!wide) cast_block(from.as(), CodeOf<T>::value, plane, x.code, v.in.size());
            pool_plane<T, I>(reinterpret_cast<const T*>(wide ? plane : from.as()),
                             reinterpret_cast<T*>(wide ? result : to.as()), places.as<int64_t>() + p * v.out.size(),
                             listed.as<int64_t>(), v.in, v.out, v.kernel, index.as<I>(), index.as<I>() + v.out.w);
            if (!wide) cast_block(result, x.code, to.as(), CodeOf<T>::value, v.out.size());
        }
    });
}

PyObject* pool_fractional(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("pool_fractional", nargs, 16);
        const int64_t planes = parse_count(args[12]);
        const Fractional v(args + 13);
        const Dense x = parse_dense(args, checked_mul(planes, v.in.size()));
        const Dense o = parse_dense(args + 3, checked_mul(planes, v.out.size()));
        const Dense places = parse_dense(args + 6, checked_mul(planes, v.out.size()));
        const Dense starts = parse_dense(args + 9, checked_mul(planes, v.count()));
        if (x.code != o.code || places.code != I64 || starts.code != I64)
            fail(PyExc_ValueError, "pool_fractional: operands of wrong dtypes");
        if (planes == 0 || v.out.size() == 0) Py_RETURN_NONE;
        if (v.in.size() > std::numeric_limits<int32_t>::max())
            fail(PyExc_ValueError, "pool_fractional: a plane is too large");
        if (x.code == F64) pool_planes<double, int64_t>(v, planes, x, o, places, starts);
        else if (x.code == F32 || x.code == F16 || x.code == BF16)
            pool_planes<float, int32_t>(v, planes, x, o, places, starts);
        else fail_dtype("fractional_max_pool", x.code);
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef fractional_methods[];  // no other file needs to know
PyMethodDef fractional_methods[] = {
    MT_METHOD("pool_fractional", pool_fractional, "The largest of windows that are listed, and its place."),
    {nullptr, nullptr, 0, nullptr}};
