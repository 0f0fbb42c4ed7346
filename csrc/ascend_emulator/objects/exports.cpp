// libnnopbase.so: the object API, with the vendor's ownership rules.
#include <cstring>

#include "../aclnn/executor.h"
#include "../core/contexts.h"
#include "objects.h"

using namespace emu;

namespace {

template <class T>
T* made(Kind kind, const char* by, std::shared_ptr<void> object) {
    return static_cast<T*>(handles().create(kind, by, std::move(object)));
}

template <class T>
int destroyed(Kind kind, const void* handle, const char* by) {
    int fault = enter(by);
    if (handle == nullptr) return fault;
    int why = kFine;
    handles().destroy<T>(kind, handle, by, &why);
    return why != kFine ? ACLNN_ERR_INNER : fault;
}

// Dims given by a caller, or false with a message.
bool readable(const int64_t* values, uint64_t count, const char* what, const char* by) {
    if (count == 0) return true;
    if (values == nullptr) {
        say("%s: %s is null while its count is %llu", by, what, static_cast<unsigned long long>(count));
        return false;
    }
    if (count > uint64_t(kMaxRank)) {
        say("%s: %s has %llu entries, at most %d are allowed", by, what, static_cast<unsigned long long>(count),
            kMaxRank);
        return false;
    }
    if (on_device(reinterpret_cast<uint64_t>(values))) {
        violation("host-pointer", "%s: %s is device memory; it must be host memory", by, what);
        return false;
    }
    return true;
}

bool fill_tensor(Tensor& t, const int64_t* dims, uint64_t rank, int dtype, const int64_t* stride, int64_t offset,
                 int format, const int64_t* storage, uint64_t storage_rank, void* data, const char* by) {
    if (!readable(dims, rank, "viewDims", by) || !readable(storage, storage_rank, "storageDims", by)) return false;
    if (stride != nullptr && !readable(stride, rank, "stride", by)) return false;
    t.dims = Dims(dims, rank);
    t.strides = stride == nullptr ? contiguous_strides(t.dims) : Dims(stride, rank);
    t.storage = Dims(storage, storage_rank);
    t.offset = offset;
    t.dtype = dtype;
    t.format = format;
    t.data = reinterpret_cast<uint64_t>(data);
    return true;
}

template <class T>
Array<T>* copied(const T* values, uint64_t size) {
    auto* array = new Array<T>();
    if (values != nullptr) array->values.assign(values, values + size);
    return array;
}

template <class H, class T>
H* made_array(Kind kind, const T* values, uint64_t size, const char* by) {
    if (enter(by)) return nullptr;
    if (values != nullptr && on_device(reinterpret_cast<uint64_t>(values))) {
        violation("host-pointer", "%s: value is device memory; it must be host memory", by);
        return nullptr;
    }
    if constexpr (std::is_same_v<T, bool>) {
        return made<H>(kind, by,
                       std::shared_ptr<Array<uint8_t>>(copied(reinterpret_cast<const uint8_t*>(values), size)));
    } else {
        return made<H>(kind, by, std::shared_ptr<Array<T>>(copied(values, size)));
    }
}

template <class H, class E>
H* made_list(Kind kind, const E* const* value, uint64_t size, const char* by) {
    if (enter(by)) return nullptr;
    auto list = std::make_shared<List>();
    for (uint64_t i = 0; i < size && value != nullptr; ++i) list->handles.push_back(const_cast<E*>(value[i]));
    return made<H>(kind, by, list);
}

// A list owns its elements: they go with it.
template <class T>
int destroyed_list(Kind kind, Kind element, const void* handle, const char* by) {
    int fault = enter(by);
    if (handle == nullptr) return fault;
    int why = kFine;
    auto list = handles().destroy<List>(kind, handle, by, &why);
    if (!list) return ACLNN_ERR_INNER;
    for (void* item : list->handles) {
        if (item == nullptr) continue;
        handles().destroy<T>(element, item, by, &why);
        if (why != kFine) fault = ACLNN_ERR_INNER;
    }
    return fault;
}

template <class T, class F>
int asked(Kind kind, const void* handle, const void* result, const char* by, F answer) {
    if (int code = enter(by)) return code;
    if (handle == nullptr || result == nullptr) {
        say("%s: a null argument", by);
        return ACLNN_ERR_PARAM_NULLPTR;
    }
    auto object = handles().find<T>(kind, handle, by);
    if (!object) return ACLNN_ERR_INNER;
    answer(*object);
    return 0;
}

// The caller releases with delete[], as documented.
void give(const Dims& dims, int64_t** values, uint64_t* count) {
    *values = new int64_t[size_t(dims.n)];
    std::memcpy(*values, dims.begin(), sizeof(int64_t) * size_t(dims.n));
    *count = uint64_t(dims.n);
}

}  // namespace

