// Products of tiles: see tiles.h.
#include "tiles.h"
#include "caches.h"
#include "transpose.h"

#include <algorithm>
#include <cstdlib>
#if MT_HAS_TILES
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace mt {

#if MT_HAS_TILES
namespace {

bool finds_tiles() {
    if (!cpu_has_bf16) return false;
    const char* wanted = std::getenv("MINDTORCH_CPU");
    if (wanted && std::strcmp(wanted, "avx512_bf16") == 0) return false;
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned PRODUCTS_BF16 = 1u << 22, TILES = 1u << 24, PRODUCTS_INT8 = 1u << 25, ALL_STATE = 3u << 17;
    constexpr unsigned WANTED = PRODUCTS_BF16 | TILES | PRODUCTS_INT8;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & WANTED) != WANTED) return false;
    unsigned low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & ALL_STATE) != ALL_STATE) return false;
    // Linux saves tiles only for a process that has asked for them.
    constexpr long ASK = 0x1023, TILE_DATA = 18;
    return syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
}

struct alignas(64) Shapes {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Shapes) == 64, "as the CPU reads it");
constexpr Shapes SHAPES;
thread_local int depth = 0;

#define MT_TILE_LOAD(T, AT, ROW) \
    asm volatile("tileloadd (%0,%1,1), %%tmm" #T : : "r"((const char*)(AT)), "r"((int64_t)(ROW)) : "memory")
#define MT_TILE_STORE(T, AT, ROW) \
    asm volatile("tilestored %%tmm" #T ", (%0,%1,1)" : : "r"((char*)(AT)), "r"((int64_t)(ROW)) : "memory")
#define MT_TILE_ZERO(T) asm volatile("tilezero %%tmm" #T : :)
#define MT_TILE_PRODUCT(C, A, B) \
    do { \
        if (WHOLE) asm volatile("tdpbssd %%tmm" #B ", %%tmm" #A ", %%tmm" #C : :); \
        else asm volatile("tdpbf16ps %%tmm" #B ", %%tmm" #A ", %%tmm" #C : :); \
    } while (0)

// at: where each tile of a stands, or null.
template <bool WHOLE, bool TALL, bool WIDE>
MT_INLINE void products(const Lay& a, const Lay& b, int64_t steps, char* sums, int64_t row,
                        const int64_t* at = nullptr) {
    const char *first = static_cast<const char*>(a.data), *x = first, *y = static_cast<const char*>(b.data);
    MT_TILE_ZERO(0);
    if (WIDE) MT_TILE_ZERO(1);
    if (TALL) MT_TILE_ZERO(2);
    if (TALL && WIDE) MT_TILE_ZERO(3);
    for (int64_t p = 0; p < steps; ++p, x += a.step, y += b.step) {
        if (at) x = first + at[p];
        MT_TILE_LOAD(6, y, b.row);
        MT_TILE_LOAD(4, x, a.row);
        MT_TILE_PRODUCT(0, 4, 6);
        if (WIDE) {
            MT_TILE_LOAD(7, y + b.next, b.row);
            MT_TILE_PRODUCT(1, 4, 7);
        }
        if (TALL) {
            MT_TILE_LOAD(5, x + a.next, a.row);
            MT_TILE_PRODUCT(2, 5, 6);
        }
        if (TALL && WIDE) MT_TILE_PRODUCT(3, 5, 7);
    }
    MT_TILE_STORE(0, sums, row);
    if (WIDE) MT_TILE_STORE(1, sums + EDGE * 4, row);
    if (TALL) MT_TILE_STORE(2, sums + EDGE * row, row);
    if (TALL && WIDE) MT_TILE_STORE(3, sums + EDGE * row + EDGE * 4, row);
}
template <bool WHOLE>
void products(const Lay& a, const Lay& b, int64_t steps, bool tall, bool wide, char* sums, int64_t row) {
    if (tall && wide) products<WHOLE, true, true>(a, b, steps, sums, row);
    else if (tall) products<WHOLE, true, false>(a, b, steps, sums, row);
    else if (wide) products<WHOLE, false, true>(a, b, steps, sums, row);
    else products<WHOLE, false, false>(a, b, steps, sums, row);
}

}  // namespace

bool has_tiles() {
    static const bool found = finds_tiles();
    return found;
}
Tiles::Tiles(bool wanted) : held_(wanted && has_tiles()) {
    if (held_ && depth++ == 0) asm volatile("ldtilecfg %0" : : "m"(SHAPES));
}
Tiles::~Tiles() {
    if (held_ && --depth == 0) asm volatile("tilerelease" : :);
}
void tile_products(const Lay& a, const Lay& b, int64_t steps, bool tall, bool wide, float* sums, int64_t pitch) {
    products<false>(a, b, steps, tall, wide, reinterpret_cast<char*>(sums), pitch * 4);
}
void tile_products(const Lay& a, const int64_t* at, const Lay& b, int64_t steps, bool tall, bool wide, float* sums) {
    char* const to = reinterpret_cast<char*>(sums);
    if (tall && wide) products<false, true, true>(a, b, steps, to, SPAN * 4, at);
    else if (tall) products<false, true, false>(a, b, steps, to, SPAN * 4, at);
    else if (wide) products<false, false, true>(a, b, steps, to, SPAN * 4, at);
    else products<false, false, false>(a, b, steps, to, SPAN * 4, at);
}
void tile_products(const Lay& a, const Lay& b, int64_t steps, bool tall, bool wide, int32_t* sums, int64_t pitch) {
    products<true>(a, b, steps, tall, wide, reinterpret_cast<char*>(sums), pitch * 4);
}

namespace {

// Elements of E along k that make a word of four bytes.
template <class E> constexpr int64_t EACH = 4 / sizeof(E);

// Lines [0, lines) of a matrix, k in [p, p + k), as panels of columns: word q of line l at panel[q * SPAN + l], zeros
// behind the last line and the last k of `words` words.
template <class E> void pack_columns(uint32_t* panels, const E* from, int64_t line_stride, int64_t k_stride,
                                     int64_t lines, int64_t k, int64_t words) {
    constexpr int64_t each = EACH<E>;
    const int64_t whole = k / each;
    at_level(MT_BODY {
        // Columns side by side: a few k of all panels at a time, so that a page is used up once it is met.
        constexpr int64_t FEW = 8;
        for (int64_t q0 = 0; line_stride == 1 && q0 < whole; q0 += FEW)
            for (int64_t l = 0; l + SPAN <= lines; l += SPAN)
                for (int64_t q = q0; q < std::min(q0 + FEW, whole); ++q) {
                    const E* at = from + l + each * q * k_stride;
                    uint32_t* to = panels + l * words + q * SPAN;
#pragma GCC unroll 32
                    for (int64_t i = 0; i < SPAN; ++i) {
                        uint32_t word = at[i];
#pragma GCC unroll 4
                        for (int64_t e = 1; e < each; ++e) word |= uint32_t(at[e * k_stride + i]) << (32 / each * e);
                        to[i] = word;
                    }
                }
        for (int64_t l = 0; l < lines; l += SPAN, panels += words * SPAN) {
            const int64_t here = std::min(SPAN, lines - l);
            const E* first = from + l * line_stride;
            if (here < SPAN) std::fill_n(panels, words * SPAN, 0u);
            else std::fill_n(panels + whole * SPAN, (words - whole) * SPAN, 0u);
            int64_t done = whole;
            if (line_stride == 1 && here == SPAN) {
                // There already.
            } else if (k_stride == 1 && line_stride % each == 0 && whole >= 8 &&
                       reinterpret_cast<uintptr_t>(first) % 4 == 0) {
                done = whole / 8 * 8;
                for (int64_t i = 0; i < here; i += 8) {
                    // Squares run behind the last line: into columns that are cleared again.
                    for (int64_t q = 0; q < done; q += 8)
                        transpose_lines(reinterpret_cast<float*>(panels + q * SPAN + i), SPAN,
                                        reinterpret_cast<const float*>(first + i * line_stride + each * q),
                                        line_stride / each, here - i);
                }
                if (here % 8)
                    for (int64_t q = 0; q < done; ++q) std::fill(panels + q * SPAN + here, panels + (q + 1) * SPAN, 0u);
            } else {
                done = 0;
            }
            const int64_t start = done == whole && whole * each == k ? k : done * each;
            for (int64_t i = 0; i < here && start < k; ++i)
                for (int64_t q = start / each; q * each < k; ++q) {
                    uint32_t word = 0;
                    for (int64_t e = 0; e < each && q * each + e < k; ++e)
                        word |= uint32_t(first[i * line_stride + (q * each + e) * k_stride]) << (32 / each * e);
                    panels[q * SPAN + i] = word;
                }
        }
    });
}

// Up to 16 lines as tiles of rows: word q of line l at tiles[q / 16][l][q % 16], zeros behind the last line and k.
template <class E>
void pack_rows(uint32_t* tiles, const E* from, int64_t line_stride, int64_t k_stride, int64_t lines, int64_t k,
               int64_t words) {
    constexpr int64_t each = EACH<E>;
    at_level(MT_BODY {
        if (k_stride == 1) {
            if (lines < EDGE || k < words * each) std::fill_n(tiles, words * EDGE, 0u);
            const int64_t whole = k / (EDGE * each);
            for (int64_t l = 0; l < lines; ++l) {
                const E* at = from + l * line_stride;
                for (int64_t q = 0; q < whole; ++q)
                    std::memcpy(tiles + (q * EDGE + l) * EDGE, at + q * EDGE * each, EDGE * 4);
                if (whole * EDGE * each < k)
                    std::memcpy(tiles + (whole * EDGE + l) * EDGE, at + whole * EDGE * each,
                                (size_t)(k - whole * EDGE * each) * sizeof(E));
            }
            return;
        }
        E* to = reinterpret_cast<E*>(tiles);
        std::fill_n(tiles, words * EDGE, 0u);
        for (int64_t q = 0; q < k; q += EDGE * each, to += EDGE * EDGE * each) {
            const int64_t here = std::min(EDGE * each, k - q);
            const E* at = from + q * k_stride;
            if (line_stride == 1 && lines == EDGE && here == EDGE * each) {
                // Words of 16 lines, side by side, then transposed.
                alignas(64) uint32_t square[EDGE * EDGE];
                for (int64_t w = 0; w < EDGE; ++w) {
                    const E* line = at + w * each * k_stride;
#pragma GCC unroll 16
                    for (int64_t l = 0; l < EDGE; ++l) {
                        uint32_t word = line[l];
#pragma GCC unroll 4
                        for (int64_t e = 1; e < each; ++e) word |= uint32_t(line[e * k_stride + l]) << (32 / each * e);
                        square[w * EDGE + l] = word;
                    }
                }
                for (int64_t i = 0; i < EDGE; i += 8)
                    for (int64_t j = 0; j < EDGE; j += 8)
                        transpose_lines(reinterpret_cast<float*>(to) + j * EDGE + i, EDGE,
                                        reinterpret_cast<const float*>(square) + i * EDGE + j, EDGE, 8);
                continue;
            }
            for (int64_t e = 0; e < here; ++e)
                for (int64_t l = 0; l < lines; ++l) to[l * EDGE * each + e] = at[l * line_stride + e * k_stride];
        }
    });
}

struct Matrix {
    const char* data;
    int64_t line, k;  // strides, in elements
};

// Sums of a by b in blocks: put(sums, i, j, rows, columns, first, last). E: of the operands; S: of sums.
template <class E, class S, class Put>
void multiply_blocks(const Matrix& a, const Matrix& b, int64_t m, int64_t n, int64_t k, const Put& put) {
    constexpr int64_t each = EACH<E>;
    const int64_t words = ceil_div(ceil_div(k, each), EDGE) * EDGE;
    const int64_t depth = ceil_div(ceil_div(words, ceil_div(words, DEEP)), EDGE) * EDGE;
    const int64_t lines = caches.second / (KC * 4);
    const int64_t mc = std::max<int64_t>(1, lines / 5 / SPAN) * SPAN,
                  nc = std::max<int64_t>(1, lines / 2 / SPAN) * SPAN;
    const int64_t rows = std::min(ceil_div(m, SPAN) * SPAN, mc), columns = std::min(ceil_div(n, SPAN) * SPAN, nc);
    // Rows along k are read where they lie, but for the last few, and a last block of k that is not whole.
    const bool in_place = a.k == 1;
    const Scratch room(checked_add(checked_mul(depth, rows + columns), EDGE), 4);
    uint32_t* base = room.as<uint32_t>();
    uint32_t* const packed = base + (64 - reinterpret_cast<uintptr_t>(base) % 64) % 64 / 4;
    uint32_t* const panels = packed + depth * rows;
    const E *x = reinterpret_cast<const E*>(a.data), *y = reinterpret_cast<const E*>(b.data);
    alignas(64) S sums[SPAN * SPAN];
    const Tiles tiles;
    for (int64_t j0 = 0; j0 < n; j0 += nc)
        for (int64_t p = 0; p < words; p += depth) {
            const int64_t nb = std::min(nc, n - j0), kw = std::min(depth, words - p);
            const int64_t kb = std::min(kw * each, k - p * each);
            pack_columns(panels, y + j0 * b.line + p * each * b.k, b.line, b.k, nb, kb, kw);
            for (int64_t i0 = 0; i0 < m; i0 += mc) {
                const int64_t mb = std::min(mc, m - i0), whole = kb == kw * each && in_place ? mb / EDGE * EDGE : 0;
                const E* rows_from = x + i0 * a.line + p * each * a.k;
                for (int64_t i = whole; i < mb; i += EDGE)
                    pack_rows(packed + i * kw, rows_from + i * a.line, a.line, a.k, std::min(EDGE, mb - i), kb, kw);
                for (int64_t j = 0; j < nb; j += SPAN)
                    for (int64_t i = 0; i < mb;) {
                        const bool there = i < whole;
                        const int64_t rest = there ? whole - i : mb - i, count = std::min(SPAN, rest);
                        const int64_t width = std::min(SPAN, nb - j);
                        const Lay left = there ? Lay{rows_from + i * a.line, a.line * (int64_t)sizeof(E), 64,
                                                     EDGE * a.line * (int64_t)sizeof(E)}
                                               : Lay{packed + i * kw, 64, EDGE * 64, EDGE * kw * 4};
                        const Lay right{panels + j * kw, SPAN * 4, EDGE * SPAN * 4, EDGE * 4};
                        // Whole blocks of results go where they belong at once, if they are no more than that.
                        S* const at = count == SPAN && width == SPAN && p == 0
                                          ? put.place(i0 + i, j0 + j, p + kw == words)
                                          : nullptr;
                        tile_products(left, right, kw / EDGE, count > EDGE, width > EDGE, at ? at : sums,
                                      at ? put.pitch() : SPAN);
                        if (!at) put(sums, i0 + i, j0 + j, count, width, p == 0, p + kw == words);
                        i += count;
                    }
            }
        }
}

}  // namespace

void pack_words(uint32_t* panel, const uint16_t* lines, int64_t line_stride, int64_t count, int64_t words) {
    pack_columns(panel, lines, line_stride, 1, count, 2 * words, words);
}

namespace {

// Where sums of bfloat16 go; turned: sums are those of the transposed product.
struct Floats {
    const Sink<float>& to;
    const bool turned;
    float* place(int64_t i, int64_t j, bool last) const {
        const bool plain = !turned && to.cs == 1 && to.beta == 0 && to.alpha == 1 && !(last && to.narrow);
        return plain ? to.out + i * to.rs + j : nullptr;
    }
    int64_t pitch() const { return to.rs; }
    void operator()(float* sums, int64_t i, int64_t j, int64_t height, int64_t width, bool first, bool last) const {
        if (!turned) return sink_sums(sums, int(SPAN), to, i, j, height, width, first, last);
        alignas(64) float other[SPAN * SPAN];
        at_level(MT_BODY {
            for (int64_t r = 0; r < height; r += 8)
                for (int64_t c = 0; c < width; c += 8)
                    transpose_lines(other + c * SPAN + r, SPAN, sums + r * SPAN + c, SPAN, 8);
        });
        sink_sums(other, int(SPAN), to, j, i, width, height, first, last);
    }
};

// The same of int8.
struct Words {
    int32_t* out;
    int64_t rs, cs;
    int32_t* place(int64_t i, int64_t j, bool) const { return cs == 1 ? out + i * rs + j : nullptr; }
    int64_t pitch() const { return rs; }
    void operator()(const int32_t* sums, int64_t i, int64_t j, int64_t height, int64_t width, bool first, bool) const {
        int32_t* at = out + i * rs + j * cs;
        at_level(MT_BODY {
            for (int64_t r = 0; r < height; ++r)
                for (int64_t c = 0; c < width; ++c) {
                    const uint32_t sum = (uint32_t)sums[r * SPAN + c];
                    int32_t& to = at[r * rs + c * cs];
                    to = (int32_t)(first ? sum : sum + (uint32_t)to);
                }
        });
    }
};

}  // namespace

void multiply_tiles(const Source& a, const Source& b, int64_t m, int64_t n, int64_t k, const Sink<float>& to) {
    const Matrix rows{a.data, a.rs, a.cs}, columns{b.data, b.cs, b.rs};
    // Rows along k are read where they lie: the larger factor, if that is worth transposing the results.
    const bool pays = saturated_mul(n - std::min(m, n), k) > 2 * saturated_mul(m, n);
    const bool turned = columns.k == 1 && (rows.k != 1 || pays);
    if (turned) multiply_blocks<uint16_t, float>(columns, rows, n, m, k, Floats{to, true});
    else multiply_blocks<uint16_t, float>(rows, columns, m, n, k, Floats{to, false});
}

bool multiply_bytes(const Source& a, const Source& b, int64_t m, int64_t n, int64_t k, int32_t* out, int64_t rs,
                    int64_t cs) {
    if (!has_tiles()) return false;
    const bool across = n > m;  // what is shared out
    const int64_t all = ceil_div(across ? n : m, SPAN), threads = num_threads();
    const int64_t work = saturated_mul(saturated_mul(m, n), k);
    const int64_t parts = std::max<int64_t>(1, std::min<int64_t>({work >> 21, 2 * threads, all}));
    const int64_t share = ceil_div(all, parts) * SPAN;
    parallel_for(ceil_div(across ? n : m, share), 1, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            const int64_t i0 = across ? 0 : t * share, j0 = across ? t * share : 0;
            multiply_blocks<uint8_t, int32_t>({a.data + i0 * a.rs, a.rs, a.cs}, {b.data + j0 * b.cs, b.cs, b.rs},
                                              across ? m : std::min(share, m - i0),
                                              across ? std::min(share, n - j0) : n, k,
                                              Words{out + i0 * rs + j0 * cs, rs, cs});
        }
    });
    return true;
}

#else

bool has_tiles() { return false; }
Tiles::Tiles(bool) : held_(false) {}
Tiles::~Tiles() {}
void tile_products(const Lay&, const Lay&, int64_t, bool, bool, float*, int64_t) {}
void tile_products(const Lay&, const Lay&, int64_t, bool, bool, int32_t*, int64_t) {}
void tile_products(const Lay&, const int64_t*, const Lay&, int64_t, bool, bool, float*) {}
void pack_words(uint32_t*, const uint16_t*, int64_t, int64_t, int64_t) {}
void multiply_tiles(const Source&, const Source&, int64_t, int64_t, int64_t, const Sink<float>&) {}
bool multiply_bytes(const Source&, const Source&, int64_t, int64_t, int64_t, int32_t*, int64_t, int64_t) {
    return false;
}
#endif

}  // namespace mt
