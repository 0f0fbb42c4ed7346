// Products of two-byte floats where one factor has few rows, or sums are short: nothing is packed, the factors are read as
// they lie. See matmul.cpp, which asks for them.
// Invariant: a sum runs in float, in an order that depends on k alone, and is rounded once.
#include "halves_dots.h"
#include "halves.h"
#include "lanes.h"
#include "tiles.h"

#include <algorithm>

namespace mt {
namespace {

HalfProduct turned(const HalfProduct& h) {
    auto flip = [](const Source& s) { return Source{s.data, s.code, s.cs, s.rs}; };
    return {flip(h.b), flip(h.a), flip(h.c), flip(h.out), h.n, h.m, h.k, h.alpha, h.beta};
}

// At every level: dot products of few rows with long columns, which are read once. A stretch of a column is widened once
// for all rows.
constexpr int64_t LEAST = 4, LONG = 256;
bool takes_few(const HalfProduct& h) { return h.a.cs == 1 && h.b.rs == 1 && h.m <= LEAST && h.k >= LONG; }
void multiply_few(const HalfProduct& h) {
    constexpr int64_t WORK = 1 << 18;
    const int size = ITEMSIZE[h.a.code], code = h.a.code;
    const Scratch room(checked_mul(h.m, h.k), sizeof(float));
    for (int64_t i = 0; i < h.m; ++i)
        cast_block((char*)(room.as<float>() + i * h.k), F32, h.a.data + i * h.a.rs * size, code, h.k);
    parallel_for(h.n, std::max<int64_t>(1, WORK / (h.m * h.k)), [&](int64_t begin, int64_t end) {
        constexpr int64_t STRETCH = 1024;
        alignas(64) float wide[STRETCH];
        for (int64_t j = begin; j < end; ++j) {
            float sums[LEAST] = {};
            for (int64_t p = 0; p < h.k; p += STRETCH) {
                const int64_t n = std::min(STRETCH, h.k - p);
                cast_block((char*)wide, F32, h.b.data + (j * h.b.cs + p) * size, code, n);
                at_level(MT_BODY {
                    for (int64_t i = 0; i < h.m; ++i) {
                        const float* row = room.as<float>() + i * h.k + p;
                        sums[i] += sum_of<float>(n, MT_EACH(q) { return row[q] * wide[q]; });
                    }
                });
            }
            for (int64_t i = 0; i < h.m; ++i) {
                float old = 0, value = h.alpha * sums[i];
                if (h.beta != 0) {
                    cast_block((char*)&old, F32, h.c.data + (i * h.c.rs + j * h.c.cs) * size, code, 1);
                    value += h.beta * old;
                }
                cast_block(const_cast<char*>(h.out.data) + (i * h.out.rs + j * h.out.cs) * size, code,
                           (const char*)&value, F32, 1);
            }
        }
    });
}

}  // namespace

#if MT_HAS_LEVELS
namespace {

constexpr int64_t FEW = 16, FEW_ROWS = 4, SHORT = 16;  // rows for dots, rows to add up, and terms of a sum
constexpr int64_t RUN = 512;                           // terms of a sum that are added up by themselves

// The sums of four vectors, side by side.
MT_AVX512 MT_INLINE __m128 fold_four(const __m512* v) {
    __m128 part[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        const __m256 low = _mm512_maskz_extractf32x8_ps(0xff, v[i], 0),
                     high = _mm512_maskz_extractf32x8_ps(0xff, v[i], 1);
        const __m256 half = _mm256_add_ps(low, high);
        part[i] = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    }
    const __m128 a = _mm_add_ps(_mm_unpacklo_ps(part[0], part[1]), _mm_unpackhi_ps(part[0], part[1]));
    const __m128 b = _mm_add_ps(_mm_unpacklo_ps(part[2], part[3]), _mm_unpackhi_ps(part[2], part[3]));
    return _mm_add_ps(_mm_movelh_ps(a, b), _mm_movehl_ps(b, a));
}

#if __GNUC__ >= 10
// M rows with four others, by the CPU's own products of pairs: 32 terms at a time. What lies `ahead` of the others, in
// bytes, is asked for, unless that is 0.
template <int M> MT_PAIRS MT_NOINLINE void dots_of_pairs(const uint16_t* const* a, const uint16_t* const* b, int64_t k,
                                                         float* sums, int64_t ahead) {
    __m512 sum[M][4];
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) sum[i][j] = _mm512_setzero_ps();
    for (int64_t p = 0; p < k; p += 32) {
        const __mmask32 mask = k - p >= 32 ? 0xffffffffu : (1u << (k - p)) - 1;
        __m512bh y[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
            y[j] = (__m512bh)_mm512_maskz_loadu_epi16(mask, b[j] + p);
            if (ahead) __builtin_prefetch(reinterpret_cast<const void*>(uintptr_t(b[j] + p) + (uintptr_t)ahead));
        }
#pragma GCC unroll 4
        for (int i = 0; i < M; ++i) {
            const __m512bh x = (__m512bh)_mm512_maskz_loadu_epi16(mask, a[i] + p);
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], x, y[j]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i) _mm_storeu_ps(sums + 4 * i, _mm_add_ps(_mm_loadu_ps(sums + 4 * i), fold_four(sum[i])));
}
#endif

// The same, widened: 16 terms at a time.
template <class T, int M>
MT_AVX512 MT_NOINLINE void dots_of_halves(const uint16_t* const* a, const uint16_t* const* b, int64_t k, float* sums,
                                          int64_t ahead) {
    Wide16 sum[M][4];
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) sum[i][j] = Wide16{};
    for (int64_t p = 0; p < k; p += 16) {
        const __mmask16 mask = __mmask16(k - p >= 16 ? 0xffff : (1u << (k - p)) - 1);
        Wide16 y[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
            y[j] = widened16<T>(_mm256_maskz_loadu_epi16(mask, b[j] + p));
            if (ahead) __builtin_prefetch(reinterpret_cast<const void*>(uintptr_t(b[j] + p) + (uintptr_t)ahead));
        }
#pragma GCC unroll 4
        for (int i = 0; i < M; ++i) {
            const Wide16 x = widened16<T>(_mm256_maskz_loadu_epi16(mask, a[i] + p));
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) sum[i][j] += x * y[j];
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i) {
        __m512 row[4];
        std::memcpy(row, sum[i], sizeof row);
        _mm_storeu_ps(sums + 4 * i, _mm_add_ps(_mm_loadu_ps(sums + 4 * i), fold_four(row)));
    }
}

