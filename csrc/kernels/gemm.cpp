// The packed product: see gemm.h.
#include "gemm.h"
#include "caches.h"
#include "halves.h"
#include "lanes.h"
#include "tiles.h"
#include "transpose.h"
#include "vectors.h"

#include <algorithm>
#if MT_HAS_LEVELS
#include <immintrin.h>
#endif

namespace mt {
namespace {

// MR x NV vectors of sums stay in registers, beside NV of b and one of a.
// NR: columns of a panel of b.
template <class A, int BYTES, int MR, int NV, int NR, bool AT>
MT_INLINE void tile_of(const A* a, const A* b, const int64_t* offset, int64_t k, A* c, int64_t crs, A alpha, bool add) {
    using V = typename Vec<A, BYTES>::t;
    using L = typename Vec<A, BYTES>::loose;
    constexpr int LANES = Vec<A, BYTES>::LANES;
    V sum[MR][NV];
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v) sum[i][v] = V{};
#pragma GCC unroll 2
    for (int64_t p = 0; p < k; ++p) {
        V row[NV];
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v) row[v] = *reinterpret_cast<const L*>((AT ? b + offset[p] : b) + v * LANES);
#pragma GCC unroll 16
        for (int i = 0; i < MR; ++i) {
            const A x = a[i];
#pragma GCC unroll 4
            for (int v = 0; v < NV; ++v) sum[i][v] += x * row[v];
        }
        a += MR;
        if (!AT) b += NR;
    }
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v) {
            L* to = reinterpret_cast<L*>(c + i * crs + v * LANES);
            const V value = alpha * sum[i][v];
            *to = add ? V(*to) + value : value;
        }
}

template <class A>
MT_INLINE void pack_plain(A* panel, int width, const A* from, int64_t line_stride, int64_t k_stride, int64_t lines,
                          int64_t begin, int64_t end, int64_t first) {
    for (int64_t p = begin; p < end; ++p) {
        const A* at = from + p * k_stride;
        A* to = panel + p * width;
        for (int64_t l = first; l < lines; ++l) to[l] = at[l * line_stride];
        for (int64_t l = lines; l < width; ++l) to[l] = 0;
    }
}

template <class A>
MT_INLINE void pack_panel(A* panel, int width, const A* from, int64_t line_stride, int64_t k_stride, int64_t lines,
                          int64_t k) {
    constexpr int S = 32 / sizeof(A);
    if (line_stride == 1 && lines == width) {
        for (int64_t p = 0; p < k; ++p, from += k_stride, panel += width)
            for (int l = 0; l < width; ++l) panel[l] = from[l];
        return;
    }
    if (k_stride != 1) return pack_plain(panel, width, from, line_stride, k_stride, lines, 0, k, 0);
    // Blocks of S x S are transposed in registers. The last block of a row may run into the beginning of the next row,
    // so it comes first; what it spoils there is written after it.
    const int64_t blocks = (lines % S == 0 ? k : k - 1) / S * S;  // nothing is spoilt behind the last row
    // Two side by side use up a line of the cache: many of them may share one place there.
    for (int64_t p = 0; p < blocks; p += 2 * S)
        for (int64_t l = (lines - 1) / S * S; l >= 0; l -= S)
            for (int64_t q = p; q < std::min(p + 2 * S, blocks); q += S)
                transpose_lines(panel + q * width + l, width, from + l * line_stride + q, line_stride, lines - l);
    if (lines < width) pack_plain(panel, width, from, line_stride, k_stride, lines, 0, blocks, lines);
    pack_plain(panel, width, from, line_stride, k_stride, lines, blocks, k, 0);
}

// One level's functions, for tiles of MR rows. NV vectors of columns fill its registers when MR is the largest.
#define MT_ENGINE(NAME, TARGET, BYTES, NV) \
    template <class A, int MR> TARGET void tile_##NAME(const A* a, const A* b, int64_t k, A* c, int64_t crs, A alpha, \
                                                       bool add) { \
        tile_of<A, BYTES, MR, NV, NV * BYTES / int(sizeof(A)), false>(a, b, nullptr, k, c, crs, alpha, add); \
    } \
    template <class A, int MR> TARGET void narrow_##NAME(const A* a, const A* b, int64_t k, A* c, int64_t crs, \
                                                         A alpha, bool add) { \
        tile_of<A, BYTES, MR, NV / 2, NV * BYTES / int(sizeof(A)), false>(a, b, nullptr, k, c, crs, alpha, add); \
    } \
    template <class A, int MR> TARGET void tile_at_##NAME(const A* a, const A* b, const int64_t* offset, int64_t k, \
                                                          A* c, int64_t crs, A alpha, bool add) { \
        tile_of<A, BYTES, MR, NV, 0, true>(a, b, offset, k, c, crs, alpha, add); \
    } \
    template <class A> TARGET void pack_##NAME(A* panel, int width, const A* from, int64_t ls, int64_t ks, \
                                               int64_t lines, int64_t k) { \
        if (width == NV * BYTES / int(sizeof(A))) \
            pack_panel<A>(panel, NV * BYTES / int(sizeof(A)), from, ls, ks, lines, k); \
        else pack_panel<A>(panel, width, from, ls, ks, lines, k); \
    } \
    template <class A, int MR> constexpr Engine<A> ENGINE_##NAME = {MR, \
                                                                    NV * BYTES / int(sizeof(A)), \
                                                                    tile_##NAME<A, MR>, \
                                                                    narrow_##NAME<A, MR>, \
                                                                    tile_at_##NAME<A, MR>, \
                                                                    pack_##NAME<A>};

