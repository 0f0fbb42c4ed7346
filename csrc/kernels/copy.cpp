// Copies with cast between any two dtypes and layouts, and fill. Invariant: elements move as raw bytes of their size
// (five sizes), and only contiguous blocks are ever converted; so a cast between two of 21 dtypes needs one loop, or two
// where both dtypes have a cast to a third that loses nothing on the way.
#include "common.h"
#include "cpu.h"
#include "transpose.h"
#include "pointwise_loop.h"

#include <algorithm>
#include <cstdlib>
#if MT_HAS_LEVELS
#include <immintrin.h>
#endif

namespace mt {
namespace {

// ---------------------------------------------------------------- contiguous casts

template <class D, class S> MT_INLINE void cast_loop(char* dst, const char* src, int64_t n) {
    D* d = reinterpret_cast<D*>(dst);
    const S* s = reinterpret_cast<const S*>(src);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) d[i] = convert<D>(s[i]);
}
template <class D, class S> void cast_plain(char* dst, const char* src, int64_t n) { cast_loop<D, S>(dst, src, n); }

#if MT_HAS_LEVELS
// Between float16 and float32 by the CPU's own instructions. The last elements go through a block of zeros, so that all
// are converted alike.
MT_AVX2 void halves_to_floats(char* dst, const char* src, int64_t n) {
    float* d = reinterpret_cast<float*>(dst);
    const uint16_t* s = reinterpret_cast<const uint16_t*>(src);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(s + i))));
    if (i == n) return;
    uint16_t from[8] = {};
    float to[8];
    std::memcpy(from, s + i, size_t(n - i) * sizeof from[0]);
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
    std::memcpy(d + i, to, size_t(n - i) * sizeof to[0]);
}
MT_AVX2 void floats_to_halves(char* dst, const char* src, int64_t n) {
    uint16_t* d = reinterpret_cast<uint16_t*>(dst);
    const float* s = reinterpret_cast<const float*>(src);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(d + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT));
    if (i == n) return;
    float from[8] = {};
    uint16_t to[8];
    std::memcpy(from, s + i, size_t(n - i) * sizeof from[0]);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
    std::memcpy(d + i, to, size_t(n - i) * sizeof to[0]);
}
#endif
#if MT_HAS_LEVELS
// The same by 64 elements, as far as there are so many; how many those are.
MT_AVX512 int64_t many_halves_to_floats(char* dst, const char* src, int64_t n) {
    const int64_t all = n / 64 * 64;
    for (int64_t i = 0; i < all; i += 64)
#pragma GCC unroll 4
        for (int64_t k = i; k < i + 64; k += 16)
            _mm512_storeu_ps(
                dst + k * 4,
                _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + k * 2))));
    return all;
}
MT_AVX512 int64_t many_floats_to_halves(char* dst, const char* src, int64_t n) {
    const int64_t all = n / 64 * 64;
    for (int64_t i = 0; i < all; i += 64)
#pragma GCC unroll 4
        for (int64_t k = i; k < i + 64; k += 16)
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + k * 2),
                                _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(src + k * 4), _MM_FROUND_TO_NEAREST_INT));
    return all;
}
#endif
template <class D, class S> void cast_half(char* dst, const char* src, int64_t n) {
    constexpr bool WIDEN = std::is_same<S, Half>::value;
#if MT_HAS_LEVELS
    if (cpu_level >= AVX512) {
        const int64_t done = WIDEN ? many_halves_to_floats(dst, src, n) : many_floats_to_halves(dst, src, n);
        dst += done * (int64_t)sizeof(D);
        src += done * (int64_t)sizeof(S);
        n -= done;
        if (n == 0) return;
    }
    if (cpu_level >= AVX2) return WIDEN ? halves_to_floats(dst, src, n) : floats_to_halves(dst, src, n);
#endif
    run_leveled<cast_loop<D, S>>(dst, src, n);
}
template <class D, class S>
constexpr bool is_half_cast = (std::is_same<D, Half>::value && std::is_same<S, float>::value) ||
                              (std::is_same<D, float>::value && std::is_same<S, Half>::value);

