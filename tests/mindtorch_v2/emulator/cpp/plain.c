/* The same interface from C. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "ascend_emulator.h"

#define CHECK(call) \
    do { \
        int code = (call); \
        if (code != ACL_SUCCESS) { \
            printf("%s answered %d\n", #call, code); \
            return 1; \
        } \
    } while (0)

int main(void) {
    float host[3] = {1, 2, 3}, alpha = 2;
    int64_t dims[1] = {3}, strides[1] = {1};
    void *x = NULL, *y = NULL, *workspace = NULL;
    uint64_t size = 0;
    aclOpExecutor* executor = NULL;
    CHECK(aclInit(NULL));
    CHECK(aclrtSetDevice(0));
    CHECK(aclrtMalloc(&x, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMalloc(&y, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemcpy(x, sizeof host, host, sizeof host, ACL_MEMCPY_HOST_TO_DEVICE));
    aclTensor* in = aclCreateTensor(dims, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, 1, x);
    aclTensor* out = aclCreateTensor(dims, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, dims, 1, y);
    aclScalar* scale = aclCreateScalar(&alpha, ACL_FLOAT);
    CHECK(aclnnAddGetWorkspaceSize(in, in, scale, out, &size, &executor));
    if (size > 0) CHECK(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclnnAdd(workspace, size, executor, NULL));
    CHECK(aclrtSynchronizeStream(NULL));
    CHECK(aclrtMemcpy(host, sizeof host, y, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST));
    printf("= plain %g %g %g\n", host[0], host[1], host[2]);
    CHECK(aclDestroyTensor(in));
    CHECK(aclDestroyTensor(out));
    CHECK(aclDestroyScalar(scale));
    CHECK(aclrtFree(x));
    CHECK(aclrtFree(y));
    if (workspace != NULL) CHECK(aclrtFree(workspace));
    CHECK(aclrtResetDevice(0));
    CHECK(aclFinalize());
    return 0;
}
