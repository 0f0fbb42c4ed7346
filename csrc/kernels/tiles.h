// The CPU's own products of tiles (AMX): 16 rows of 64 bytes by 16 columns, bfloat16 or int8, sums of four bytes.
// Invariant: a thread has tiles only inside a `Tiles`; sums run over k in order. What the operands hold behind the last
// row, column or k is zeros. MINDTORCH_CPU=avx512_bf16 is all that the CPU has but for them.
#pragma once
#include "gemm.h"

#if MT_HAS_LEVELS && defined(__linux__) && __GNUC__ >= 11
#define MT_HAS_TILES 1
#else
#define MT_HAS_TILES 0
#endif

#pragma GCC visibility push(hidden)
namespace mt {

constexpr int64_t EDGE = 16;        // rows, columns, and words of four bytes along k
constexpr int64_t SPAN = 2 * EDGE;  // rows and columns of sums that are made at a time

// Most words of k that are summed in one go.
constexpr int64_t DEEP = 512;

// Whether the CPU has them, and the system gives leave to use them: asked for once, by the first who asks.
bool has_tiles();

// The tiles of this thread, from here to the end of the block, if there are any and they are wanted. They may be nested.
class Tiles {
public:
    explicit Tiles(bool wanted = true);
    ~Tiles();
    Tiles(const Tiles&) = delete;
    Tiles& operator=(const Tiles&) = delete;

private:
    const bool held_;
};

// Where tiles lie, in bytes: from row to row, from tile to tile along k, and from one tile of rows or columns to the
// next.
struct Lay {
    const void* data;
    int64_t row, step, next;
};
// SPAN x SPAN sums, `pitch` from row to row: a @ b over `steps` tiles of k. tall, wide: whether there is a second tile
// of rows, of columns; what belongs to none is left as it is. a: rows of 16 words along k; b: 16 words of k by columns.
void tile_products(const Lay& a, const Lay& b, int64_t steps, bool tall, bool wide, float* sums, int64_t pitch = SPAN);
void tile_products(const Lay& a, const Lay& b, int64_t steps, bool tall, bool wide, int32_t* sums,
                   int64_t pitch = SPAN);

// The same where tile p of a's first rows is at[p] bytes from its beginning; sums are SPAN apart.
void tile_products(const Lay& a, const int64_t* at, const Lay& b, int64_t steps, bool tall, bool wide, float* sums);

// Up to SPAN lines of bfloat16 as a panel of columns: word q of line l at panel[q * SPAN + l], zeros behind the last
// line.
void pack_words(uint32_t* panel, const uint16_t* lines, int64_t line_stride, int64_t count, int64_t words);

// out = beta * c + alpha * a @ b of bfloat16 in this thread: what gemm_block does.
void multiply_tiles(const Source& a, const Source& b, int64_t m, int64_t n, int64_t k, const Sink<float>& to);
// out = a @ b of int8, with every thread; false, with nothing written, where there are no tiles.
bool multiply_bytes(const Source& a, const Source& b, int64_t m, int64_t n, int64_t k, int32_t* out, int64_t rs,
                    int64_t cs);

}  // namespace mt
#pragma GCC visibility pop
