// The packed product: see gemm.h.
#include "gemm.h"
#include "lanes.h"
#include "vectors.h"

#include <algorithm>

namespace mt {
namespace {

// MR x NV vectors of sums stay in registers, beside NV of b and one of a.
template <class A, int BYTES, int MR, int NV, bool AT>
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
        if (!AT) b += NV * LANES;
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

// S x S elements, transposed: to[p * width + line] = from[line * stride + p]. Lines from `lines` on are anything.
template <class A> MT_INLINE void transpose_block(A* to, int width, const A* from, int64_t stride, int64_t lines) {
    using V = typename Vec<A, 32>::t;
    using L = typename Vec<A, 32>::loose;
    if constexpr (sizeof(A) == 4) {
        typedef int I __attribute__((vector_size(32)));
        V r[8], s[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) r[i] = *reinterpret_cast<const L*>(from + std::min<int64_t>(i, lines - 1) * stride);
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
        for (int i = 0; i < 4; ++i) r[i] = *reinterpret_cast<const L*>(from + std::min<int64_t>(i, lines - 1) * stride);
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
    const int64_t blocks = (k - 1) / S * S;  // nothing is spoilt behind the last row
    for (int64_t p = 0; p < blocks; p += S)
        for (int64_t l = (lines - 1) / S * S; l >= 0; l -= S)
            transpose_block(panel + p * width + l, width, from + l * line_stride + p, line_stride, lines - l);
    if (lines < width) pack_plain(panel, width, from, line_stride, k_stride, lines, 0, blocks, lines);
    pack_plain(panel, width, from, line_stride, k_stride, lines, blocks, k, 0);
}

// One level's functions. The widths of a tile are those that fill its registers.
#define MT_ENGINE(NAME, TARGET, BYTES, MR, NV) \
    template <class A> TARGET void tile_##NAME(const A* a, const A* b, int64_t k, A* c, int64_t crs, A alpha, \
                                               bool add) { \
        tile_of<A, BYTES, MR, NV, false>(a, b, nullptr, k, c, crs, alpha, add); \
    } \
    template <class A> TARGET void tile_at_##NAME(const A* a, const A* b, const int64_t* offset, int64_t k, A* c, \
                                                  int64_t crs, A alpha, bool add) { \
        tile_of<A, BYTES, MR, NV, true>(a, b, offset, k, c, crs, alpha, add); \
    } \
    template <class A> TARGET void pack_##NAME(A* panel, int width, const A* from, int64_t ls, int64_t ks, \
                                               int64_t lines, int64_t k) { \
        if (width == NV * BYTES / int(sizeof(A))) \
            pack_panel<A>(panel, NV * BYTES / int(sizeof(A)), from, ls, ks, lines, k); \
        else pack_panel<A>(panel, MR, from, ls, ks, lines, k); \
    } \
    template <class A> constexpr Engine<A> ENGINE_##NAME = {MR, NV * BYTES / int(sizeof(A)), tile_##NAME<A>, \
                                                            tile_at_##NAME<A>, pack_##NAME<A>};

#if defined(__aarch64__)
MT_ENGINE(baseline, , 16, 8, 2)
#else
MT_ENGINE(baseline, , 16, 4, 2)
#endif
#if MT_HAS_LEVELS
MT_ENGINE(avx2, MT_AVX2, 32, 6, 2)
MT_ENGINE(avx512, MT_AVX512, 64, 14, 2)
#endif

}  // namespace

template <class A> const Engine<A>& engine() {
#if MT_HAS_LEVELS
    if (cpu_level == AVX512) return ENGINE_avx512<A>;
    if (cpu_level == AVX2) return ENGINE_avx2<A>;
#endif
    return ENGINE_baseline<A>;
}
template const Engine<float>& engine<float>();
template const Engine<double>& engine<double>();

template <class A>
void sink_tile(const Engine<A>& e, const A* a, const A* b, int64_t k, const Sink<A>& to, int64_t i, int64_t j,
               int64_t rows, int64_t columns, bool first, const int64_t* offset) {
    A* out = to.out + i * to.rs + j * to.cs;
    const bool reads = first && to.beta != 0;
    auto tile = [&](A* c, int64_t crs, bool add) {
        if (offset) e.tile_at(a, b, offset, k, c, crs, to.alpha, add);
        else e.tile(a, b, k, c, crs, to.alpha, add);
    };
    if (rows == e.mr && columns == e.nr && to.cs == 1 && !reads) return tile(out, to.rs, !first);
    alignas(64) A sums[MAX_TILE];
    tile(sums, e.nr, false);
    for (int64_t r = 0; r < rows; ++r, out += to.rs) {
        const A* row = sums + r * e.nr;
        const A* c = to.c + (i + r) * to.crs + j * to.ccs;
        if (reads)
            for (int64_t q = 0; q < columns; ++q) out[q * to.cs] = row[q] + to.beta * c[q * to.ccs];
        else if (first)
            for (int64_t q = 0; q < columns; ++q) out[q * to.cs] = row[q];
        else
            for (int64_t q = 0; q < columns; ++q) out[q * to.cs] += row[q];
    }
}

