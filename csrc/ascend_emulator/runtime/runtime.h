// What every exported runtime function begins with. The functions stay thin: all state is in the core, because both
// libacl_rt.so and libascendcl.so are made of these files and may be loaded into one process.
#pragma once

#include "core/codes.h"
#include "core/state.h"

// Counts the call and returns the code of an injected fault.
#define ENTER() \
    do { \
        if (int code_ = emu::enter(__func__)) return code_; \
    } while (false)

// For functions that release something: they release, then answer an injected fault's code.
#define RELEASE(expression) \
    do { \
        int fault_ = 0; \
        if (int code_ = emu::enter_release(__func__, &fault_)) return code_; \
        int done_ = (expression); \
        return fault_ != 0 ? emu::finish(fault_) : done_; \
    } while (false)

#define REFUSE_NULL(argument) \
    if ((argument) == nullptr) return emu::reject(ACL_ERROR_INVALID_PARAM, "%s: " #argument " is NULL", __func__)
