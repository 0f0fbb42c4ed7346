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

// A mode, where the function has it, is a number from 0 to this one.
inline void plan_number(const Plan& p, const char* name, int64_t last) {
    if (!has_parameter(p, name)) return;
    int64_t value = p.integer(name);
    p.require(value >= 0 && value <= last, "%s is %lld, expected 0 to %lld", name, static_cast<long long>(value), static_cast<long long>(last));
}

// Tensors without which there is nothing to compute from: empty ones are refused, those that are not given are not looked at.
inline void need_elements(const Plan& p, std::initializer_list<const char*> names) {
    for (const char* name : names) {
        if (!given(p, name)) continue;
        const std::vector<Tensor> one{p.at(name).tensor};
        for (const Tensor& t : p.at(name).tensors.empty() ? one : p.at(name).tensors)
            p.require(t.numel() > 0, "%s has shape %s: it must not be empty", name, text(t.dims).c_str());
    }
}

}  // namespace emu
