// Matrices transposed in registers, square by square. For bodies of at_level.
// Invariant: elements are moved, never looked at; what is read and what is written do not overlap.
#pragma once
#include "move.h"

#include <algorithm>

namespace mt {

// S x S elements, S of which are 32 bytes, transposed: to[p * width + line] = from[line * stride + p]. Lines from `lines` on are anything.
template <class A, bool ALL>
MT_INLINE void transpose_lines(A* to, int64_t width, const A* from, int64_t stride, int64_t lines) {
    const auto line = [&](int i) __attribute__((always_inline)) {
        return from + (ALL ? i : std::min<int64_t>(i, lines - 1)) * stride;
    };
    using V = typename Vec<A, 32>::t;
    using L = typename Vec<A, 32>::loose;
    if constexpr (sizeof(A) == 4) {
        typedef int I __attribute__((vector_size(32)));
        V r[8], s[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) r[i] = *reinterpret_cast<const L*>(line(i));
#pragma GCC unroll 4
        for (int i = 0; i < 8; i += 2) {
            s[i] = __builtin_shuffle(r[i], r[i + 1], I{0, 8, 1, 9, 4, 12, 5, 13});
            s[i + 1] = __builtin_shuffle(r[i], r[i + 1], I{2, 10, 3, 11, 6, 14, 7, 15});
        }
#pragma GCC unroll 2
        for (int i = 0; i < 8; i += 4) {
            r[i] = __builtin_shuffle(s[i], s[i + 2], I{0, 1, 8, 9, 4, 5, 12, 13});
            r[i + 1] = __builtin_shuffle(s[i], s[i + 2], I{2, 3, 10, 11, 6, 7, 14, 15});
            r[i + 2] = __builtin_shuffle(s[i + 1], s[i + 3], I{0, 1, 8, 9, 4, 5, 12, 13});
            r[i + 3] = __builtin_shuffle(s[i + 1], s[i + 3], I{2, 3, 10, 11, 6, 7, 14, 15});
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
            *reinterpret_cast<L*>(to + i * width) = __builtin_shuffle(r[i], r[i + 4], I{0, 1, 2, 3, 8, 9, 10, 11});
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
            *reinterpret_cast<L*>(to + (i + 4) * width) =
                __builtin_shuffle(r[i], r[i + 4], I{4, 5, 6, 7, 12, 13, 14, 15});
    } else {
        typedef int64_t I __attribute__((vector_size(32)));
        V r[4], s[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) r[i] = *reinterpret_cast<const L*>(line(i));
        s[0] = __builtin_shuffle(r[0], r[1], I{0, 4, 2, 6});
        s[1] = __builtin_shuffle(r[0], r[1], I{1, 5, 3, 7});
        s[2] = __builtin_shuffle(r[2], r[3], I{0, 4, 2, 6});
        s[3] = __builtin_shuffle(r[2], r[3], I{1, 5, 3, 7});
        *reinterpret_cast<L*>(to) = __builtin_shuffle(s[0], s[2], I{0, 1, 4, 5});
        *reinterpret_cast<L*>(to + width) = __builtin_shuffle(s[1], s[3], I{0, 1, 4, 5});
        *reinterpret_cast<L*>(to + 2 * width) = __builtin_shuffle(s[0], s[2], I{2, 3, 6, 7});
        *reinterpret_cast<L*>(to + 3 * width) = __builtin_shuffle(s[1], s[3], I{2, 3, 6, 7});
    }
}

template <class A> MT_INLINE void transpose_lines(A* to, int64_t width, const A* from, int64_t stride, int64_t lines) {
    if (lines >= 32 / (int64_t)sizeof(A)) transpose_lines<A, true>(to, width, from, stride, lines);
    else transpose_lines<A, false>(to, width, from, stride, lines);
}

// dst[j][i] = src[i][j] for i < n0, j < n1: rows of dst are d1 bytes apart, those of src s0.
template <class T>
MT_INLINE void transpose_rows(char* dst, int64_t d1, const char* src, int64_t s0, int64_t n0, int64_t n1) {
    constexpr int SIZE = sizeof(T), S = SIZE >= 4 ? 32 / SIZE : 16 / SIZE;
    const int64_t whole0 = n0 / S * S, whole1 = n1 / S * S;
    for (int64_t i = 0; i < whole0; i += S)
        for (int64_t j = 0; j < whole1; j += S) {
            char* to = dst + j * d1 + i * SIZE;
            const char* from = src + i * s0 + j * SIZE;
            if constexpr (SIZE == 4)
                transpose_lines<float, true>(reinterpret_cast<float*>(to), d1 / SIZE,
                                             reinterpret_cast<const float*>(from), s0 / SIZE, S);
            else if constexpr (SIZE == 8)
                transpose_lines<double, true>(reinterpret_cast<double*>(to), d1 / SIZE,
                                              reinterpret_cast<const double*>(from), s0 / SIZE, S);
            else transpose_square<T>(to, d1, from, s0);
        }
    for (int64_t i = 0; i < n0; ++i)
        for (int64_t j = i < whole0 ? whole1 : 0; j < n1; ++j)
            *reinterpret_cast<T*>(dst + j * d1 + i * SIZE) = *reinterpret_cast<const T*>(src + i * s0 + j * SIZE);
}

}  // namespace mt
