// Vectors as the compiler knows them, for bodies of at_level: a level without registers of that width gets several.
#pragma once
#include "common.h"

namespace mt {

template <class A, int BYTES> struct Vec {
    typedef A t __attribute__((vector_size(BYTES)));
    typedef A loose __attribute__((vector_size(BYTES), aligned(alignof(A)), may_alias));
    static constexpr int LANES = BYTES / int(sizeof(A));
};

// SIZE to 2 * SIZE bytes, as its first and its last SIZE of them.
template <int SIZE> MT_INLINE void copy_ends(char* to, const char* from, int64_t n) {
    char head[SIZE], tail[SIZE];
    std::memcpy(head, from, SIZE);
    std::memcpy(tail, from + n - SIZE, SIZE);
    std::memcpy(to, head, SIZE);
    std::memcpy(to + n - SIZE, tail, SIZE);
}

// n bytes that do not overlap. Backwards where the target lies a little behind the source, counted within a page: the
// processor would take each load for one of what was just stored there.
MT_INLINE void copy_bytes(char* to, const char* from, int64_t n) {
    typedef uint8_t Bytes __attribute__((vector_size(32), aligned(1), may_alias));
    if (n < 32) {
        if (n >= 16) copy_ends<16>(to, from, n);
        else if (n >= 8) copy_ends<8>(to, from, n);
        else if (n >= 4) copy_ends<4>(to, from, n);
        else
            for (int64_t i = 0; i < n; ++i) to[i] = from[i];
        return;
    }
    const Bytes head = *reinterpret_cast<const Bytes*>(from), tail = *reinterpret_cast<const Bytes*>(from + n - 32);
    const uint64_t ahead = (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) & 4095;
    if (ahead != 0 && ahead < 256)
        for (int64_t i = n - 32; i > 0; i -= 32)
            *reinterpret_cast<Bytes*>(to + i) = *reinterpret_cast<const Bytes*>(from + i);
    else
        for (int64_t i = 0; i < n - 32; i += 32)
            *reinterpret_cast<Bytes*>(to + i) = *reinterpret_cast<const Bytes*>(from + i);
    *reinterpret_cast<Bytes*>(to) = head;
    *reinterpret_cast<Bytes*>(to + n - 32) = tail;
}

// All lanes of a vector of 64 bytes folded into one, halves first. fold: of vectors and of numbers.
template <class F> MT_INLINE float fold_lanes(typename Vec<float, 64>::t v, F fold) {
    const auto a = fold(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                        __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
    const auto b = fold(__builtin_shufflevector(a, a, 0, 1, 2, 3), __builtin_shufflevector(a, a, 4, 5, 6, 7));
    const auto c = fold(b, __builtin_shufflevector(b, b, 2, 3, 0, 1));
    return fold(c[0], c[1]);
}
template <class F> MT_INLINE double fold_lanes(typename Vec<double, 64>::t v, F fold) {
    const auto a = fold(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7));
    const auto b = fold(__builtin_shufflevector(a, a, 0, 1), __builtin_shufflevector(a, a, 2, 3));
    return fold(b[0], b[1]);
}

// Folds n elements x[i], i from 0 on: `step` of vectors and of numbers, from `start` on.
template <class A, class F, class G> MT_INLINE A fold_dense(const A* x, int64_t n, A start, F step, G fold) {
    using V = typename Vec<A, 64>::t;
    using L = typename Vec<A, 64>::loose;
    constexpr int LANES = Vec<A, 64>::LANES;
    A total = start;
    int64_t i = 0;
    if (n >= LANES) {
        V a = V{} + start;
        if (n >= 4 * LANES) {
            V b = a, c = a, d = a;
            for (; i + 4 * LANES <= n; i += 4 * LANES) {
                a = step(a, V(*reinterpret_cast<const L*>(x + i)));
                b = step(b, V(*reinterpret_cast<const L*>(x + i + LANES)));
                c = step(c, V(*reinterpret_cast<const L*>(x + i + 2 * LANES)));
                d = step(d, V(*reinterpret_cast<const L*>(x + i + 3 * LANES)));
            }
            a = fold(fold(a, b), fold(c, d));
        }
        for (; i + LANES <= n; i += LANES) a = step(a, V(*reinterpret_cast<const L*>(x + i)));
        total = fold_lanes(a, fold);
    }
    for (; i < n; ++i) total = step(total, x[i]);
    return total;
}

}  // namespace mt
