// Parameters that only some versions of a function have.
#pragma once

#include <cstring>

#include "kernel.h"

namespace emu {

inline bool has_parameter(const Call& c, const char* name) {
    for (int i = 0; i < c.function->count; ++i)
        if (std::strcmp(c.function->parameters[i].name, name) == 0) return true;
    return false;
}

// The function has such a parameter, and it is not null.
inline bool given(const Call& c, const char* name) { return has_parameter(c, name) && c.has(name); }

}  // namespace emu