extern "C" {

EMU_API aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                                   const int64_t* stride, int64_t offset, aclFormat format, const int64_t* storageDims,
                                   uint64_t storageDimsNum, void* tensorData) {
    if (enter("aclCreateTensor")) return nullptr;
    auto t = std::make_shared<Tensor>();
    if (!fill_tensor(*t, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims, storageDimsNum,
                     tensorData, "aclCreateTensor"))
        return nullptr;
    Tensor* raw = t.get();
    auto* handle = made<aclTensor>(Kind::tensor, "aclCreateTensor", std::move(t));
    raw->handle = handle;
    return handle;
}

EMU_API aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum,
                                  aclDataType dataType, const int64_t* stride, int64_t offset, aclFormat format,
                                  const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
    bool good = true;
    int code = asked<Tensor>(Kind::tensor, tensor, tensor, "aclInitTensor", [&](Tensor& t) {
        good = fill_tensor(t, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims, storageDimsNum,
                           tensorData, "aclInitTensor");
    });
    return code ? code : good ? 0 : ACLNN_ERR_PARAM_INVALID;
}

EMU_API aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
    if (enter("aclCreateScalar")) return nullptr;
    if (value == nullptr || !computable(dataType) || dataType == ACL_COMPLEX32) {
        say("aclCreateScalar: %s", value == nullptr ? "value is null" : "the dtype cannot be a scalar's");
        return nullptr;
    }
    if (on_device(reinterpret_cast<uint64_t>(value))) {
        violation("host-pointer", "aclCreateScalar: value is device memory; it must be host memory");
        return nullptr;
    }
    auto s = std::make_shared<Scalar>();
    s->dtype = dataType;
    std::memcpy(s->bytes, value, size_of(dataType));
    return made<aclScalar>(Kind::scalar, "aclCreateScalar", s);
}

EMU_API aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
    return made_array<aclIntArray>(Kind::int_array, value, size, "aclCreateIntArray");
}
EMU_API aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
    return made_array<aclFloatArray>(Kind::float_array, value, size, "aclCreateFloatArray");
}
EMU_API aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
    return made_array<aclBoolArray>(Kind::bool_array, value, size, "aclCreateBoolArray");
}
EMU_API aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
    return made_list<aclTensorList>(Kind::tensor_list, value, size, "aclCreateTensorList");
}
EMU_API aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
    return made_list<aclScalarList>(Kind::scalar_list, value, size, "aclCreateScalarList");
}

EMU_API aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
    return destroyed<Tensor>(Kind::tensor, tensor, "aclDestroyTensor");
}
EMU_API aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
    return destroyed<Scalar>(Kind::scalar, scalar, "aclDestroyScalar");
}
EMU_API aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
    return destroyed<Array<int64_t>>(Kind::int_array, array, "aclDestroyIntArray");
}
EMU_API aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
    return destroyed<Array<float>>(Kind::float_array, array, "aclDestroyFloatArray");
}
EMU_API aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
    return destroyed<Array<uint8_t>>(Kind::bool_array, array, "aclDestroyBoolArray");
}
EMU_API aclnnStatus aclDestroyTensorList(const aclTensorList* list) {
    return destroyed_list<Tensor>(Kind::tensor_list, Kind::tensor, list, "aclDestroyTensorList");
}
EMU_API aclnnStatus aclDestroyScalarList(const aclScalarList* list) {
    return destroyed_list<Scalar>(Kind::scalar_list, Kind::scalar, list, "aclDestroyScalarList");
}

