// What every kernel file shares: the Storage object, dtype codes and element types, parsing of FASTCALL operands,
// errors, threads. Invariant: a kernel never touches memory outside the storages it was given; `parse_operand` and
// `parse_output` compare the furthest element that shape and strides reach with `nbytes` before a pointer is made.
//
// How a kernel file looks:
//   static PyObject* softmax(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
//       return guard([&]() -> PyObject* { expect_args("softmax", nargs, 11); ... return out; });
//   }
//   PyMethodDef nn_methods[] = {MT_METHOD("softmax", softmax, "doc"), {nullptr, nullptr, 0, nullptr}};
// Inside `guard` errors are thrown with `fail(...)`; they also work while the GIL is released or inside a pool thread.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "checked.h"

// Range kernels are compiled for three x86 levels and chosen when the module is loaded; helpers called from them must
// be MT_INLINE (a function that is not inlined is not cloned), and parallel_for stays outside of them. Sanitised builds
// have one level: the choice is made before a sanitizer's runtime is ready.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MT_CLONES
#endif
#define MT_INLINE inline __attribute__((always_inline))
#define MT_NOINLINE __attribute__((noinline))
#define MT_LIKELY(x) __builtin_expect(!!(x), 1)
#define MT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define MT_RESTRICT __restrict__

#pragma GCC visibility push(hidden)  // only PyInit__native is seen from outside; calls need no PLT

