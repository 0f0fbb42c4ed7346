// Copies and fills between host and device, now or on a stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core.h"

namespace emu {

EMU_API int copy_now(void* dst, size_t most, const void* src, size_t count, int kind);
EMU_API int copy_on_stream(void* dst, size_t most, const void* src, size_t count, int kind, void* stream,
                           const char* by);
EMU_API int copy_rows(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t height,
                      int kind, bool async, void* stream);
EMU_API int fill_now(void* dst, size_t most, int value, size_t count);
EMU_API int fill_on_stream(void* dst, size_t most, int value, size_t count, void* stream);
EMU_API int overflow_status(void* out, size_t bytes, void* stream);

// How many bytes have left devices for the host: what a client can have computed on there.
uint64_t bytes_to_host();

}  // namespace emu