template <class A>
void multiply_panels(const Engine<A>& e, const A* a, int64_t m, const A* b, int64_t n, int64_t k, const Sink<A>& to,
                     bool first) {
    for (int64_t j = 0; j < n; j += e.nr)
        for (int64_t i = 0; i < m; i += e.mr)
            sink_tile(e, a + i * k, b + j * k, k, to, i, j, std::min<int64_t>(e.mr, m - i),
                      std::min<int64_t>(e.nr, n - j), first);
}
template void multiply_panels(const Engine<float>&, const float*, int64_t, const float*, int64_t, int64_t,
                              const Sink<float>&, bool);
template void multiply_panels(const Engine<double>&, const double*, int64_t, const double*, int64_t, int64_t,
                              const Sink<double>&, bool);
template void sink_tile(const Engine<float>&, const float*, const float*, int64_t, const Sink<float>&, int64_t, int64_t,
                        int64_t, int64_t, bool, const int64_t*);
template void sink_tile(const Engine<double>&, const double*, const double*, int64_t, const Sink<double>&, int64_t,
                        int64_t, int64_t, int64_t, bool, const int64_t*);

namespace {

// Lines [0, lines) of a matrix for k in [p, p + k), as panels one after the other.
template <class A>
void pack_lines(const Engine<A>& e, A* panels, int width, const Source& from, int64_t line_stride, int64_t k_stride,
                int64_t lines, int64_t p, int64_t k, A* wide) {
    const int size = ITEMSIZE[from.code];
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

}  // namespace

template <class A>
void gemm_block(const Source& a, const Source& b, int64_t m, int64_t n, int64_t k, const Sink<A>& to) {
    const Engine<A>& e = engine<A>();
    const int64_t mc = std::max<int64_t>(1, 192 / e.mr) * e.mr, nc = std::max<int64_t>(1, 1024 / e.nr) * e.nr;
    const int64_t depth = block_depth(k), rows = std::min(ceil_div(m, e.mr) * e.mr, mc);
    const int64_t columns = std::min(ceil_div(n, e.nr) * e.nr, nc);
    const Scratch room(checked_add(checked_mul(depth, rows + columns), depth * 32), sizeof(A));
    A* pa = room.as<A>();
    A* pb = pa + depth * rows;
    A* wide = pb + depth * columns;  // one panel, before it is packed
    for (int64_t j = 0; j < n; j += nc)
        for (int64_t p = 0; p < k; p += depth) {
            const int64_t kb = std::min(depth, k - p), nb = std::min(nc, n - j);
            Source part = b;
            part.data += j * b.cs * ITEMSIZE[b.code];
            pack_lines(e, pb, e.nr, part, b.cs, b.rs, nb, p, kb, wide);
            for (int64_t i = 0; i < m; i += mc) {
                const int64_t mb = std::min(mc, m - i);
                part = a;
                part.data += i * a.rs * ITEMSIZE[a.code];
                pack_lines(e, pa, e.mr, part, a.rs, a.cs, mb, p, kb, wide);
                Sink<A> sink = to;
                sink.out += i * to.rs + j * to.cs;
                if (to.beta != 0) sink.c += i * to.crs + j * to.ccs;
                multiply_panels(e, pa, mb, pb, nb, kb, sink, p == 0);
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
    const Engine<A>& e = engine<A>();
    const int64_t height = ceil_div(ceil_div(m, down), e.mr) * e.mr, width = ceil_div(ceil_div(n, across), e.nr) * e.nr;
    down = ceil_div(m, height), across = ceil_div(n, width);
    parallel_for(down * across, 1, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            const int64_t i = t / across * height, j = t % across * width;
            Source pa = a, pb = b;
            pa.data += i * a.rs * ITEMSIZE[a.code];
            pb.data += j * b.cs * ITEMSIZE[b.code];
            Sink<A> sink = to;
            sink.out += i * to.rs + j * to.cs;
            if (to.beta != 0) sink.c += i * to.crs + j * to.ccs;
            gemm_block(pa, pb, std::min(height, m - i), std::min(width, n - j), k, sink);
        }
    });
}
template void gemm_packed(const Source&, const Source&, int64_t, int64_t, int64_t, const Sink<float>&);
template void gemm_packed(const Source&, const Source&, int64_t, int64_t, int64_t, const Sink<double>&);

}  // namespace mt
