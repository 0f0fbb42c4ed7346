// Range kernels for two and three operands, made from an operator struct. `#pragma GCC ivdep` says that no element
// depends on another one: the output may be exactly one of the inputs, which an alias check would send down the
// unvectorised way.
#pragma once
#include "pointwise.h"

namespace mt {
namespace {

// An operator may have `slow(a, b)` and `needs_slow(a, b)` for arguments that its fast formula does not cover; a
// stretch with one such pair is done wholly by slow().
template <class Op, class T, class = void> struct HasSlow : std::false_type {};
template <class Op, class T>
struct HasSlow<Op, T, decltype((void)std::declval<Op>().needs_slow(T(), T()))> : std::true_type {};

template <class Op, class T, class R>
MT_INLINE void range_vv(char* out, const char* a, const char* b, int64_t n, Params& p) {
    R* o = reinterpret_cast<R*>(out);
    const T *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b);
    Op op(p, T());
    if constexpr (HasSlow<Op, T>::value) {
        constexpr int64_t STEP = 256;
        for (int64_t at = 0; at < n; at += STEP) {
            const int64_t end = n - at < STEP ? n : at + STEP;
            int slow = 0;
            for (int64_t i = at; i < end; ++i) slow |= op.needs_slow(x[i], y[i]);
            if (MT_UNLIKELY(slow)) {
                for (int64_t i = at; i < end; ++i) o[i] = (R)op.slow(x[i], y[i]);
            } else {
#pragma GCC ivdep
                for (int64_t i = at; i < end; ++i) o[i] = (R)op.run(x[i], y[i]);
            }
        }
    } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = (R)op.run(x[i], y[i]);
    }
    op.finish(p);
}
template <class Op, class T, class R>
MT_INLINE void range_vs(char* out, const char* a, const char* b, int64_t n, Params& p) {
    R* o = reinterpret_cast<R*>(out);
    const T* x = reinterpret_cast<const T*>(a);
    const T y = *reinterpret_cast<const T*>(b);
    Op op(p, T());
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = (R)op.run(x[i], y);
    op.finish(p);
}
template <class Op, class T, class R>
MT_INLINE void range_sv(char* out, const char* a, const char* b, int64_t n, Params& p) {
    R* o = reinterpret_cast<R*>(out);
    const T x = *reinterpret_cast<const T*>(a);
    const T* y = reinterpret_cast<const T*>(b);
    Op op(p, T());
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = (R)op.run(x, y[i]);
    op.finish(p);
}
template <class Op, class T>
MT_INLINE void range_vvv(char* out, const char* a, const char* b, const char* c, int64_t n, Params& p) {
    T* o = reinterpret_cast<T*>(out);
    const T *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b), *z = reinterpret_cast<const T*>(c);
    Op op(p, T());
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = op.run(x[i], y[i], z[i]);
}

// Hot operators have their own loops for a broadcast operand; for the others it is expanded into a block.
template <class Op, class T> void enter_hot(int op) {
    kernels.binary[op - BINARY_BEGIN][NativeOf<T>::value] = {
        leveled<range_vv<Op, T, T>>(), leveled<range_vs<Op, T, T>>(), leveled<range_sv<Op, T, T>>(), CodeOf<T>::value};
}
template <class Op, class T> void enter_cold(int op) {
    kernels.binary[op - BINARY_BEGIN][NativeOf<T>::value] = {leveled<range_vv<Op, T, T>>(), nullptr, nullptr,
                                                             CodeOf<T>::value};
}
template <class Op, class T> void enter_compare(int op) {
    kernels.binary[op - BINARY_BEGIN][NativeOf<T>::value] = {leveled<range_vv<Op, T, uint8_t>>(),
                                                             leveled<range_vs<Op, T, uint8_t>>(), nullptr, BOOL};
}
template <class Op, class T> void enter_ternary(int op) {
    kernels.ternary[op - TERNARY_BEGIN][NativeOf<T>::value] = {leveled<range_vvv<Op, T>>(), CodeOf<T>::value};
}

// Operators without state.
struct Stateless {
    template <class T> MT_INLINE Stateless(const Params&, T) {}
    MT_INLINE void finish(Params&) const {}
};
#define MT_BINARY(name, expression) \
    struct name : Stateless { \
        using Stateless::Stateless; \
        template <class T> MT_INLINE auto run(T a, T b) const { return expression; } \
    };

}  // namespace
}  // namespace mt
