// Products of large float matrices: packed panels and a micro-kernel that keeps a tile of sums in registers.
// Invariant: each sum runs over k in order, in blocks that depend on k alone; so a result does not depend on how
// rows and columns are shared out to threads.
//
// A panel holds `width` lines (rows of a, columns of b) for some k: panel[p * width + line]. Lines beyond the last are
// zeros.
#pragma once
#include "cpu.h"

#pragma GCC visibility push(hidden)
namespace mt {

constexpr int64_t KC = 256;  // most k of one packed block: a panel of b stays in the first cache
constexpr int MAX_TILE = 14 * 32;

// k of the blocks that a sum over k is made of: as equal as they come, for short sums round better.
inline int64_t block_depth(int64_t k) { return k <= KC ? k : ceil_div(ceil_div(k, ceil_div(k, KC)), 8) * 8; }

// How one level computes in A: float or double.
template <class A> struct Engine {
    int mr, nr;  // rows and columns of a tile
    // c[i * crs + j] = alpha * sum over p of a[p * mr + i] * b[p * nr + j], or added to c
    void (*tile)(const A* a, const A* b, int64_t k, A* c, int64_t crs, A alpha, bool add);
    // The same for the first half of the columns.
    void (*narrow)(const A* a, const A* b, int64_t k, A* c, int64_t crs, A alpha, bool add);
    // The same where row p of b is at b + offset[p].
    void (*tile_at)(const A* a, const A* b, const int64_t* offset, int64_t k, A* c, int64_t crs, A alpha, bool add);
    // A panel of `lines` lines from memory with these strides; k in [0, k).
    void (*pack)(A* panel, int width, const A* from, int64_t line_stride, int64_t k_stride, int64_t lines, int64_t k);
};
// For products of so many rows: the height of its tiles leaves few rows of the last one unused.
template <class A> const Engine<A>& engine(int64_t rows);
// The same for panels of pairs of bfloat16 along k, each as wide as a float; null where the CPU has no such products.
const Engine<float>* pair_engine(int64_t rows);

// Where sums go: out = alpha * sums + beta * c for the first block of k, then added. c and out may be the same memory.
template <class A> struct Sink {
    A* out;
    int64_t rs, cs;
    const A* c;
    int64_t crs, ccs;
    A alpha, beta;
    // Sums of floats may end in two-byte floats, rounded once: then `out` only holds them from one block of k to the next,
    // and is not used where there is one block. beta is 0; `added`, a number for each row or column, is added before rounding.
    char* narrow = nullptr;
    const float* added = nullptr;
    int64_t ars = 0, acs = 0;
    int code = 0;
    int64_t nrs = 0, ncs = 0;
    void move(int64_t i, int64_t j) {
        if (out) out += i * rs + j * cs;
        if (beta != 0) c += i * crs + j * ccs;
        if (narrow) narrow += (i * nrs + j * ncs) * ITEMSIZE[code];
        if (added) added += i * ars + j * acs;
    }
};

// The tile at row i, column j of which `rows` x `columns` are wanted; `first`: beta and c take part. With `offset`, b is
// not packed: its row p is at b + offset[p]. `last`: the last block of k.
template <class A>
void sink_tile(const Engine<A>& e, const A* a, const A* b, int64_t k, const Sink<A>& to, int64_t i, int64_t j,
               int64_t rows, int64_t columns, bool first, const int64_t* offset = nullptr, bool last = false);

// Sums that something else has made, rows of them `nr` apart, to where a tile's sums go; they may be spoilt.
void sink_sums(float* sums, int nr, const Sink<float>& to, int64_t i, int64_t j, int64_t rows, int64_t columns,
               bool first, bool last);

// Panels of a times panels of b: m x n sums over k (at most KC). The panels of b are taken one after the other, each
// by all panels of a.
template <class A>
void multiply_panels(const Engine<A>& e, const A* a, int64_t m, const A* b, int64_t n, int64_t k, const Sink<A>& to,
                     bool first, bool last = false);

// A matrix in memory, of float, double, or two-byte floats that are widened as they are packed.
struct Source {
    const char* data;
    int code;
    int64_t rs, cs;  // in elements
};

// out = beta * c + alpha * a @ b in this thread.
template <class A> void gemm_block(const Source& a, const Source& b, int64_t m, int64_t n, int64_t k,
                                   const Sink<A>& to);

// Whether sums over k are made of one block: then a narrow result needs no room for its sums.
bool in_one_block(int code, int64_t k);

// The same with every thread of the pool; bfloat16 by the CPU's own products of pairs, where it has them. code of a and b: that of A, or F16, BF16 for float.
template <class A> void gemm_packed(const Source& a, const Source& b, int64_t m, int64_t n, int64_t k,
                                    const Sink<A>& to);

}  // namespace mt
#pragma GCC visibility pop