namespace mt {

// ---------------------------------------------------------------- dtypes

// clang-format off: a table
enum Code : int {
    U8 = 0, I8 = 1, I16 = 2, I32 = 3, I64 = 4, F16 = 5, F32 = 6, F64 = 7, C64 = 9, C128 = 10, BOOL = 11,
    BF16 = 12, F8E5M2 = 13, F8E4M3FN = 14, U16 = 15, U32 = 16, U64 = 17, F8E5M2FNUZ = 18, F8E4M3FNUZ = 19,
    F8E8M0 = 20, C32 = 21,
};
// clang-format on
constexpr int NUM_CODES = 22;

// 0 marks codes that name no dtype.
constexpr int ITEMSIZE[NUM_CODES] = {1, 1, 2, 4, 8, 2, 4, 8, 0, 8, 16, 1, 2, 1, 1, 2, 4, 8, 1, 1, 1, 4};
// PyTorch's names in "not implemented for '...'".
// clang-format off: a table
constexpr const char* CODE_NAME[NUM_CODES] = {
    "Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double", "?", "ComplexFloat", "ComplexDouble", "Bool",
    "BFloat16", "Float8_e5m2", "Float8_e4m3fn", "UInt16", "UInt32", "UInt64", "Float8_e5m2fnuz", "Float8_e4m3fnuz",
    "Float8_e8m0fnu", "ComplexHalf"};
// The codes behind those are of dtypes that are stored and never computed with.
constexpr const char* STORED_NAME[] = {
    "Bits1x8", "Bits2x4", "Bits4x2", "Bits8", "Bits16", "UInt1", "UInt2", "UInt3", "UInt4", "UInt5", "UInt6",
    "UInt7", "Int1", "Int2", "Int3", "Int4", "Int5", "Int6", "Int7", "Float4_e2m1fn_x2"};
// clang-format on
constexpr int NUM_STORED = sizeof(STORED_NAME) / sizeof(STORED_NAME[0]);
constexpr bool is_complex_code(int c) { return c == C64 || c == C128 || c == C32; }
constexpr bool is_float_code(int c) {
    return (c >= F16 && c <= F64) || (c >= BF16 && c <= F8E4M3FN) || (c >= F8E5M2FNUZ && c <= F8E8M0);
}
constexpr bool is_int_code(int c) { return c <= I64 || (c >= U16 && c <= U64); }

MT_INLINE uint32_t bits_of(float f) {
    uint32_t u;
    std::memcpy(&u, &f, 4);
    return u;
}
MT_INLINE float float_of(uint32_t u) {
    float f;
    std::memcpy(&f, &u, 4);
    return f;
}
MT_INLINE uint64_t bits_of(double f) {
    uint64_t u;
    std::memcpy(&u, &f, 8);
    return u;
}
MT_INLINE double double_of(uint64_t u) {
    double f;
    std::memcpy(&f, &u, 8);
    return f;
}

// The conversions below are written with selects instead of branches so that loops over them vectorise.
MT_INLINE float half_to_float(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = (uint32_t)(h & 0x7fffu) << 13;
    // Scaling by 2^112 rebiases the exponent and makes subnormals right; inf and NaN get their exponent back.
    const uint32_t scaled = bits_of(float_of(rest) * float_of(0x77800000u));
    return float_of(sign | (rest >= 0x0f800000u ? (rest | 0x7f800000u) : scaled));
}
MT_INLINE uint16_t float_to_half(float f) {
    const uint32_t all = bits_of(f), sign = (all >> 16) & 0x8000u, u = all & 0x7fffffffu;
    const uint32_t tiny = bits_of(float_of(u) + 0.5f) - 0x3f000000u;  // below 2^-14 the adder rounds to 2^-24 steps
    const uint32_t normal = (u + 0xc8000fffu + ((u >> 13) & 1u)) >> 13;
    const uint32_t big = u > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const uint32_t r = u < 0x38800000u ? tiny : normal;
    return (uint16_t)(sign | (u >= 0x477ff000u ? big : r));
}
MT_INLINE float bf16_to_float(uint16_t h) { return float_of((uint32_t)h << 16); }
MT_INLINE uint16_t float_to_bf16(float f) {
    const uint32_t u = bits_of(f), r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : r);
}
MT_INLINE float e5m2_to_float(uint8_t v) { return half_to_float((uint16_t)((uint32_t)v << 8)); }
MT_INLINE uint8_t float_to_e5m2(float f) {
    const uint32_t all = bits_of(f), sign = (all >> 24) & 0x80u, u = all & 0x7fffffffu;
    const uint32_t tiny = bits_of(float_of(u) + 128.0f) - 0x43000000u;
    const uint32_t normal = (u + 0xc80fffffu + ((u >> 21) & 1u)) >> 21;
    const uint32_t big = u > 0x7f800000u ? 0x7fu : 0x7cu;
    const uint32_t r = u < 0x38800000u ? tiny : normal;
    return (uint8_t)(sign | (u >= 0x47800000u ? big : r));
}
MT_INLINE float e4m3_to_float(uint8_t v) {
    const uint32_t sign = (uint32_t)(v & 0x80u) << 24, rest = (uint32_t)(v & 0x7fu) << 20;
    const uint32_t scaled = bits_of(float_of(rest) * float_of(0x7b800000u));  // 2^120
    return float_of(sign | (rest == 0x07f00000u ? 0x7fc00000u : scaled));
}
MT_INLINE uint8_t float_to_e4m3(float f) {
    const uint32_t all = bits_of(f), sign = (all >> 24) & 0x80u, u = all & 0x7fffffffu;
    const uint32_t tiny = bits_of(float_of(u) + 16384.0f) - 0x46800000u;
    const uint32_t normal = (u + 0xc407ffffu + ((u >> 20) & 1u)) >> 20;
    const uint32_t r = u < 0x3c800000u ? tiny : normal;
    // 448 is the largest number; more, and infinity, saturate to it. Rounding would make NaN (0x7f) of what is above.
    const uint32_t big = u > 0x7f800000u ? 0x7fu : 0x7eu;
    return (uint8_t)(sign | (u >= 0x43e00000u ? big : r));
}

