// Products of matrices of bytes, in int32: by the CPU's tiles, or by its products of pairs of 16 bits.
// Invariant: sums are exact modulo 2^32.
//
//   gemm_bytes(a, aoff, astrides, acode, b.., bcode, out.., outcode, m, n, k)
//       False, with nothing written, where the CPU has neither.
#include "lanes.h"
#include "matmul.h"
#include "tiles.h"

#include <algorithm>
#if MT_HAS_LEVELS
#include <immintrin.h>
#endif

namespace mt {
namespace {

#if MT_HAS_LEVELS
constexpr int ROWS = 12, WIDE = 32;  // of a block of sums

// Words [0, words) of `lines` lines: word p of line l at to[p * width + l], two numbers of 16 bits along k.
template <class E>
void pack_pairs_of(const E* from, int64_t line_stride, int64_t k_stride, int64_t lines, int64_t width, int64_t k,
                   uint32_t* to) {
    at_level(MT_BODY {
        for (int64_t p = 0; 2 * p < k; ++p, to += width) {
            const E *low = from + 2 * p * k_stride, *high = 2 * p + 1 < k ? low + k_stride : nullptr;
            for (int64_t l = 0; l < lines; ++l)
                to[l] = uint32_t(uint16_t(int16_t(low[l * line_stride]))) |
                        (high ? uint32_t(uint16_t(int16_t(high[l * line_stride]))) << 16 : 0u);
            for (int64_t l = lines; l < width; ++l) to[l] = 0;
        }
    });
}

template <int M>
MT_AVX512 MT_NOINLINE void sum_pairs(const uint32_t* a, const uint32_t* b, int64_t words, int32_t* sums) {
    __m512i sum[M][2];
#pragma GCC unroll 12
    for (int i = 0; i < M; ++i) sum[i][0] = sum[i][1] = _mm512_setzero_si512();
    for (int64_t p = 0; p < words; ++p, a += ROWS, b += WIDE) {
        const __m512i y = _mm512_loadu_si512(b), z = _mm512_loadu_si512(b + 16);
#pragma GCC unroll 12
        for (int i = 0; i < M; ++i) {
            const __m512i x = _mm512_set1_epi32((int)a[i]);
            sum[i][0] = _mm512_add_epi32(sum[i][0], _mm512_madd_epi16(x, y));
            sum[i][1] = _mm512_add_epi32(sum[i][1], _mm512_madd_epi16(x, z));
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < M; ++i) {
        _mm512_storeu_si512(sums + i * WIDE, sum[i][0]);
        _mm512_storeu_si512(sums + i * WIDE + 16, sum[i][1]);
    }
}

template <class E> void multiply_pairs(const Operand& a, const Operand& b, const Operand& out, int64_t m, int64_t n,
                                       int64_t k) {
    const int64_t words = ceil_div(k, 2), bands = ceil_div(m, ROWS), panels = ceil_div(n, WIDE);
    const Scratch rows(checked_numel({bands, ROWS, words}), sizeof(uint32_t));
    const E* x = a.as<const E>();
    for (int64_t i = 0; i < bands; ++i)
        pack_pairs_of(x + i * ROWS * a.stride[0], a.stride[0], a.stride[1], std::min<int64_t>(ROWS, m - i * ROWS), ROWS,
                      k, rows.as<uint32_t>() + i * ROWS * words);
    const int64_t work = std::max<int64_t>(1, saturated_mul(m, saturated_mul(k, WIDE)));
    parallel_for(panels, std::max<int64_t>(1, (1 << 19) / work), [&](int64_t begin, int64_t end) {
        const Scratch panel(checked_mul(words, WIDE), sizeof(uint32_t));
        alignas(64) int32_t sums[ROWS * WIDE];
        for (int64_t j = begin; j < end; ++j) {
            const int64_t columns = std::min<int64_t>(WIDE, n - j * WIDE);
            pack_pairs_of(b.as<const int8_t>() + j * WIDE * b.stride[1], b.stride[1], b.stride[0], columns, WIDE, k,
                          panel.as<uint32_t>());
            for (int64_t i = 0; i < bands; ++i) {
                const int64_t count = std::min<int64_t>(ROWS, m - i * ROWS);
                (count <= 4 ? sum_pairs<4> : sum_pairs<ROWS>)(rows.as<uint32_t>() + i * ROWS * words,
                                                              panel.as<uint32_t>(), words, sums);
                int32_t* to = out.as<int32_t>() + i * ROWS * out.stride[0] + j * WIDE * out.stride[1];
                for (int64_t r = 0; r < count; ++r)
                    for (int64_t c = 0; c < columns; ++c)
                        to[r * out.stride[0] + c * out.stride[1]] = sums[r * WIDE + c];
            }
        }
    });
}
#endif

bool multiply(const Operand& a, const Operand& b, const Operand& out, int64_t m, int64_t n, int64_t k) {
    const GilRelease unlocked(saturated_mul(saturated_mul(m, n), k) / 8);
    if (a.code == I8 && multiply_bytes({a.data, I8, a.stride[0], a.stride[1]}, {b.data, I8, b.stride[0], b.stride[1]},
                                       m, n, k, out.as<int32_t>(), out.stride[0], out.stride[1]))
        return true;
#if MT_HAS_LEVELS
    if (cpu_level == AVX512) {
        if (a.code == I8) multiply_pairs<int8_t>(a, b, out, m, n, k);
        else multiply_pairs<uint8_t>(a, b, out, m, n, k);
        return true;
    }
#endif
    return false;
}

PyObject* gemm_bytes(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("gemm_bytes", nargs, 15);
        const int64_t m = parse_count(args[12]), n = parse_count(args[13]), k = parse_count(args[14]);
        Operand a, b, out;
        Shape shape;
        set_shape(shape, {m, k});
        parse_operand(args, shape, a);
        set_shape(shape, {k, n});
        parse_operand(args + 4, shape, b);
        set_shape(shape, {m, n});
        parse_operand(args + 8, shape, out);
        if (a.code != U8) expect_code("gemm_bytes", a.code, I8);
        expect_code("gemm_bytes", b.code, I8);
        expect_code("gemm_bytes", out.code, I32);
        if (m == 0 || n == 0 || k == 0) Py_RETURN_FALSE;
        return PyBool_FromLong(multiply(a, b, out, m, n, k));
    });
}

}  // namespace
}  // namespace mt

extern PyMethodDef matmul_bytes_methods[];  // no other file needs to know
PyMethodDef matmul_bytes_methods[] = {
    MT_METHOD("gemm_bytes", mt::gemm_bytes, "gemm_bytes(a, aoff, astrides, acode, b.., out.., m, n, k)."),
    {nullptr, nullptr, 0, nullptr}};
