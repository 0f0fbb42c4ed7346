// Checks of pointwise functions.
#include "elementwise.h"

namespace emu {

Category compute_category(int dtype, unsigned types) {
    Category c = category(dtype);
    if (c == Category::Integer && !(types & kInteger)) c = Category::Real;
    if (c == Category::Complex && !(types & kComplex)) c = Category::Real;
    return c;
}

Operand operand(const Call& call, int place) {
    const Value& v = call.values[size_t(place)];
    const Parameter& p = call.function->parameters[place];
    if (!v.given) refuse(ACLNN_ERR_INNER_NULLPTR, "%s is null", p.name);
    Operand o;
    if (p.role == Role::tensor) o.tensor = &v.tensor;
    else o.scalar = &v.scalar;
    return o;
}

int promoted(const Call& call, int operands) {
    int dtype = ACL_DT_UNDEFINED;
    for (int i = 0; i < operands; ++i)
        if (const Tensor* t = operand(call, i).tensor) dtype = dtype == ACL_DT_UNDEFINED ? t->dtype : promote(dtype, t->dtype);
    for (int i = 0; i < operands; ++i)
        if (const Scalar* s = operand(call, i).scalar) dtype = promote_scalar(dtype, s->dtype);
    return dtype;
}

namespace {

void casts_into_output(Plan& p, int from) {
    int into = p.output().dtype;
    p.require(castable(from, into), "the result has dtype %s, which cannot be cast to %s, the dtype of the output",
              dtype_name(from), dtype_name(into));
}

}  // namespace

void plan_unary(Plan& p, unsigned types) {
    const Tensor& in = p.input();
    const Tensor& out = p.output();
    p.require(in.dims == out.dims, "the output has shape %s, expected %s", text(out.dims).c_str(),
              text(in.dims).c_str());
    bool float_valued = !(types & kInteger) && is_integer(in.dtype);
    // |x| of a complex tensor is real: the output says so.
    if (!(is_complex(in.dtype) && is_real(out.dtype))) casts_into_output(p, float_valued ? int(ACL_FLOAT) : in.dtype);
}

void plan_predicate(Plan& p) {
    const Dims& want = p.input().dims;
    p.require(p.output().dims == want, "the output has shape %s, expected %s", text(p.output().dims).c_str(),
              text(want).c_str());
}

void plan_operands(Plan& p, int operands, bool gives_bool) {
    Dims shape;
    for (int i = 0; i < operands; ++i) {
        Operand o = operand(p, i);
        if (!o.tensor) continue;
        Dims next;
        p.require(broadcast(shape, o.tensor->dims, &next), "shapes %s and %s do not broadcast", text(shape).c_str(),
                  text(o.tensor->dims).c_str());
        shape = next;
    }
    p.require(p.output().dims == shape, "the output has shape %s, expected %s", text(p.output().dims).c_str(),
              text(shape).c_str());
    int dtype = promoted(p, operands);
    p.require(dtype != ACL_DT_UNDEFINED, "the dtypes of the operands do not promote");
    if (!gives_bool) casts_into_output(p, dtype);
}

}  // namespace emu
