// Convolution of each plane by itself (depthwise), of planes as they lie: a row is a few vectors, and masks leave out what
// is outside of it. float32, bfloat16 and float16 on CPUs with AVX-512; what is not taken here conv_rows.cpp does. See
// conv.h.
// Invariant: an element that a mask leaves out is neither read nor written; rows outside are read as one row of zeros.
// A place is summed over its taps in one order, in float.
#include "conv.h"
#include "halves.h"
#include "lanes.h"

namespace mt {
#if MT_HAS_LEVELS
namespace {

// Places of a plane that see the same taps. Tap (i, j) of the place at row y, vector from column x on, reads row
// y * row_step + row[i], from column x * S + column[j] on.
struct Lattice {
    int64_t rows, columns;  // of places
    int64_t row_step;
    std::vector<int64_t> row, column, weight;  // weight: of tap (i, j), in a plane's weights
    int64_t first_row, table;                  // rows that are read, and the number of them
    std::vector<uint32_t> masks;               // of what tap j reads for each vector of places: by vector, tap
    int64_t out, pitch;                        // the first place in the result's plane, and from row to row
    int64_t out_step;                          // from place to place: 1 or 2
};

uint32_t mask_of(int64_t begin, int64_t end) {
    begin = std::max<int64_t>(0, std::min<int64_t>(32, begin)), end = std::max(begin, std::min<int64_t>(32, end));
    return uint32_t((uint64_t(1) << end) - (uint64_t(1) << begin));
}

// lanes: places of a vector; step: columns that are read from one to the next.
void settle(Lattice& f, int64_t in_columns, int64_t lanes, int64_t step) {
    f.first_row = *std::min_element(f.row.begin(), f.row.end());
    f.table = (f.rows - 1) * f.row_step + *std::max_element(f.row.begin(), f.row.end()) - f.first_row + 1;
    for (int64_t x = 0; x < f.columns; x += lanes)
        for (const int64_t column : f.column) {
            const int64_t start = x * step + column;
            f.masks.push_back(mask_of(-start, in_columns - start) & mask_of(0, lanes * step));
        }
}

// L places, S elements apart: those that the mask has, and zeros.
template <class T, int L, int S> MT_AVX512 MT_INLINE typename Vec<float, 4 * L>::t read(const T* p, uint32_t mask) {
    using V = typename Vec<float, 4 * L>::t;
    constexpr bool WIDE = L == 16;
    if constexpr (std::is_same<T, float>::value) {
        if constexpr (WIDE) {
            const __m512 a = _mm512_maskz_loadu_ps((__mmask16)mask, p);
            if constexpr (S == 1) return (V)a;
            const __m512 b = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), p + 16);
            const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
            return (V)_mm512_permutex2var_ps(a, even, b);
        } else {
            const __m256 a = _mm256_maskz_loadu_ps((__mmask8)mask, p);
            if constexpr (S == 1) return (V)a;
            const __m256 b = _mm256_maskz_loadu_ps((__mmask8)(mask >> 8), p + 8);
            return (V)_mm256_permutex2var_ps(a, _mm256_set_epi32(14, 12, 10, 8, 6, 4, 2, 0), b);
        }
    } else if constexpr (WIDE) {
        if constexpr (S == 1) return (V)widened16<T>(_mm256_maskz_loadu_epi16((__mmask16)mask, p));
        const __m512i all = _mm512_maskz_loadu_epi16((__mmask32)mask, p);
        if constexpr (std::is_same<T, BFloat16>::value) return (V)_mm512_maskz_slli_epi32(0xffff, all, 16);
        else return (V)widened16<T>(_mm512_maskz_cvtepi32_epi16(0xffff, all));
    } else {
        constexpr bool BRAIN = std::is_same<T, BFloat16>::value;
        if constexpr (S == 1) {
            const __m128i bits = _mm_maskz_loadu_epi16((__mmask8)mask, p);
            if constexpr (BRAIN) return (V)_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16);
            else return (V)_mm256_cvtph_ps(bits);
        } else {
            const __m256i all = _mm256_maskz_loadu_epi16((__mmask16)mask, p);
            if constexpr (BRAIN) return (V)_mm256_slli_epi32(all, 16);
            else return (V)_mm256_cvtph_ps(_mm256_cvtepi32_epi16(all));
        }
    }
}