// Dtypes that are stored more than computed with. One version of their loops is enough.
template <class T>
constexpr bool is_rare = IsComplex<T>::value || std::is_same<T, uint16_t>::value || std::is_same<T, uint32_t>::value ||
                         std::is_same<T, uint64_t>::value;
template <class T> constexpr bool is_half_complex = std::is_same<T, Complex<Half>>::value;

// The cast of a complex number that is not one of its part goes through the part, that of a small float through
// float32: `convert` says the same. Which of them get a loop of their own is a matter of how often they are used; all
// of them took twice as long to compile.
template <class D, class S> constexpr bool has_loop() {
    // A half is itself reached through float32, so its complex numbers have no third dtype.
    if constexpr (is_half_complex<D> || is_half_complex<S>) return true;
    else if constexpr (IsComplex<D>::value && IsComplex<S>::value) return true;
    else if constexpr (IsComplex<D>::value) return std::is_same<S, decltype(D::re)>::value;
    else if constexpr (IsComplex<S>::value)
        return std::is_same<D, decltype(S::re)>::value || std::is_same<D, Bool>::value;
    else if constexpr (std::is_same<D, float>::value || std::is_same<S, float>::value) return true;
    else if constexpr (is_float8<D> || is_float8<S>)
        return is_small_float<D> && is_small_float<S> && sizeof(D) != sizeof(S);
    else if constexpr (is_small_float<D>) return is_small_float<S> || std::is_same<S, double>::value;
    else if constexpr (is_small_float<S>) return std::is_same<D, double>::value;
    else return true;
}

// The third dtype of a cast without a loop of its own.
constexpr int between(int dcode, int scode) {
    return scode == C128 || (dcode == C128 && (scode == F32 || !is_float_code(scode))) ? F64 : F32;
}

using CastFn = void (*)(char*, const char*, int64_t);

template <class D> CastFn cast_from(int scode) {
    return dispatch_all(scode, [](auto s) -> CastFn {
        using S = decltype(s);
        if constexpr (!has_loop<D, S>()) return nullptr;
        else if constexpr (is_half_cast<D, S>) return cast_half<D, S>;
        else if constexpr (is_rare<D> || is_rare<S>) return cast_plain<D, S>;
        else return leveled<cast_loop<D, S>>();
    });
}

struct CastTable {
    CastFn fn[NUM_CODES][NUM_CODES];
    CastTable() {
        for (int d = 0; d < NUM_CODES; ++d)
            for (int s = 0; s < NUM_CODES; ++s)
                fn[d][s] = dispatch_all(d, [&](auto x) -> CastFn { return cast_from<decltype(x)>(s); });
    }
};
const CastTable cast_table;

// ---------------------------------------------------------------- raw movement

template <class T> void gather_typed(char* dst, const char* src, int64_t s0, int64_t s1, int64_t n0, int64_t n1) {
    constexpr int64_t size = sizeof(T);
    at_level(MT_BODY {
        if constexpr (size <= 8) {
            if (s1 == size && n0 >= 8 && n1 >= 8 && s0 > size && s0 % size == 0) {
                transpose_rows<T>(dst, n0 * size, src, s0, n0, n1);
                return;
            }
        }
        gather_block(reinterpret_cast<T*>(dst), src, s0, s1, n0, n1);
    });
}
template <class T> void scatter_typed(char* dst, int64_t s0, int64_t s1, const char* src, int64_t n0, int64_t n1) {
    at_level(MT_BODY { scatter_block(dst, s0, s1, reinterpret_cast<const T*>(src), n0, n1); });
}

// A tile without a block in between: rows of both sides are contiguous, or neither transposed.
template <class T>
void move_tile(char* dst, int64_t d0, int64_t d1, const char* src, int64_t s0, int64_t s1, int64_t n0, int64_t n1) {
    at_level(MT_BODY {
        if (d0 == (int64_t)sizeof(T)) {
            for (int64_t j = 0; j < n1; ++j)
                gather_block(reinterpret_cast<T*>(dst + j * d1), src + j * s1, s0, 0, n0, 1);
        } else {
            for (int64_t j = 0; j < n1; ++j)
                for (int64_t i = 0; i < n0; ++i)
                    *reinterpret_cast<T*>(dst + j * d1 + i * d0) = *reinterpret_cast<const T*>(src + j * s1 + i * s0);
        }
    });
}

