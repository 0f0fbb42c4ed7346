// Data buffers: an address with a size, as calls of models and of single operators take them. The facts name them; the
// prototypes are those of the vendor's public header.
#include "core/handles.h"
#include "runtime/runtime.h"

namespace {

struct DataBuffer {
    void* data;
    size_t size;
};

}  // namespace

extern "C" {

typedef struct aclDataBuffer aclDataBuffer;

EMU_API aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
    if (emu::enter(__func__) != 0) return nullptr;
    auto made = std::make_shared<DataBuffer>(DataBuffer{data, size});
    return static_cast<aclDataBuffer*>(emu::handles().create(emu::Kind::data_buffer, __func__, made));
}

EMU_API aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) {
    ENTER();
    REFUSE_NULL(dataBuffer);
    auto found = emu::handles().find<DataBuffer>(emu::Kind::data_buffer, dataBuffer, __func__);
    if (found == nullptr) return emu::finish(ACL_ERROR_INVALID_PARAM);
    *found = {data, size};
    return ACL_SUCCESS;
}

EMU_API aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
    REFUSE_NULL(dataBuffer);
    RELEASE(emu::handles().destroy<DataBuffer>(emu::Kind::data_buffer, dataBuffer, __func__) != nullptr
                ? ACL_SUCCESS
                : emu::finish(ACL_ERROR_INVALID_PARAM));
}

EMU_API void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
    auto found = emu::handles().find<DataBuffer>(emu::Kind::data_buffer, dataBuffer, __func__);
    return found == nullptr ? nullptr : found->data;
}

EMU_API size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
    auto found = emu::handles().find<DataBuffer>(emu::Kind::data_buffer, dataBuffer, __func__);
    return found == nullptr ? 0 : found->size;
}

// The older question: sizes of 4 GB and more do not fit its answer.
EMU_API uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer) {
    return static_cast<uint32_t>(aclGetDataBufferSizeV2(dataBuffer));
}

}  // extern "C"
