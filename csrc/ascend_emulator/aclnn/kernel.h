// How an aclnn function is written.
//
//     ACLNN(aclnnCumsum,
//           PLAN { p.same_shape("self", "out"); p.axis("dim", p.tensor("self").rank()); },
//           RUN  { auto x = r.read<double>(r.tensor("self")); ...; r.write(r.tensor("out"), x); })
//
// Names are those of the vendor's parameters (facts.jsonl). Before PLAN the engine has checked, from the documented
// facts, null pointers (161001) and dtypes, formats and ranks (161002), per chip; PLAN checks the rest: shapes, ranges
// of attributes, combinations. It sees metadata only. RUN happens later, on the stream's thread, on a snapshot of the
// arguments; it may throw DeviceFault (an illegal index). Everything is read into and written from plain row-major
// vectors of double, int64_t or Complex; strides, offsets and dtypes are the engine's business.
//
// A line that begins with a macro in capitals and names aclnn functions exports these functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../core/core.h"
#include "../core/dtype.h"
#include "../objects/objects.h"

namespace emu {

// -- facts (tables generated from facts.jsonl) -----------------------------------------------------------------------
enum class Role : uint8_t {
    tensor, scalar, ints, floats, bools, tensors, scalars, integer, real, boolean, dtype, string,
};

struct Parameter {
    const char* name;
    Role role;
    bool output;         // written; an in-place argument too
    bool in_place;       // read and written
    bool must;           // null is 161001
    bool contiguous;     // strided tensors are documented as refused
    int same_as;         // its dtype is that of this parameter; -1: not stated
    uint64_t dtypes;     // a bit for each accepted dtype; 0: not stated
    uint32_t ranks;      // a bit for each accepted rank; 0: not stated
    uint64_t formats;    // a bit for each accepted format; 0: not stated; all: not looked at
    int reuses;          // an output that may be this very input; -1: none
};

struct ChipRule {
    Chip chip;
    bool only;           // only these dtypes, or none of these
    uint64_t dtypes;
};

struct Function {
    const char* name;
    const char* phase1;  // the name of GetWorkspaceSize
    int count;
    const Parameter* parameters;
    unsigned chips;      // a bit for each chip that documents list; 0: not stated
    int rules;
    const ChipRule* chip_rules;
};

EMU_API const Function& function_at(int id);

// -- arguments -------------------------------------------------------------------------------------------------------
struct Value {
    bool given = false;
    int64_t integer = 0;             // also bool and aclDataType
    double real = 0;
    Tensor tensor;
    Scalar scalar;
    std::vector<Tensor> tensors;
    std::vector<Scalar> scalars;
    std::vector<int64_t> ints;       // also bool arrays
    std::vector<double> floats;
    std::string string;
    void* handle = nullptr;          // of a list
};

// A status with its message; thrown by PLAN.
struct Refusal {
    int code;
    std::string text;
};

[[noreturn]] void refuse(int code, const char* format, ...) EMU_PRINTF(2, 3);
[[noreturn]] void fault(const char* format, ...) EMU_PRINTF(1, 2);  // DeviceFault 507015

struct Call {
    const Function* function = nullptr;
    std::vector<Value> values;

    const Value& at(const char* name) const;
    bool has(const char* name) const;  // an optional pointer was given
    const Tensor& tensor(const char* name) const;
    const std::vector<Tensor>& tensors(const char* name) const;
    const Scalar& scalar(const char* name) const;
    const std::vector<Scalar>& scalars(const char* name) const;
    const std::vector<int64_t>& ints(const char* name) const;  // int and bool arrays; empty when null
    const std::vector<double>& floats(const char* name) const;
    int64_t integer(const char* name) const;
    double real(const char* name) const;   // float or double
    bool flag(const char* name) const;
    int dtype(const char* name) const;     // an aclDataType argument
    const std::string& string(const char* name) const;

    // By place: the i-th tensor that is read, the i-th that is written (in-place tensors are both).
    const Tensor& input(int i = 0) const;
    const Tensor& output(int i = 0) const;
};

// Phase 1.
struct Plan : Call {
    uint64_t workspace = 0;  // more than the engine's own need for strided tensors