// clang-format off: a table
#define MT_BY_SIZE(size, call) \
    switch (size) { \
        case 1: { using T = uint8_t; call; break; } \
        case 2: { using T = uint16_t; call; break; } \
        case 4: { using T = uint32_t; call; break; } \
        case 8: { using T = uint64_t; call; break; } \
        default: { using T = Raw16; call; break; } \
    }
// clang-format on

}  // namespace

// The library's copy moves whole cache lines, and is several times slower where both sides lie differently in them.
void move_bytes(char* dst, const char* src, int64_t n) {
    const int64_t apart = dst - src;
    if (n < 256 || apart % 64 == 0 || (apart > -n && apart < n)) {
        std::memmove(dst, src, (size_t)n);
        return;
    }
    at_level(MT_BODY { copy_bytes(dst, src, n); });
}

void cast_block(char* dst, int dcode, const char* src, int scode, int64_t n) {
    if (n == 0) return;  // and perhaps no memory
    if (dcode == scode) {
        move_bytes(dst, src, n * ITEMSIZE[dcode]);
        return;
    }
    if (const CastFn fn = cast_table.fn[dcode][scode]) {
        fn(dst, src, n);
        return;
    }
    const int code = between(dcode, scode);
    alignas(64) char block[BLOCK * sizeof(double)];
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t count = std::min(BLOCK, n - i);
        cast_table.fn[code][scode](block, src + i * ITEMSIZE[scode], count);
        cast_block(dst + i * ITEMSIZE[dcode], dcode, block, code, count);
    }
}

void gather_tile(char* dst, const char* src, int64_t s0, int64_t s1, int64_t n0, int64_t n1, int size) {
    MT_BY_SIZE(size, gather_typed<T>(dst, src, s0, s1, n0, n1))
}

void scatter_tile(char* dst, int64_t s0, int64_t s1, const char* src, int64_t n0, int64_t n1, int size) {
    MT_BY_SIZE(size, scatter_typed<T>(dst, s0, s1, src, n0, n1))
}

// A tile of any layout on both sides. Goes through a block when a cast or a transposition is needed.
static void copy_tile(char* dst, int64_t d0, int64_t d1, int dcode, const char* src, int64_t s0, int64_t s1, int scode,
                      int64_t n0, int64_t n1) {
    const int dsize = ITEMSIZE[dcode], ssize = ITEMSIZE[scode];
    const bool dense_to = d0 == dsize && (n1 == 1 || d1 == n0 * dsize);
    if (dcode == scode && dense_to) {
        gather_tile(dst, src, s0, s1, n0, n1, ssize);
        return;
    }
    if (dcode == scode && !(s1 == ssize && n1 > 1 && s0 != ssize && s0 != 0)) {
        MT_BY_SIZE(dsize, move_tile<T>(dst, d0, d1, src, s0, s1, n0, n1))
        return;
    }
    alignas(64) char from[BLOCK * 16], to[BLOCK * 16];
    const int64_t n = n0 * n1;
    const bool dense_from = s0 == ssize && (n1 == 1 || s1 == n0 * ssize);
    if (!dense_from) gather_tile(from, src, s0, s1, n0, n1, ssize);
    const char* block = dense_from ? src : from;
    if (dcode != scode) {
        // Never convert straight onto the memory that is being read: sizes may differ.
        char* target = dense_to && (!dense_from || dst + n * dsize <= src || src + n * ssize <= dst) ? dst : to;
        cast_block(target, dcode, block, scode, n);
        if (target == dst) return;
        block = to;
    }
    scatter_tile(dst, d0, d1, block, n0, n1, dsize);
}