#if defined(__aarch64__)
MT_ENGINE(baseline, , 16, 2)
template <class A> constexpr const Engine<A>* BASELINE_ENGINES[] = {&ENGINE_baseline<A, 8>, &ENGINE_baseline<A, 4>};
#else
MT_ENGINE(baseline, , 16, 2)
template <class A> constexpr const Engine<A>* BASELINE_ENGINES[] = {&ENGINE_baseline<A, 4>};
#endif
#if MT_HAS_LEVELS
MT_ENGINE(avx2, MT_AVX2, 32, 2)
MT_ENGINE(avx512, MT_AVX512, 64, 2)
template <class A> constexpr const Engine<A>* AVX2_ENGINES[] = {&ENGINE_avx2<A, 6>, &ENGINE_avx2<A, 5>,
                                                                &ENGINE_avx2<A, 4>};
template <class A> constexpr const Engine<A>* AVX512_ENGINES[] = {
    &ENGINE_avx512<A, 14>, &ENGINE_avx512<A, 13>, &ENGINE_avx512<A, 12>, &ENGINE_avx512<A, 11>,
    &ENGINE_avx512<A, 10>, &ENGINE_avx512<A, 9>,  &ENGINE_avx512<A, 8>,  &ENGINE_avx512<A, 4>};
#endif

// The best of them for so many rows; a tile costs half a row beside its own.
template <class A, size_t N> const Engine<A>& best_of(const Engine<A>* const (&engines)[N], int64_t rows) {
    const Engine<A>* best = engines[0];
    if (rows > 4096) return *best;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Engine<A>* e : engines) {
        const int64_t cost = ceil_div(rows, e->mr) * (2 * e->mr + 1);
        if (cost < least) best = e, least = cost;
    }
    return *best;
}

}  // namespace

template <class A> const Engine<A>& engine(int64_t rows) {
#if MT_HAS_LEVELS
    if (cpu_level == AVX512) return best_of(AVX512_ENGINES<A>, rows);
    if (cpu_level == AVX2) return best_of(AVX2_ENGINES<A>, rows);
#endif
    return best_of(BASELINE_ENGINES<A>, rows);
}
template const Engine<float>& engine<float>(int64_t);
template const Engine<double>& engine<double>(int64_t);

namespace {

// Rows of sums to their places; c: what is added beta times, or null.
template <class A>
MT_INLINE void finish_tile(const A* sums, int nr, const Sink<A>& to, A* out, const A* c, int64_t rows, int64_t columns,
                           bool first) {
    for (int64_t r = 0; r < rows; ++r, out += to.rs, sums += nr) {
        const A* row = c ? c + r * to.crs : nullptr;
        if (to.cs == 1 && row && to.ccs == 0) {
            const A add = to.beta * *row;
#pragma GCC ivdep
            for (int64_t q = 0; q < columns; ++q) out[q] = sums[q] + add;
        } else if (to.cs == 1 && row && to.ccs == 1) {
#pragma GCC ivdep
            for (int64_t q = 0; q < columns; ++q) out[q] = sums[q] + to.beta * row[q];
        } else if (to.cs == 1 && !row) {
#pragma GCC ivdep
            for (int64_t q = 0; q < columns; ++q) out[q] = first ? sums[q] : out[q] + sums[q];
        } else if (row) {
            for (int64_t q = 0; q < columns; ++q) out[q * to.cs] = sums[q] + to.beta * row[q * to.ccs];
        } else {
            for (int64_t q = 0; q < columns; ++q) out[q * to.cs] = first ? sums[q] : out[q * to.cs] + sums[q];
        }
    }
}

MT_INLINE void add_numbers(float* sums, int nr, const Sink<float>& to, const float* added, int64_t rows,
                           int64_t columns) {
    for (int64_t r = 0; r < rows; ++r, added += to.ars, sums += nr)
        if (to.acs == 0)
            for (int64_t q = 0; q < columns; ++q) sums[q] += *added;
        else
#pragma GCC ivdep
            for (int64_t q = 0; q < columns; ++q) sums[q] += added[q * to.acs];
}

#if MT_HAS_LEVELS
template <class S>
MT_AVX512 void narrow_rows(const float* sums, int nr, S* out, int64_t step, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) put_halves16(out + r * step, sums + r * nr, columns, 1.0f);
}
#if __GNUC__ >= 10
MT_PAIRS void narrow_sums(const float* sums, int nr, BFloat16* out, int64_t step, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) put_sums16(out + r * step, sums + r * nr, columns);
}
#endif
bool narrows_rows(const float* sums, int nr, const Sink<float>& to, char* out, int64_t rows, int64_t columns) {
    if (cpu_level != AVX512 || to.ncs != 1) return false;
#if __GNUC__ >= 10
    if (to.code == BF16 && cpu_has_bf16 && to.alpha == 1 && !to.added) {
        narrow_sums(sums, nr, reinterpret_cast<BFloat16*>(out), to.nrs, rows, columns);
        return true;
    }
#endif
    if (to.code == BF16) narrow_rows(sums, nr, reinterpret_cast<BFloat16*>(out), to.nrs, rows, columns);
    else narrow_rows(sums, nr, reinterpret_cast<Half*>(out), to.nrs, rows, columns);
    return true;
}
#else
bool narrows_rows(const float*, int, const Sink<float>&, char*, int64_t, int64_t) { return false; }
#endif

