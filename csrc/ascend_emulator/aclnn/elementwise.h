// One line per pointwise function.
//
//     UNARY_RC(aclnnExp, std::exp(x))            x: each element of the first input tensor
//     BINARY_RIC(aclnnAdd, a + k[0] * b)         a, b: the first two parameters, each a tensor or a scalar
//     MAP_TWO_R(aclnnMishBackward, ...)          a, b: the first two input tensors, wherever they stand
//     MAP_THREE_RI(aclnnAddcmul, ...)            a, b, c: the first three
//
// k[i] is the i-th of the other parameters that are numbers (scalars, integers, floats, flags), in their order. The
// letters say which types the formula is compiled for: R double, I int64_t, C Complex. Where integers are not, they
// are computed as FLOAT. Operands broadcast and promote by the vendor's tables; the result is what the promoted dtype
// holds, cast to the output's dtype (161002 where the tables forbid that). COMPARE_* and PREDICATE_* give BOOL, which
// may be stored in any dtype. BOTH(UNARY_RC, aclnnExp, aclnnInplaceExp, ...) writes a function and its in-place form.
#pragma once

#include <vector>

#include "kernel.h"

namespace emu {

// -- values as a dtype holds them ------------------------------------------------------------------------------------
template <class T>
T narrow(T x, int dtype) {
    unsigned char bytes[16];
    store<T>(bytes, dtype, x);
    return load<T>(bytes, dtype);
}

// A scalar that takes part in arithmetic on `dtype`: 16-bit floats are computed as FLOAT, and so are their scalars.
template <class T>
T scalar_value(const Scalar& s, int dtype) {
    if (dtype == ACL_FLOAT16 || dtype == ACL_BF16) dtype = ACL_FLOAT;
    return narrow<T>(s.as<T>(), dtype);
}

// -- formulas --------------------------------------------------------------------------------------------------------
template <class T>
using Formula = T (*)(const T* v, const T* k);

struct Pointwise {
    Formula<double> real;
    Formula<int64_t> integer;
    Formula<Complex> complex;
    int operands;
    bool by_place;    // the operands are the first parameters; otherwise the first input tensors
    bool gives_bool;
};

// Which parameters the operands are.
std::vector<int> operand_places(const Call& call, const Pointwise& f);
// The dtype they are computed in; 161002 when they do not promote or there is no formula for it.
int compute_dtype(const Call& call, const Pointwise& f);
void plan_pointwise(Plan& p, const Pointwise& f);
void run_pointwise(Run& r, const Pointwise& f);

// -- parts of checks shared with functions that are not one formula --------------------------------------------------
int promoted(const Call& call, const std::vector<int>& places);  // ACL_DT_UNDEFINED where they do not
void casts_into(const Plan& p, int from, const Tensor& to);
// 161002 where the documents want one dtype and it is not.
void check_same_dtypes(const Plan& p);

template <class T>
std::vector<T> read_operand(const Run& r, int place, const Dims& shape, int dtype, bool compared = false) {
    const Value& v = r.values[size_t(place)];
    if (r.function->parameters[place].role == Role::tensor) {
        std::vector<T> x = r.read<T>(v.tensor, shape);
        // Only integers among floats can hold more than the dtype they are converted to.
        if (is_integer(v.tensor.dtype) && !is_integer(dtype))
            for (T& one : x) one = narrow<T>(one, dtype);
        return x;
    }
    T one = compared ? narrow<T>(v.scalar.as<T>(), dtype) : scalar_value<T>(v.scalar, dtype);
    return std::vector<T>(size_t(shape.product()), one);
}

}  // namespace emu

#define EMU_FORMULA(type, names, ...)                                                                     \
    [](const type* v, const type* k) -> type {                                                            \
        using T = type;                                                                                   \
        (void)k;                                                                                          \
        (void)sizeof(T);                                                                                  \
        names return T(__VA_ARGS__);                                                                      \
    }
