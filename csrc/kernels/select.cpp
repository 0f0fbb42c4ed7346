// One element of each lane by its rank: kthvalue and medians, of every dtype that is sorted.
// Invariant: of equal elements it is the one that a stable sort would put at the rank.
//
//   kth(a.., values.., indices.., shape, dim, rank, nans)
//       an operand: storage, offset, strides, code; values and indices have one element along the dimension.
//       rank: from 0, read where nans is 0. nans: 0 the largest numbers, 1 the median, or the first NaN if there is
//       one, 2 the median of what is no NaN, or the first NaN.
#include "select.h"

using namespace mt;

namespace {

enum Nans { LARGEST = 0, FIRST = 1, SKIPPED = 2 };

template <class T> void kth_lane(char* value, char* index, const char* a, int64_t as, int64_t n, int64_t rank,
                                 int nans) {
    using K = decltype(key_of(T()));
    using C = Counted<K>;
    constexpr bool floats = std::is_floating_point<T>::value || is_small_float<T>;
    const Row<C> keys(n);
    C* key = keys.get();
    int64_t at = 0;
    at_level(MT_BODY {
        if (as == (int64_t)sizeof(T))
            for (int64_t i = 0; i < n; ++i) key[i] = key_of(reinterpret_cast<const T*>(a)[i]);
        else
            for (int64_t i = 0; i < n; ++i) key[i] = key_of(*reinterpret_cast<const T*>(a + i * as));
        int64_t k = nans == LARGEST ? rank : (n - 1) / 2;
        if (floats && nans != LARGEST) {
            const int64_t numbers = count_upto(key, n, C(K(~K(0)) - 1));
            if (nans == FIRST && numbers < n) k = numbers;
            if (nans == SKIPPED) k = numbers > 0 ? (numbers - 1) / 2 : 0;
        }
        const C found = kth_key(key, n, k);
        at = place_of_key(key, n, found, k - (found == 0 ? 0 : count_upto(key, n, C(found - 1))));
    });
    std::memcpy(value, a + at * as, sizeof(T));
    std::memcpy(index, &at, sizeof at);
}

PyObject* kth(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("kth", nargs, 16);
        Shape shape, kept;
        parse_shape(args[12], shape);
        const int dim = parse_dim(args[13], shape);
        const int64_t n = shape.ndim ? shape.dim[dim] : 1, nans = as_int(args[15]);
        const int64_t rank = nans == LARGEST ? parse_count(args[14]) : 0;
        if (n < 1 || rank >= n || nans < LARGEST || nans > SKIPPED)
            fail(PyExc_ValueError, "kth() expects a rank in lanes");
        kept = shape;
        if (kept.ndim) kept.dim[dim] = 1;
        kept.numel = shape.numel / n;
        Operand a, v, x;
        parse_operand(args, shape, a);
        parse_operand(args + 4, kept, v);
        parse_operand(args + 8, kept, x);
        expect_code("kth", v.code, a.code);
        expect_code("kth", x.code, I64);
        dispatch_sortable(a.code, [&](auto t) {
            using T = decltype(t);
            if (shape.numel == 0) return;
            Lanes<3> lanes;
            lanes_of(lanes, shape, dim, {&v, &x, &a});
            GilRelease unlocked(saturated_mul(shape.numel, 4));
            run_rows(lanes.loop, lane_grain(n, 4), [&](char* const* p, int64_t count) {
                const int64_t (&next)[3][MAXD] = lanes.loop.step;
                for (int64_t j = 0; j < count; ++j)
                    kth_lane<T>(p[0] + j * next[0][0], p[1] + j * next[1][0], p[2] + j * next[2][0], lanes.step[2], n,
                                rank, (int)nans);
            });
        });
        Py_RETURN_NONE;
    });
}

}  // namespace

PyMethodDef select_methods[] = {MT_METHOD("kth", kth, "The element of a rank of each lane, and its place."),
                                {nullptr, nullptr, 0, nullptr}};