EMU_API aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
    if (viewDimsNum == nullptr) viewDims = nullptr;
    return asked<Tensor>(Kind::tensor, tensor, viewDims, "aclGetViewShape",
                         [&](Tensor& t) { give(t.dims, viewDims, viewDimsNum); });
}
EMU_API aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims, uint64_t* storageDimsNum) {
    if (storageDimsNum == nullptr) storageDims = nullptr;
    return asked<Tensor>(Kind::tensor, tensor, storageDims, "aclGetStorageShape",
                         [&](Tensor& t) { give(t.storage, storageDims, storageDimsNum); });
}
EMU_API aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue, uint64_t* stridesNum) {
    if (stridesNum == nullptr) stridesValue = nullptr;
    return asked<Tensor>(Kind::tensor, tensor, stridesValue, "aclGetViewStrides",
                         [&](Tensor& t) { give(t.strides, stridesValue, stridesNum); });
}
EMU_API aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
    return asked<Tensor>(Kind::tensor, tensor, offset, "aclGetViewOffset", [&](Tensor& t) { *offset = t.offset; });
}
EMU_API aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
    return asked<Tensor>(Kind::tensor, tensor, format, "aclGetFormat",
                         [&](Tensor& t) { *format = aclFormat(t.format); });
}
EMU_API aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
    return asked<Tensor>(Kind::tensor, tensor, dataType, "aclGetDataType",
                         [&](Tensor& t) { *dataType = aclDataType(t.dtype); });
}
EMU_API aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
    return asked<Array<int64_t>>(Kind::int_array, array, size, "aclGetIntArraySize",
                                 [&](Array<int64_t>& a) { *size = a.values.size(); });
}
EMU_API aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
    return asked<Array<float>>(Kind::float_array, array, size, "aclGetFloatArraySize",
                               [&](Array<float>& a) { *size = a.values.size(); });
}
EMU_API aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
    return asked<Array<uint8_t>>(Kind::bool_array, array, size, "aclGetBoolArraySize",
                                 [&](Array<uint8_t>& a) { *size = a.values.size(); });
}
EMU_API aclnnStatus aclGetTensorListSize(const aclTensorList* list, uint64_t* size) {
    return asked<List>(Kind::tensor_list, list, size, "aclGetTensorListSize",
                       [&](List& l) { *size = l.handles.size(); });
}
EMU_API aclnnStatus aclGetScalarListSize(const aclScalarList* list, uint64_t* size) {
    return asked<List>(Kind::scalar_list, list, size, "aclGetScalarListSize",
                       [&](List& l) { *size = l.handles.size(); });
}
EMU_API aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
    return asked<Tensor>(Kind::tensor, tensor, tensor, "aclSetRawTensorAddr",
                         [&](Tensor& t) { t.data = reinterpret_cast<uint64_t>(addr); });
}
EMU_API aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
    return asked<Tensor>(Kind::tensor, tensor, addr, "aclGetRawTensorAddr",
                         [&](Tensor& t) { *addr = reinterpret_cast<void*>(t.data); });
}

EMU_API aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
    if (int code = enter("aclSetAclOpExecutorRepeatable")) return code;
    return make_repeatable(executor);
}
EMU_API aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
    int fault = enter("aclDestroyAclOpExecutor");
    int code = destroy_executor(executor);
    return code ? code : fault;
}

#define ADDRESS_SETTER(name, which) \
    EMU_API aclnnStatus name(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* addr) { \
        if (int code = enter(#name)) return code; \
        return set_address(executor, which, index, 0, tensor, addr, #name); \
    }
#define LIST_ADDRESS_SETTER(name, which) \
    EMU_API aclnnStatus name(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex, \
                             aclTensorList* tensors, void* addr) { \
        if (int code = enter(#name)) return code; \
        return set_address(executor, which, irIndex, relativeIndex, tensors, addr, #name); \
    }
ADDRESS_SETTER(aclSetInputTensorAddr, Which::input)
ADDRESS_SETTER(aclSetOutputTensorAddr, Which::output)
ADDRESS_SETTER(aclSetTensorAddr, Which::any)
LIST_ADDRESS_SETTER(aclSetDynamicInputTensorAddr, Which::input)
LIST_ADDRESS_SETTER(aclSetDynamicOutputTensorAddr, Which::output)
LIST_ADDRESS_SETTER(aclSetDynamicTensorAddr, Which::any)

EMU_API aclnnStatus aclnnInit(const char* configPath) {
    (void)configPath;  // a JSON file with dump settings, or null; nothing of it applies here
    if (int code = enter("aclnnInit")) return code;
    initialise_operators();
    return 0;
}
EMU_API aclnnStatus aclnnFinalize() { return enter("aclnnFinalize"); }

}  // extern "C"
