// What the files on matrices share: where the memory of an operand is.
#pragma once
#include "common.h"

namespace mt {

// Memory of `count` elements at args: storage, offset.
inline char* parse_memory(PyObject* const* args, int64_t count, int itemsize) {
    StorageObject* storage = as_storage(args[0]);
    const int64_t offset = checked_mul(as_int(args[1]), itemsize);
    if (offset < 0 || checked_add(offset, checked_mul(count, itemsize)) > storage->nbytes)
        fail_reach(offset / itemsize, offset / itemsize + count - 1, Operand{storage, nullptr, 0, itemsize, {}});
    return storage->ptr + offset;
}

}  // namespace mt
