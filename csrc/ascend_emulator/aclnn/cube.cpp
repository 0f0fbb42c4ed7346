// The matrix unit: which types it takes on which chip, how it rounds, how operands are matched.
#include "cube.h"

namespace emu {

namespace {

enum CubeMath : int64_t { kKeep = 0, kDown = 1, kHalf = 2, kHf32 = 3, kFloatAdd = 4 };

bool has_float_unit() { return settings().chip == Chip::k910B || settings().chip == Chip::k950; }

}  // namespace

void plan_cube(const Plan& p, int dtype, int64_t math) {
    const char* chip = chip_name(settings().chip);
    p.require(math >= kKeep && math <= kFloatAdd, "cubeMathType is %lld, expected 0 to 4",
              static_cast<long long>(math));
    if (has_float_unit()) {
        p.require(!(math == kHalf && dtype == ACL_BF16), "cubeMathType 2 (USE_FP16) does not take BF16");
        p.require(!(math == kHf32 && dtype != ACL_FLOAT && is_real(dtype)),
                  "cubeMathType 3 (USE_HF32) takes FLOAT, got %s", dtype_name(dtype));
    } else {
        p.require(dtype != ACL_BF16, "this chip (%s) has no BF16", chip);
        p.require(math != kHf32, "cubeMathType 3 (USE_HF32) is not supported on this chip (%s)", chip);
        p.require(!(math == kKeep && dtype == ACL_FLOAT),
                  "the matrix unit of this chip (%s) cannot compute FLOAT: cubeMathType 0 (KEEP_DTYPE) is not supported",
                  chip);
    }
}

int plan_cube(const Plan& p, const Tensor& a, const Tensor& b, int64_t math) {
    int dtype = promote(a.dtype, b.dtype);
    p.require(dtype != ACL_DT_UNDEFINED && (a.dtype == b.dtype || (a.dtype != ACL_BF16 && b.dtype != ACL_BF16)),
              "operands of dtype %s and %s cannot be multiplied", dtype_name(a.dtype), dtype_name(b.dtype));
    plan_cube(p, dtype, math);
    return dtype;
}

void cube_round(std::vector<double>& values, int dtype, int64_t math) {
    bool half = dtype == ACL_FLOAT16 || math == kHalf || (math == kDown && !has_float_unit());
    if (dtype == ACL_BF16 || !is_real(dtype)) return;
    if (half)
        for (double& v : values) v = half_to_float(double_to_half(v));
    else if (dtype == ACL_FLOAT && (math == kDown || math == kHf32))
        // HFLOAT32: the exponent of FLOAT and 11 bits of fraction.
        for (double& v : values) v = round_to(v, 12, -125, 3.4028234663852886e38);
}

bool product_of(const Dims& a, const Dims& b, Product* out) {
    if (a.n == 0 || b.n == 0) return false;
    Product p;
    p.rows = a.n == 1 ? 1 : a[a.n - 2];
    p.inner = a.back();
    p.columns = b.n == 1 ? 1 : b.back();
    if ((b.n == 1 ? b[0] : b[b.n - 2]) != p.inner) return false;
    Dims left(a.v.data(), uint64_t(a.n > 2 ? a.n - 2 : 0)), right(b.v.data(), uint64_t(b.n > 2 ? b.n - 2 : 0)), batch;
    if (!broadcast(left, right, &batch)) return false;
    p.batch = batch.product();
    for (int64_t n = 0; n < p.batch; ++n) {
        int64_t rest = n, at[2] = {0, 0}, step[2] = {1, 1};
        for (int d = 1; d <= batch.n; ++d) {
            int64_t place = rest % batch[batch.n - d];
            rest /= batch[batch.n - d];
            const Dims* side[2] = {&left, &right};
            for (int s = 0; s < 2; ++s) {
                if (d > side[s]->n) continue;
                int64_t size = (*side[s])[side[s]->n - d];
                if (size != 1) at[s] += place * step[s];
                step[s] *= size;
            }
        }
        p.first.push_back(at[0]);
        p.second.push_back(at[1]);
    }
    p.out = batch;
    if (a.n > 1) p.out.push(p.rows);
    if (b.n > 1) p.out.push(p.columns);
    *out = p;
    return true;
}

}  // namespace emu