// The same to two-byte floats; before: sums of the blocks before this one, or null.
MT_INLINE void finish_narrow(float* sums, int nr, const Sink<float>& to, char* out, const float* before, int64_t rows,
                             int64_t columns) {
    for (int64_t r = 0; r < rows; ++r, out += to.nrs * 2, sums += nr) {
        if (before)
#pragma GCC ivdep
            for (int64_t q = 0; q < columns; ++q) sums[q] += before[r * to.rs + q * to.cs];
        if (to.code == BF16 && to.ncs == 1) {
            BFloat16* line = reinterpret_cast<BFloat16*>(out);
#pragma GCC ivdep
            for (int64_t q = 0; q < columns; ++q) line[q] = convert<BFloat16>(sums[q]);
        } else if (to.ncs == 1) {
            cast_block(out, to.code, reinterpret_cast<const char*>(sums), F32, columns);
        } else {
            for (int64_t q = 0; q < columns; ++q)
                cast_block(out + q * to.ncs * 2, to.code, reinterpret_cast<const char*>(sums + q), F32, 1);
        }
    }
}

// The last sums of a block to two-byte floats.
void narrow_tile(float* sums, int nr, const Sink<float>& to, const float* out, int64_t i, int64_t j, int64_t rows,
                 int64_t columns, bool first) {
    if (to.added) at_level(MT_BODY { add_numbers(sums, nr, to, to.added + i * to.ars + j * to.acs, rows, columns); });
    char* const at = to.narrow + (i * to.nrs + j * to.ncs) * ITEMSIZE[to.code];
    if (first && narrows_rows(sums, nr, to, at, rows, columns)) return;
    at_level(MT_BODY { finish_narrow(sums, nr, to, at, first ? nullptr : out, rows, columns); });
}

}  // namespace

void sink_sums(float* sums, int nr, const Sink<float>& to, int64_t i, int64_t j, int64_t rows, int64_t columns,
               bool first, bool last) {
    float* const out = to.out ? to.out + i * to.rs + j * to.cs : nullptr;
    if (to.alpha != 1)
        at_level(MT_BODY {
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t q = 0; q < columns; ++q) sums[r * nr + q] *= to.alpha;
        });
    if (last && to.narrow) return narrow_tile(sums, nr, to, out, i, j, rows, columns, first);
    const float* c = first && to.beta != 0 ? to.c + i * to.crs + j * to.ccs : nullptr;
    at_level(MT_BODY { finish_tile(sums, nr, to, out, c, rows, columns, first); });
}

template <class A>
void sink_tile(const Engine<A>& e, const A* a, const A* b, int64_t k, const Sink<A>& to, int64_t i, int64_t j,
               int64_t rows, int64_t columns, bool first, const int64_t* offset, bool last) {
    A* out = to.out ? to.out + i * to.rs + j * to.cs : nullptr;
    const bool reads = first && to.beta != 0;
    auto tile = [&](A* c, int64_t crs, bool add) {
        if (offset) e.tile_at(a, b, offset, k, c, crs, to.alpha, add);
        else if (2 * columns <= e.nr) e.narrow(a, b, k, c, crs, to.alpha, add);
        else e.tile(a, b, k, c, crs, to.alpha, add);
    };
    if constexpr (std::is_same<A, float>::value)
        if (last && to.narrow) {
            alignas(64) float sums[MAX_TILE];
            tile(sums, e.nr, false);
            return narrow_tile(sums, e.nr, to, out, i, j, rows, columns, first);
        }
    if (rows == e.mr && columns == e.nr && to.cs == 1 && !reads) return tile(out, to.rs, !first);
    alignas(64) A sums[MAX_TILE];
    tile(sums, e.nr, false);
    const A* c = reads ? to.c + i * to.crs + j * to.ccs : nullptr;
    at_level(MT_BODY { finish_tile(sums, e.nr, to, out, c, rows, columns, first); });
}

