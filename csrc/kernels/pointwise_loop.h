// The walk over strided operands that copies and pointwise kernels share. Invariant: dimension 0 is the innermost one;
// size-1 dimensions are gone, the others are ordered by stride (the output's first) and merged where every operand
// allows it, so that dense operands of any memory order become one flat row.
#pragma once
#include "common.h"

namespace mt {

constexpr int64_t BLOCK = 1024;  // elements that are gathered, cast and computed at a time; a few of them fit in L1

// Strides in bytes. op[0] is the output.
template <int N> struct Loop {
    int ndim;
    int64_t numel;
    int64_t dim[MAXD];
    char* ptr[N];
    int64_t step[N][MAXD];
};

template <int N> MT_INLINE void loop_begin(Loop<N>& loop, const Shape& shape) {
    loop.ndim = 0;
    loop.numel = shape.numel;
    for (int i = shape.ndim - 1; i >= 0; --i)
        if (shape.dim[i] != 1) loop.dim[loop.ndim++] = shape.dim[i];
}
// `stride` in elements, outermost first, for all dimensions of the shape.
template <int N>
MT_INLINE void loop_operand(Loop<N>& loop, int k, char* ptr, const Shape& shape, const int64_t* stride, int itemsize) {
    loop.ptr[k] = ptr;
    int d = 0;
    for (int i = shape.ndim - 1; i >= 0; --i)
        if (shape.dim[i] != 1) loop.step[k][d++] = wrapping_mul(stride[i], itemsize);
}
template <int N> MT_INLINE void loop_scalar(Loop<N>& loop, int k, const char* ptr) {
    loop.ptr[k] = const_cast<char*>(ptr);
    for (int d = 0; d < loop.ndim; ++d) loop.step[k][d] = 0;
}

// Whether dimension i should lie inside dimension j. The first operand that can tell decides.
template <int N> MT_INLINE bool is_inner(const Loop<N>& loop, int i, int j) {
    for (int k = 0; k < N; ++k) {
        const int64_t a = std::abs(loop.step[k][i]), b = std::abs(loop.step[k][j]);
        if (a == b || a == 0 || b == 0) continue;
        return a < b;
    }
    return false;
}

// Merges neighbouring dimensions without changing their order.
template <int N> MT_INLINE void loop_merge(Loop<N>& loop) {
    int last = 0;
    for (int d = 1; d < loop.ndim; ++d) {
        bool merge = true;
        for (int k = 0; k < N; ++k) merge &= loop.step[k][d] == wrapping_mul(loop.step[k][last], loop.dim[last]);
        if (merge) {
            loop.dim[last] = wrapping_mul(loop.dim[last], loop.dim[d]);  // fits unless another size is 0
            continue;
        }
        ++last;
        loop.dim[last] = loop.dim[d];
        for (int k = 0; k < N; ++k) loop.step[k][last] = loop.step[k][d];
    }
    if (loop.ndim) {
        loop.ndim = last + 1;
    } else {
        loop.ndim = 1;  // one element: a row of length one
        loop.dim[0] = 1;
        for (int k = 0; k < N; ++k) loop.step[k][0] = 0;
    }
}

template <int N> MT_INLINE void loop_finish(Loop<N>& loop) {
    for (int i = 1; i < loop.ndim; ++i)
        for (int j = i; j > 0 && is_inner(loop, j, j - 1); --j) {
            std::swap(loop.dim[j], loop.dim[j - 1]);
            for (int k = 0; k < N; ++k) std::swap(loop.step[k][j], loop.step[k][j - 1]);
        }
    loop_merge(loop);
}

// Position in the dimensions from `first` on, with the operands' addresses kept up to date.
template <int N> struct Cursor {
    const Loop<N>& loop;
    const int first;
    char* ptr[N];
    int64_t index[MAXD];

    Cursor(const Loop<N>& l, int first_dim, int64_t at) : loop(l), first(first_dim) {
        for (int k = 0; k < N; ++k) ptr[k] = l.ptr[k];
        for (int d = first; d < l.ndim; ++d) {
            index[d] = at % l.dim[d];
            at /= l.dim[d];
            for (int k = 0; k < N; ++k) ptr[k] += index[d] * l.step[k][d];
        }
    }
    MT_INLINE void next() {
        for (int d = first; d < loop.ndim; ++d) {
            for (int k = 0; k < N; ++k) ptr[k] += loop.step[k][d];
            if (++index[d] < loop.dim[d]) return;
            for (int k = 0; k < N; ++k) ptr[k] -= loop.dim[d] * loop.step[k][d];
            index[d] = 0;
        }
    }
};

// f(ptr, n): n elements along dimension 0.
template <int N, class F> void run_rows(const Loop<N>& loop, int64_t grain, F&& f) {
    const int64_t row = loop.dim[0];
    parallel_for(loop.numel, grain, [&](int64_t begin, int64_t end) {
        Cursor<N> at(loop, 1, begin / row);
        int64_t skip = begin % row;
        while (begin < end) {
            const int64_t n = row - skip < end - begin ? row - skip : end - begin;
            char* ptr[N];
            for (int k = 0; k < N; ++k) ptr[k] = at.ptr[k] + skip * loop.step[k][0];
            f(ptr, n);
            begin += n;
            skip = 0;
            at.next();
        }
    });
}

// A walk in tiles of dimensions 0 and 1 pays when rows are short, or when some operand is contiguous along dimension 1.
template <int N> MT_INLINE bool wants_tiles(const Loop<N>& loop) {
    if (loop.ndim < 2) return false;
    if (loop.dim[0] < 32) return true;
    for (int k = 0; k < N; ++k) {
        const int64_t a = std::abs(loop.step[k][0]), b = std::abs(loop.step[k][1]);
        if (b != 0 && b < a) return true;
    }
    return false;
}

// f(ptr, n0, n1): a tile of at most BLOCK elements, n1 rows of n0.
template <int N, class F> void run_tiles(const Loop<N>& loop, int64_t grain, F&& f) {
    const int64_t dim0 = loop.dim[0], dim1 = loop.dim[1];
    int64_t tile0 = dim0, tile1;
    if (dim0 >= 32) {
        // Wide enough along dimension 1 for whole cache lines of an operand that is contiguous there.
        tile1 = dim1 < 16 ? dim1 : 16;
        tile0 = dim0 < BLOCK / tile1 ? dim0 : BLOCK / tile1;
    } else {
        tile1 = BLOCK / dim0 < dim1 ? BLOCK / dim0 : dim1;
    }
    const int64_t strips = ceil_div(dim1, tile1);
    const int64_t outer = loop.numel / (dim0 * dim1);
    const int64_t per_strip = dim0 * tile1;
    parallel_for(outer * strips, ceil_div(grain, per_strip), [&](int64_t begin, int64_t end) {
        Cursor<N> at(loop, 2, begin / strips);
        for (int64_t strip = begin % strips; begin < end; ++begin) {
            const int64_t i1 = strip * tile1, n1 = dim1 - i1 < tile1 ? dim1 - i1 : tile1;
            for (int64_t i0 = 0; i0 < dim0; i0 += tile0) {
                char* ptr[N];
                for (int k = 0; k < N; ++k) ptr[k] = at.ptr[k] + i0 * loop.step[k][0] + i1 * loop.step[k][1];
                f(ptr, dim0 - i0 < tile0 ? dim0 - i0 : tile0, n1);
            }
            if (++strip == strips) {
                strip = 0;
                at.next();
            }
        }
    });
}

}  // namespace mt