// The types without infinities and negative zero (`fnuz`): their one NaN is where negative zero would be, and what is too
// large becomes it.
MT_INLINE uint8_t fnuz(uint32_t sign, uint32_t magnitude) {
    return (uint8_t)(magnitude > 0x7fu ? 0x80u : magnitude == 0 ? 0u : sign | magnitude);
}
MT_INLINE float e5m2fnuz_to_float(uint8_t v) {
    const uint32_t sign = (uint32_t)(v & 0x80u) << 24, rest = (uint32_t)(v & 0x7fu) << 21;
    const uint32_t scaled = bits_of(float_of(rest) * float_of(0x77000000u));  // 2^111
    return float_of(v == 0x80u ? 0x7fc00000u : sign | scaled);
}
MT_INLINE uint8_t float_to_e5m2fnuz(float f) {
    const uint32_t all = bits_of(f), sign = (all >> 24) & 0x80u, u = all & 0x7fffffffu;
    const uint32_t tiny = bits_of(float_of(u) + 64.0f) - 0x42800000u;
    const uint32_t normal = (u + 0xc88fffffu + ((u >> 21) & 1u)) >> 21;
    return u >= 0x47800000u ? (uint8_t)0x80u : fnuz(sign, u < 0x38000000u ? tiny : normal);
}
MT_INLINE float e4m3fnuz_to_float(uint8_t v) {
    const uint32_t sign = (uint32_t)(v & 0x80u) << 24, rest = (uint32_t)(v & 0x7fu) << 20;
    const uint32_t scaled = bits_of(float_of(rest) * float_of(0x7b000000u));  // 2^119
    return float_of(v == 0x80u ? 0x7fc00000u : sign | scaled);
}
MT_INLINE uint8_t float_to_e4m3fnuz(float f) {
    const uint32_t all = bits_of(f), sign = (all >> 24) & 0x80u, u = all & 0x7fffffffu;
    const uint32_t tiny = bits_of(float_of(u) + 8192.0f) - 0x46000000u;
    const uint32_t normal = (u + 0xc487ffffu + ((u >> 20) & 1u)) >> 20;
    return u >= 0x43800000u ? (uint8_t)0x80u : fnuz(sign, u < 0x3c000000u ? tiny : normal);
}
// Powers of two from 2^-127: an exponent and nothing else. The sign is dropped; infinity and NaN are NaN.
MT_INLINE float e8m0_to_float(uint8_t v) {
    return float_of(v == 0xffu ? 0x7fc00000u : v == 0 ? 0x00400000u : (uint32_t)v << 23);
}
MT_INLINE uint8_t float_to_e8m0(float f) {
    const uint32_t u = bits_of(f) & 0x7fffffffu, exponent = u >> 23, fraction = u & 0x7fffffu;
    const uint32_t up = fraction > 0x400000u || (fraction == 0x400000u && exponent > 0);
    return (uint8_t)(exponent == 0xffu ? 0xffu : exponent + up);
}

// Element types as they lie in memory. Only moving and converting is defined for them; arithmetic is done in compute_t.
// clang-format off: tables
struct Half { uint16_t bits; };
struct BFloat16 { uint16_t bits; };
struct Float8E5M2 { uint8_t bits; };
struct Float8E4M3 { uint8_t bits; };
struct Float8E5M2Fnuz { uint8_t bits; };
struct Float8E4M3Fnuz { uint8_t bits; };
struct Float8E8M0 { uint8_t bits; };
struct Bool { uint8_t v; };
template <class T> struct Complex { T re, im; };

template <int C> struct TypeOf;
template <class T> struct CodeOf;
#define MT_DTYPE(code, type) \
    template <> struct TypeOf<code> { using t = type; }; \
    template <> struct CodeOf<type> { static constexpr int value = code; };
MT_DTYPE(U8, uint8_t) MT_DTYPE(I8, int8_t) MT_DTYPE(I16, int16_t) MT_DTYPE(I32, int32_t) MT_DTYPE(I64, int64_t)
MT_DTYPE(F16, Half) MT_DTYPE(F32, float) MT_DTYPE(F64, double) MT_DTYPE(C64, Complex<float>)
MT_DTYPE(C128, Complex<double>) MT_DTYPE(BOOL, Bool) MT_DTYPE(BF16, BFloat16) MT_DTYPE(F8E5M2, Float8E5M2)
MT_DTYPE(F8E4M3FN, Float8E4M3) MT_DTYPE(U16, uint16_t) MT_DTYPE(U32, uint32_t) MT_DTYPE(U64, uint64_t)
MT_DTYPE(F8E5M2FNUZ, Float8E5M2Fnuz) MT_DTYPE(F8E4M3FNUZ, Float8E4M3Fnuz) MT_DTYPE(F8E8M0, Float8E8M0)
MT_DTYPE(C32, Complex<Half>)
#undef MT_DTYPE

template <class T> struct IsComplex : std::false_type {};
template <class T> struct IsComplex<Complex<T>> : std::true_type {};
// clang-format on
template <class T> constexpr bool is_float8 =
    std::is_same<T, Float8E5M2>::value || std::is_same<T, Float8E4M3>::value ||
    std::is_same<T, Float8E5M2Fnuz>::value || std::is_same<T, Float8E4M3Fnuz>::value ||
    std::is_same<T, Float8E8M0>::value;
