// Dot products of vectors: see matmul.cpp for those of matrices.
// Invariant: a sum runs in an order that depends on the length alone, and integers wrap.
//   dot(a, aoff, astride, b, boff, bstride, n, code, out|None, ooff) -> out         strides: ints; out: one element
#include "arithmetic.h"
#include "lanes.h"

#include <algorithm>

namespace mt {
namespace {

template <class A> MT_CLONES A dot_cloned(const A* a, const A* b, int64_t n) {
    if constexpr (IsComplex<A>::value)
        return fold_of(
            A{}, n, MT_EACH(i) { return times(a[i], b[i]); },
            [](A x, A y) __attribute__((always_inline)) { return plus(x, y); });
    else return sum_of<A>(n, MT_EACH(i) { return a[i] * b[i]; });
}

template <class T> T dot_of(const T* a, int64_t as, const T* b, int64_t bs, int64_t n) {
    if constexpr (is_small_float<T>) {
        constexpr int64_t STRETCH = 1024;
        alignas(64) float x[STRETCH], y[STRETCH];
        float sum = 0;
        for (int64_t i = 0; i < n; i += STRETCH) {
            const int64_t m = std::min(STRETCH, n - i);
            load_row<T>(x, reinterpret_cast<const char*>(a + i * as), as * (int64_t)sizeof(T), m);
            load_row<T>(y, reinterpret_cast<const char*>(b + i * bs), bs * (int64_t)sizeof(T), m);
            sum += dot_cloned<float>(x, y, m);
        }
        return convert<T>(sum);
    } else if constexpr (std::is_integral<T>::value) {
        using U = typename std::conditional<sizeof(T) == 8, uint64_t, uint32_t>::type;  // it wraps
        if (as == 1 && bs == 1 && sizeof(T) >= 4)
            return (T)dot_cloned(reinterpret_cast<const U*>(a), reinterpret_cast<const U*>(b), n);
        U sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += (U)a[i * as] * (U)b[i * bs];
        return (T)sum;
    } else {
        if (as == 1 && bs == 1) return dot_cloned(a, b, n);
        T sum{};
        for (int64_t i = 0; i < n; ++i) sum = plus(sum, times(a[i * as], b[i * bs]));
        return sum;
    }
}

PyObject* dot(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("dot", nargs, 10);
        const int64_t n = parse_count(args[6]);
        expect_time_for(n);
        auto vector = [&](PyObject* const* from, Operand& op) {
            const int64_t offset = as_int(from[1]);
            op.storage = as_storage(from[0]);
            op.stride[0] = as_int(from[2]);
            op.code = as_code(args[7]);
            op.itemsize = ITEMSIZE[op.code];
            const int64_t far = n ? checked_add(offset, checked_mul(n - 1, op.stride[0])) : offset;
            if (n && (std::min(offset, far) < 0 || std::max(offset, far) >= op.storage->nbytes / op.itemsize))
                fail_reach(offset, far, op);
            op.data = op.storage->ptr + (n ? offset * op.itemsize : 0);
        };
        Operand a, b, o;
        vector(args, a);
        vector(args + 3, b);
        PyObject* result[4] = {args[8], args[9], nullptr, args[7]};
        Ref out(parse_dense_output(result, 1, o));
        dispatch_arithmetic(a.code, "dot", [&](auto t) {
            using T = decltype(t);
            if constexpr (std::is_same<T, Bool>::value) {
                fail_dtype("dot", a.code);
            } else {
                GilRelease unlocked(n);
                *o.as<T>() = dot_of(a.as<const T>(), a.stride[0], b.as<const T>(), b.stride[0], n);
            }
        });
        return out.release();
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef dot_methods[];  // no other file needs to know
PyMethodDef dot_methods[] = {MT_METHOD("dot", dot, "dot(a, aoff, astride, b, boff, bstride, n, code, out, ooff)."),
                             {nullptr, nullptr, 0, nullptr}};
