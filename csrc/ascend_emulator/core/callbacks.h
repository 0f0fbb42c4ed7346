// Callbacks: functions of the client that a stream asks for.
//
// A callback runs on the thread that subscribed to its stream, inside that thread's aclrtProcessReport; nothing runs by
// itself. A host function runs on the thread that subscribed for host functions, or on the stream's own worker.
#pragma once

#include <cstdint>

#include "core.h"

namespace emu {

enum class Reports { callbacks, host_functions };

EMU_API int subscribe(Reports which, uint64_t thread, void* stream, const char* by);
EMU_API int unsubscribe(Reports which, uint64_t thread, void* stream, const char* by);
EMU_API int process(Reports which, int timeout, const char* by);
EMU_API int launch_callback(void (*function)(void*), void* data, int block, void* stream);
EMU_API int launch_host_function(void* stream, void (*function)(void*), void* data);
EMU_API int set_exception_callback(void (*function)(void*));
void forget_callbacks();

}  // namespace emu