template <class A>
void multiply_panels(const Engine<A>& e, const A* a, int64_t m, const A* b, int64_t n, int64_t k, const Sink<A>& to,
                     bool first, bool last) {
    for (int64_t j = 0; j < n; j += e.nr)
        for (int64_t i = 0; i < m; i += e.mr)
            sink_tile(e, a + i * k, b + j * k, k, to, i, j, std::min<int64_t>(e.mr, m - i),
                      std::min<int64_t>(e.nr, n - j), first, nullptr, last);
}
template void multiply_panels(const Engine<float>&, const float*, int64_t, const float*, int64_t, int64_t,
                              const Sink<float>&, bool, bool);
template void multiply_panels(const Engine<double>&, const double*, int64_t, const double*, int64_t, int64_t,
                              const Sink<double>&, bool, bool);
template void sink_tile(const Engine<float>&, const float*, const float*, int64_t, const Sink<float>&, int64_t, int64_t,
                        int64_t, int64_t, bool, const int64_t*, bool);
template void sink_tile(const Engine<double>&, const double*, const double*, int64_t, const Sink<double>&, int64_t,
                        int64_t, int64_t, int64_t, bool, const int64_t*, bool);

namespace {

// Lines [0, lines) of a matrix for k in [p, p + k), as panels one after the other.
template <class A>
void pack_lines(const Engine<A>& e, A* panels, int width, const Source& from, int64_t line_stride, int64_t k_stride,
                int64_t lines, int64_t p, int64_t k, A* wide) {
    const int size = ITEMSIZE[from.code];
    // Lines side by side, with k far apart: a few k of all panels at a time, so that a page is used up once it is met.
    constexpr int64_t FEW = 16, FAR_BYTES = 1024;
    if (line_stride == 1 && from.code == CodeOf<A>::value && k_stride * size >= FAR_BYTES && lines > width) {
        const A* data = reinterpret_cast<const A*>(from.data) + p * k_stride;
        for (int64_t q = 0; q < k; q += FEW)
            for (int64_t l = 0; l < lines; l += width)
                e.pack(panels + l * k + q * width, width, data + l + q * k_stride, 1, k_stride,
                       std::min<int64_t>(width, lines - l), std::min(FEW, k - q));
        return;
    }
    for (int64_t l = 0; l < lines; l += width, panels += width * k) {
        const int64_t count = std::min<int64_t>(width, lines - l);
        const char* at = from.data + (l * line_stride + p * k_stride) * size;
        if (from.code == CodeOf<A>::value) {
            e.pack(panels, width, reinterpret_cast<const A*>(at), line_stride, k_stride, count, k);
            continue;
        }
        // Two-byte floats: widened along what is dense in memory.
        const int64_t runs = k_stride == 1 ? count : k, length = k_stride == 1 ? k : count;
        const int64_t run = k_stride == 1 ? line_stride : k_stride, step = k_stride == 1 ? 1 : line_stride;
        for (int64_t r = 0; r < runs; ++r)
            cast_strided((char*)(wide + r * length), sizeof(A), CodeOf<A>::value, at + r * run * size, step * size,
                         from.code, length);
        e.pack(panels, width, wide, k_stride == 1 ? length : 1, k_stride == 1 ? 1 : length, count, k);
    }
}

// ---------------------------------------------------------------- pairs of bfloat16

#if MT_HAS_LEVELS && __GNUC__ >= 10
typedef float Sixteen __attribute__((vector_size(64)));
typedef float LooseSixteen __attribute__((vector_size(64), aligned(4), may_alias));

template <int MR, int NV, bool AT>
MT_PAIRS MT_INLINE void pairs_of(const float* a, const float* b, const int64_t* offset, int64_t k, float* c,
                                 int64_t crs, float alpha, bool add) {
    Sixteen sum[MR][NV];
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) sum[i][v] = Sixteen{};
    for (int64_t p = 0; p < k; ++p, a += MR) {
        __m512bh row[NV];
        const float* from = AT ? b + offset[p] : b + 32 * p;
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) row[v] = (__m512bh)_mm512_loadu_ps(from + 16 * v);
#pragma GCC unroll 16
        for (int i = 0; i < MR; ++i) {
            const __m512bh x = (__m512bh)_mm512_set1_ps(a[i]);
#pragma GCC unroll 2
            for (int v = 0; v < NV; ++v) sum[i][v] = (Sixteen)_mm512_dpbf16_ps((__m512)sum[i][v], x, row[v]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) {
            LooseSixteen* to = reinterpret_cast<LooseSixteen*>(c + i * crs + 16 * v);
            const Sixteen value = alpha * sum[i][v];
            *to = add ? Sixteen(*to) + value : value;
        }
}
template <int MR, int NV>
MT_PAIRS void tile_pairs(const float* a, const float* b, int64_t k, float* c, int64_t crs, float alpha, bool add) {
    pairs_of<MR, NV, false>(a, b, nullptr, k, c, crs, alpha, add);
}
template <int MR> MT_PAIRS void tile_pairs_at(const float* a, const float* b, const int64_t* offset, int64_t k,
                                              float* c, int64_t crs, float alpha, bool add) {
    pairs_of<MR, 2, true>(a, b, offset, k, c, crs, alpha, add);
}
// A tile whose sums end in bfloat16. Row i of a is at a + i * row, and its next pair `step` bytes behind.
struct PairTile {
    const char* a;
    int64_t row, step;
    const float* b;  // a panel
    int64_t k;
    float* sums;  // of the blocks before this one, and the place for these, unless they are the last
    int64_t sum_row;
    bool first, last;
    const float* added;  // a number for each column, or null
    BFloat16* out;
    int64_t out_row, rows, columns;
};
template <int MR, int NV> MT_PAIRS MT_NOINLINE void narrow_pairs(const PairTile& t) {
    Sixteen sum[MR][NV];
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) sum[i][v] = Sixteen{};
    const int64_t one = t.row, three = 3 * one, step = t.step;
    const char* a[4] = {t.a, t.a + 4 * one, t.a + 8 * one, t.a + 12 * one};
    const float* b = t.b;
    for (int64_t p = t.k; p > 0; --p, b += 32) {
        __m512bh from[NV];
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) from[v] = (__m512bh)_mm512_loadu_ps(b + 16 * v);
#pragma GCC unroll 16
        for (int i = 0; i < MR; ++i) {
            float pair;
            std::memcpy(&pair, a[i / 4] + (i % 4 == 3 ? three : i % 4 * one), sizeof pair);
            const __m512bh x = (__m512bh)_mm512_set1_ps(pair);
#pragma GCC unroll 2
            for (int v = 0; v < NV; ++v) sum[i][v] = (Sixteen)_mm512_dpbf16_ps((__m512)sum[i][v], x, from[v]);
        }
#pragma GCC unroll 4
        for (int i = 0; i < (MR + 3) / 4; ++i) a[i] += step;
    }
    // The CPU's own rounding takes subnormal numbers for 0; its own products have made none.
    const __mmask32 both = t.columns >= 32 ? 0xffffffffu : (1u << t.columns) - 1;
    if (t.first && t.last && !t.added) {
#pragma GCC unroll 16
        for (int i = 0; i < MR; ++i) {
            if (i >= t.rows) return;
            const __m512 right = NV == 2 ? (__m512)sum[i][NV - 1] : _mm512_setzero_ps();
            _mm512_mask_storeu_epi16(t.out + i * t.out_row, both,
                                     (__m512i)_mm512_cvtne2ps_pbh(right, (__m512)sum[i][0]));
        }
        return;
    }
    const __mmask16 mask[2] = {(__mmask16)both, (__mmask16)(both >> 16)};
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
        if (i >= t.rows) return;
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v) {
            float* before = t.sums + i * t.sum_row + 16 * v;
            Sixteen value = sum[i][v];
            if (!t.first) value += (Sixteen)_mm512_maskz_loadu_ps(mask[v], before);
            if (!t.last) {
                _mm512_mask_storeu_ps(before, mask[v], (__m512)value);
                continue;
            }
            if (t.added) value += (Sixteen)_mm512_maskz_loadu_ps(mask[v], t.added + 16 * v);
            _mm256_mask_storeu_epi16(t.out + i * t.out_row + 16 * v, mask[v], narrowed16<BFloat16>(value));
        }
    }
}
using NarrowPairs = void (*)(const PairTile&);
struct PairRows {
    int mr;
    NarrowPairs wide, narrow;
};
template <int MR> constexpr PairRows PAIR_ROWS = {MR, narrow_pairs<MR, 2>, narrow_pairs<MR, 1>};
constexpr PairRows ALL_PAIR_ROWS[] = {PAIR_ROWS<14>, PAIR_ROWS<13>, PAIR_ROWS<12>,
                                      PAIR_ROWS<10>, PAIR_ROWS<8>,  PAIR_ROWS<4>};

