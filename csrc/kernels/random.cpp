// Random numbers: the 32-bit Mersenne Twister and PyTorch's ways of turning its output into numbers.
// Invariant: a state is the 5056 bytes that PyTorch's Generator.get_state() gives, and the same state and call give the
// numbers PyTorch gives on a processor with fused multiply-add. Where its compiler fuses, `fma` is written here.
//
//   random_seed(state, seed)                       a fresh state; seed is taken modulo 2**64
//   random_fill(kind, state, out.., shape, a, b)   kinds below; out is written in the order of its memory
//   random_bernoulli(state, p.., out.., shape)     out[i] = 1 with probability p[i]; p float16, bfloat16, float32, float64
//   random_permutation(state, out, code, n)        0 .. n-1 in random order, dense at the start of a storage
// The GIL is kept all the time: it is what protects a state that several threads use.
#include "pointwise_loop.h"
#include "random.h"

namespace mt {
namespace {

MT_INLINE uint64_t twist(uint64_t u, uint64_t v) {
    const uint64_t mixed = (u & 0x80000000u) | (v & 0x7fffffffu);
    return (mixed >> 1) ^ ((0 - (v & 1u)) & 0x9908b0dfu);
}
// Words [begin, end) from those `other` places on; none of them is one that the loop writes.
MT_CLONES void twist_words(uint64_t* words, int begin, int end, int other) {
#pragma GCC ivdep
    for (int i = begin; i < end; ++i) words[i] = words[i + other] ^ twist(words[i], words[i + 1]);
}
MT_CLONES void temper_words(uint32_t* out, const uint64_t* words, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = temper((uint32_t)words[i]);
}

}  // namespace

void refill(State& s) {
    uint64_t* w = s.words;
    s.left = N;
    s.next = 0;
    constexpr int D = N - M;
    twist_words(w, 0, D, M);
    for (int i = D; i < N - 1; i += D) twist_words(w, i, std::min(i + D, N - 1), -D);
    w[N - 1] = w[M - 1] ^ twist(w[N - 1], w[0]);
}

void next_words(State& s, uint32_t* out, int64_t n) {
    while (n > 0) {
        // What is left counts the next refill, too; behind one, all words are there and the first one is not counted.
        const bool fresh = s.left == 1;
        if (fresh) refill(s);
        const int64_t m = std::min<int64_t>(n, fresh ? N : s.left - 1);
        temper_words(out, s.words + s.next, m);
        s.next += (uint64_t)m;
        s.left -= (int32_t)(fresh ? m - 1 : m);
        out += m;
        n -= m;
    }
}

namespace {

// n uniform numbers in [0, 1), as `unit` makes them.
MT_CLONES void units_of(const uint32_t* bits, float* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = (float)(int32_t)(bits[i] & 0xffffffu) * (1.0f / 16777216.0f);
}
MT_CLONES void units_of(const uint32_t* bits, double* out, int64_t n) {
    // The upper 21 bits and the lower 32 are exact by themselves, and so is their sum.
    for (int64_t i = 0; i < n; ++i)
        out[i] = (double)(int32_t)(bits[2 * i] & 0x1fffffu) * (1.0 / 2097152.0) +
                 ((double)(int32_t)(bits[2 * i + 1] >> 1) * 2.0 + (double)(int32_t)(bits[2 * i + 1] & 1)) *
                     (1.0 / 9007199254740992.0);
}
template <class A> void next_units(State& s, A* out, int64_t n) {
    constexpr int words = sizeof(A) / 4;
    uint32_t bits[BLOCK * words];
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t count = std::min<int64_t>(BLOCK, n - i);
        next_words(s, bits, count * words);
        units_of(bits, out + i, count);
    }
}

enum Kind : int { UNIFORM = 0, NORMAL, INTEGERS, FULL_RANGE, BERNOULLI, EXPONENTIAL, CAUCHY, LOG_NORMAL, GEOMETRIC };

void seed_state(State& s, uint64_t seed) {
    std::memset(&s, 0, sizeof s);
    s.seed = seed;
    s.seeded = 1;
    s.left = 1;
    uint32_t w = (uint32_t)seed;
    s.words[0] = w;
    for (uint32_t i = 1; i < (uint32_t)N; ++i) {
        w = 1812433253u * (w ^ (w >> 30)) + i;
        s.words[i] = w;
    }
}

// Sixteen uniform numbers become eight pairs of normal ones.
void normal_sixteens(double* d, int64_t blocks, double mean, double std) {
    for (int64_t b = 0; b < blocks; ++b, d += 16)
        for (int j = 0; j < 8; ++j) {
            const double r = std::sqrt(-2 * std::log(1 - d[j])), theta = TWO_PI * d[j + 8];
            d[j] = std::fma(r * std::cos(theta), std, mean);
            d[j + 8] = std::fma(r * std::sin(theta), std, mean);
        }
}

// The Cephes library's single precision logarithm of a number in (0, 1], as PyTorch has it in vector registers.
MT_INLINE float cephes_log(float x) {
    const uint32_t bits = bits_of(x);
    float e = (float)((int32_t)(bits >> 23) - 0x7f) + 1.0f;
    const float m = float_of((bits & 0x807fffffu) | 0x3f000000u);
    const bool low = m < 0.707106781186547524f;
    e -= low ? 1.0f : 0.0f;
    const float y = (m - 1.0f) + (low ? m : 0.0f), z = y * y;
    float p = 7.0376836292e-2f;
    p = __builtin_fmaf(p, y, -1.1514610310e-1f);
    p = __builtin_fmaf(p, y, 1.1676998740e-1f);
    p = __builtin_fmaf(p, y, -1.2420140846e-1f);
    p = __builtin_fmaf(p, y, 1.4249322787e-1f);
    p = __builtin_fmaf(p, y, -1.6668057665e-1f);
    p = __builtin_fmaf(p, y, 2.0000714765e-1f);
    p = __builtin_fmaf(p, y, -2.4999993993e-1f);
    p = __builtin_fmaf(p, y, 3.3333331174e-1f);
    p = p * y;
    p = __builtin_fmaf(p, z, e * -2.12194440e-4f);
    p = __builtin_fmaf(z, -0.5f, p);
    return __builtin_fmaf(e, 0.693359375f, y + p);
}

// Its sine and cosine of a number that is not negative.
MT_INLINE void cephes_sincos(float x, float& sine, float& cosine) {
    const int32_t octant = ((int32_t)(x * 1.27323954473516f) + 1) & ~1;
    const float turns = (float)octant;
    x = __builtin_fmaf(turns, -0.78515625f, x);
    x = __builtin_fmaf(turns, -2.4187564849853515625e-4f, x);
    x = __builtin_fmaf(turns, -3.77489497744594108e-8f, x);
    const float z = x * x;
    float c = 2.443315711809948e-5f;
    c = __builtin_fmaf(c, z, -1.388731625493765e-3f);
    c = __builtin_fmaf(c, z, 4.166664568298827e-2f);
    c = c * z;
    c = __builtin_fmaf(c, z, -(z * 0.5f)) + 1.0f;
    float s = -1.9515295891e-4f;
    s = __builtin_fmaf(s, z, 8.3321608736e-3f);
    s = __builtin_fmaf(s, z, -1.6666654611e-1f);
    s = s * z;
    s = __builtin_fmaf(s, x, x);
    const bool straight = (octant & 2) == 0;
    const float first = straight ? s : c, second = straight ? c : s;
    sine = float_of(bits_of(first) ^ ((uint32_t)(octant & 4) << 29));
    cosine = float_of(bits_of(second) ^ ((uint32_t)(~(octant - 2) & 4) << 29));
}

MT_CLONES void normal_pairs(float* MT_RESTRICT first, float* MT_RESTRICT second, int64_t n, float mean, float std) {
    for (int64_t j = 0; j < n; ++j) {
        float sine, cosine;
        const float r = std::sqrt(-2.0f * cephes_log(1.0f - first[j]));
        cephes_sincos((float)TWO_PI * second[j], sine, cosine);
        first[j] = __builtin_fmaf(r * cosine, std, mean);
        second[j] = __builtin_fmaf(r * sine, std, mean);
    }
}

// Halves of many blocks are brought together, so that the loop over them is long enough for vector registers.
void normal_sixteens(float* d, int64_t blocks, float mean, float std) {
    constexpr int64_t AT_ONCE = 32;
    float first[8 * AT_ONCE], second[8 * AT_ONCE];
    for (int64_t b = 0; b < blocks; b += AT_ONCE) {
        const int64_t n = std::min(AT_ONCE, blocks - b);
        for (int64_t i = 0; i < n; ++i) {
            std::memcpy(first + 8 * i, d + 16 * (b + i), 8 * sizeof(float));
            std::memcpy(second + 8 * i, d + 16 * (b + i) + 8, 8 * sizeof(float));
        }
        normal_pairs(first, second, 8 * n, mean, std);
        for (int64_t i = 0; i < n; ++i) {
            std::memcpy(d + 16 * (b + i), first + 8 * i, 8 * sizeof(float));
            std::memcpy(d + 16 * (b + i) + 8, second + 8 * i, 8 * sizeof(float));
        }
    }
}

// `first`: how many uniform numbers are drawn before the ones of an incomplete last block.
template <class T> void normal_block(State& s, T* d, int64_t n, int64_t first, double mean, double std) {
    next_units(s, d, first);
    normal_sixteens(d, n / 16, (T)mean, (T)std);
    if (n % 16) {
        T* last = d + n - 16;
        for (int i = 0; i < 16; ++i) last[i] = unit<T>(s);
        normal_sixteens(last, 1, (T)mean, (T)std);
    }
}

// ---------------------------------------------------------------- walking through a result

// Calls f(pointer, step, count) for every row, in the order of memory: dimensions sorted by stride, the smallest
// innermost.
template <class F> void each_row(const Shape& shape, const Operand& o, F&& f) {
    if (shape.numel == 0) return;
    int order[MAXD], n = 0;
    for (int i = 0; i < shape.ndim; ++i)
        if (shape.dim[i] != 1) order[n++] = i;
    std::stable_sort(order, order + n, [&](int a, int b) { return o.stride[a] > o.stride[b]; });
    int64_t at[MAXD] = {};
    char* p = o.data;
    const int last = n - 1;
    const int64_t count = n ? shape.dim[order[last]] : 1, step = n ? o.stride[order[last]] * o.itemsize : 0;
    for (;;) {
        f(p, step, count);
        int d = last - 1;
        for (; d >= 0; --d) {
            const int dim = order[d];
            p += o.stride[dim] * o.itemsize;
            if (++at[d] < shape.dim[dim]) break;
            p -= o.stride[dim] * o.itemsize * shape.dim[dim];
            at[d] = 0;
        }
        if (d < 0) return;
    }
}

// Calls f(pointer) for every element, in that order.
template <class F> void each(const Shape& shape, const Operand& o, F&& f) {
    each_row(shape, o, [&](char* p, int64_t step, int64_t n) {
        for (int64_t i = 0; i < n; ++i) f(p + i * step);
    });
}

// Every element gets the next of the numbers of type D that draw(numbers, count) makes, in that order. One loop draws
// for all dtypes.
template <class D, class F> void fill_drawn(const Shape& shape, const Operand& o, F&& draw) {
    D drawn[BLOCK];
    each_row(shape, o, [&](char* p, int64_t step, int64_t n) {
        for (int64_t i = 0; i < n; i += BLOCK) {
            const int64_t count = std::min<int64_t>(BLOCK, n - i);
            draw(drawn, count);
            cast_strided(p + i * step, step, o.code, reinterpret_cast<char*>(drawn), sizeof(D), CodeOf<D>::value,
                         count);
        }
    });
}

// Calls f with a value of the element type; only the types random numbers are drawn in.
template <class F> void dispatch_float(int code, const char* name, F&& f) {
    switch (code) {
        case F16: f(Half()); break;
        case BF16: f(BFloat16()); break;
        case F32: f(float()); break;
        case F64: f(double()); break;
        default: fail_dtype(name, code);
    }
}

// From [0, 1) to [low, low + width) as the dtype has it.
template <class T, class A> MT_CLONES void scale_units(A* drawn, int64_t n, A width, A low, A first, A end) {
    for (int64_t i = 0; i < n; ++i) {
        const A value = (A)widen(convert<T>((A)std::fma(drawn[i], width, low)));
        // The end does not belong to the range, but rounding can reach it.
        drawn[i] = value == end ? first : value;
    }
}

template <class T> void fill_uniform(State& s, const Shape& shape, const Operand& o, double from, double to) {
    using A = typename Digits<T>::acc;
    const A low = (A)from, width = (A)to - (A)from;
    const A first = (A)widen(convert<T>(from)), end = (A)widen(convert<T>(to));
    fill_drawn<A>(shape, o, [&](A* drawn, int64_t n) {
        next_units(s, drawn, n);
        scale_units<T>(drawn, n, width, low, first, end);
    });
}

template <class T> void fill_normal(State& s, const Shape& shape, const Operand& o, double mean, double std) {
    if (shape.numel >= 16 && is_contiguous(shape, o)) {
        if constexpr (is_small_float<T>) {
            Scratch wide(shape.numel, sizeof(float));
            normal_block(s, wide.as<float>(), shape.numel, shape.numel / 16 * 16, mean, std);
            cast_block(o.data, o.code, wide.as<char>(), F32, shape.numel);
        } else {
            normal_block(s, o.as<T>(), shape.numel, shape.numel, mean, std);
        }
        return;
    }
    each(shape, o, [&](char* p) { *reinterpret_cast<T*>(p) = convert<T>(std::fma(next_normal(s), std, mean)); });
}

// How many integers, from 0 on, a dtype has or a float holds exactly; 0 stands for all 2**64.
uint64_t full_range_of(int code) {
    switch (code) {
        case BOOL: return 2;
        case BF16: return ((uint64_t)1 << 8) + 1;
        case F16: return ((uint64_t)1 << 11) + 1;
        case F32: return ((uint64_t)1 << 24) + 1;
        case F64: return ((uint64_t)1 << 53) + 1;
        case U64: return 0;
        default: return (uint64_t)1 << (8 * ITEMSIZE[code] - (code >= I8 && code <= I64));
    }
}

// Integers from `base` on; of `wide` ones each takes 64 random bits.
void fill_integers(State& s, const Shape& shape, const Operand& o, uint64_t range, int64_t base, bool wide) {
    fill_drawn<int64_t>(shape, o, [&](int64_t* drawn, int64_t n) {
        if (wide) {
            for (int64_t i = 0; i < n; ++i) {
                const uint64_t bits = next64(s);
                drawn[i] = (int64_t)((range ? bits % range : bits) + (uint64_t)base);
            }
            return;
        }
        uint32_t bits[BLOCK];
        next_words(s, bits, n);
        const uint32_t narrow = (uint32_t)range;  // of such draws it is below 2**28, or one of a dtype's
        for (int64_t i = 0; i < n; ++i)
            drawn[i] = (int64_t)((range == narrow && range ? bits[i] % narrow
                                  : range                  ? bits[i] % range
                                                           : bits[i]) +
                                 (uint64_t)base);
    });
}

// Distributions drawn in double and rounded at the end.
void fill_transformed(State& s, const Shape& shape, const Operand& o, int kind, double a, double b) {
    if (kind == BERNOULLI) {
        fill_drawn<Bool>(shape, o, [&](Bool* drawn, int64_t n) {
            double units[BLOCK];
            next_units(s, units, n);
            for (int64_t i = 0; i < n; ++i) drawn[i] = Bool{(uint8_t)(units[i] < a)};
        });
        return;
    }
    auto next = [&]() -> double {
        switch (kind) {
            case EXPONENTIAL: return -1.0 / a * std::log1p(-unit<double>(s));
            case CAUCHY: return std::fma(b, std::tan(3.14159265358979323846 * (unit<double>(s) - 0.5)), a);
            case LOG_NORMAL: return std::exp(std::fma(next_normal(s), b, a));
            default: return std::ceil(std::log(unit<double>(s)) / std::log1p(-a));
        }
    };
    fill_drawn<double>(shape, o, [&](double* drawn, int64_t n) {
        for (int64_t i = 0; i < n; ++i) drawn[i] = next();
    });
}

uint64_t as_bits(PyObject* o) {
    const unsigned long long v = PyLong_AsUnsignedLongLongMask(o);
    if (v == (unsigned long long)-1 && PyErr_Occurred()) fail_set();
    return v;
}

PyObject* random_seed(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("random_seed", nargs, 2);
        seed_state(as_state(args[0], false), as_bits(args[1]));
        Py_RETURN_NONE;
    });
}