using Dots = void (*)(const uint16_t* const*, const uint16_t* const*, int64_t, float*, int64_t);
template <int M> Dots dots_for(int code) {
#if __GNUC__ >= 10
    if (code == BF16 && cpu_has_bf16) return dots_of_pairs<M>;
#endif
    return code == BF16 ? dots_of_halves<BFloat16, M> : dots_of_halves<Half, M>;
}

// Rows of results: where results of a tile go.
struct Put {
    const HalfProduct& h;
    template <class T> MT_INLINE void one(int64_t i, int64_t j, float sum) const {
        float value = h.alpha * sum;
        if (h.beta != 0) value += h.beta * (float)widen(reinterpret_cast<const T*>(h.c.data)[i * h.c.rs + j * h.c.cs]);
        reinterpret_cast<T*>(const_cast<char*>(h.out.data))[i * h.out.rs + j * h.out.cs] = convert<T>(value);
    }
};

// Results [0, n) of one row from their sums.
template <class T> MT_AVX512 MT_NOINLINE void put_row(const HalfProduct& h, int64_t i, int64_t j, const float* sums,
                                                      int64_t n) {
    const Put put{h};
    T* to = reinterpret_cast<T*>(const_cast<char*>(h.out.data)) + i * h.out.rs + j * h.out.cs;
    if (h.beta != 0 || h.out.cs != 1) {
        for (int64_t q = 0; q < n; ++q) put.one<T>(i, j + q, sums[q]);
    } else {
        put_halves16<T>(to, sums, n, h.alpha);
    }
}

template <class T> void dots(const HalfProduct& h, int64_t begin, int64_t end) {
    const Dots by[4] = {dots_for<1>(h.a.code), dots_for<2>(h.a.code), dots_for<3>(h.a.code), dots_for<4>(h.a.code)};
    const auto *a = reinterpret_cast<const uint16_t*>(h.a.data), *b = reinterpret_cast<const uint16_t*>(h.b.data);
    for (int64_t j = begin; j < end; j += 4)
        for (int64_t i = 0; i < h.m; i += 4) {
            const int64_t rows = std::min<int64_t>(4, h.m - i), columns = std::min<int64_t>(4, end - j);
            float sums[16] = {};
            for (int64_t p = 0; p < h.k; p += RUN) {
                const uint16_t *x[4], *y[4];
                for (int64_t q = 0; q < 4; ++q) {
                    x[q] = a + (i + std::min(q, rows - 1)) * h.a.rs + p;
                    y[q] = b + (j + std::min(q, columns - 1)) * h.b.cs + p;
                }
                by[rows - 1](x, y, std::min(RUN, h.k - p), sums, i == 0 ? 4 * h.b.cs * (int64_t)sizeof(T) : 0);
            }
            for (int64_t r = 0; r < rows; ++r) put_row<T>(h, i + r, j, sums + 4 * r, columns);
        }
}