template <int MR> constexpr Engine<float> ENGINE_pairs = {
    MR, 32, tile_pairs<MR, 2>, tile_pairs<MR, 1>, tile_pairs_at<MR>, pack_avx512<float>};
constexpr const Engine<float>* PAIR_ENGINES[] = {&ENGINE_pairs<14>, &ENGINE_pairs<13>, &ENGINE_pairs<12>,
                                                 &ENGINE_pairs<10>, &ENGINE_pairs<8>,  &ENGINE_pairs<4>};

template <class A> bool in_pairs(const Source& a, const Source& b) {
    return std::is_same<A, float>::value && cpu_has_bf16 && a.code == BF16 && b.code == BF16;
}
template <class A> const Engine<A>& engine_of_pairs(int64_t rows) {
    if constexpr (std::is_same<A, float>::value) return best_of(PAIR_ENGINES, rows);
    else return engine<A>(rows);
}
#else
template <class A> bool in_pairs(const Source&, const Source&) { return false; }
template <class A> const Engine<A>& engine_of_pairs(int64_t rows) { return engine<A>(rows); }
#endif

// panel[q * width + line]: the elements p + 2 q and p + 2 q + 1 of a line, zeros behind the last of `all` and behind the
// last line. count: rows of a panel.
template <class A>
void pack_pairs(A* panels, int width, const Source& from, int64_t line_stride, int64_t k_stride, int64_t lines,
                int64_t p, int64_t count, int64_t all) {
    const uint16_t* data = reinterpret_cast<const uint16_t*>(from.data) + p * k_stride;
    uint32_t* panel = reinterpret_cast<uint32_t*>(panels);
    const int64_t whole = std::min(count, (all - p) / 2);
    at_level(MT_BODY {
        for (int64_t l = 0; l < lines; l += width, panel += count * width) {
            const int64_t here = std::min<int64_t>(width, lines - l);
            const uint16_t* first = data + l * line_stride;
            if (here < width || whole < count) std::fill_n(panel, count * width, 0u);
            if (line_stride == 1) {
                for (int64_t q = 0; q < whole; ++q) {
                    const uint16_t *low = first + 2 * q * k_stride, *high = low + k_stride;
                    uint32_t* to = panel + q * width;
                    const auto join = [&](int64_t count) __attribute__((always_inline)) {
#pragma GCC ivdep
                        for (int64_t i = 0; i < count; ++i) to[i] = uint32_t(low[i]) | uint32_t(high[i]) << 16;
                    };
                    if (here == 32) join(32);
                    else join(here);
                }
            } else if (k_stride == 1 && line_stride % 2 == 0 && whole > 0) {
                // Pairs lie side by side: they move as floats do.
                pack_panel(reinterpret_cast<float*>(panel), width, reinterpret_cast<const float*>(first),
                           line_stride / 2, 1, here, whole);
            } else {
                for (int64_t i = 0; i < here; ++i) {
                    const uint16_t* line = first + i * line_stride;
                    for (int64_t q = 0; q < whole; ++q)
                        panel[q * width + i] = uint32_t(line[2 * q * k_stride]) | uint32_t(line[(2 * q + 1) * k_stride])
                                                                                      << 16;
                }
            }
            if (whole < count)  // an odd k: the last one alone
                for (int64_t i = 0; i < here; ++i)
                    panel[whole * width + i] = first[i * line_stride + 2 * whole * k_stride];
        }
    });
}

