// Device memory and pinned host memory.
//
// A device's memory has two faces: addresses a client gets, which nobody can read or write (PROT_NONE), and a body only
// kernels reach, through `reach`, which lets nothing pass that is not in a live allocation. Freed addresses come back
// late, so that a use after free meets no new owner.
#pragma once

#include <string>
#include <vector>

#include "core.h"

namespace emu {

constexpr unsigned char kFreshByte = 0xCB;
constexpr unsigned char kFreedByte = 0xDD;

enum class Place { device, pinned, pageable };

struct Where {
    Place place = Place::pageable;
    int device = -1;     // the device of device memory
    uint64_t begin = 0;  // of the allocation, when there is a live one
    uint64_t bytes = 0;  // 0: no live allocation
    uint64_t page = 0;
};

int open_arena(int device, uint64_t capacity, const char* by);  // when the device is first set
void close_arena(int device);  // everything on it is gone; what was live is kept as leaks

EMU_API int device_malloc(void** out, size_t bytes, bool extra_pad, const char* by);
EMU_API int device_free(void* pointer, const char* by);
EMU_API int memory_info(int attribute, size_t* free, size_t* total);
EMU_API int host_malloc(void** out, size_t bytes, const char* by);
EMU_API int host_free(void* pointer);
EMU_API int host_register(void* pointer, uint64_t bytes, int type, void** out);
EMU_API int host_unregister(void* pointer);

EMU_API Where classify(const void* pointer);
// What lies at an address, in words: "13 bytes into the 64 bytes of aclrtMalloc (call 7)", "memory freed by ...".
std::string tell(uint64_t address);

EMU_API uint64_t live_bytes(int device);
std::vector<std::string> memory_leaks();
bool inspect(uint64_t address, uint64_t bytes, unsigned char* out);  // for tests: any byte of an arena, live or not
void forget_memory();

// -- virtual memory (vmm.cpp) ----------------------------------------------------------------------------------------
EMU_API int reserve_address(void** out, size_t bytes, size_t alignment, void* expected, uint64_t flags);
EMU_API int release_address(void* pointer);
EMU_API int malloc_physical(void** handle, size_t bytes, int device, uint64_t flags);
EMU_API int free_physical(void* handle);
EMU_API int map_memory(void* pointer, size_t bytes, size_t offset, void* handle, uint64_t flags);
EMU_API int unmap_memory(void* pointer);
constexpr size_t kPhysicalGranularity = 2 << 20;

// What vmm.cpp needs of memory.cpp: memory that is counted, addresses that are reserved, windows from one to the other.
int charge(int device, uint64_t bytes, const char* by, uint64_t* epoch);
void discharge(int device, uint64_t bytes, uint64_t epoch);  // nothing, when the device was reset since
void note_reserved(uint64_t begin, uint64_t bytes, unsigned char* body);
bool find_reserved(uint64_t address, uint64_t* begin, uint64_t* bytes, unsigned char** body);
void forget_reserved(uint64_t begin);
bool note_window(uint64_t address, uint64_t bytes, unsigned char* body, int device, const char* by);
uint64_t forget_window(uint64_t address, const char* by);  // its bytes; 0 when there is none
void forget_virtual_memory();

}  // namespace emu
