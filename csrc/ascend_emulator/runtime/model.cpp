// Graph capture and the models made by it.
#include "core/capture.h"
#include "runtime/runtime.h"

extern "C" {

EMU_API aclError aclmdlRICaptureBegin(aclrtStream stream, int mode) {
    ENTER();
    return emu::begin_capture(stream, mode);
}

EMU_API aclError aclmdlRICaptureGetInfo(aclrtStream stream, int* status, void** modelRI) {
    ENTER();
    return emu::capture_info(stream, status, modelRI);
}

EMU_API aclError aclmdlRICaptureEnd(aclrtStream stream, void** modelRI) {
    ENTER();
    return emu::end_capture(stream, modelRI);
}

EMU_API aclError aclmdlRICaptureThreadExchangeMode(int* mode) {
    ENTER();
    return emu::exchange_mode(mode);
}

EMU_API aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream) {
    ENTER();
    return emu::begin_group(stream);
}

EMU_API aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, void** handle) {
    ENTER();
    return emu::end_group(stream, handle);
}

EMU_API aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, void* handle) {
    ENTER();
    return emu::begin_update(stream, handle);
}

EMU_API aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream) {
    ENTER();
    return emu::end_update(stream);
}

EMU_API aclError aclmdlRIExecuteAsync(void* modelRI, aclrtStream stream) {
    ENTER();
    return emu::execute_model(modelRI, stream);
}

EMU_API aclError aclmdlRIExecute(void* modelRI, int32_t timeout) {
    ENTER();
    return emu::execute_model_now(modelRI, timeout);
}

EMU_API aclError aclmdlRIDestroy(void* modelRI) { RELEASE(emu::destroy_model(modelRI)); }

EMU_API aclError aclmdlRIDebugPrint(void* modelRI) {
    ENTER();
    return emu::print_model(modelRI);
}

}  // extern "C"
