// What some attentions want to be told beforehand: how their work is divided among the cores of a chip.
//
// The content is between the vendor's functions and not described. An emulated device has one core: the division is a block
// of zeros, which the functions that take one accept and do not look into.
#include "optional.h"

using namespace emu;

namespace {

const char* block(const Call& c) { return has_parameter(c, "metadata") ? "metadata" : "metaData"; }

void plan_schedule(Plan& p) {
    const Tensor& out = p.tensor(block(p));
    p.require(out.dtype == ACL_INT32, "%s has dtype %s, expected INT32", block(p), dtype_name(out.dtype));
    p.require(out.numel() > 0, "%s is empty", block(p));
    for (int i = 0; i < p.function->count; ++i) {
        const Parameter& q = p.function->parameters[i];
        if (q.role == Role::integer && std::strstr(q.name, "numHeads") == q.name)
            p.require(p.values[size_t(i)].integer > 0, "%s is %lld", q.name, static_cast<long long>(p.values[size_t(i)].integer));
        if (q.role == Role::tensor && !q.output && p.values[size_t(i)].given)
            p.require(is_integer(p.values[size_t(i)].tensor.dtype), "%s has dtype %s, expected lengths", q.name, dtype_name(p.values[size_t(i)].tensor.dtype));
    }
}

void run_schedule(Run& r) { r.write(r.tensor(block(r)), std::vector<int64_t>(size_t(r.tensor(block(r)).numel()), 0)); }

}  // namespace

ACLNN(aclnnFlashAttnMetadata, plan_schedule, run_schedule)
ACLNN(aclnnKvQuantSparseAttnSharedkvMetadata, plan_schedule, run_schedule)
ACLNN(aclnnKvQuantSparseFlashAttentionMetadata, plan_schedule, run_schedule)
ACLNN(aclnnLightningIndexerV2Metadata, plan_schedule, run_schedule)
ACLNN(aclnnMixedQuantSparseFlashMlaMetadata, plan_schedule, run_schedule)
ACLNN(aclnnQuantBlockSparseAttnMetadata, plan_schedule, run_schedule)
ACLNN(aclnnQuantLightningIndexerMetadata, plan_schedule, run_schedule)
ACLNN(aclnnQuantLightningIndexerV2Metadata, plan_schedule, run_schedule)
ACLNN(aclnnQuantSalsIndexerMetadata, plan_schedule, run_schedule)
ACLNN(aclnnSparseAttnSharedkvMetadata, plan_schedule, run_schedule)
ACLNN(aclnnSparseFlashMlaMetadata, plan_schedule, run_schedule)
ACLNN(aclnnSparseLightningIndexerKLLossGradMetadata, plan_schedule, run_schedule)