// M rows, W vectors of columns; x: the rows' elements in float, by row; what is behind column `wide` is left out.
template <class T, int M, int W>
MT_AVX512 MT_NOINLINE void add_rows(const float* x, int64_t k, const T* b, int64_t step, int64_t wide, float* sums) {
    Wide16 sum[M][W];
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
        for (int v = 0; v < W; ++v) sum[i][v] = Wide16{};
    __mmask16 mask[W];
    for (int v = 0; v < W; ++v)
        mask[v] = __mmask16((1u << std::max<int64_t>(0, std::min<int64_t>(16, wide - 16 * v))) - 1);
    for (int64_t p = 0; p < k; ++p) {
        const T* row = b + p * step;
#pragma GCC unroll 8
        for (int v = 0; v < W; ++v) {
            const Wide16 y = widened16<T>(_mm256_maskz_loadu_epi16(mask[v], row + 16 * v));
#pragma GCC unroll 4
            for (int i = 0; i < M; ++i) sum[i][v] += x[i * k + p] * y;
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
        for (int v = 0; v < W; ++v) {
            float* to = sums + (i * W + v) * 16;
            _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), (__m512)sum[i][v]));
        }
}

// Sums of few terms: four rows of results at a time, from the first column to the last. x: the rows' elements in float; c:
// what beta multiplies, or null.
template <class T>
MT_AVX512 MT_NOINLINE void short_rows(const float* x, int64_t k, const T* b, int64_t step, int64_t n, T* const* out,
                                      const T* const* c, float alpha, float beta) {
    for (int64_t j = 0; j < n; j += 16) {
        const __mmask16 mask = __mmask16(n - j >= 16 ? 0xffff : (1u << (n - j)) - 1);
        Wide16 sum[4] = {};
        for (int64_t p = 0; p < k; ++p) {
            const Wide16 y = widened16<T>(_mm256_maskz_loadu_epi16(mask, b + p * step + j));
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) sum[i] += x[i * k + p] * y;
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            sum[i] *= alpha;
            if (c) sum[i] += beta * widened16<T>(_mm256_maskz_loadu_epi16(mask, c[i] + j));
        }
        // Only then written: c may be the result, and a row may be there twice.
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) _mm256_mask_storeu_epi16(out[i] + j, mask, narrowed16<T>(sum[i]));
    }
}

#if __GNUC__ >= 10
// The same of pairs of terms: x by row, b by pair, `pitch` columns apart, which is a multiple of 32.
MT_PAIRS MT_NOINLINE void short_pairs(const uint32_t* x, int64_t k, const uint32_t* b, int64_t pitch, int64_t n,
                                      BFloat16* const* out) {
    for (int64_t j = 0; j < n; j += 32) {
        __m512 sum[4][2];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
        for (int64_t p = 0; p < k; ++p) {
            const __m512bh y = (__m512bh)_mm512_loadu_ps(b + p * pitch + j);
            const __m512bh z = (__m512bh)_mm512_loadu_ps(b + p * pitch + j + 16);
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                const __m512bh v = (__m512bh)_mm512_set1_epi32((int)x[i * k + p]);
                sum[i][0] = _mm512_dpbf16_ps(sum[i][0], v, y);
                sum[i][1] = _mm512_dpbf16_ps(sum[i][1], v, z);
            }
        }
        const __mmask32 mask = n - j >= 32 ? 0xffffffffu : (1u << (n - j)) - 1;
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(sum[i][1], sum[i][0]);
            _mm512_mask_storeu_epi16(out[i] + j, mask, both);
        }
    }
}
void multiply_short_pairs(const HalfProduct& h) {
    const int64_t k = ceil_div(h.k, 2), pitch = ceil_div(h.n, 32) * 32;
    const Scratch room(checked_mul(k, pitch), sizeof(uint32_t));
    const auto *a = reinterpret_cast<const uint16_t*>(h.a.data), *b = reinterpret_cast<const uint16_t*>(h.b.data);
    at_level(MT_BODY {
        for (int64_t p = 0; p < k; ++p) {
            const uint16_t *low = b + 2 * p * h.b.rs, *high = 2 * p + 1 < h.k ? low + h.b.rs : low;
            const uint32_t two = 2 * p + 1 < h.k ? ~0u : 0u;
            uint32_t* to = room.as<uint32_t>() + p * pitch;
#pragma GCC ivdep
            for (int64_t j = 0; j < h.n; ++j) to[j] = uint32_t(low[j]) | (uint32_t(high[j]) << 16 & two);
            for (int64_t j = h.n; j < pitch; ++j) to[j] = 0;
        }
    });
    const int64_t grain = (1 << 18) / std::max<int64_t>(1, saturated_mul(h.k, 4 * h.n));
    parallel_for(ceil_div(h.m, 4), std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
        for (int64_t i = 4 * begin; i < std::min(4 * end, h.m); i += 4) {
            uint32_t x[4 * SHORT];
            BFloat16* to[4];
            for (int64_t r = 0; r < 4; ++r) {
                const int64_t row = std::min(i + r, h.m - 1);  // rows behind the last are the last one again
                const uint16_t* at = a + row * h.a.rs;
                for (int64_t p = 0; p < k; ++p)
                    x[r * k + p] = uint32_t(at[2 * p * h.a.cs]) |
                                   (2 * p + 1 < h.k ? uint32_t(at[(2 * p + 1) * h.a.cs]) << 16 : 0u);
                to[r] = reinterpret_cast<BFloat16*>(const_cast<char*>(h.out.data)) + row * h.out.rs;
            }
            short_pairs(x, k, room.as<uint32_t>(), pitch, h.n, to);
        }
    });
}
#endif

