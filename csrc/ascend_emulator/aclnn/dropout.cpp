// Dropout. A mask has one bit per element, 1 where it is kept, from the lowest bit of the first byte on, and is padded
// to a multiple of 128 bits.
#include "elementwise.h"
#include "philox.h"

using namespace emu;

namespace {

int64_t mask_bytes(int64_t elements) { return (elements + 127) / 128 * 16; }

void check_probability(const Plan& p, const char* name) {
    p.require(p.real(name) >= 0 && p.real(name) <= 1, "%s is %g, expected 0 to 1", name, p.real(name));
}

void check_mask(const Plan& p, const char* name, int64_t elements) {
    p.require(p.tensor(name).numel() == mask_bytes(elements), "%s has shape %s, expected %lld bytes for %lld elements",
              name, text(p.tensor(name).dims).c_str(), static_cast<long long>(mask_bytes(elements)),
              static_cast<long long>(elements));
}

bool kept(const std::vector<int64_t>& mask, size_t i) { return mask[i / 8] >> (i % 8) & 1; }

std::vector<int64_t> draw(const Philox& g, int64_t elements, double dropped) {
    std::vector<int64_t> mask(size_t(mask_bytes(elements)));
    for (size_t i = 0; i < size_t(elements); ++i)
        if (g.uniform(i) >= dropped) mask[i / 8] |= int64_t(1) << (i % 8);
    return mask;
}

void scale_kept(Run& r, const Tensor& from, const std::vector<int64_t>& mask, double scale, const Tensor& to) {
    auto x = r.read<double>(from);
    for (size_t i = 0; i < x.size(); ++i) x[i] = kept(mask, i) ? x[i] * scale : 0;
    r.write(to, x);
}

void plan_dropout(Plan& p) {
    check_probability(p, "p");
    p.same_shape("input", "out");
    p.same_dtype("input", "out");
    check_mask(p, "maskOut", p.tensor("input").numel());
}

// Where nothing is drawn the mask stays as it is.
void run_dropout(Run& r, bool train) {
    const Tensor &in = r.tensor("input"), &out = r.tensor("out");
    double dropped = r.real("p");
    auto x = r.read<double>(in);
    if (!train || dropped == 0) return r.write(out, x);
    if (dropped == 1) return r.write(out, std::vector<double>(x.size()));
    auto mask = draw({uint64_t(r.integer("seed")), uint64_t(r.integer("offset"))}, in.numel(), dropped);
    scale_kept(r, in, mask, 1 / (1 - dropped), out);
    r.write(r.tensor("maskOut"), mask);
}

int64_t elements_of(const Call& call) {
    int64_t n = 1;
    for (int64_t size : call.ints("shape")) n *= size;
    return n;
}

void plan_mask(Plan& p) {
    check_probability(p, "prob");
    for (int64_t size : p.ints("shape"))
        p.require(size >= 0, "shape has the size %lld", static_cast<long long>(size));
    check_mask(p, "out", elements_of(p));
}

void plan_mask_of_type(Plan& p) {
    int dtype = p.dtype("probDataType");
    p.require(dtype == ACL_FLOAT || dtype == ACL_FLOAT16 || dtype == ACL_BF16,
              "probDataType is %s, expected FLOAT, FLOAT16 or BF16", dtype_name(dtype));
    plan_mask(p);
}

void run_mask(Run& r) {
    Philox g{uint64_t(r.integer("seed")), uint64_t(r.integer("offset"))};
    r.write(r.tensor("out"), draw(g, elements_of(r), r.real("prob")));
}

void run_gradient(Run& r, const char* from, const char* to) {
    scale_kept(r, r.tensor(from), r.read<int64_t>(r.tensor("mask")), r.real("scale"), r.tensor(to));
}

void plan_gradient(Plan& p, const char* from, const char* to) {
    p.same_shape(from, to);
    check_mask(p, "mask", p.tensor(from).numel());
}

}  // namespace

ACLNN(aclnnDropout, plan_dropout, RUN { run_dropout(r, r.flag("train")); })
ACLNN(aclnnDropoutV3,
      PLAN {
          p.require(!p.has("optionalNoiseShape"), "optionalNoiseShape must be null");
          p.require(p.integer("offset") % 4 == 0, "offset is %lld, expected a multiple of 4",
                    static_cast<long long>(p.integer("offset")));
          plan_dropout(p);
      },
      RUN { run_dropout(r, true); })
ACLNN(aclnnDropoutGenMask, plan_mask, run_mask)
ACLNN(aclnnDropoutGenMaskV2, plan_mask_of_type, run_mask)
ACLNN(aclnnDropoutGenMaskV2Tensor,
      PLAN {
          for (const char* name : {"seedTensor", "offsetTensor"})
              p.require(p.tensor(name).numel() == 1, "%s has shape %s, expected one element", name,
                        text(p.tensor(name).dims).c_str());
          plan_mask_of_type(p);
      },
      RUN {
          auto seed = r.read<int64_t>(r.tensor("seedTensor")), offset = r.read<int64_t>(r.tensor("offsetTensor"));
          Philox g{uint64_t(seed[0]), uint64_t(offset[0]) + uint64_t(r.integer("offset"))};
          r.write(r.tensor("out"), draw(g, elements_of(r), r.real("prob")));
      })
ACLNN(aclnnDropoutDoMask,
      PLAN {
          check_probability(p, "prob");
          p.same_shape("self", "out");
          check_mask(p, "mask", p.tensor("self").numel());
      },
      RUN {
          double dropped = r.real("prob");
          scale_kept(r, r.tensor("self"), r.read<int64_t>(r.tensor("mask")), dropped == 1 ? 0 : 1 / (1 - dropped),
                     r.tensor("out"));
      })
ACLNN(aclnnDropoutBackward, PLAN { plan_gradient(p, "gradOutput", "out"); },
      RUN { run_gradient(r, "gradOutput", "out"); })
ACLNN(aclnnDropoutV3Grad, PLAN { plan_gradient(p, "gradY", "gradX"); }, RUN { run_gradient(r, "gradY", "gradX"); })

// Here the mask is a tensor like self, not bits.
ACLNN(aclnnMaskedScale,
      PLAN {
          p.same_shape("self", "mask");
          p.same_shape("self", "out");
          p.casts(p.tensor("self").dtype, "out");
      },
      RUN {
          auto x = r.read<double>(r.tensor("self")), mask = r.read<double>(r.tensor("mask"));
          for (size_t i = 0; i < x.size(); ++i) x[i] *= mask[i] * r.real("scale");
          r.write(r.tensor("out"), x);
      })
