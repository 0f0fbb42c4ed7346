// Element-wise sums of a list of tensors, which broadcast.
#include "kernel.h"

using namespace emu;

namespace {

// Tensors that broadcast to out; their dtypes promote to one that can be cast to its dtype.
void plan_list(Plan& p) {
    const auto& tensors = p.tensors("tensors");
    p.require(!tensors.empty(), "tensors is empty");
    Dims shape;
    int dtype = tensors[0].dtype;
    for (const Tensor& t : tensors) {
        shape = broadcast_all(p, {&shape, &t.dims});
        dtype = promote(dtype, t.dtype);
        p.require(dtype != ACL_DT_UNDEFINED, "the dtypes of tensors do not promote");
    }
    p.shape("out", shape);
    p.casts(dtype, "out");
}

void run_list(Run& r) {
    const Tensor& out = r.tensor("out");
    by_category(category(out.dtype), [&](auto zero) {
        using T = decltype(zero);
        std::vector<T> sum(size_t(out.numel()));
        for (const Tensor& t : r.tensors("tensors")) {
            auto x = r.read<T>(t, out.dims);
            for (size_t i = 0; i < sum.size(); ++i) sum[i] += x[i];
        }
        r.write(out, sum);
    });
}

}  // namespace

ACLNN(aclnnSum, PLAN { plan_list(p); }, RUN { run_list(r); })
ACLNN(aclnnSumV2, PLAN { plan_list(p); }, RUN { run_list(r); })