PyObject* random_fill(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("random_fill", nargs, 9);
        const int kind = (int)as_int(args[0]);
        State& s = as_state(args[1]);
        Shape shape;
        Operand o;
        parse_shape(args[6], shape);
        parse_operand(args + 2, shape, o);
        if (shape.numel == 0) Py_RETURN_NONE;  // nothing is drawn, whatever the dtype
        if (kind == UNIFORM || kind == NORMAL) {
            const double a = as_double(args[7]), b = as_double(args[8]);
            dispatch_float(o.code, kind == UNIFORM ? "check_uniform_bounds" : "normal_kernel_cpu", [&](auto t) {
                using T = decltype(t);
                if (kind == UNIFORM) fill_uniform<T>(s, shape, o, a, b);
                else fill_normal<T>(s, shape, o, a, b);
            });
        } else if (kind == INTEGERS || kind == FULL_RANGE) {
            const uint64_t given = kind == INTEGERS ? as_bits(args[8]) : 0;
            const int64_t base = kind == INTEGERS ? (int64_t)as_bits(args[7]) : 0;
            if (is_complex_code(o.code) || (is_float_code(o.code) && o.itemsize == 1))
                fail_dtype("random_from_to", o.code);
            if (kind == FULL_RANGE) fill_integers(s, shape, o, full_range_of(o.code), 0, o.itemsize == 8);
            else fill_integers(s, shape, o, given, base, given == 0 || given >= ((uint64_t)1 << 28));
        } else {
            fill_transformed(s, shape, o, kind, as_double(args[7]), as_double(args[8]));
        }
        Py_RETURN_NONE;
    });
}