// Types that are widened to float before anything is done with them.
template <class T> constexpr bool is_small_float =
    std::is_same<T, Half>::value || std::is_same<T, BFloat16>::value || is_float8<T>;

MT_INLINE float widen(Half x) { return half_to_float(x.bits); }
MT_INLINE float widen(BFloat16 x) { return bf16_to_float(x.bits); }
MT_INLINE float widen(Float8E5M2 x) { return e5m2_to_float(x.bits); }
MT_INLINE float widen(Float8E4M3 x) { return e4m3_to_float(x.bits); }
MT_INLINE float widen(Float8E5M2Fnuz x) { return e5m2fnuz_to_float(x.bits); }
MT_INLINE float widen(Float8E4M3Fnuz x) { return e4m3fnuz_to_float(x.bits); }
MT_INLINE float widen(Float8E8M0 x) { return e8m0_to_float(x.bits); }
MT_INLINE uint8_t widen(Bool x) { return x.v != 0; }
template <class T> MT_INLINE T widen(T x) { return x; }

// PyTorch's `.to` between any two element types.
template <class To, class From> MT_INLINE To convert(From from) {
    if constexpr (std::is_same<To, From>::value && !std::is_same<To, Bool>::value) {
        return from;
    } else if constexpr (IsComplex<From>::value && IsComplex<To>::value) {
        using Part = decltype(To::re);
        return To{convert<Part>(from.re), convert<Part>(from.im)};
    } else if constexpr (IsComplex<From>::value && std::is_same<To, Bool>::value) {
        return Bool{(uint8_t)((widen(from.re) != 0) | (widen(from.im) != 0))};
    } else if constexpr (IsComplex<From>::value) {
        return convert<To>(from.re);
    } else {
        const auto x = widen(from);
        using X = typename std::remove_const<decltype(x)>::type;
        if constexpr (IsComplex<To>::value)
            return To{convert<decltype(To::re)>(x), convert<decltype(To::re)>((uint8_t)0)};
        else if constexpr (std::is_same<To, Bool>::value) return Bool{(uint8_t)(x != 0)};
        else if constexpr (std::is_same<To, Half>::value) return Half{float_to_half((float)x)};
        else if constexpr (std::is_same<To, BFloat16>::value) return BFloat16{float_to_bf16((float)x)};
        else if constexpr (std::is_same<To, Float8E5M2>::value) return Float8E5M2{float_to_e5m2((float)x)};
        else if constexpr (std::is_same<To, Float8E4M3>::value) return Float8E4M3{float_to_e4m3((float)x)};
        else if constexpr (std::is_same<To, Float8E5M2Fnuz>::value) return Float8E5M2Fnuz{float_to_e5m2fnuz((float)x)};
        else if constexpr (std::is_same<To, Float8E4M3Fnuz>::value) return Float8E4M3Fnuz{float_to_e4m3fnuz((float)x)};
        else if constexpr (std::is_same<To, Float8E8M0>::value) return Float8E8M0{float_to_e8m0((float)x)};
        else if constexpr (std::is_floating_point<X>::value && std::is_integral<To>::value) {
            // Through a signed type: a negative float wraps, as in PyTorch, instead of being undefined. The narrow
            // types go through int32, which every vector unit can convert to.
            if constexpr (sizeof(To) < 4) return (To)(int32_t)x;
            else if constexpr (std::is_same<To, int32_t>::value) return (int32_t)x;
            else if constexpr (std::is_same<To, uint64_t>::value)
                return x < (X)9223372036854775808.0 ? (uint64_t)(int64_t)x : (uint64_t)x;
            else return (To)(int64_t)x;
        } else return (To)x;
    }
}