// The bits of two-byte floats, each in the lower half of a lane.
template <class T, int L> MT_AVX512 MT_INLINE typename Vec<uint32_t, 4 * L>::t narrowed(
    typename Vec<float, 4 * L>::t v) {
    using U = typename Vec<uint32_t, 4 * L>::t;
    if constexpr (std::is_same<T, BFloat16>::value) {
        const U u = (U)v, r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
        return (u & 0x7fffffffu) > 0x7f800000u ? U{} + 0x7fc0u : r;
    } else if constexpr (L == 16) {
        return (U)_mm512_maskz_cvtepu16_epi32(0xffff, _mm512_maskz_cvtps_ph(0xffff, (__m512)v, 0));
    } else {
        return (U)_mm256_cvtepu16_epi32(_mm256_cvtps_ph((__m256)v, 0));
    }
}

// L places to where the mask has elements, P elements apart.
template <class T, int L, int P> MT_AVX512 MT_INLINE void write(T* p, typename Vec<float, 4 * L>::t v, uint32_t mask) {
    constexpr bool WIDE = L == 16;
    if constexpr (P == 2) mask &= 0x55555555u;
    if constexpr (std::is_same<T, float>::value && P == 1) {
        if constexpr (WIDE) _mm512_mask_storeu_ps(p, (__mmask16)mask, (__m512)v);
        else _mm256_mask_storeu_ps(p, (__mmask8)mask, (__m256)v);
    } else if constexpr (std::is_same<T, float>::value) {
        if constexpr (WIDE) {
            const __m512i low = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
            const __m512i high = _mm512_set_epi32(15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8, 8);
            _mm512_mask_storeu_ps(p, (__mmask16)mask, _mm512_maskz_permutexvar_ps(0xffff, low, (__m512)v));
            _mm512_mask_storeu_ps(p + 16, (__mmask16)(mask >> 16),
                                  _mm512_maskz_permutexvar_ps(0xffff, high, (__m512)v));
        } else {
            _mm256_mask_storeu_ps(p, (__mmask8)mask,
                                  _mm256_permutexvar_ps(_mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0), (__m256)v));
            _mm256_mask_storeu_ps(p + 8, (__mmask8)(mask >> 8),
                                  _mm256_permutexvar_ps(_mm256_set_epi32(7, 7, 6, 6, 5, 5, 4, 4), (__m256)v));
        }
    } else {
        const auto bits = narrowed<T, L>(v);
        if constexpr (P == 2) {
            if constexpr (WIDE) _mm512_mask_storeu_epi16(p, (__mmask32)mask, (__m512i)bits);
            else _mm256_mask_storeu_epi16(p, (__mmask16)mask, (__m256i)bits);
        } else if constexpr (WIDE) {
            _mm256_mask_storeu_epi16(p, (__mmask16)mask, _mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)bits));
        } else {
            _mm_mask_storeu_epi16(p, (__mmask8)mask, _mm256_cvtepi32_epi16((__m256i)bits));
        }
    }
}

// `count` of R rows of places. table: of the first one's rows.
template <class T, int L, int S, int P, int R>
MT_AVX512 MT_NOINLINE void sum_tile(const Lattice& f, const T* const* table, const float* w, float start, T* out,
                                    int64_t count) {
    using V = typename Vec<float, 4 * L>::t;
    const int64_t high = (int64_t)f.row.size(), wide = (int64_t)f.column.size();
    const uint32_t* mask = f.masks.data();
    for (int64_t x = 0; x < f.columns; x += L, mask += wide) {
        V sum[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) sum[r] = V{} + start;
        for (int64_t i = 0; i < high; ++i) {
            const T* from[R];
            const T* const* rows = table + (f.row[(size_t)i] - f.first_row);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) from[r] = rows[(r < count ? r : 0) * f.row_step] + x * S;
            for (int64_t j = 0; j < wide; ++j) {
                const V tap = V{} + w[i * wide + j];
                const uint32_t m = mask[j];
                const int64_t at = f.column[(size_t)j];
#pragma GCC unroll 8
                for (int r = 0; r < R; ++r) sum[r] += read<T, L, S>(from[r] + at, m) * tap;
            }
        }
        const uint32_t there = mask_of(0, (std::min<int64_t>(L, f.columns - x) - 1) * P + 1);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
            if (r < count) write<T, L, P>(out + r * f.pitch + x * P, sum[r], there);
    }
}