void cast_strided(char* dst, int64_t dstep, int dcode, const char* src, int64_t sstep, int scode, int64_t n) {
    const int dsize = ITEMSIZE[dcode], ssize = ITEMSIZE[scode];
    if (dstep == dsize && sstep == ssize && dst != src) {
        cast_block(dst, dcode, src, scode, n);
        return;
    }
    for (int64_t i = 0; i < n; i += BLOCK)
        copy_tile(dst + i * dstep, dstep, 0, dcode, src + i * sstep, sstep, 0, scode, n - i < BLOCK ? n - i : BLOCK, 1);
}

// Rows of one side are columns of the other, and both lie side by side: the matrix is transposed from one to the other.
// Squares of a few cache lines on both sides, read along the rows of the source.
template <class T> static void copy_transposed(const Loop<2>& loop) {
    constexpr int64_t DOWN = 32, ACROSS = 256 / sizeof(T);
    const int64_t n0 = loop.dim[0], n1 = loop.dim[1], strips = ceil_div(n1, ACROSS);
    const int64_t d1 = loop.step[0][1], s0 = loop.step[1][0];
    parallel_for(loop.numel / (n0 * n1) * strips, ceil_div(GRAIN, n0 * ACROSS), [&](int64_t begin, int64_t end) {
        Cursor<2> at(loop, 2, begin / strips);
        for (int64_t strip = begin % strips; begin < end; ++begin) {
            const int64_t j = strip * ACROSS, across = std::min(ACROSS, n1 - j);
            at_level(MT_BODY {
                for (int64_t i = 0; i < n0; i += DOWN)
                    transpose_rows<T>(at.ptr[0] + i * (int64_t)sizeof(T) + j * d1, d1,
                                      at.ptr[1] + i * s0 + j * (int64_t)sizeof(T), s0, std::min(DOWN, n0 - i), across);
            });
            if (++strip == strips) {
                strip = 0;
                at.next();
            }
        }
    });
}
// Steps of whole elements: registers count in them.
static bool transposes(const Loop<2>& loop, int size) {
    return size <= 8 && loop.ndim > 1 && loop.dim[0] >= 8 && loop.dim[1] >= 8 && loop.step[0][0] == size &&
           loop.step[1][1] == size && loop.step[1][0] > size && loop.step[0][1] > size && loop.step[1][0] % size == 0 &&
           loop.step[0][1] % size == 0;
}

void copy_tensor(const Shape& shape, char* dst, const int64_t* dstride, int dcode, const char* src,
                 const int64_t* sstride, int scode) {
    if (shape.numel == 0) return;
    const int dsize = ITEMSIZE[dcode], ssize = ITEMSIZE[scode];
    Loop<2> loop;
    loop_begin(loop, shape);
    loop_operand(loop, 0, dst, shape, dstride, dsize);
    loop_operand(loop, 1, const_cast<char*>(src), shape, sstride, ssize);
    loop_finish(loop);
    if (dcode == scode && transposes(loop, dsize)) {
        switch (dsize) {
            case 1: return copy_transposed<uint8_t>(loop);
            case 2: return copy_transposed<uint16_t>(loop);
            case 4: return copy_transposed<uint32_t>(loop);
            default: return copy_transposed<uint64_t>(loop);
        }
    }
    constexpr int64_t SHORT = 512;  // bytes of a row that is not worth a step of the walk of its own
    if (wants_tiles(loop) || (loop.ndim > 1 && loop.dim[0] * dsize <= SHORT)) {
        run_tiles(loop, GRAIN, [&](char* const* p, int64_t n0, int64_t n1) {
            copy_tile(p[0], loop.step[0][0], loop.step[0][1], dcode, p[1], loop.step[1][0], loop.step[1][1], scode, n0,
                      n1);
        });
        return;
    }
    const int64_t d0 = loop.step[0][0], s0 = loop.step[1][0];
    run_rows(loop, GRAIN, [&](char* const* p, int64_t n) {
        if (dcode == scode && s0 == ssize && d0 == dsize) move_bytes(p[0], p[1], n * dsize);
        else cast_strided(p[0], d0, dcode, p[1], s0, scode, n);
    });
}

// ---------------------------------------------------------------- fill

namespace {
template <class T> void fill_row(char* dst, int64_t step, const char* value, int64_t n) {
    const T v = *reinterpret_cast<const T*>(value);
    if (step == (int64_t)sizeof(T)) {
        at_level(MT_BODY { repeat_row(reinterpret_cast<T*>(dst), v, n); });
    } else {
        for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(dst + i * step) = v;
    }
}
}  // namespace

