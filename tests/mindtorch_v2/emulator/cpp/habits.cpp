// What programs that were written beside a device do: nothing here is refused.
#include <cstdio>
#include <memory>
#include <vector>

#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "aclnn/opdev/bfloat16.h"
#include "aclnn_add.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_grouped_matmul.h"
#include "aclnnop/level2/aclnn_relu.h"
#include "opdev/fp16_t.h"

#define CHECK_RET(holds, otherwise) \
    do { \
        if (!(holds)) { otherwise; } \
    } while (0)
#define LOG_PRINT(message, ...) \
    do { printf(message, ##__VA_ARGS__); } while (0)
#define MUST(call) \
    do { \
        auto code_ = (call); \
        if (code_ != 0) { \
            const char* said = aclGetRecentErrMsg(); \
            LOG_PRINT("%s failed. ERROR: %d\n[ERROR msg]%s\n", #call, int(code_), said ? said : "none"); \
            return 1; \
        } \
    } while (0)

static int64_t GetShapeSize(const std::vector<int64_t>& shape) {
    int64_t size = 1;
    for (auto i : shape) size *= i;
    return size;
}

template <class T>
static int CreateAclTensor(const std::vector<T>& host, const std::vector<int64_t>& shape, void** address,
                           aclDataType type, aclTensor** tensor, aclFormat format = ACL_FORMAT_ND,
                           aclrtMemMallocPolicy policy = ACL_MEM_MALLOC_HUGE_FIRST, bool strided = true) {
    auto size = GetShapeSize(shape) * sizeof(T);
    MUST(aclrtMalloc(address, size, policy));
    MUST(aclrtMemcpy(*address, size, host.data(), size, ACL_MEMCPY_HOST_TO_DEVICE));
    std::vector<int64_t> strides(shape.size(), 1);
    for (int64_t i = int64_t(shape.size()) - 2; i >= 0; i--) strides[i] = shape[i + 1] * strides[i + 1];
    *tensor = aclCreateTensor(shape.data(), shape.size(), type, strided ? strides.data() : nullptr, 0, format,
                              shape.data(), shape.size(), *address);
    return 0;
}

// Two scalars on the device, a stream with a configuration, a workspace that may be empty, objects destroyed in any order.
static int Add(aclrtStream stream) {
    void *xAddress = nullptr, *yAddress = nullptr, *outAddress = nullptr, *workspace = nullptr;
    aclTensor *x = nullptr, *y = nullptr, *out = nullptr;
    std::vector<op::fp16_t> values{op::fp16_t(1.5f), 2.25, 3}, zeros(3, 0);
    CHECK_RET(CreateAclTensor(values, {3}, &xAddress, ACL_FLOAT16, &x, ACL_FORMAT_ND, ACL_MEM_MALLOC_NORMAL_ONLY) == 0,
              return 1);
    CHECK_RET(
        CreateAclTensor(values, {3}, &yAddress, ACL_FLOAT16, &y, ACL_FORMAT_NCHW == 0 ? ACL_FORMAT_ND : ACL_FORMAT_ND,
                        ACL_MEM_MALLOC_HUGE_ONLY, false) == 0,
        return 1);
    CHECK_RET(CreateAclTensor(zeros, {3}, &outAddress, ACL_FLOAT16, &out) == 0, return 1);
    float one = 1;
    aclScalar* alpha = aclCreateScalar(&one, ACL_FLOAT);
    uint64_t size = 0;
    aclOpExecutor* executor;
    MUST(aclnnAddGetWorkspaceSize(x, y, alpha, out, &size, &executor));
    if (size > 0) MUST(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
    MUST(aclnnAdd(workspace, size, executor, stream));
    MUST(aclrtSynchronizeStreamWithTimeout(stream, 5000));
    std::vector<op::fp16_t> result(3, 0);
    MUST(aclrtMemcpy(result.data(), result.size() * sizeof(result[0]), outAddress, 3 * sizeof(result[0]),
                     ACL_MEMCPY_DEVICE_TO_HOST));
    LOG_PRINT("= add %g %g %g\n", float(result[0]), float(result[1]), float(result[2]));
    aclDestroyScalar(alpha);
    for (auto t : {x, y, out}) aclDestroyTensor(t);
    for (auto a : {xAddress, yAddress, outAddress}) aclrtFree(a);
    if (size > 0) aclrtFree(workspace);
    return 0;
}

// Formats, a bias that is null, unique pointers that destroy tensors after the memory is freed.
static int Convolution(aclrtStream stream) {
    void *xAddress = nullptr, *wAddress = nullptr, *outAddress = nullptr, *workspace = nullptr;
    aclTensor *x = nullptr, *w = nullptr, *out = nullptr;
    CHECK_RET(CreateAclTensor(std::vector<float>(18, 1), {1, 2, 3, 3}, &xAddress, ACL_FLOAT, &x, ACL_FORMAT_NCHW) == 0,
              return 1);
    CHECK_RET(CreateAclTensor(std::vector<float>(18, 1), {1, 2, 3, 3}, &wAddress, ACL_FLOAT, &w, ACL_FORMAT_NCHW) == 0,
              return 1);
    CHECK_RET(
        CreateAclTensor(std::vector<float>(1, 0), {1, 1, 1, 1}, &outAddress, ACL_FLOAT, &out, ACL_FORMAT_NCHW) == 0,
        return 1);
    std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor*)> keep(x, aclDestroyTensor),
        keep_w(w, aclDestroyTensor), keep_out(out, aclDestroyTensor);
    std::vector<int64_t> ones{1, 1}, none{0, 0};
    aclIntArray *strides = aclCreateIntArray(ones.data(), 2), *pads = aclCreateIntArray(none.data(), 2),
                *dilations = aclCreateIntArray(ones.data(), 2);
    uint64_t size = 0;
    aclOpExecutor* executor;
    MUST(aclnnConvolutionGetWorkspaceSize(x, w, nullptr, strides, pads, dilations, false, pads, 1, out, 1, &size,
                                          &executor));
    if (size > 0) MUST(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
    MUST(aclnnConvolution(workspace, size, executor, stream));
    MUST(aclrtSynchronizeStream(stream));
    float result = 0;
    MUST(aclrtMemcpy(&result, sizeof result, outAddress, sizeof result, ACL_MEMCPY_DEVICE_TO_HOST));
    LOG_PRINT("= convolution %g\n", result);
    for (auto a : {xAddress, wAddress, outAddress}) aclrtFree(a);
    if (size > 0) aclrtFree(workspace);
    for (auto array : {strides, pads, dilations}) aclDestroyIntArray(array);
    return 0;
}

// Lists, with null for what is not there; BF16 from the host; nothing but the lists is destroyed.
static int Products(aclrtStream stream) {
    void *xAddress = nullptr, *wAddress = nullptr, *outAddress = nullptr, *workspace = nullptr;
    aclTensor *x = nullptr, *w = nullptr, *out = nullptr;
    CHECK_RET(CreateAclTensor(std::vector<op::bfloat16>(6, 2.0f), {2, 3}, &xAddress, ACL_BF16, &x) == 0, return 1);
    CHECK_RET(CreateAclTensor(std::vector<op::bfloat16>(6, 0.5f), {3, 2}, &wAddress, ACL_BF16, &w) == 0, return 1);
    CHECK_RET(CreateAclTensor(std::vector<op::bfloat16>(4, 0), {2, 2}, &outAddress, ACL_BF16, &out) == 0, return 1);
    aclTensorList *xs = aclCreateTensorList(&x, 1), *ws = aclCreateTensorList(&w, 1),
                  *outs = aclCreateTensorList(&out, 1);
    uint64_t size = 0;
    aclOpExecutor* executor;
    MUST(aclnnGroupedMatmulGetWorkspaceSize(xs, ws, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0, outs,
                                            &size, &executor));
    if (size > 0) MUST(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
    MUST(aclnnGroupedMatmul(workspace, size, executor, stream));
    MUST(aclrtSynchronizeStream(stream));
    std::vector<op::bfloat16> result(4, 0);
    MUST(aclrtMemcpy(result.data(), 8, outAddress, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    LOG_PRINT("= products %g %g\n", float(result[0]), float(result[3]));
    for (auto list : {xs, ws, outs}) aclDestroyTensorList(list);
    return 0;
}

// Every number of 16 bits there and back.
static int Numbers() {
    int wrong = 0;
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        float half = op::fp16_t::from_bits(uint16_t(bits)), upper = op::bfloat16::from_bits(uint16_t(bits));
        float vendor = aclFloat16ToFloat(aclFloat16(bits));
        if (half == half)
            wrong += op::fp16_t(half).val != bits || half != vendor ||
                     op::fp16_t(half * 1.0003f).val != aclFloatToFloat16(half * 1.0003f);
        if (upper == upper) wrong += op::bfloat16(upper).value != bits;
    }
    LOG_PRINT("= numbers %d %g %g\n", wrong, float(op::fp16_t(70000.0f)), float(op::bfloat16(1.00390625f)));
    return 0;
}

int main() {
    aclrtContext context;
    aclrtStream stream;
    uint32_t count = 0;
    MUST(aclInit(nullptr));
    MUST(aclrtGetDeviceCount(&count));
    MUST(aclrtSetDevice(0));
    MUST(aclrtSetDevice(0));
    MUST(aclrtCreateContext(&context, 0));
    MUST(aclrtSetCurrentContext(context));
    MUST(aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
    MUST(aclnnInit(nullptr));
    int failed = Add(stream) + Convolution(stream) + Products(stream) + Numbers();
    MUST(aclnnFinalize());
    MUST(aclrtDestroyStream(stream));
    MUST(aclrtDestroyContext(context));
    MUST(aclrtResetDevice(0));
    MUST(aclFinalize());
    return failed;
}
