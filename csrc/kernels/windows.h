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
        fail(PyExc_ValueError, "%lld elements at %lld do not fit a storage of %zd bytes", (long long)numel,
             (long long)offset, storage->nbytes);
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

}  // namespace mt
#pragma GCC visibility pop