// The same of H rows of taps that stand one below the other, where places are S rows apart: what is read serves all rows
// of places that it belongs to.
template <class T, int L, int S, int R, int H>
MT_AVX512 MT_NOINLINE void share_tile(const Lattice& f, const T* const* table, const float* w, float start, T* out,
                                      int64_t count) {
    using V = typename Vec<float, 4 * L>::t;
    constexpr int ROWS = (R - 1) * S + H;
    const int64_t wide = (int64_t)f.column.size(), last = (count - 1) * S + H;
    const uint32_t* mask = f.masks.data();
    const T* from[ROWS];
    for (int i = 0; i < ROWS; ++i) from[i] = table[i < last ? i : 0];
    for (int64_t x = 0; x < f.columns; x += L, mask += wide) {
        V sum[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) sum[r] = V{} + start;
        for (int64_t j = 0; j < wide; ++j) {
            V tap[H];
#pragma GCC unroll 8
            for (int h = 0; h < H; ++h) tap[h] = V{} + w[h * wide + j];
            const uint32_t m = mask[j];
            const int64_t at = x * S + f.column[(size_t)j];
#pragma GCC unroll 32
            for (int i = 0; i < ROWS; ++i) {
                const V v = read<T, L, S>(from[i] + at, m);
#pragma GCC unroll 8
                for (int r = 0; r < R; ++r)
                    if (i - r * S >= 0 && i - r * S < H) sum[r] += v * tap[i - r * S];
            }
        }
        const uint32_t there = mask_of(0, std::min<int64_t>(L, f.columns - x));
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
            if (r < count) write<T, L, 1>(out + r * f.pitch + x, sum[r], there);
    }
}

// Some taps of a lattice: their rows, columns and masks. Those behind the last are the last one again.
constexpr int N = 9;
struct Several {
    int64_t row[N], column[N], mask[N];
    Several(const Lattice& f, int64_t first) {
        const int64_t wide = (int64_t)f.column.size(), last = (int64_t)f.weight.size() - 1;
        for (int t = 0; t < N; ++t) {
            const int64_t tap = std::min(first + t, last);
            row[t] = f.row[(size_t)(tap / wide)] - f.first_row;
            mask[t] = tap % wide;
            column[t] = f.column[(size_t)mask[t]];
        }
    }
};

// Sums of N taps over the places of one plane, added to `sums`: the gradient times what the taps read.
template <class T, int L, int S>
MT_AVX512 MT_NOINLINE void sum_taps(const Lattice& f, const T* const* table, const T* grad, const Several& taps,
                                    typename Vec<float, 4 * L>::t* sums) {
    using V = typename Vec<float, 4 * L>::t;
    const int64_t wide = (int64_t)f.column.size();
    V sum[N];
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) sum[t] = sums[t];
    for (int64_t y = 0; y < f.rows; ++y) {
        const T* const* rows = table + y * f.row_step;
        const uint32_t* masks = f.masks.data();
        for (int64_t x = 0; x < f.columns; x += L, masks += wide) {
            const V g = read<T, L, 1>(grad + y * f.columns + x, mask_of(0, std::min<int64_t>(L, f.columns - x)));
#pragma GCC unroll 16
            for (int t = 0; t < N; ++t)
                sum[t] += g * read<T, L, S>(rows[taps.row[t]] + x * S + taps.column[t], masks[taps.mask[t]]);
        }
    }
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) sums[t] = sum[t];
}