// Both operands walk in the order of out's memory.
PyObject* random_bernoulli(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("random_bernoulli", nargs, 10);
        State& s = as_state(args[0]);
        Shape shape;
        Operand p, o;
        parse_shape(args[9], shape);
        parse_operand(args + 1, shape, p);
        parse_operand(args + 5, shape, o);
        // Probabilities as doubles, in the order of out's memory.
        Scratch scratch(std::max<int64_t>(shape.numel, 1), sizeof(double));
        int64_t dense[MAXD];
        dense_like(shape, o, dense);
        copy_tensor(shape, scratch.as<char>(), dense, F64, p.data, p.stride, p.code);
        const double* chance = scratch.as<double>();
        for (int64_t i = 0; i < shape.numel; ++i)
            if (!(chance[i] >= 0 && chance[i] <= 1))
                fail(PyExc_RuntimeError,
                     "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error "
                     "message be improved?  If so, please report an enhancement request to PyTorch.)");
        Scratch drawn(std::max<int64_t>(shape.numel, 1), 1);
        char* bit = drawn.as<char>();
        auto draw = [&](auto t) {
            using A = decltype(t);
            A units[BLOCK];
            for (int64_t at = 0; at < shape.numel; at += BLOCK) {
                const int64_t n = std::min<int64_t>(BLOCK, shape.numel - at);
                next_units(s, units, n);
                for (int64_t i = 0; i < n; ++i) bit[at + i] = units[i] < (A)chance[at + i];
            }
        };
        if (p.code == F64) draw(double());
        else draw(float());
        copy_tensor(shape, o.data, o.stride, o.code, bit, dense, BOOL);
        Py_RETURN_NONE;
    });
}

