// The emulator's own time for one launch, so that a client can subtract it from what it measures.
#include <chrono>

#include "kernel.h"

extern "C" {

typedef aclTensor* (*CreateTensor)(const int64_t*, uint64_t, aclDataType, const int64_t*, int64_t, aclFormat,
                                   const int64_t*, uint64_t, void*);
typedef aclnnStatus (*DestroyTensor)(const aclTensor*);
typedef aclnnStatus (*AddPhase1)(const aclTensor*, const aclTensor*, const aclScalar*, aclTensor*, uint64_t*,
                                 aclOpExecutor**);
typedef aclnnStatus (*Phase2)(void*, uint64_t, aclOpExecutor*, aclrtStream);

// Nanoseconds of one aclnnAdd of `count` floats: three tensors made, both phases, three destroyed, called as a client
// calls them. -1 when a call failed.
EMU_API double ascendEmulatorTimeAdd(CreateTensor create, DestroyTensor destroy, AddPhase1 phase1, Phase2 phase2,
                                     const aclScalar* alpha, void* a, void* b, void* out, int64_t count, int repeats) {
    int64_t stride = 1;
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) {
        void* data[3] = {a, b, out};
        aclTensor* t[3];
        for (int k = 0; k < 3; ++k)
            t[k] = create(&count, 1, ACL_FLOAT, &stride, 0, ACL_FORMAT_ND, &count, 1, data[k]);
        uint64_t size = 0;
        aclOpExecutor* executor = nullptr;
        if (phase1(t[0], t[1], alpha, t[2], &size, &executor) || size) return -1;
        if (phase2(nullptr, 0, executor, nullptr)) return -1;
        for (aclTensor* one : t)
            if (destroy(one)) return -1;
    }
    std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    return spent.count() / repeats;
}

}  // extern "C"
