// Objects: tensors, scalars, arrays, lists, executors.
#pragma once

#include "../acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t aclnnStatus;
typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalarList aclScalarList;
typedef struct aclOpExecutor aclOpExecutor;

// clang-format off
static const aclnnStatus ACLNN_SUCCESS = 0;
static const aclnnStatus ACLNN_ERR_PARAM_NULLPTR = 161001;
static const aclnnStatus ACLNN_ERR_PARAM_INVALID = 161002;
static const aclnnStatus ACLNN_ERR_RUNTIME_ERROR = 361001;
static const aclnnStatus ACLNN_ERR_INNER = 561000;
static const aclnnStatus ACLNN_ERR_INNER_CREATE_EXECUTOR = 561101;
static const aclnnStatus ACLNN_ERR_INNER_NULLPTR = 561103;

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t* stride, int64_t offset, aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData);
aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t* stride, int64_t offset, aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData);
aclScalar* aclCreateScalar(void* value, aclDataType dataType);
aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size);
aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size);
aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size);
aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size);
aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size);
aclnnStatus aclGetViewShape(const aclTensor*, int64_t** viewDims, uint64_t* viewDimsNum);
aclnnStatus aclGetStorageShape(const aclTensor*, int64_t** storageDims, uint64_t* storageDimsNum);
aclnnStatus aclGetViewStrides(const aclTensor*, int64_t** stridesValue, uint64_t* stridesNum);
aclnnStatus aclGetViewOffset(const aclTensor*, int64_t* offset);
aclnnStatus aclGetFormat(const aclTensor*, aclFormat* format);
aclnnStatus aclGetDataType(const aclTensor*, aclDataType* dataType);
aclnnStatus aclSetRawTensorAddr(aclTensor*, void* addr);
aclnnStatus aclGetRawTensorAddr(const aclTensor*, void** addr);
aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor*);
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor*);
aclnnStatus aclDestroyTensor(const aclTensor* object);
aclnnStatus aclDestroyScalar(const aclScalar* object);
aclnnStatus aclDestroyIntArray(const aclIntArray* object);
aclnnStatus aclDestroyFloatArray(const aclFloatArray* object);
aclnnStatus aclDestroyBoolArray(const aclBoolArray* object);
aclnnStatus aclDestroyTensorList(const aclTensorList* object);
aclnnStatus aclDestroyScalarList(const aclScalarList* object);
aclnnStatus aclGetIntArraySize(const aclIntArray* object, uint64_t* size);
aclnnStatus aclGetFloatArraySize(const aclFloatArray* object, uint64_t* size);
aclnnStatus aclGetBoolArraySize(const aclBoolArray* object, uint64_t* size);
aclnnStatus aclGetTensorListSize(const aclTensorList* object, uint64_t* size);
aclnnStatus aclGetScalarListSize(const aclScalarList* object, uint64_t* size);
aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr);
aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr);
aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr);
aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex, aclTensorList* tensors, void* addr);
aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex, aclTensorList* tensors, void* addr);
aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex, aclTensorList* tensors, void* addr);
// clang-format on

#ifdef __cplusplus
}
#endif