// The same of the nine taps of a 3 x 3 window, one apart: rows of the gradient stay in registers for three rows of what is
// read.
template <class T, int L>
MT_AVX512 MT_NOINLINE void sum_nine(const Lattice& f, const T* const* table, const T* grad, const Several&,
                                    typename Vec<float, 4 * L>::t* sums) {
    using V = typename Vec<float, 4 * L>::t;
    V sum[N];
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) sum[t] = sums[t];
    const uint32_t* masks = f.masks.data();
    for (int64_t x = 0; x < f.columns; x += L, masks += 3) {
        const uint32_t there = mask_of(0, std::min<int64_t>(L, f.columns - x));
        V g[3] = {};
        for (int64_t y = 0; y < f.rows + 2; ++y) {
            g[2] = g[1], g[1] = g[0];
            g[0] = read<T, L, 1>(grad + std::min(y, f.rows - 1) * f.columns + x, y < f.rows ? there : 0);
#pragma GCC unroll 4
            for (int j = 0; j < 3; ++j) {
                const V v = read<T, L, 1>(table[y] + x + f.column[(size_t)j], masks[j]);
#pragma GCC unroll 4
                for (int i = 0; i < 3; ++i) sum[3 * i + j] += g[i] * v;
            }
        }
    }
#pragma GCC unroll 16
    for (int t = 0; t < N; ++t) sums[t] = sum[t];
}

// Which rows of what is read are where: `table` of them.
template <class T> void find_rows(const Lattice& f, const T* plane, const Triple& in, const T* zeros, const T** table) {
    for (int64_t i = 0; i < f.table; ++i) {
        const int64_t y = f.first_row + i;
        table[i] = y >= 0 && y < in.h ? plane + y * in.w : zeros;
    }
}

template <class T> using Tile = void (*)(const Lattice&, const T* const*, const float*, float, T*, int64_t);
constexpr int TALL = 7, SHORT = 4;  // rows of places of a tile
template <class T, int L, int R> Tile<T> tile_for(int64_t step, int64_t out_step) {
    return step == 2 ? sum_tile<T, L, 2, 1, R> : out_step == 2 ? sum_tile<T, L, 1, 2, R> : sum_tile<T, L, 1, 1, R>;
}
template <class T, int L> Tile<T> shared_for(const Lattice& f, int64_t step) {
    if (f.row_step != step || f.out_step != 1) return nullptr;
    for (size_t i = 1; i < f.row.size(); ++i)
        if (f.row[i] != f.row[i - 1] + 1) return nullptr;
    switch (f.row.size()) {
        case 3: return step == 1 ? share_tile<T, L, 1, TALL, 3> : share_tile<T, L, 2, TALL, 3>;
        case 5: return step == 1 ? share_tile<T, L, 1, TALL, 5> : share_tile<T, L, 2, TALL, 5>;
        case 7: return step == 1 ? share_tile<T, L, 1, TALL, 7> : nullptr;
        default: return nullptr;
    }
}
template <class T, int L> Tile<T> tile_for(const Lattice& f, int64_t step, int64_t& rows) {
    const int64_t tall = ceil_div(f.rows, TALL) * TALL, low = ceil_div(f.rows, SHORT) * SHORT;
    const Tile<T> shared = 2 * tall <= 3 * low ? shared_for<T, L>(f, step) : nullptr;
    rows = shared || tall <= low ? TALL : SHORT;  // those that leave fewer unused
    if (shared) return shared;
    return rows == SHORT ? tile_for<T, L, SHORT>(step, f.out_step) : tile_for<T, L, TALL>(step, f.out_step);
}