// Calls f with a value of the element type of `code`; the calls are instantiated for all 21 dtypes, so keep f small.
// clang-format off: a table
template <class F> MT_INLINE auto dispatch_all(int code, F&& f) -> decltype(f(float())) {
    switch (code) {
        case U8: return f(uint8_t()); case I8: return f(int8_t()); case I16: return f(int16_t());
        case I32: return f(int32_t()); case I64: return f(int64_t()); case F16: return f(Half());
        case F32: return f(float()); case F64: return f(double()); case C64: return f(Complex<float>());
        case C128: return f(Complex<double>()); case BOOL: return f(Bool()); case BF16: return f(BFloat16());
        case F8E5M2: return f(Float8E5M2()); case F8E4M3FN: return f(Float8E4M3()); case U16: return f(uint16_t());
        case U32: return f(uint32_t()); case F8E5M2FNUZ: return f(Float8E5M2Fnuz());
        case F8E4M3FNUZ: return f(Float8E4M3Fnuz()); case F8E8M0: return f(Float8E8M0());
        case C32: return f(Complex<Half>()); default: return f(uint64_t());
    }
}
// clang-format on

// ---------------------------------------------------------------- errors

// Carries a Python exception through C++ frames; `message` empty means the Python error is already set (GIL held).
struct Error {
    PyObject* type;
    std::string message;
};
[[noreturn]] void fail(PyObject* type, const char* format, ...) __attribute__((format(printf, 2, 3)));
[[noreturn]] void fail_set();  // a Python C-API call has set the error
// "{op}" not implemented for '{Half}'
[[noreturn]] void fail_dtype(const char* op, int code);
PyObject* report(const std::exception_ptr& e) noexcept;  // sets the Python error, returns nullptr; GIL held

// Calls that are running, in any thread; the GIL protects it. While there are any, memory that a resized storage gives
// up is kept (`retired`): a call may have taken its address and released the GIL, or be asking Python for a number.
extern int running_calls;
extern bool memory_retired;
void free_retired() noexcept;

struct RunningCall {
    RunningCall() { ++running_calls; }
    ~RunningCall() {
        if (--running_calls == 0 && MT_UNLIKELY(memory_retired)) free_retired();
    }
    RunningCall(const RunningCall&) = delete;
    RunningCall& operator=(const RunningCall&) = delete;
};

template <class F> MT_INLINE PyObject* guard(F&& f) noexcept {
    const RunningCall running;
    try {
        return f();
    } catch (...) { return report(std::current_exception()); }
}
MT_INLINE void expect_args(const char* name, Py_ssize_t got, Py_ssize_t want) {
    if (MT_UNLIKELY(got != want)) fail(PyExc_TypeError, "%s() takes %zd arguments (%zd given)", name, want, got);
}

// ---------------------------------------------------------------- allocator

// 64-byte aligned, thread safe, callable without the GIL. `capacity` receives the usable size and must be given back.
// Raises what a copy of this many bytes would: kernels that read an expanded operand where it is ask for it, so that
// nobody waits for sums over more elements than there could be.
void expect_room_for(size_t nbytes);
// The same for a result that needs no memory (a sum, a count): an expanded operand can have more elements than a day has
// time for.
void expect_time_for(int64_t numel);
char* block_alloc(size_t nbytes, size_t* capacity);  // nbytes == 0 gives nullptr; throws Error(MemoryError)
void block_free(char* ptr, size_t capacity) noexcept;

// Blocks of at most SMALL_LIMIT bytes for Storage objects: quicker, but the GIL must be held.
constexpr size_t SMALL_LIMIT = 1024;
char* small_alloc(size_t nbytes, size_t* capacity);
void small_free(char* ptr, size_t capacity) noexcept;