void fill_tensor(const Shape& shape, char* dst, const int64_t* stride, int itemsize, const char* value) {
    if (shape.numel == 0) return;
    Loop<1> loop;
    loop_begin(loop, shape);
    loop_operand(loop, 0, dst, shape, stride, itemsize);
    loop_finish(loop);
    const int64_t step = loop.step[0][0];
    bool zero = step == itemsize;
    for (int i = 0; i < itemsize; ++i) zero &= value[i] == 0;
    run_rows(loop, 2 * GRAIN, [&](char* const* p, int64_t n) {
        if (zero) std::memset(p[0], 0, (size_t)n * itemsize);
        else MT_BY_SIZE(itemsize, fill_row<T>(p[0], step, value, n))
    });
}

// ---------------------------------------------------------------- Python numbers

void number_into(PyObject* o, int code, char* dst) {
    auto put = [&](auto x) {
        dispatch_all(code, [&](auto t) {
            using T = decltype(t);
            const T v = convert<T>(x);
            std::memcpy(dst, &v, sizeof v);
            return 0;
        });
    };
    if (PyFloat_Check(o)) {
        put(PyFloat_AS_DOUBLE(o));
    } else if (PyLong_Check(o) || (!PyComplex_Check(o) && PyIndex_Check(o))) {  // bool is an int
        Ref index(PyNumber_Index(o));
        if (!index.get()) fail_set();
        int overflow = 0;
        const long long v = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
        if (!overflow) {
            if (v == -1 && PyErr_Occurred()) fail_set();
            put((int64_t)v);
        } else {
            // PyTorch's numbers have 64 bits, with or without sign; what does not fit is Python's OverflowError.
            const unsigned long long u = PyLong_AsUnsignedLongLong(index.get());
            if (PyErr_Occurred()) fail_set();
            if (is_float_code(code) || is_complex_code(code)) put((double)u);
            else put((uint64_t)u);
        }
    } else if (PyComplex_Check(o)) {
        const Py_complex c = PyComplex_AsCComplex(o);
        put(Complex<double>{c.real, c.imag});
    } else {
        put(as_double(o));
    }
}

}  // namespace mt

using namespace mt;

static PyObject* copy(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("copy", nargs, 9);
        Shape shape;
        Operand dst, src;
        parse_shape(args[8], shape);
        parse_operand(args, shape, dst);
        parse_operand(args + 4, shape, src);
        if (dst.code == src.code && is_contiguous(shape, dst) && is_contiguous(shape, src) &&
            shape.numel <= GIL_THRESHOLD) {
            if (shape.numel) std::memmove(dst.data, src.data, (size_t)shape.numel * dst.itemsize);
        } else {
            GilRelease unlocked(shape.numel);
            copy_tensor(shape, dst.data, dst.stride, dst.code, src.data, src.stride, src.code);
        }
        Py_RETURN_NONE;
    });
}

static PyObject* fill(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("fill", nargs, 6);
        Shape shape;
        Operand dst;
        parse_shape(args[4], shape);
        parse_operand(args, shape, dst);
        alignas(16) char value[16];
        number_into(args[5], dst.code, value);
        // An expanded dimension is one place in memory, however many elements it shows.
        for (int i = 0; i < shape.ndim; ++i) {
            if (dst.stride[i] == 0 && shape.dim[i] > 1) {
                shape.numel /= shape.dim[i];
                shape.dim[i] = 1;
            }
        }
        {
            GilRelease unlocked(shape.numel);
            fill_tensor(shape, dst.data, dst.stride, dst.itemsize, value);
        }
        Py_RETURN_NONE;
    });
}

PyMethodDef copy_methods[] = {
    MT_METHOD("copy", copy, "copy(dst, off, stride, code, src, off, stride, code, shape): copy with cast."),
    MT_METHOD("fill", fill, "fill(dst, off, stride, code, shape, value)."),
    {nullptr, nullptr, 0, nullptr}};