#define EMU_ONE auto x = v[0];
#define EMU_TWO auto a = v[0]; auto b = v[1];
#define EMU_THREE auto a = v[0]; auto b = v[1]; auto c = v[2];
#define EMU_R(names, ...) EMU_FORMULA(double, names, __VA_ARGS__), nullptr, nullptr
#define EMU_I(names, ...) nullptr, EMU_FORMULA(int64_t, names, __VA_ARGS__), nullptr
#define EMU_RI(names, ...) EMU_FORMULA(double, names, __VA_ARGS__), EMU_FORMULA(int64_t, names, __VA_ARGS__), nullptr
#define EMU_RC(names, ...)                                                                                \
    EMU_FORMULA(double, names, __VA_ARGS__), nullptr, EMU_FORMULA(::emu::Complex, names, __VA_ARGS__)
#define EMU_RIC(names, ...)                                                                               \
    EMU_FORMULA(double, names, __VA_ARGS__), EMU_FORMULA(int64_t, names, __VA_ARGS__),                    \
        EMU_FORMULA(::emu::Complex, names, __VA_ARGS__)

#define POINTWISE(name, ...)                                                                              \
    static const ::emu::Pointwise pointwise_##name = {__VA_ARGS__};                                       \
    ACLNN(name, [](::emu::Plan& p) { plan_pointwise(p, pointwise_##name); },                              \
          [](::emu::Run& r) { run_pointwise(r, pointwise_##name); })
#define BOTH(kind, name, in_place, ...) kind(name, __VA_ARGS__) kind(in_place, __VA_ARGS__)

#define UNARY_R(name, ...) POINTWISE(name, EMU_R(EMU_ONE, __VA_ARGS__), 1, false, false)
#define UNARY_RI(name, ...) POINTWISE(name, EMU_RI(EMU_ONE, __VA_ARGS__), 1, false, false)
#define UNARY_RC(name, ...) POINTWISE(name, EMU_RC(EMU_ONE, __VA_ARGS__), 1, false, false)
#define UNARY_RIC(name, ...) POINTWISE(name, EMU_RIC(EMU_ONE, __VA_ARGS__), 1, false, false)
#define PREDICATE_R(name, ...) POINTWISE(name, EMU_R(EMU_ONE, __VA_ARGS__), 1, false, true)
#define PREDICATE_RI(name, ...) POINTWISE(name, EMU_RI(EMU_ONE, __VA_ARGS__), 1, false, true)
#define PREDICATE_RIC(name, ...) POINTWISE(name, EMU_RIC(EMU_ONE, __VA_ARGS__), 1, false, true)
#define BINARY_R(name, ...) POINTWISE(name, EMU_R(EMU_TWO, __VA_ARGS__), 2, true, false)
#define BINARY_I(name, ...) POINTWISE(name, EMU_I(EMU_TWO, __VA_ARGS__), 2, true, false)
#define BINARY_RI(name, ...) POINTWISE(name, EMU_RI(EMU_TWO, __VA_ARGS__), 2, true, false)
#define BINARY_RC(name, ...) POINTWISE(name, EMU_RC(EMU_TWO, __VA_ARGS__), 2, true, false)
#define BINARY_RIC(name, ...) POINTWISE(name, EMU_RIC(EMU_TWO, __VA_ARGS__), 2, true, false)
#define COMPARE_RI(name, ...) POINTWISE(name, EMU_RI(EMU_TWO, __VA_ARGS__), 2, true, true)
#define COMPARE_RIC(name, ...) POINTWISE(name, EMU_RIC(EMU_TWO, __VA_ARGS__), 2, true, true)
#define MAP_TWO_R(name, ...) POINTWISE(name, EMU_R(EMU_TWO, __VA_ARGS__), 2, false, false)
#define MAP_TWO_RI(name, ...) POINTWISE(name, EMU_RI(EMU_TWO, __VA_ARGS__), 2, false, false)
#define MAP_TWO_RC(name, ...) POINTWISE(name, EMU_RC(EMU_TWO, __VA_ARGS__), 2, false, false)
#define MAP_THREE_R(name, ...) POINTWISE(name, EMU_R(EMU_THREE, __VA_ARGS__), 3, false, false)
#define MAP_THREE_RI(name, ...) POINTWISE(name, EMU_RI(EMU_THREE, __VA_ARGS__), 3, false, false)