PyObject* random_permutation(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("random_permutation", nargs, 4);
        State& s = as_state(args[0]);
        StorageObject* out = as_storage(args[1]);
        const int code = as_code(args[2]);
        const int64_t n = as_int(args[3]);
        if (n < 0 || n > out->nbytes / ITEMSIZE[code])
            fail(PyExc_RuntimeError, "random_permutation: storage too small");
        Scratch scratch(std::max<int64_t>(n, 1), sizeof(int64_t));
        int64_t* r = scratch.as<int64_t>();
        for (int64_t i = 0; i < n; ++i) r[i] = i;
        const bool wide = n >= (int64_t)(0xffffffffu / 20);
        for (int64_t i = 0; i < n - 1; ++i) {
            // Numbers below 2**32 are divided in their own width, which takes half the time.
            const uint64_t far = wide ? next64(s) % (uint64_t)(n - i) : next32(s) % (uint32_t)(n - i);
            std::swap(r[i], r[i + (int64_t)far]);
        }
        cast_block(out->ptr, code, reinterpret_cast<const char*>(r), I64, n);
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

namespace mt {  // join.cpp
PyObject* join(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* array_info(PyObject*, PyObject* const*, Py_ssize_t);
// random_given.cpp
PyObject* random_given(PyObject*, PyObject* const*, Py_ssize_t);
PyObject* random_places(PyObject*, PyObject* const*, Py_ssize_t);
}  // namespace mt

using namespace mt;

PyMethodDef random_methods[] = {
    MT_METHOD("join", join, "join(out.., shape, dim, parts): tensors next to each other along a dimension."),
    MT_METHOD("array_info", array_info, "array_info(array): (address, shape, strides, itemsize, readonly)."),
    MT_METHOD("random_seed", random_seed, "random_seed(state, seed)."),
    MT_METHOD("random_fill", random_fill, "random_fill(kind, state, out.., shape, a, b)."),
    MT_METHOD("random_bernoulli", random_bernoulli, "random_bernoulli(state, p.., out.., shape)."),
    MT_METHOD("random_given", random_given, "random_given(kind, state, a.., b.., out.., shape)."),
    MT_METHOD("random_places", random_places, "random_places(weights.., code, rows, n, drawn.., samples, out..)."),
    MT_METHOD("random_permutation", random_permutation, "random_permutation(state, out, code, n)."),
    {nullptr, nullptr, 0, nullptr}};