// Rows [begin, end) of a by rows of b, added up: columns of b lie side by side.
template <class T> void rows(const HalfProduct& h, int64_t begin, int64_t end, int64_t first, int64_t last) {
    constexpr int M = 4, W = 4, ALONE = 8;
    const T *a = reinterpret_cast<const T*>(h.a.data), *b = reinterpret_cast<const T*>(h.b.data);
    alignas(64) float x[M * RUN], sums[M * ALONE * 16];
    for (int64_t i = begin; i < end; i += M) {
        const int64_t count = std::min<int64_t>(M, end - i);
        const bool alone = count == 1;
        const int64_t width = (alone ? ALONE : W) * 16;
        auto load = [&](int64_t p, int64_t k) {
            for (int64_t r = 0; r < count; ++r)
                for (int64_t q = 0; q < k; ++q) x[r * k + q] = widen(a[(i + r) * h.a.rs + (p + q) * h.a.cs]);
        };
        if (!alone) std::fill_n(x, M * std::min(RUN, h.k), 0.0f);  // rows behind the last
        if (h.k <= RUN) load(0, h.k);                              // once for all columns
        if (h.k <= SHORT && h.out.cs == 1 && (h.beta == 0 || h.c.cs == 1)) {
            T *to[M], *at = reinterpret_cast<T*>(const_cast<char*>(h.out.data)) + first;
            const T *old[M], *c = reinterpret_cast<const T*>(h.c.data) + first;
            for (int64_t r = 0; r < M; ++r) {
                const int64_t same = std::min(r, count - 1);  // rows behind the last are the last one again
                std::copy_n(x + same * h.k, h.k, x + r * h.k);
                to[r] = at + (i + same) * h.out.rs;
                old[r] = c + (i + same) * h.c.rs;
            }
            short_rows<T>(x, h.k, b + first, h.b.rs, last - first, to, h.beta == 0 ? nullptr : old, h.alpha, h.beta);
            continue;
        }
        for (int64_t j = first; j < last; j += width) {
            const int64_t wide = std::min(width, last - j);
            std::fill_n(sums, M * ALONE * 16, 0.0f);
            for (int64_t p = 0; p < h.k; p += RUN) {
                const int64_t k = std::min(RUN, h.k - p);
                if (h.k > RUN) load(p, k);
                if (alone) add_rows<T, 1, ALONE>(x, k, b + p * h.b.rs + j, h.b.rs, wide, sums);
                else add_rows<T, M, W>(x, k, b + p * h.b.rs + j, h.b.rs, wide, sums);
            }
            for (int64_t r = 0; r < count; ++r) put_row<T>(h, i + r, j, sums + r * width, wide);
        }
    }
}