// Memory for the time of one call; usable without the GIL.
class Scratch {
public:
    Scratch(int64_t count, int64_t itemsize) : ptr_(block_alloc(checked_bytes(count, itemsize), &capacity_)) {}
    ~Scratch() { block_free(ptr_, capacity_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    template <class T = char> T* as() const { return reinterpret_cast<T*>(ptr_); }

private:
    size_t capacity_ = 0;
    char* ptr_;
};

// ---------------------------------------------------------------- Storage

struct StorageObject {
    PyObject_HEAD
    char* ptr;
    Py_ssize_t nbytes;
    size_t capacity;  // of the allocator's block; 0 for foreign memory
    PyObject* owner;  // keeps foreign memory alive; nullptr when the block is our own
    PyObject* weakrefs;
    Py_ssize_t exports;  // live buffers and parts: memory must not move while there are any
    bool fixed;          // its address was given away for good: it never moves again
};
extern PyTypeObject StorageType;
PyObject* storage_new(int64_t count, int64_t itemsize);  // new reference to an uninitialised Storage; throws

MT_INLINE bool is_storage(PyObject* o) { return Py_TYPE(o) == &StorageType; }
MT_INLINE StorageObject* as_storage(PyObject* o) {
    if (MT_UNLIKELY(!is_storage(o))) fail(PyExc_TypeError, "expected a Storage, got %s", Py_TYPE(o)->tp_name);
    return reinterpret_cast<StorageObject*>(o);
}

// ---------------------------------------------------------------- arguments

constexpr int MAXD = 128;

int64_t as_int_slow(PyObject* o);
MT_INLINE int64_t as_int(PyObject* o) {
#if !defined(PYPY_VERSION) && PY_VERSION_HEX < 0x030C0000
    if (MT_LIKELY(PyLong_CheckExact(o))) {
        const Py_ssize_t size = Py_SIZE(o);
        if (size == 0) return 0;
        if (size == 1) return (int64_t)reinterpret_cast<PyLongObject*>(o)->ob_digit[0];
    }
#elif !defined(PYPY_VERSION)
    if (MT_LIKELY(PyLong_CheckExact(o)) && PyUnstable_Long_IsCompact(reinterpret_cast<PyLongObject*>(o)))
        return (int64_t)PyUnstable_Long_CompactValue(reinterpret_cast<PyLongObject*>(o));
#endif
    return as_int_slow(o);
}
double as_double(PyObject* o);  // int, float, or anything with __float__/__index__
MT_INLINE bool as_bool(PyObject* o) {
    if (o == Py_True) return true;
    if (o == Py_False || o == Py_None) return false;
    return as_int(o) != 0;
}
MT_INLINE int as_code(PyObject* o) {
    const int64_t c = as_int(o);
    if (MT_UNLIKELY((uint64_t)c >= (uint64_t)NUM_CODES || ITEMSIZE[c] == 0)) {
        if (c >= NUM_CODES && c < NUM_CODES + NUM_STORED)
            fail(PyExc_NotImplementedError, "no operator is implemented for '%s'", STORED_NAME[c - NUM_CODES]);
        fail(PyExc_ValueError, "%lld is no dtype code", (long long)c);
    }
    return (int)c;
}

struct Shape {
    int ndim;
    int64_t numel;
    int64_t dim[MAXD];  // only the first ndim are set
};
void parse_shape(PyObject* tuple, Shape& shape);
// Reads a tuple of `ndim` ints; anything else is a TypeError/ValueError.
void parse_ints(PyObject* tuple, int ndim, int64_t* out);

// An operand: where element (0, 0, ...) lies, and strides in elements.
struct Operand {
    StorageObject* storage;
    char* data;
    int code;
    int itemsize;
    int64_t stride[MAXD];
    template <class T> T* as() const { return reinterpret_cast<T*>(data); }
};
// args: storage, offset, strides, code. Checks type, dtype and that every element lies inside the storage.
void parse_operand(PyObject* const* args, const Shape& shape, Operand& op);
[[noreturn]] void fail_reach(int64_t low, int64_t high, const Operand& op);  // elements outside the storage
// The same, but a None storage makes a new one of `numel` elements (default: shape.numel). Returns a new reference.
PyObject* parse_output(PyObject* const* args, const Shape& shape, Operand& op, int64_t numel = -1);
bool is_contiguous(const Shape& shape, const Operand& op);  // row-major, as PyTorch's is_contiguous()
// The strides of a row-major tensor without gaps.
MT_INLINE void dense_strides(const Shape& shape, int64_t* stride) {
    int64_t next = 1;
    for (int i = shape.ndim - 1; i >= 0; --i) {
        stride[i] = next;
        next = wrapping_mul(next, shape.dim[i]);  // fits unless another size is 0
    }
}

// Owns a reference until it is released; keeps error paths free of leaks.
class Ref {
public:
    explicit Ref(PyObject* o = nullptr) : o_(o) {}
    ~Ref() { Py_XDECREF(o_); }
    Ref(const Ref&) = delete;
    Ref& operator=(const Ref&) = delete;
    PyObject* get() const { return o_; }
    void reset(PyObject* o) {
        Py_XDECREF(o_);
        o_ = o;
    }
    PyObject* release() {
        PyObject* o = o_;
        o_ = nullptr;
        return o;
    }

private:
    PyObject* o_;
};

// ---------------------------------------------------------------- casts between memory layouts (copy.cpp)

// n elements, strides in BYTES, any dtype pair; dst and src may be the same address. Picks contiguous loops itself.
void cast_strided(char* dst, int64_t dstep, int dcode, const char* src, int64_t sstep, int scode, int64_t n);
// n bytes; the two may overlap.
void move_bytes(char* dst, const char* src, int64_t n);
// n contiguous elements; dst and src do not overlap unless the codes are equal.
void cast_block(char* dst, int dcode, const char* src, int scode, int64_t n);
// Between a contiguous block and a tile of n1 rows of n0 elements with byte steps s0 (within a row) and s1.
void gather_tile(char* dst, const char* src, int64_t s0, int64_t s1, int64_t n0, int64_t n1, int itemsize);
void scatter_tile(char* dst, int64_t s0, int64_t s1, const char* src, int64_t n0, int64_t n1, int itemsize);
// Every element := the itemsize bytes at `value`.
void fill_tensor(const Shape& shape, char* dst, const int64_t* stride, int itemsize, const char* value);
// A Python number as one element of dtype `code` (at most 16 bytes).
void number_into(PyObject* number, int code, char* dst);
// Whole-tensor copy of `shape` with cast, strides in elements, parallel when large (GIL need not be held).
void copy_tensor(const Shape& shape, char* dst, const int64_t* dstride, int dcode, const char* src,
                 const int64_t* sstride, int scode);

// ---------------------------------------------------------------- threads

constexpr int64_t GRAIN = 32768;          // elements of cheap work one thread should at least get
constexpr int64_t GIL_THRESHOLD = 32768;  // below it, giving the GIL away costs more than it gives

int num_threads() noexcept;
// Runs fn(ctx, begin, end) over [0, n) in chunks of at least `grain`. Serial when n <= grain, inside a pool thread, or
// when the pool is busy with another caller. Rethrows the first exception. Threads wait asleep, never spinning.
void parallel_run(int64_t n, int64_t grain, void (*fn)(void*, int64_t, int64_t), void* ctx);
template <class F> MT_INLINE void parallel_for(int64_t n, int64_t grain, F&& f) {
    if (MT_LIKELY(n <= grain)) {
        if (n > 0) f((int64_t)0, n);
        return;
    }
    using Fn = typename std::remove_reference<F>::type;
    parallel_run(n, grain, [](void* c, int64_t b, int64_t e) { (*static_cast<Fn*>(c))(b, e); }, (void*)&f);
}

// Releases the GIL for large work (numel is an estimate of its size in cheap element operations).
class GilRelease {
public:
    explicit GilRelease(int64_t numel) : state_(numel > GIL_THRESHOLD ? PyEval_SaveThread() : nullptr) {}
    ~GilRelease() {
        if (state_) PyEval_RestoreThread(state_);
    }
    GilRelease(const GilRelease&) = delete;
    GilRelease& operator=(const GilRelease&) = delete;

private:
    PyThreadState* state_;
};

// An index. Other threads may write where it lies: it is read once, checked, and only then used.
MT_INLINE int64_t read_once(const void* p) { return __atomic_load_n(static_cast<const int64_t*>(p), __ATOMIC_RELAXED); }

// ---------------------------------------------------------------- registry

struct IntConstant {
    const char* name;
    long value;
};
#define MT_METHOD(name, fn, doc) \
    {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(fn)), METH_FASTCALL, doc}

}  // namespace mt

// Every family file defines its array, ended by a null entry; module.cpp joins them.
extern PyMethodDef storage_methods[], allocator_methods[], threads_methods[], copy_methods[], pointwise_methods[],
    reduce_methods[], nn_methods[], index_methods[], matmul_methods[], scalars_methods[], random_methods[],
    window_methods[], cpu_methods[];
extern const mt::IntConstant pointwise_constants[], reduce_constants[], nn_constants[], index_constants[],
    matmul_constants[];

#pragma GCC visibility pop