#if MT_HAS_LEVELS && __GNUC__ >= 10
// Whether sums of pairs end in dense rows of bfloat16, with nothing done to them but a row that is added.
bool in_narrow_pairs(const Source& a, const Source& b, int64_t k, const Sink<float>& to) {
    return in_pairs<float>(a, b) && to.narrow && to.code == BF16 && to.ncs == 1 && to.alpha == 1 &&
           (!to.added || (to.acs == 1 && to.ars == 0)) && (to.cs == 1 || in_one_block(BF16, k));
}
// Rows of a are read where they lie, unless their lines would drive each other out of the first cache; sums go from
// registers to their places.
void multiply_narrow_pairs(const Source& a, const Source& b, int64_t m, int64_t n, int64_t k, const Sink<float>& to) {
    const int mr = engine_of_pairs<float>(m).mr;
    const PairRows* by = ALL_PAIR_ROWS;
    while (by->mr != mr) ++by;
    constexpr int NR = 32;
    // A panel of b comes from the second cache: twice as deep, sums of blocks are written half as often.
    constexpr int64_t CONFLICT = 4096, DEPTH = 2 * KC;
    const int64_t all = ceil_div(k, 2),
                  depth = all <= DEPTH ? all : ceil_div(ceil_div(all, ceil_div(all, DEPTH)), 8) * 8;
    const int64_t lines = caches.second / (DEPTH * (int64_t)sizeof(float));
    const int64_t mc = std::max<int64_t>(1, lines / 5 / mr) * mr, nc = std::max<int64_t>(1, lines / NR) * NR;
    const bool lying = a.cs == 1 && k % 2 == 0 && (m <= mr / 2 || a.rs * 2 % CONFLICT != 0);
    const int64_t rows = lying ? mr : std::min(ceil_div(m, mr) * mr, mc), columns = std::min(ceil_div(n, NR) * NR, nc);
    const Scratch room(checked_mul(depth, rows + columns), sizeof(float));
    float *pa = room.as<float>(), *pb = pa + depth * rows;
    auto part = [](const Source& s, int64_t r, int64_t c) {
        return Source{s.data + (r * s.rs + c * s.cs) * (int64_t)sizeof(BFloat16), s.code, s.rs, s.cs};
    };
    for (int64_t j = 0; j < n; j += nc)
        for (int64_t p = 0; p < all; p += depth) {
            const int64_t kb = std::min(depth, all - p), nb = std::min(nc, n - j);
            pack_pairs(pb, NR, part(b, 0, j), b.cs, b.rs, nb, 2 * p, kb, k);
            for (int64_t i = 0; i < m; i += mc) {
                const int64_t mb = std::min(mc, m - i), whole = lying ? mb / mr * mr : 0;
                if (whole < mb) pack_pairs(pa, mr, part(a, i + whole, 0), a.rs, a.cs, mb - whole, 2 * p, kb, k);
                for (int64_t c = 0; c < nb; c += NR)
                    for (int64_t r = 0; r < mb; r += mr) {
                        const int64_t row = i + r, column = j + c;
                        PairTile t{reinterpret_cast<const char*>(pa + (r - whole) * kb), 4, 4 * mr, pb + c * kb, kb};
                        if (r < whole) t.a = part(a, row, 2 * p).data, t.row = 2 * a.rs, t.step = 4;
                        t.first = p == 0, t.last = p + kb == all;
                        t.sums = t.first && t.last ? nullptr : to.out + row * to.rs + column;
                        t.sum_row = to.rs;
                        t.added = to.added ? to.added + column : nullptr;
                        t.out = reinterpret_cast<BFloat16*>(to.narrow) + row * to.nrs + column;
                        t.out_row = to.nrs;
                        t.rows = std::min<int64_t>(mr, mb - r), t.columns = std::min<int64_t>(NR, nb - c);
                        (2 * t.columns <= NR ? by->narrow : by->wide)(t);
                    }
            }
        }
}
#endif

