// Sizes of weights in private formats, asked on the host before memory is allocated, counted in elements; and scales packed
// there.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "../aclnn/executor.h"
#include "objects.h"

using namespace emu;

namespace {

int refused(int code, const char* by, const char* what) {
    say("%s: %s", by, what);
    return code;
}

int weight_size(const aclIntArray* shape, int dtype, uint64_t* size, const char* by) {
    if (int code = enter(by)) return code;
    if (shape == nullptr || size == nullptr)
        return refused(ACLNN_ERR_PARAM_NULLPTR, by, "tensorShape and weightTensorSize must not be null");
    auto dims = handles().find<Array<int64_t>>(Kind::int_array, shape, by);
    if (!dims) return ACLNN_ERR_INNER_NULLPTR;
    size_t rank = dims->values.size();
    if (rank < 2 || rank > 6) return refused(ACLNN_ERR_PARAM_INVALID, by, "tensorShape must have 2 to 6 dimensions");
    if (dtype != ACL_FLOAT16 && dtype != ACL_BF16 && dtype != ACL_INT8)
        return refused(ACLNN_ERR_PARAM_INVALID, by, "dataType must be FLOAT16, BF16 or INT8");
    for (int64_t n : dims->values)
        if (n < 0 || n > INT32_MAX)
            return refused(ACLNN_ERR_PARAM_INVALID, by, "tensorShape has a size below 0 or past INT32_MAX");
    Dims blocks = block_dims(Dims(dims->values.data(), rank), block_width(ACL_FORMAT_FRACTAL_NZ, dtype));
    uint64_t total = 1;
    for (int64_t n : blocks)
        if (__builtin_mul_overflow(total, uint64_t(n), &total))
            return refused(ACLNN_ERR_PARAM_INVALID, by, "tensorShape is too large");
    *size = total;
    return 0;
}

// The format whose blocks are so many elements wide.
int format_of_width(int64_t width, int dtype) {
    if (width == block_width(ACL_FORMAT_FRACTAL_NZ, dtype)) return ACL_FORMAT_FRACTAL_NZ;
    for (int format = ACL_FORMAT_FRACTAL_NZ_C0_16; format <= ACL_FORMAT_FRACTAL_NZ_C0_8; ++format)
        if (block_width(format, dtype) == width) return format;
    return ACL_FORMAT_UNDEFINED;
}

}  // namespace

extern "C" {

EMU_API aclnnStatus aclnnCalculateMatmulWeightSize(const aclIntArray* tensorShape, uint64_t* weightTensorSize) {
    return weight_size(tensorShape, ACL_FLOAT16, weightTensorSize, "aclnnCalculateMatmulWeightSize");
}

EMU_API aclnnStatus aclnnCalculateMatmulWeightSizeV2(const aclIntArray* tensorShape, aclDataType dataType,
                                                     uint64_t* weightTensorSize) {
    return weight_size(tensorShape, dataType, weightTensorSize, "aclnnCalculateMatmulWeightSizeV2");
}

// The caller frees *dstShape with delete[].
EMU_API aclnnStatus aclnnNpuFormatCastCalculateSizeAndFormat(const aclTensor* srcTensor, const int dstFormat,
                                                             const int additionalDtype, int64_t** dstShape,
                                                             uint64_t* dstShapeSize, int* actualFormat) {
    const char* by = "aclnnNpuFormatCastCalculateSizeAndFormat";
    if (int code = enter(by)) return code;
    if (srcTensor == nullptr || dstShape == nullptr || dstShapeSize == nullptr || actualFormat == nullptr)
        return refused(ACLNN_ERR_PARAM_NULLPTR, by, "no argument may be null");
    auto found = handles().find<Tensor>(Kind::tensor, srcTensor, by);
    if (!found) return ACLNN_ERR_INNER_NULLPTR;
    const Tensor& t = *found;
    Dims dims = t.dims;
    if (dstFormat == ACL_FORMAT_FRACTAL_NZ) {
        if (dims.n < 2 || dims.n > 6)
            return refused(ACLNN_ERR_PARAM_INVALID, by, "srcTensor must have 2 to 6 dimensions");
        int item = additionalDtype >= 0 && bytes_for(additionalDtype, 2) > 0 ? additionalDtype : t.dtype;
        int64_t width = block_width(ACL_FORMAT_FRACTAL_NZ, item);
        *actualFormat = format_of_width(width, t.dtype);
        if (*actualFormat == ACL_FORMAT_UNDEFINED)
            return refused(ACLNN_ERR_PARAM_INVALID, by, "no format has blocks for this additionalDtype");
        dims = block_dims(dims, width);
    } else if (dstFormat == ACL_FORMAT_ND) {
        *actualFormat = ACL_FORMAT_ND;
    } else {
        return refused(ACLNN_ERR_PARAM_INVALID, by, "dstFormat: the emulator casts between ND and FRACTAL_NZ");
    }
    *dstShape = new int64_t[size_t(dims.n)];
    for (int i = 0; i < dims.n; ++i) (*dstShape)[i] = dims[i];
    *dstShapeSize = uint64_t(dims.n);
    return 0;
}

// The matrix unit's own form of scales, made on the host: a float of 19 bits, an offset of 9 and a mark. The caller frees
// *quantParam with delete[].
EMU_API aclnnStatus aclnnTransQuantParam(const float* scaleArray, uint64_t scaleSize, const float* offsetArray,
                                         uint64_t offsetSize, uint64_t** quantParam, uint64_t* quantParamSize) {
    const char* by = "aclnnTransQuantParam";
    if (int code = enter(by)) return code;
    if (scaleArray == nullptr || quantParam == nullptr || quantParamSize == nullptr)
        return refused(ACLNN_ERR_PARAM_NULLPTR, by, "scaleArray, quantParam and quantParamSize must not be null");
    uint64_t size = std::max(scaleSize, offsetArray == nullptr ? 0 : offsetSize);
    if (scaleSize == 0 || size > INT32_MAX || (scaleSize != 1 && scaleSize != size))
        return refused(ACLNN_ERR_PARAM_INVALID, by, "scaleSize does not fit");
    if (offsetArray != nullptr && offsetSize != 1 && offsetSize != size)
        return refused(ACLNN_ERR_PARAM_INVALID, by, "offsetSize does not fit");
    *quantParam = new uint64_t[size];
    *quantParamSize = size;
    for (uint64_t i = 0; i < size; ++i) {
        uint32_t bits;
        std::memcpy(&bits, scaleArray + (scaleSize == 1 ? 0 : i), sizeof bits);
        float offset = offsetArray == nullptr ? 0 : offsetArray[offsetSize == 1 ? 0 : i];
        auto whole = int64_t(std::fmin(std::fmax(std::nearbyint(double(offset)), -256), 255));
        (*quantParam)[i] = uint64_t(bits & 0xFFFFE000u) | uint64_t(whole & 0x1FF) << 37 | uint64_t(1) << 46;
    }
    return 0;
}

}  // extern "C"
