// Images of bytes brought to another size along one dimension, in fixed point.
// Invariant: a result is (half + the sum of weight * byte) >> bits, limited to a byte; weights have 16 bits and results at
// most as many taps as 32 bits hold the sum of. Taps are checked where they are read.
//
// Operands are dense, [outer][size][inner]. Rows of `inner` bytes are summed as vectors; short ones are transposed first, a
// strip of the outer dimension at a time, so that the strip is what vectors run along.
//   resample_bytes(x.., out.., outer, size, inner, results, counts, places, weights, bits)
#include "cpu.h"
#include "lanes.h"
#include "transpose.h"
#include "windows.h"

#include <algorithm>
#include <vector>

namespace mt {
namespace {

constexpr int64_t STRIP = 64;  // of the outer dimension, where it is what vectors run along

struct Taps {
    std::vector<size_t> begin{0};
    std::vector<int64_t> at;
    std::vector<int32_t> weight;
    int bits;
    Taps(PyObject* const* args, int64_t size, int64_t results) {
        const std::vector<int64_t> counts = parse_list(args[0], results);
        int64_t all = 0;
        for (const int64_t c : counts) {
            if (c < 0) fail(PyExc_ValueError, "resample_bytes: a negative number of taps");
            all = checked_add(all, c);
            begin.push_back((size_t)all);
        }
        at = parse_list(args[1], all);
        const std::vector<int64_t> weights = parse_list(args[2], all);
        const int64_t shift = as_int(args[3]);
        if (shift < 0 || shift > 22) fail(PyExc_ValueError, "resample_bytes: weights have 0 to 22 bits");
        bits = (int)shift;
        for (const int64_t p : at)
            if (p < 0 || p >= size) fail(PyExc_ValueError, "a tap leaves its plane");
        for (const int64_t w : weights) {
            if (w < -32768 || w > 32768) fail(PyExc_ValueError, "resample_bytes: a weight exceeds 16 bits");
            weight.push_back((int32_t)w);
        }
    }
};

constexpr int64_t CHUNK = 256;  // results whose sums are kept close

// The sum of N taps for n results, from what is there or from `start` on. Sums wrap as 32 bits do: one that does not fit
// them is no weight's that PyTorch would have.
template <int N>
MT_INLINE void sum_taps(const uint8_t* const* rows, const uint32_t* w, uint32_t* MT_RESTRICT sums, int64_t n,
                        bool fresh, uint32_t start) {
    const uint8_t *a = rows[0], *b = rows[1], *c = rows[N - 2], *d = rows[N - 1];
    for (int64_t i = 0; i < n; ++i) {
        uint32_t sum = (fresh ? start : sums[i]) + w[0] * a[i] + w[1] * b[i];
        if constexpr (N == 4) sum += w[2] * c[i] + w[3] * d[i];
        sums[i] = sum;
    }
}
// One row of results; the taps' rows are `step` bytes apart.
MT_INLINE void sum_row(const Taps& v, size_t k, const uint8_t* x, int64_t step, uint8_t* MT_RESTRICT out, int64_t n) {
    alignas(64) uint32_t sums[CHUNK];
    const size_t first = v.begin[k], end = v.begin[k + 1];
    const uint32_t start = (uint32_t)((1 << v.bits) >> 1);
    for (int64_t c = 0; c < n; c += CHUNK) {
        const int64_t some = std::min(CHUNK, n - c);
        if (first == end) std::fill_n(sums, some, start);
        for (size_t t = first; t < end; t += 4) {
            const uint8_t* rows[4];
            uint32_t w[4];
            for (size_t i = 0; i < 4; ++i) {
                const bool has = t + i < end;
                rows[i] = x + v.at[has ? t + i : t] * step + c;
                w[i] = has ? (uint32_t)v.weight[t + i] : 0;
            }
            const bool fresh = t == first;
            if (end - t <= 2) {
                if (fresh) sum_taps<2>(rows, w, sums, some, true, start);
                else sum_taps<2>(rows, w, sums, some, false, start);
            } else {
                if (fresh) sum_taps<4>(rows, w, sums, some, true, start);
                else sum_taps<4>(rows, w, sums, some, false, start);
            }
        }
        uint8_t* to = out + c;
        for (int64_t i = 0; i < some; ++i) {
            const int32_t s = (int32_t)sums[i] >> v.bits;
            to[i] = (uint8_t)(s < 0 ? 0 : s > 255 ? 255 : s);
        }
    }
}

void along_rows(const Taps& v, const uint8_t* x, uint8_t* out, int64_t outer, int64_t size, int64_t inner,
                int64_t results) {
    const int64_t work = saturated_mul(inner, (int64_t)v.at.size() / std::max<int64_t>(1, results) + 1);
    parallel_for(saturated_mul(outer, results), lane_grain(work, 1), [&](int64_t begin, int64_t end) {
        at_level(MT_BODY {
            for (int64_t r = begin; r < end; ++r)
                sum_row(v, (size_t)(r % results), x + r / results * size * inner, inner, out + r * inner, inner);
        });
    });
}

void along_strips(const Taps& v, const uint8_t* x, uint8_t* out, int64_t outer, int64_t size, int64_t inner,
                  int64_t results) {
    const int64_t from = size * inner, to = results * inner;
    const int64_t work = saturated_mul(STRIP, saturated_add(saturated_mul((int64_t)v.at.size(), inner), from));
    parallel_for(ceil_div(outer, STRIP), lane_grain(work, 1), [&](int64_t begin, int64_t end) {
        const Scratch room(checked_mul(checked_add(from, to), STRIP), 1);
        uint8_t *read = room.as<uint8_t>(), *written = read + from * STRIP;
        at_level(MT_BODY {
            for (int64_t s = begin; s < end; ++s) {
                const int64_t first = s * STRIP, lines = std::min(STRIP, outer - first);
                transpose_rows<uint8_t>(reinterpret_cast<char*>(read), STRIP,
                                        reinterpret_cast<const char*>(x + first * from), from, lines, from);
                for (int64_t k = 0; k < results; ++k)
                    for (int64_t c = 0; c < inner; ++c)
                        sum_row(v, (size_t)k, read + c * STRIP, inner * STRIP, written + (k * inner + c) * STRIP,
                                lines);
                transpose_rows<uint8_t>(reinterpret_cast<char*>(out + first * to), to,
                                        reinterpret_cast<const char*>(written), STRIP, to, lines);
            }
        });
    });
}

PyObject* resample_bytes(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("resample_bytes", nargs, 14);
        const int64_t outer = parse_count(args[6]), size = parse_count(args[7]), inner = parse_count(args[8]);
        const int64_t results = parse_count(args[9]);
        const Taps taps(args + 10, size, results);
        const Dense x = parse_dense(args, checked_numel({outer, size, inner}));
        const Dense o = parse_dense(args + 3, checked_numel({outer, results, inner}));
        if (x.code != U8 || o.code != U8) fail_dtype("resample_bytes", x.code != U8 ? x.code : o.code);
        GilRelease unlocked(saturated_mul(saturated_mul(outer, inner), (int64_t)taps.at.size()));
        if (inner >= 32) along_rows(taps, x.as<const uint8_t>(), o.as<uint8_t>(), outer, size, inner, results);
        else along_strips(taps, x.as<const uint8_t>(), o.as<uint8_t>(), outer, size, inner, results);
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef resample_bytes_methods[];  // no other file needs to know
PyMethodDef resample_bytes_methods[] = {
    MT_METHOD("resample_bytes", resample_bytes, "Bytes resampled along one dimension, in fixed point."),
    {nullptr, nullptr, 0, nullptr}};