// from: the planes that are read, of size `in`; every result plane is made of plane / times of its image's.
template <class T>
void sum_all(const EachPlane& e, const std::vector<Lattice>& forms, int64_t lanes, int64_t step, const Triple& in,
             const Triple& size, const T* from, T* out) {
    const int64_t taps = e.v.kernel.size(), planes = checked_mul(e.groups, e.times);
    int64_t table = 0;
    std::vector<Tile<T>> tiles;
    std::vector<int64_t> tall(forms.size());
    for (size_t i = 0; i < forms.size(); ++i) {
        table = std::max(table, forms[i].table);
        tiles.push_back(lanes == 8 ? tile_for<T, 8>(forms[i], step, tall[i])
                                   : tile_for<T, 16>(forms[i], step, tall[i]));
    }
    const int64_t work = saturated_mul(size.size(), taps + 4);
    parallel_for(checked_mul(e.images, planes), std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, work / 8)),
                 [&](int64_t begin, int64_t end) {
                     std::vector<const T*> at((size_t)table);
                     std::vector<T> zeros((size_t)in.w, T{});
                     std::vector<float> w((size_t)taps);
                     for (int64_t t = begin; t < end; ++t) {
                         const T* plane = from + (t / planes * e.groups + t % planes / e.times) * in.size();
                         const float start = e.bias ? e.bias[t % planes] : 0.0f;
                         for (size_t i = 0; i < forms.size(); ++i) {
                             const Lattice& f = forms[i];
                             find_rows(f, plane, in, zeros.data(), at.data());
                             for (size_t k = 0; k < f.weight.size(); ++k)
                                 w[k] = e.weight[t % planes * taps + f.weight[k]];
                             T* to = out + t * size.size() + f.out;
                             for (int64_t y = 0; y < f.rows; y += tall[i])
                                 tiles[i](f, at.data() + y * f.row_step, w.data(), start, to + y * f.pitch,
                                          std::min(tall[i], f.rows - y));
                         }
                     }
                 });
}

// Taps of one dimension that reach places with this remainder, as Lattice has them.
void reach(int64_t remainder, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
           std::vector<int64_t>& at, std::vector<int64_t>& taps) {
    for (int64_t k = kernel - 1; k >= 0; --k) {  // places in order
        const int64_t from = remainder + padding - k * dilation;
        if (from % stride != 0) continue;
        at.push_back(from / stride);
        taps.push_back(k);
    }
}

Lattice forward_lattice(const Window& v) {
    Lattice f{};
    f.rows = v.out.h, f.columns = v.out.w, f.row_step = v.stride.h, f.pitch = v.out.w, f.out_step = 1;
    for (int64_t i = 0; i < v.kernel.h; ++i) f.row.push_back(i * v.dilation.h - v.padding.h);
    for (int64_t j = 0; j < v.kernel.w; ++j) f.column.push_back(j * v.dilation.w - v.padding.w);
    for (int64_t k = 0; k < v.kernel.size(); ++k) f.weight.push_back(k);
    return f;
}
// Of the gradient of the input: one for each remainder of the strides.
std::vector<Lattice> input_lattices(const Window& v) {
    std::vector<Lattice> forms;
    for (int64_t y = 0; y < std::min(v.stride.h, v.in.h); ++y)
        for (int64_t x = 0; x < std::min(v.stride.w, v.in.w); ++x) {
            Lattice f{};
            std::vector<int64_t> high, wide;
            reach(y, v.kernel.h, v.stride.h, v.padding.h, v.dilation.h, f.row, high);
            reach(x, v.kernel.w, v.stride.w, v.padding.w, v.dilation.w, f.column, wide);
            for (const int64_t i : high)
                for (const int64_t j : wide) f.weight.push_back(i * v.kernel.w + j);
            if (f.weight.empty()) f.row.assign(1, 0), f.column.clear();  // places that no window reaches
            f.rows = ceil_div(v.in.h - y, v.stride.h), f.columns = ceil_div(v.in.w - x, v.stride.w), f.row_step = 1;
            f.out = y * v.in.w + x, f.pitch = v.stride.h * v.in.w, f.out_step = v.stride.w;
            forms.push_back(std::move(f));
        }
    return forms;
}

// Whether a window is for this file: planes of two dimensions, in proportion, with work for several threads.
bool takes(const EachPlane& e) {
    const Window& v = e.v;
    const int64_t most = 4 * (v.in.h + v.out.h) + 64;
    return cpu_level == AVX512 && v.in.d == 1 && v.out.d == 1 && v.kernel.d == 1 && v.padding.d == 0 && v.in.h > 1 &&
           v.out.h > 1 && v.stride.w <= 2 && v.kernel.size() <= FEW_TAPS && saturated_mul(e.images, e.groups) >= 16 &&
           saturated_mul(v.kernel.h, v.dilation.h) <= most && saturated_mul(v.out.h, v.stride.h) <= most &&
           v.padding.h <= most;
}
int64_t lanes_for(int64_t columns) { return columns <= 8 ? 8 : 16; }

