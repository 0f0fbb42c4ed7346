// Elements moved without a look at them, by their size alone: rows, reversed rows, rows interleaved and taken apart,
// transposed blocks. For bodies of at_level. Invariant: what is read and what is written do not overlap.
#pragma once
#include "vectors.h"

#include <utility>

namespace mt {

struct Raw16 {
    uint64_t lo, hi;
};

template <class T> MT_INLINE void reverse_row(T* d, const T* s, int64_t n) {  // s: its last element
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) d[i] = s[-i];
}
template <class T> MT_INLINE void repeat_row(T* d, T value, int64_t n) {
    for (int64_t i = 0; i < n; ++i) d[i] = value;
}

// d[j * N + i] = s[i * step + j]: N rows of s become one. N is known to the compiler, so the loop becomes shuffles.
template <int N, class T> MT_INLINE void interleave_rows(T* d, const T* s, int64_t step, int64_t n) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j)
        for (int i = 0; i < N; ++i) d[j * N + i] = s[i * step + j];
}
// d[j * step + i] = s[i * N + j] for j < rows: the way back. Of rows < N only some are wanted.
template <int N, class T> MT_INLINE void separate_rows(T* d, int64_t step, const T* s, int64_t n, int64_t rows) {
    for (int64_t j = 0; j < rows; ++j)
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) d[j * step + i] = s[i * N + j];
}

// Pairs of the lower and of the upper halves of two vectors of 16 bytes.
template <class T, size_t... I>
MT_INLINE typename Vec<T, 16>::t pairs(typename Vec<T, 16>::t a, typename Vec<T, 16>::t b, int upper,
                                       std::index_sequence<I...>) {
    constexpr int N = sizeof...(I);
    return upper ? __builtin_shufflevector(a, b, (N / 2 + int(I) / 2 + (I % 2 ? N : 0))...)
                 : __builtin_shufflevector(a, b, (int(I) / 2 + (I % 2 ? N : 0))...);
}
// A square of as many elements as fit into 16 bytes; both sides have rows `step` bytes apart.
template <class T> MT_INLINE void transpose_square(char* dst, int64_t dstep, const char* src, int64_t sstep) {
    constexpr int N = Vec<T, 16>::LANES;
    using V = typename Vec<T, 16>::t;
    using Indices = std::make_index_sequence<size_t(N)>;
    V rows[N], next[N];
    for (int k = 0; k < N; ++k) std::memcpy(&rows[k], src + k * sstep, 16);
    for (int width = 1; width < N; width *= 2) {
        for (int k = 0; k < N / 2; ++k) {
            next[2 * k] = pairs<T>(rows[k], rows[k + N / 2], 0, Indices());
            next[2 * k + 1] = pairs<T>(rows[k], rows[k + N / 2], 1, Indices());
        }
        for (int k = 0; k < N; ++k) rows[k] = next[k];
    }
    for (int k = 0; k < N; ++k) std::memcpy(dst + k * dstep, &rows[k], 16);
}

// d[j][i] = s[i][j] for i < n0, j < n1; rows of s are `s0` bytes apart. Reads s in its order; d is a block in L1.
template <class T> MT_INLINE void transpose_block(T* d, const char* src, int64_t s0, int64_t n0, int64_t n1) {
    constexpr int64_t size = sizeof(T);
    int64_t i = 0;
    if constexpr (size < 16) {
        constexpr int N = Vec<T, 16>::LANES;
        for (; i + N <= n0; i += N) {
            int64_t j = 0;
            for (; j + N <= n1; j += N)
                transpose_square<T>(reinterpret_cast<char*>(d + j * n0 + i), n0 * size, src + i * s0 + j * size, s0);
            for (; j < n1; ++j)
                for (int k = 0; k < N; ++k) d[j * n0 + i + k] = reinterpret_cast<const T*>(src + (i + k) * s0)[j];
        }
    }
    for (; i < n0; ++i) {
        const T* s = reinterpret_cast<const T*>(src + i * s0);
        for (int64_t j = 0; j < n1; ++j) d[j * n0 + i] = s[j];
    }
}

// A dense block d of n1 rows of n0 elements from anywhere.
template <class T>
MT_INLINE void gather_block(T* d, const char* src, int64_t s0, int64_t s1, int64_t n0, int64_t n1) {
    constexpr int64_t size = sizeof(T);
    const T* s = reinterpret_cast<const T*>(src);
    if (s0 == size) {
        for (int64_t j = 0; j < n1; ++j) copy_bytes(reinterpret_cast<char*>(d + j * n0), src + j * s1, n0 * size);
    } else if (s1 == size && n1 > 1 && s0 != 0) {
        const int64_t step = s0 / size;
        if (n0 == 2) interleave_rows<2>(d, s, step, n1);
        else if (n0 == 3) interleave_rows<3>(d, s, step, n1);
        else if (n0 == 4) interleave_rows<4>(d, s, step, n1);
        else if (s0 == 2 * size && n1 <= 2) separate_rows<2>(d, n0, s, n0, n1);
        else if (s0 == 3 * size && n1 <= 3) separate_rows<3>(d, n0, s, n0, n1);
        else if (s0 == 4 * size && n1 <= 4) separate_rows<4>(d, n0, s, n0, n1);
        else transpose_block(d, src, s0, n0, n1);
    } else {
        for (int64_t j = 0; j < n1; ++j) {
            const T* row = reinterpret_cast<const T*>(src + j * s1);
            if (s0 == 0) repeat_row(d + j * n0, *row, n0);
            else if (s0 == -size) reverse_row(d + j * n0, row, n0);
            else if (s0 == 2 * size) separate_rows<2>(d + j * n0, n0, row, n0, 1);
            else
                for (int64_t i = 0; i < n0; ++i) d[j * n0 + i] = *reinterpret_cast<const T*>(src + j * s1 + i * s0);
        }
    }
}

// The rows of a dense block to anywhere.
template <class T>
MT_INLINE void scatter_block(char* dst, int64_t s0, int64_t s1, const T* s, int64_t n0, int64_t n1) {
    if (s0 == (int64_t)sizeof(T)) {
        for (int64_t j = 0; j < n1; ++j)
            copy_bytes(dst + j * s1, reinterpret_cast<const char*>(s + j * n0), n0 * (int64_t)sizeof(T));
    } else {
        for (int64_t j = 0; j < n1; ++j)
            for (int64_t i = 0; i < n0; ++i) *reinterpret_cast<T*>(dst + j * s1 + i * s0) = s[j * n0 + i];
    }
}

}  // namespace mt
