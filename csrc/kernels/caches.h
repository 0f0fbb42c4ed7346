// Sizes of the CPU's caches, in bytes, asked once when the module is loaded: blocks of kernels are made to fit them.
// Invariant: a size that the system does not tell, or one out of all proportion, is that of a small common CPU. Results do
// not depend on them: they decide which places are computed together, never the order of a sum.
#pragma once
#include <cstdint>

#pragma GCC visibility push(hidden)
namespace mt {

struct Caches {
    int64_t first, second;  // of one core: data, then data and instructions
};
extern const Caches caches;

}  // namespace mt
#pragma GCC visibility pop
