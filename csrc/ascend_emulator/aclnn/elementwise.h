// One line per pointwise function.
//
//     UNARY_RC(aclnnExp, std::exp(x))                     x is each element of the first input
//     BINARY_RIC(aclnnAdd, a + alpha * b)                 a, b: the first two operands, tensors or scalars; alpha: the
//                                                         third, a scalar, 1 where there is none
// The letters say which types the expression is compiled for: R double, I int64_t, C Complex. A function not compiled
// for integers computes them in double. Operands broadcast and promote by the vendor's tables, and the result is cast to
// the output's dtype (161002 where the tables forbid that). COMPARE_* and PREDICATE_* give BOOL.
// An in-place function (aclnnInplaceExp) is written the same way.
#pragma once

#include "kernel.h"

namespace emu {

enum Types : unsigned { kReal = 1, kInteger = 2, kComplex = 4 };

// The category an element-wise function computes in, given the dtype its operands promote to.
Category compute_category(int dtype, unsigned types);

// An operand by place: a tensor, or a scalar as a 0-dimensional one.
struct Operand {
    const Tensor* tensor = nullptr;
    const Scalar* scalar = nullptr;
};
Operand operand(const Call& call, int place);  // the place-th parameter
int promoted(const Call& call, int operands);  // dtype of the first n operands; ACL_DT_UNDEFINED if they do not

void plan_unary(Plan& p, unsigned types);
void plan_predicate(Plan& p);
// `operands` parameters broadcast and promote; the result goes to the first output.
void plan_operands(Plan& p, int operands, bool gives_bool);

template <class T>
std::vector<T> read_operand(const Run& r, int place, const Dims& shape) {
    Operand o = operand(r, place);
    if (o.tensor) return r.read<T>(*o.tensor, shape);
    return std::vector<T>(size_t(shape.product()), o.scalar->as<T>());
}

template <unsigned types, class F>
void with_category(Category c, F&& f) {
    if constexpr ((types & kComplex) != 0)
        if (c == Category::Complex) return f(Complex{});
    if constexpr ((types & kInteger) != 0)
        if (c == Category::Integer) return f(int64_t{});
    if constexpr ((types & kReal) != 0) f(double{});
}

template <unsigned types, class F>
void run_unary(Run& r, F f) {
    const Tensor& in = r.input();
    const Tensor& out = r.output();
    // A float-valued function of integers, or an output of a wider category, decides together with the input.
    int dtype = promote(in.dtype, out.dtype) == ACL_DT_UNDEFINED ? in.dtype : promote(in.dtype, out.dtype);
    if (is_complex(in.dtype) || !is_complex(dtype)) {
        with_category<types>(compute_category(dtype, types), [&](auto zero) {
            using T = decltype(zero);
            auto x = r.read<T>(in);
            if constexpr (std::is_same_v<decltype(f(zero)), T>) {
                for (auto& v : x) v = f(v);
                r.write(out, x);
            } else {
                std::vector<decltype(f(zero))> y(x.size());
                for (size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]);
                r.write(out, y);
            }
        });
    } else {
        with_category<types>(Category::Real, [&](auto zero) {
            using T = decltype(zero);
            auto x = r.read<T>(in);
            std::vector<decltype(f(zero))> y(x.size());
            for (size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]);
            r.write(out, y);
        });
    }
}

template <unsigned types, class F>
void run_predicate(Run& r, F f) {
    const Tensor& in = r.input();
    with_category<types>(compute_category(in.dtype, types), [&](auto zero) {
        using T = decltype(zero);
        auto x = r.read<T>(in);
        std::vector<int64_t> y(x.size());
        for (size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]) ? 1 : 0;
        r.write(r.output(), y);
    });
}

template <unsigned types, bool gives_bool, class F>
void run_binary(Run& r, F f) {
    const Tensor& out = r.output();
    Category c = compute_category(promoted(r, 2), types);
    with_category<types>(c, [&](auto zero) {
        using T = decltype(zero);
        auto a = read_operand<T>(r, 0, out.dims);
        auto b = read_operand<T>(r, 1, out.dims);
        T alpha = T(1);
        if (r.function->count > 2 && r.function->parameters[2].role == Role::scalar && r.values[2].given)
            alpha = r.values[2].scalar.as<T>();
        if constexpr (gives_bool) {
            std::vector<int64_t> y(a.size());
            for (size_t i = 0; i < a.size(); ++i) y[i] = f(a[i], b[i], alpha) ? 1 : 0;
            r.write(out, y);
        } else {
            for (size_t i = 0; i < a.size(); ++i) a[i] = f(a[i], b[i], alpha);
            r.write(out, a);
        }
    });
}

#define EMU_UNARY(types, name, ...)                                                             \
    ACLNN(name, [](Plan& p) { plan_unary(p, types); }, [](Run& r) {                             \
        run_unary<types>(r, [](auto x) { using T = decltype(x); (void)sizeof(T); return (__VA_ARGS__); }); })
#define EMU_PREDICATE(types, name, ...)                                                         \
    ACLNN(name, [](Plan& p) { plan_predicate(p); }, [](Run& r) {                                \
        run_predicate<types>(r, [](auto x) { using T = decltype(x); (void)sizeof(T); return (__VA_ARGS__); }); })
#define EMU_BINARY(types, gives_bool, name, ...)                                                \
    ACLNN(name, [](Plan& p) { plan_operands(p, 2, gives_bool); }, [](Run& r) {                  \
        run_binary<types, gives_bool>(r, [](auto a, auto b, auto alpha) {                       \
            using T = decltype(a); (void)sizeof(T); (void)alpha; return (__VA_ARGS__); }); })

#define UNARY_R(name, ...) EMU_UNARY(kReal, name, T(__VA_ARGS__))
#define UNARY_RI(name, ...) EMU_UNARY(kReal | kInteger, name, T(__VA_ARGS__))
#define UNARY_RC(name, ...) EMU_UNARY(kReal | kComplex, name, T(__VA_ARGS__))
#define UNARY_RIC(name, ...) EMU_UNARY(kReal | kInteger | kComplex, name, T(__VA_ARGS__))
#define PREDICATE_R(name, ...) EMU_PREDICATE(kReal, name, __VA_ARGS__)
#define PREDICATE_RIC(name, ...) EMU_PREDICATE(kReal | kInteger | kComplex, name, __VA_ARGS__)
#define BINARY_R(name, ...) EMU_BINARY(kReal, false, name, T(__VA_ARGS__))
#define BINARY_RI(name, ...) EMU_BINARY(kReal | kInteger, false, name, T(__VA_ARGS__))
#define BINARY_RC(name, ...) EMU_BINARY(kReal | kComplex, false, name, T(__VA_ARGS__))
#define BINARY_RIC(name, ...) EMU_BINARY(kReal | kInteger | kComplex, false, name, T(__VA_ARGS__))
#define COMPARE_RI(name, ...) EMU_BINARY(kReal | kInteger, true, name, __VA_ARGS__)
#define COMPARE_RIC(name, ...) EMU_BINARY(kReal | kInteger | kComplex, true, name, __VA_ARGS__)

}  // namespace emu
