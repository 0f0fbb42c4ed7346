// The emulator's own functions, in libascend_emulator.so: faults, counters, violations, leaks. No device has them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// "function:n:code[:async]" and more of them after semicolons; n counts calls from now on, from 1.
int ascendEmulatorSetFault(const char* spec);
void ascendEmulatorClearFaults(void);
uint64_t ascendEmulatorCallCount(void);
uint64_t ascendEmulatorFunctionCalls(const char* function);
uint64_t ascendEmulatorKernelRuns(const char* function);
uint64_t ascendEmulatorTotalKernelRuns(void);
uint64_t ascendEmulatorBytesToHost(void);
void ascendEmulatorResetCounters(void);
uint64_t ascendEmulatorViolations(char* buffer, size_t bytes);
void ascendEmulatorClearViolations(void);
// Live handles and allocations, and what was found leaked when a device was reset or everything finalised.
uint64_t ascendEmulatorLeaks(char* buffer, size_t bytes);
void ascendEmulatorClearLeaks(void);
uint64_t ascendEmulatorLiveHandles(void);
uint64_t ascendEmulatorLiveBytes(int device);
int ascendEmulatorLoseDevice(int device);
int ascendEmulatorRestoreDevice(int device);
// Every task of the stream starts this much later.
int ascendEmulatorSlowStream(void* stream, uint32_t micros);
int64_t ascendEmulatorQueueDepth(void* stream);
void ascendEmulatorSetDelaySeed(uint64_t seed);
void ascendEmulatorSetNoop(bool noop);
// The settings of the environment, by their names in lower case: "chip", "devices", "memory", ... Only while nothing is
// initialised.
int ascendEmulatorConfigure(const char* key, const char* value);
// As if the process had just started; settings are read from the environment again. No other thread may be in a call.
void ascendEmulatorReset(void);
// Bytes of device memory as they are, live or not, without waiting for any stream. 0 when they are device memory.
int ascendEmulatorDumpMemory(uint64_t address, uint64_t bytes, void* out);

#ifdef __cplusplus
}
#endif