// Whether tiles multiply them, for a k that decides it alone: results are the same for any number of threads.
bool in_tiles(const Source& a, const Source& b, int64_t k) {
    return a.code == BF16 && b.code == BF16 && k >= EDGE && has_tiles();
}

// Which engine multiplies, and how lines are packed for it.
template <class A> struct Maker {
    const Engine<A>& e;
    bool pairs;  // panels of pairs of bfloat16 along k: each as wide as a float
    Maker(const Source& a, const Source& b, int64_t m) : Maker(a, b, m, in_pairs<A>(a, b)) {}
    int64_t depth(int64_t k) const { return pairs ? block_depth(ceil_div(k, 2)) : block_depth(k); }
    // k in [p, p + count), both in units of a panel's rows; `all`: the whole k.
    void pack(A* panels, int width, const Source& from, int64_t line_stride, int64_t k_stride, int64_t lines, int64_t p,
              int64_t count, int64_t all, A* wide) const {
        if (pairs) pack_pairs(panels, width, from, line_stride, k_stride, lines, 2 * p, count, all);
        else pack_lines(e, panels, width, from, line_stride, k_stride, lines, p, count, wide);
    }

private:
    Maker(const Source&, const Source&, int64_t m, bool in_pairs)
        : e(in_pairs ? engine_of_pairs<A>(m) : engine<A>(m)), pairs(in_pairs) {}
};

}  // namespace

const Engine<float>* pair_engine(int64_t rows) { return cpu_has_bf16 ? &engine_of_pairs<float>(rows) : nullptr; }

bool in_one_block(int code, int64_t k) {
    if (code == BF16 && k >= EDGE && has_tiles()) return ceil_div(k, 2) <= DEEP;
    return (code == BF16 && cpu_has_bf16 ? ceil_div(k, 2) : k) <= KC;
}

// The same for so few rows that packing b would cost more than it saves: whole panels of it are read where they lie.
template <class A> int64_t multiply_lying(const Maker<A>& maker, const Source& a, const Source& b, int64_t m, int64_t n,
                                          int64_t k, const Sink<A>& to) {
    const Engine<A>& e = maker.e;
    if (maker.pairs || b.code != CodeOf<A>::value || b.cs != 1 || m > e.mr) return 0;
    const int64_t depth = maker.depth(k), whole = n / e.nr * e.nr;
    const Scratch room(checked_mul(depth, e.mr + 32), sizeof(A));
    int64_t offset[KC + 8];
    for (int64_t p = 0; p < depth; ++p) offset[p] = p * b.rs;
    for (int64_t p = 0; p < k && whole; p += depth) {
        const int64_t kb = std::min(depth, k - p);
        maker.pack(room.as<A>(), e.mr, a, a.rs, a.cs, m, p, kb, k, room.as<A>() + depth * e.mr);
        for (int64_t j = 0; j < whole; j += e.nr)
            sink_tile(e, room.as<A>(), reinterpret_cast<const A*>(b.data) + p * b.rs + j, kb, to, 0, j, m, e.nr, p == 0,
                      offset, p + kb == k);
    }
    return whole;
}