// More rows than are added up at a time, columns [first, last): a few rows of b, which may lie far apart, for all of a
// before the next ones. x: a in float, by blocks of k and of four rows, zeros behind the last.
constexpr int64_t NEAR = 64;
template <class T> void widen_rows(const HalfProduct& h, float* x) {
    const T* a = reinterpret_cast<const T*>(h.a.data);
    for (int64_t p = 0; p < h.k; p += NEAR)
        for (int64_t i = 0; i < ceil_div(h.m, 4) * 4; ++i)
            for (int64_t q = p; q < std::min(p + NEAR, h.k); ++q)
                *x++ = i < h.m ? widen(a[i * h.a.rs + q * h.a.cs]) : 0.0f;
}
template <class T> void strip_of_rows(const HalfProduct& h, const float* x, int64_t first, int64_t last) {
    constexpr int64_t WIDTH = 64;
    const T* b = reinterpret_cast<const T*>(h.b.data);
    alignas(64) float sums[FEW * WIDTH];
    for (int64_t j = first; j < last; j += WIDTH) {
        const int64_t wide = std::min(WIDTH, last - j);
        const float* at = x;
        std::fill_n(sums, FEW * WIDTH, 0.0f);
        for (int64_t p = 0; p < h.k; p += NEAR)
            for (int64_t i = 0, k = std::min(NEAR, h.k - p); i < h.m; i += 4, at += 4 * k)
                add_rows<T, 4, WIDTH / 16>(at, k, b + p * h.b.rs + j, h.b.rs, wide, sums + i * WIDTH);
        for (int64_t i = 0; i < h.m; ++i) put_row<T>(h, i, j, sums + i * WIDTH, wide);
    }
}

// The few rows may lie in any way: they are copied first. Where the CPU multiplies tiles, fewer rows are few.
bool takes_dots(const HalfProduct& h) {
    return h.b.rs == 1 && h.m <= (h.a.code == BF16 && has_tiles() ? FEW_ROWS : FEW) &&
           (h.a.cs == 1 ? h.m <= h.n : 8 * h.m <= h.n) && h.k >= 32;
}
// Rows up to which a matrix is not worth widening and packing; bfloat16 is packed as it is.
int64_t few_rows(const HalfProduct& h) { return h.a.code == F16 ? FEW : FEW_ROWS; }
bool takes_rows(const HalfProduct& h) {
    return h.b.cs == 1 && h.n >= 16 && (h.m <= few_rows(h) || (h.k <= SHORT && h.out.cs == 1));
}
template <class T> void multiply(const HalfProduct& one) {
    constexpr int64_t WORK = 1 << 18;
    const HalfProduct other = turned(one);
    const int64_t grain = std::max<int64_t>(1, WORK / std::max<int64_t>(1, one.k));
    for (const HalfProduct* h : {&one, &other})
        if (takes_dots(*h)) {
            const bool copied = h->a.cs != 1;
            const Scratch room(copied ? checked_mul(h->m, h->k) : 0, sizeof(T));
            HalfProduct given = *h;
            if (copied) {
                const T* from = reinterpret_cast<const T*>(h->a.data);
                for (int64_t p = 0; p < h->k; ++p)
                    for (int64_t i = 0; i < h->m; ++i) room.as<T>()[i * h->k + p] = from[i * h->a.rs + p * h->a.cs];
                given.a = {room.as<char>(), h->a.code, h->k, 1};
            }
            parallel_for(ceil_div(h->n, 4), std::max<int64_t>(1, grain / (4 * h->m)),
                         [&](int64_t begin, int64_t end) { dots<T>(given, 4 * begin, std::min(4 * end, given.n)); });
            return;
        }
    for (const HalfProduct* h : {&one, &other})
        if (takes_rows(*h)) {
#if __GNUC__ >= 10
            if (std::is_same<T, BFloat16>::value && cpu_has_bf16 && h->m > FEW_ROWS && h->alpha == 1 && h->beta == 0)
                return multiply_short_pairs(*h);
#endif
            constexpr int64_t STRIP = 128;
            if (h->m > FEW_ROWS && h->m <= few_rows(*h) && h->k > SHORT) {
                const Scratch room(checked_mul(ceil_div(h->m, 4) * 4, h->k), sizeof(float));
                widen_rows<T>(*h, room.as<float>());
                parallel_for(ceil_div(h->n, STRIP), std::max<int64_t>(1, grain / (STRIP * h->m)),
                             [&](int64_t begin, int64_t end) {
                                 strip_of_rows<T>(*h, room.as<float>(), begin * STRIP, std::min(end * STRIP, h->n));
                             });
            } else if (h->m <= FEW_ROWS)
                parallel_for(ceil_div(h->n, STRIP), std::max<int64_t>(1, grain / (STRIP * h->m)),
                             [&](int64_t begin, int64_t end) {
                                 rows<T>(*h, 0, h->m, begin * STRIP, std::min(end * STRIP, h->n));
                             });
            else
                parallel_for(
                    ceil_div(h->m, 4), std::max<int64_t>(1, grain / (4 * h->n)),
                    [&](int64_t begin, int64_t end) { rows<T>(*h, 4 * begin, std::min(4 * end, h->m), 0, h->n); });
            return;
        }
}