template <class T, int L>
void weight_all(const EachPlane& e, const Lattice& f, const T* grad, const T* x, float* out) {
    using V = typename Vec<float, 4 * L>::t;
    const int64_t taps = e.v.kernel.size(), planes = checked_mul(e.groups, e.times);
    const Window& v = e.v;
    const bool nine = v.kernel.h == 3 && v.kernel.w == 3 && v.dilation.h == 1 && v.stride.h == 1 && v.stride.w == 1;
    const auto sum = nine ? sum_nine<T, L> : v.stride.w == 2 ? sum_taps<T, L, 2> : sum_taps<T, L, 1>;
    const int64_t places = e.v.out.size(), work = saturated_mul(saturated_mul(e.images, places), taps);
    parallel_for(planes, std::max<int64_t>(1, GRAIN / std::max<int64_t>(1, work / 8)), [&](int64_t begin, int64_t end) {
        std::vector<const T*> at((size_t)f.table);
        std::vector<T> zeros((size_t)e.v.in.w, T{});
        for (int64_t o = begin; o < end; ++o) {
            std::fill_n(out + o * taps, taps, 0.0f);
            for (int64_t first = 0; first < taps; first += N) {
                const Several which(f, first);
                V sums[N] = {};
                for (int64_t n = 0; n < e.images; ++n) {
                    find_rows(f, x + (n * e.groups + o / e.times) * e.v.in.size(), e.v.in, zeros.data(), at.data());
                    sum(f, at.data(), grad + (n * planes + o) * places, which, sums);
                    // Sums of many terms are joined now and then, which rounds better.
                    if (n + 1 < e.images && (n + 1) * places % 4096 >= places) continue;
                    for (int64_t t = 0; t < N && first + t < taps; ++t) {
                        float part[L];
                        std::memcpy(part, &sums[t], sizeof part);
                        out[o * taps + first + t] += fold_parts<L>(part, Plus<float>());
                        sums[t] = V{};
                    }
                }
            }
        }
    });
}

template <class F> void dispatch(int code, F&& f) {
    if (code == BF16) f(BFloat16());
    else if (code == F16) f(Half());
    else f(float());
}

}  // namespace

bool planes_forward(const EachPlane& e, const Dense& x, const Dense& out) {
    if (!takes(e)) return false;
    Lattice f = forward_lattice(e.v);
    const int64_t lanes = lanes_for(f.columns), step = e.v.stride.w;
    settle(f, e.v.in.w, lanes, step);
    dispatch(x.code, [&](auto t) {
        using T = decltype(t);
        sum_all<T>(e, {f}, lanes, step, e.v.in, e.v.out, x.as<const T>(), out.as<T>());
    });
    return true;
}

bool planes_input(const EachPlane& e, const Dense& grad, const Dense& out) {
    if (!takes(e) || e.times != 1) return false;
    std::vector<Lattice> forms = input_lattices(e.v);
    const int64_t lanes = lanes_for(forms[0].columns);
    for (Lattice& f : forms) settle(f, e.v.out.w, lanes, 1);
    dispatch(grad.code, [&](auto t) {
        using T = decltype(t);
        sum_all<T>(e, forms, lanes, 1, e.v.out, e.v.in, grad.as<const T>(), out.as<T>());
    });
    return true;
}

bool planes_weight(const EachPlane& e, const Dense& grad, const Dense& x, float* out) {
    if (!takes(e)) return false;
    Lattice f = forward_lattice(e.v);
    const int64_t lanes = lanes_for(f.columns);
    settle(f, e.v.in.w, lanes, e.v.stride.w);
    dispatch(x.code, [&](auto t) {
        using T = decltype(t);
        if (lanes == 8) weight_all<T, 8>(e, f, grad.as<const T>(), x.as<const T>(), out);
        else weight_all<T, 16>(e, f, grad.as<const T>(), x.as<const T>(), out);
    });
    return true;
}
#else
bool planes_forward(const EachPlane&, const Dense&, const Dense&) { return false; }
bool planes_input(const EachPlane&, const Dense&, const Dense&) { return false; }
bool planes_weight(const EachPlane&, const Dense&, const Dense&, float*) { return false; }
#endif

}  // namespace mt