    void require(bool holds, const char* format, ...) const EMU_PRINTF(3, 4);   // 161002
    void same_shape(const char* a, const char* b) const;
    void shape(const char* name, const Dims& want) const;
    void same_dtype(const char* a, const char* b) const;
    // A dimension in [-rank, rank), made non-negative; rank 0 counts as 1.
    int64_t axis(const char* name, int rank) const;
    int64_t axis(int64_t given, int rank, const char* name) const;
    // All of them, sorted, without repetition; an empty list means every axis.
    std::vector<int> axes(const char* name, int rank) const;
    void casts(int from, const char* to) const;  // a computed dtype into an output
};

// Phase 2.
struct Run : Call {
    std::vector<std::pair<int, Dims>> resized;

    template <class T>
    std::vector<T> read(const Tensor& t) const;
    template <class T>
    std::vector<T> read(const Tensor& t, const Dims& broadcast_to) const;
    template <class T>
    void write(const Tensor& t, const std::vector<T>& values) const;
    // The true shape of an output whose size depends on data.
    void resize(const char* name, const Dims& dims);
};

// An output whose size depends on data must have room for it.
inline void check_room(const Run& r, const char* name, int64_t needed) {
    if (r.tensor(name).numel() < needed)
        fault("%s: %s has %lld elements, the result has %lld", r.function->name, name,
              static_cast<long long>(r.tensor(name).numel()), static_cast<long long>(needed));
}

// A phase of a kernel. Nearly all are plain functions; making a std::function of each would take the compiler half of
// the time it takes for this folder.
template <class Argument>
struct Phase {
    void (*plain)(Argument&) = nullptr;
    std::function<void(Argument&)> holding;  // a function with values of its own

    Phase() = default;
    template <class F>
    Phase(const F& f) {
        if constexpr (std::is_convertible_v<F, void (*)(Argument&)>) plain = f;
        else holding = f;
    }
    void operator()(Argument& to) const { plain != nullptr ? plain(to) : holding(to); }
};

struct Kernel {
    Phase<Plan> plan;
    Phase<Run> run;
    unsigned traits = 0;
};

struct Registration {
    Registration(const char* name, Phase<Plan> plan, Phase<Run> run, unsigned traits = 0);
};

const Kernel* kernel_of(const char* name);

#define ACLNN(name, ...) static const ::emu::Registration registered_##name(#name, __VA_ARGS__);
#define PLAN [](::emu::Plan & p)
#define RUN [](::emu::Run & r)
constexpr unsigned DYNAMIC = 1;  // phase 2 waits and rewrites output shapes
constexpr unsigned NARROW = 2;   // computes with elements of 8-bit and 4-bit types as well

// -- shapes ----------------------------------------------------------------------------------------------------------
// False when they do not broadcast.
bool broadcast(const Dims& a, const Dims& b, Dims* out);
Dims broadcast_all(const Plan& p, std::initializer_list<const Dims*> shapes);  // 161002 when they do not
int64_t wrap(int64_t axis, int rank);             // -1 -> rank - 1
Dims reduced(const Dims& dims, const std::vector<int>& axes, bool keep);

// A tensor seen as (outer, length, inner) around one axis.
struct Lines {
    int64_t outer = 1, length = 1, inner = 1;
    Lines(const Dims& dims, int64_t axis) {
        for (int i = 0; i < dims.n; ++i) (i < axis ? outer : i == axis ? length : inner) *= dims[i];
    }
    int64_t at(int64_t o, int64_t k, int64_t i) const { return (o * length + k) * inner + i; }
};

// f(T{}) with the type values of that category are computed in.
template <class F>
void by_category(Category c, F&& f) {
    switch (c) {
        case Category::Integer: f(int64_t{}); break;
        case Category::Real: f(double{}); break;
        case Category::Complex: f(Complex{}); break;
    }
}
template <class F>
void by_real_or_integer(Category c, F&& f) {
    if (c == Category::Integer) f(int64_t{});
    else f(double{});
}

}  // namespace emu