template <class T> void add_weighed(const float* weights, const Source& b, int64_t m, int64_t n, int64_t k,
                                    float* sums) {
    constexpr int M = 4, W = 4, ALONE = 8;
    const T* from = reinterpret_cast<const T*>(b.data);
    alignas(64) float part[M * W * 16];
    static_assert(M * W >= ALONE, "the widest row has room");
    for (int64_t i = 0, count; i < m; i += count) {
        count = m - i >= M ? M : 1;
        const int64_t width = (count == M || n <= W * 16 ? W : ALONE) * 16;
        const float* x = weights + i * k;
        for (int64_t j = 0; j < n; j += width) {
            const int64_t wide = std::min(width, n - j);
            std::fill_n(part, count * width, 0.0f);
            if (count == M) add_rows<T, M, W>(x, k, from + j, b.rs, wide, part);
            else if (width == W * 16) add_rows<T, 1, W>(x, k, from + j, b.rs, wide, part);
            else add_rows<T, 1, ALONE>(x, k, from + j, b.rs, wide, part);
            at_level(MT_BODY {
                for (int64_t r = 0; r < count; ++r) {
                    float* to = sums + (i + r) * n + j;
                    for (int64_t q = 0; q < wide; ++q) to[q] += part[r * width + q];
                }
            });
        }
    }
}

}  // namespace

bool has_half_rows(int code) { return cpu_level == AVX512 && (code == F16 || code == BF16); }
void dot_half_rows(const Source& a, const Source& b, int64_t m, int64_t n, int64_t k, float scale, float* sums) {
    const Dots by[4] = {dots_for<1>(a.code), dots_for<2>(a.code), dots_for<3>(a.code), dots_for<4>(a.code)};
    const auto *x = reinterpret_cast<const uint16_t*>(a.data), *y = reinterpret_cast<const uint16_t*>(b.data);
    for (int64_t j = 0; j < n; j += 4)
        for (int64_t i = 0; i < m; i += 4) {
            const int64_t rows = std::min<int64_t>(4, m - i), columns = std::min<int64_t>(4, n - j);
            float part[16] = {};
            for (int64_t p = 0; p < k; p += RUN) {
                const uint16_t *from[4], *with[4];
                for (int64_t q = 0; q < 4; ++q) {
                    from[q] = x + (i + std::min(q, rows - 1)) * a.rs + p;
                    with[q] = y + (j + std::min(q, columns - 1)) * b.rs + p;
                }
                by[rows - 1](from, with, std::min(RUN, k - p), part, 0);
            }
            for (int64_t r = 0; r < rows; ++r)
                for (int64_t c = 0; c < columns; ++c) sums[(i + r) * n + j + c] = scale * part[4 * r + c];
        }
}
void add_half_rows(const float* weights, const Source& b, int64_t m, int64_t n, int64_t k, float* sums) {
    if (b.code == BF16) add_weighed<BFloat16>(weights, b, m, n, k, sums);
    else add_weighed<Half>(weights, b, m, n, k, sums);
}
#else
bool has_half_rows(int) { return false; }
void dot_half_rows(const Source&, const Source&, int64_t, int64_t, int64_t, float, float*) {}
void add_half_rows(const float*, const Source&, int64_t, int64_t, int64_t, float*) {}
#endif

bool has_half_dots(const HalfProduct& h) {
    const HalfProduct t = turned(h);
    if (takes_few(h) || takes_few(t)) return true;
#if MT_HAS_LEVELS
    return cpu_level == AVX512 && h.k > 0 && (takes_dots(h) || takes_dots(t) || takes_rows(h) || takes_rows(t));
#else
    return false;
#endif
}
void multiply_half_dots(const HalfProduct& h) {
#if MT_HAS_LEVELS
    if (cpu_level == AVX512) return h.a.code == BF16 ? multiply<BFloat16>(h) : multiply<Half>(h);
#endif
    multiply_few(takes_few(h) ? h : turned(h));
}

}  // namespace mt
