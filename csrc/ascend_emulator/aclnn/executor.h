// Executors: what phase 1 makes and phase 2 consumes.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "kernel.h"

namespace emu {

struct Executor {
    Call call;
    const Kernel* kernel = nullptr;
    uint64_t workspace = 0;
    bool repeatable = false;
    // What all runs of a repeatable executor share; made at its first run and after a change of an address.
    std::mutex lock;
    std::shared_ptr<Run> run;
    std::vector<Range> ranges;
};

enum class Which { input, output, any };

EMU_API int make_repeatable(void* executor);
EMU_API int destroy_executor(void* executor);
// `tensor` is an aclTensor, or an aclTensorList whose element `relative` is meant.
EMU_API int set_address(void* executor, Which which, size_t index, size_t relative, void* tensor, void* address,
                        const char* by);

// A by-value or pointer argument as the C function received it.
struct Raw {
    union {
        const void* pointer;
        int64_t integer;
        double real;
    };
    Raw(const void* p) : pointer(p) {}
    Raw(bool x) : integer(x) {}
    Raw(int8_t x) : integer(x) {}
    Raw(int32_t x) : integer(x) {}
    Raw(uint32_t x) : integer(x) {}
    Raw(int64_t x) : integer(x) {}
    Raw(uint64_t x) : integer(int64_t(x)) {}
    Raw(aclDataType x) : integer(x) {}
    Raw(double x) : real(x) {}
    Raw(float x) : real(double(x)) {}
};

// `id` is the function's place in the generated table.
EMU_API int phase1(int id, const Raw* arguments, uint64_t* workspace, aclOpExecutor** executor);
EMU_API int phase2(int id, void* workspace, uint64_t size, aclOpExecutor* executor, void* stream);

}  // namespace emu
