// Images and volumes read at places between their elements (grid_sample), float32 and float64.
// Invariant: operands are dense.
//
//   grid_sample(x.., grid.., out.., images, channels, in, out, rank, mode, padding, align)
//       an operand: storage, offset, code; in, out: (depth, height, width); grid: [image][out place][rank], x first.
//       mode: 0 linear, 1 nearest, 2 cubic (images only); padding: 0 zeros, 1 border, 2 reflection
#include "grid.h"

namespace mt {
namespace {

using namespace grid;

template <class A, int N> MT_INLINE void sum_corners(const Places<A>& p, const A* plane, int64_t count, A* to) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
        A sum = element(plane, p.index[0][i]) * p.weight[0][i];
#pragma GCC unroll 8
        for (int c = 1; c < N; ++c) sum += element(plane, p.index[c][i]) * p.weight[c][i];
        to[i] = sum;
    }
}
// The four corners of an image's place are read as two pairs: gathering them one by one takes more than twice as long.
template <class A> MT_INLINE void sum_pairs(const Places<A>& p, const A* plane, int64_t count, A* to) {
    typedef A Two __attribute__((vector_size(2 * sizeof(A)), aligned(alignof(A)), may_alias));
    typedef A Four __attribute__((vector_size(4 * sizeof(A))));
    typedef A Loose __attribute__((vector_size(4 * sizeof(A)), aligned(alignof(A)), may_alias));
    typedef typename Places<A>::Bits Mask __attribute__((vector_size(4 * sizeof(A))));
    typedef typename Places<A>::Bits LooseMask
        __attribute__((vector_size(4 * sizeof(A)), aligned(alignof(A)), may_alias));
    auto four = [&](int64_t i) __attribute__((always_inline)) -> Four {
        const Two top = *reinterpret_cast<const Two*>(plane + p.row[0][i]);
        const Two bottom = *reinterpret_cast<const Two*>(plane + p.row[1][i]);
        const Mask mask = *reinterpret_cast<const LooseMask*>(p.mask[i]);
        return (Four)((Mask)Four(__builtin_shufflevector(top, bottom, 0, 1, 2, 3)) & mask) *
               Four(*reinterpret_cast<const Loose*>(p.quad[i]));
    };
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        Four part[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) part[k] = four(i + k);
        const Four a = __builtin_shufflevector(part[0], part[1], 0, 4, 1, 5) +
                       __builtin_shufflevector(part[0], part[1], 2, 6, 3, 7);
        const Four b = __builtin_shufflevector(part[2], part[3], 0, 4, 1, 5) +
                       __builtin_shufflevector(part[2], part[3], 2, 6, 3, 7);
        *reinterpret_cast<Loose*>(to + i) =
            __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
    }
    for (; i < count; ++i) {
        const Four part = four(i);
        to[i] = (part[0] + part[2]) + (part[1] + part[3]);
    }
}
template <class A> MT_INLINE void sum_cubic(const Places<A>& p, const A* plane, int64_t count, A* to) {
    typedef A Four __attribute__((vector_size(4 * sizeof(A))));
    typedef A Loose __attribute__((vector_size(4 * sizeof(A)), aligned(alignof(A)), may_alias));
    for (int64_t i = 0; i < count; ++i) {
        Four total{};
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) {
            Four line;
            if (MT_LIKELY(p.whole_rows[i])) line = *reinterpret_cast<const Loose*>(plane + p.index[4 * r][i]);
            else
                for (int c = 0; c < 4; ++c) line[c] = element(plane, p.index[4 * r + c][i]);
            total += line * p.weight[4 + r][i];
        }
        const Four across{p.weight[0][i], p.weight[1][i], p.weight[2][i], p.weight[3][i]}, all = total * across;
        to[i] = (all[0] + all[1]) + (all[2] + all[3]);
    }
}
// One element of each place. Not by gathering, which takes longer: the compiler is told nothing of the index.
template <class A> MT_INLINE void take_nearest(const Places<A>& p, const A* plane, int64_t count, A* to) {
    for (int64_t i = 0; i < count; ++i) {
        int32_t index = p.index[0][i];
        __asm__("" : "+r"(index));
        to[i] = element(plane, index);
    }
}

template <class A> void sample(const Job& j, const A* x, const A* grid, A* out) {
    const int64_t all = j.out.size(), plane = j.in.size(), blocks = ceil_div(all, PLACES);
    const int64_t work = saturated_mul(PLACES * j.corners(), j.channels + 8);
    parallel_for(checked_mul(j.images, blocks), std::max<int64_t>(1, GRAIN / work), [&](int64_t begin, int64_t end) {
        const Scratch room(1, sizeof(Places<A>));
        Places<A>& p = *room.as<Places<A>>();
        for (int64_t t = begin; t < end; ++t) {
            const int64_t image = t / blocks, first = t % blocks * PLACES, count = std::min(PLACES, all - first);
            at_level(MT_BODY {
                p.find(j, grid + (image * all + first) * j.rank, count);
                for (int64_t c = 0; c < j.channels; ++c) {
                    const A* from = x + (image * j.channels + c) * plane;
                    A* to = out + (image * j.channels + c) * all + first;
                    switch (j.mode == CUBIC ? 0 : j.corners()) {
                        case 0: sum_cubic(p, from, count, to); break;
                        case 1: take_nearest(p, from, count, to); break;
                        case 4:
                            if (j.in_pairs()) sum_pairs(p, from, count, to);
                            else sum_corners<A, 4>(p, from, count, to);
                            break;
                        default: sum_corners<A, 8>(p, from, count, to); break;
                    }
                }
            });
        }
    });
}

PyObject* grid_sample(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("grid_sample", nargs, 17);
        const Job j = parse_job(args + 9, true);
        const int64_t planes = checked_mul(j.images, j.channels);
        const Dense x = parse_dense(args, checked_mul(planes, j.in.size()));
        const Dense grid = parse_dense(args + 3, checked_numel({j.images, j.out.size(), j.rank}));
        const Dense o = parse_dense(args + 6, checked_mul(planes, j.out.size()));
        if (x.code != grid.code || x.code != o.code) fail(PyExc_ValueError, "grid_sample: operands of two dtypes");
        if (x.code != F32 && x.code != F64) fail_dtype("grid_sample", x.code);
        GilRelease unlocked(saturated_mul(planes, j.out.size()));
        if (x.code == F32) sample(j, x.as<const float>(), grid.as<const float>(), o.as<float>());
        else sample(j, x.as<const double>(), grid.as<const double>(), o.as<double>());
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
PyMethodDef grid_methods[] = {MT_METHOD("grid_sample", grid_sample, "Images read at the places of a grid."),
                              {nullptr, nullptr, 0, nullptr}};