template <class A>
void gemm_block(const Source& a, const Source& b, int64_t m, int64_t n, int64_t k, const Sink<A>& to) {
    if constexpr (std::is_same<A, float>::value) {
        if (in_tiles(a, b, k)) return multiply_tiles(a, b, m, n, k, to);
#if MT_HAS_LEVELS && __GNUC__ >= 10
        if (in_narrow_pairs(a, b, k, to)) return multiply_narrow_pairs(a, b, m, n, k, to);
#endif
    }
    const Maker<A> maker(a, b, m);
    const Engine<A>& e = maker.e;
    // Packed rows fill a part of the second cache and stay there while columns pass by; those come from the next one.
    const int64_t lines = caches.second / (KC * (int64_t)sizeof(A));
    const int64_t mc = std::max<int64_t>(1, lines / 5 / e.mr) * e.mr, nc = std::max<int64_t>(1, lines / e.nr) * e.nr;
    const int64_t all = maker.pairs ? ceil_div(k, 2) : k;
    const int64_t depth = maker.depth(k), rows = std::min(ceil_div(m, e.mr) * e.mr, mc);
    const int64_t columns = std::min(ceil_div(n, e.nr) * e.nr, nc);
    const Scratch room(checked_add(checked_mul(depth, rows + columns), depth * 32), sizeof(A));
    A* pa = room.as<A>();
    A* pb = pa + depth * rows;
    A* wide = pb + depth * columns;  // one panel, before it is packed
    for (int64_t j = multiply_lying(maker, a, b, m, n, k, to); j < n; j += nc)
        for (int64_t p = 0; p < all; p += depth) {
            const int64_t kb = std::min(depth, all - p), nb = std::min(nc, n - j);
            Source part = b;
            part.data += j * b.cs * ITEMSIZE[b.code];
            maker.pack(pb, e.nr, part, b.cs, b.rs, nb, p, kb, k, wide);
            for (int64_t i = 0; i < m; i += mc) {
                const int64_t mb = std::min(mc, m - i);
                part = a;
                part.data += i * a.rs * ITEMSIZE[a.code];
                maker.pack(pa, e.mr, part, a.rs, a.cs, mb, p, kb, k, wide);
                Sink<A> sink = to;
                sink.move(i, j);
                multiply_panels(e, pa, mb, pb, nb, kb, sink, p == 0, p + kb == all);
            }
        }
}
template void gemm_block(const Source&, const Source&, int64_t, int64_t, int64_t, const Sink<float>&);
template void gemm_block(const Source&, const Source&, int64_t, int64_t, int64_t, const Sink<double>&);

template <class A>
void gemm_packed(const Source& a, const Source& b, int64_t m, int64_t n, int64_t k, const Sink<A>& to) {
    // Blocks of at least `least` multiplications, as square as they come: both operands are packed once for each.
    constexpr int64_t WORK = 1 << 21;
    const int64_t work = saturated_mul(saturated_mul(m, n), k);
    const int threads = num_threads();
    const int64_t parts = threads == 1 ? 1 : std::min<int64_t>(work / WORK, 3 * threads);
    int64_t down = 1, across = 1;
    while (down * across < parts) {
        if (m / down >= n / across) ++down;
        else ++across;
    }
    const Engine<A>& e = Maker<A>(a, b, m).e;
    const int64_t height = ceil_div(ceil_div(m, down), e.mr) * e.mr, width = ceil_div(ceil_div(n, across), e.nr) * e.nr;
    down = ceil_div(m, height), across = ceil_div(n, width);
    parallel_for(down * across, 1, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            const int64_t i = t / across * height, j = t % across * width;
            Source pa = a, pb = b;
            pa.data += i * a.rs * ITEMSIZE[a.code];
            pb.data += j * b.cs * ITEMSIZE[b.code];
            Sink<A> sink = to;
            sink.move(i, j);
            gemm_block(pa, pb, std::min(height, m - i), std::min(width, n - j), k, sink);
        }
    });
}
template void gemm_packed(const Source&, const Source&, int64_t, int64_t, int64_t, const Sink<float>&);
template void gemm_packed(const Source&, const Source&, int64_t, int64_t, int64_t, const Sink<double>&);

}  // namespace mt
