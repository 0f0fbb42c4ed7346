// Weights in the matrix unit's own layout: between ND and FRACTAL_NZ, and packed into four bits.
//
// The layout is the one the documents draw: columns of blocks of 16 rows and 32 bytes. aclnnTransMatmulWeight works in
// place: from its first phase on the tensor it was given is one in FRACTAL_NZ.
#include "quantize.h"

using namespace emu;

namespace {

void plan_cast(Plan& p) {
    const Tensor &from = p.tensor("srcTensor"), &to = p.tensor("dstTensor");
    p.same_dtype("srcTensor", "dstTensor");
    auto known = [](const Tensor& t) { return is_blocked(t.format) || t.format == ACL_FORMAT_ND || t.format == ACL_FORMAT_NCL; };
    p.require(known(from) && known(to), "the emulator casts between ND and FRACTAL_NZ");
    bool fits = from.dims.n == to.dims.n;
    for (int i = 0; i < from.dims.n && fits; ++i) fits = from.dims[i] <= to.dims[i] || from.dims[i] == to.dims[i];
    p.require(fits, "srcTensor has shape %s, dstTensor %s", text(from.dims).c_str(), text(to.dims).c_str());
    bool whole = to.dims == from.dims;
    p.require(whole || is_blocked(to.format), "srcTensor has shape %s, dstTensor %s", text(from.dims).c_str(), text(to.dims).c_str());
}

void run_cast(Run& r) {
    const Tensor& from = r.tensor("srcTensor");
    Tensor to = r.tensor("dstTensor");
    if (to.dims != from.dims) {  // the view has the sizes of the blocks: what they hold is smaller
        to.dims = to.blocked = from.dims;
        to.strides = contiguous_strides(to.dims);
    }
    by_category(category(from.dtype), [&](auto zero) { r.write(to, r.read<decltype(zero)>(from)); });
}

Tensor in_blocks(Tensor t) {
    t.format = ACL_FORMAT_FRACTAL_NZ;
    t.strides = contiguous_strides(t.dims);
    t.blocked = t.dims;
    return t;
}

void plan_trans(Plan& p) {
    const Tensor& t = p.tensor("mmWeightRef");
    p.require(!is_blocked(t.format), "mmWeightRef is in FRACTAL_NZ already");
    p.require(t.contiguous(), "mmWeightRef must be contiguous");
    auto given = handles().find<Tensor>(Kind::tensor, t.handle, "aclnnTransMatmulWeightGetWorkspaceSize");
    if (given) {
        given->format = ACL_FORMAT_FRACTAL_NZ;
        given->storage = block_dims(t.dims, block_width(ACL_FORMAT_FRACTAL_NZ, t.dtype));
    }
    p.workspace = uint64_t(bytes_for(t.dtype, t.numel()));
}

void run_trans(Run& r) {
    const Tensor& t = r.tensor("mmWeightRef");
    by_category(category(t.dtype), [&](auto zero) { r.write(in_blocks(t), r.read<decltype(zero)>(t)); });
}

void plan_pack(Plan& p) {
    const Tensor &from = p.tensor("weight"), to = half_bytes(p.tensor("weightInt4Pack"));
    p.require(from.contiguous() && to.contiguous(), "weight and weightInt4Pack must be contiguous");
    p.require(from.dims == to.dims && to.dims.back() % 2 == 0, "weight has shape %s, weightInt4Pack holds %s integers of 4 bits",
              text(from.dims).c_str(), text(to.dims).c_str());
}

void run_pack(Run& r) {
    auto x = r.read<int64_t>(r.tensor("weight"));
    for (int64_t v : x)
        if (v < -8 || v > 7) fault("weight holds %lld, expected -8 to 7", static_cast<long long>(v));
    r.write(half_bytes(r.tensor("weightInt4Pack")), x);
}

}  // namespace

ACLNN(aclnnNpuFormatCast, plan_cast, run_cast)
ACLNN(aclnnTransMatmulWeight, plan_trans, run_trans)
ACLNN(aclnnConvertWeightToINT4Pack, plan_pack, run_pack, NARROW)
