// One engine for every aclnn function: unpack and check the arguments, make an executor; check it again, run the kernel
// on the stream.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>

#include "../core/state.h"
#include "executor.h"

namespace emu {

namespace {

std::map<std::string, Kernel>& kernels() {
    static std::map<std::string, Kernel> table;
    return table;
}

const char* format_name(int format) {
    switch (format) {
        case ACL_FORMAT_NCHW: return "NCHW";
        case ACL_FORMAT_NHWC: return "NHWC";
        case ACL_FORMAT_ND: return "ND";
        case ACL_FORMAT_HWCN: return "HWCN";
        case ACL_FORMAT_NDHWC: return "NDHWC";
        case ACL_FORMAT_NCDHW: return "NCDHW";
        case ACL_FORMAT_NC: return "NC";
        case ACL_FORMAT_NCL: return "NCL";
        case ACL_FORMAT_NC1HWC0: return "NC1HWC0";
        case ACL_FORMAT_FRACTAL_Z: return "FRACTAL_Z";
        case ACL_FORMAT_FRACTAL_NZ: return "FRACTAL_NZ";
        case ACL_FORMAT_FRACTAL_NZ_C0_16: return "FRACTAL_NZ_C0_16";
        case ACL_FORMAT_FRACTAL_NZ_C0_32: return "FRACTAL_NZ_C0_32";
        case ACL_FORMAT_FRACTAL_NZ_C0_2: return "FRACTAL_NZ_C0_2";
        case ACL_FORMAT_FRACTAL_NZ_C0_4: return "FRACTAL_NZ_C0_4";
        case ACL_FORMAT_FRACTAL_NZ_C0_8: return "FRACTAL_NZ_C0_8";
        default: return "UNDEFINED";
    }
}

// The rank a format implies; 0: any.
int format_rank(int format) {
    switch (format) {
        case ACL_FORMAT_NC: return 2;
        case ACL_FORMAT_NCL: return 3;
        case ACL_FORMAT_NCHW: case ACL_FORMAT_NHWC: case ACL_FORMAT_HWCN: return 4;
        case ACL_FORMAT_NCDHW: case ACL_FORMAT_NDHWC: return 5;
        default: return 0;
    }
}

bool public_format(int format) { return format == ACL_FORMAT_ND || format_rank(format) != 0; }

template <class F>
std::string names_of(uint64_t bits, F name) {
    std::string out;
    for (int i = 0; i < 64; ++i)
        if (bits >> i & 1) out += (out.empty() ? "" : " ") + std::string(name(i));
    return out;
}

bool has_bit(uint64_t bits, int i) { return i >= 0 && i < 64 && (bits >> i & 1); }

// -- unpacking -------------------------------------------------------------------------------------------------------
Kind handle_kind(Role role) {
    switch (role) {
        case Role::tensor: return Kind::tensor;
        case Role::scalar: return Kind::scalar;
        case Role::ints: return Kind::int_array;
        case Role::floats: return Kind::float_array;
        case Role::bools: return Kind::bool_array;
        case Role::tensors: return Kind::tensor_list;
        case Role::scalars: return Kind::scalar_list;
        default: return Kind::none;
    }
}

template <class T>
std::shared_ptr<T> object(Role role, const void* handle, const Function& f, const char* parameter) {
    auto found = handles().find<T>(handle_kind(role), handle, f.phase1);
    if (!found) refuse(ACLNN_ERR_INNER_NULLPTR, "%s is not a live %s", parameter, kind_name(handle_kind(role)));
    return found;
}

void unpack(const Function& f, const Parameter& p, const Raw& raw, Value& v) {
    switch (p.role) {
        case Role::integer: case Role::boolean: case Role::dtype:
            v.given = true;
            v.integer = raw.integer;
            return;
        case Role::real:
            v.given = true;
            v.real = raw.real;
            return;
        default: break;
    }
    if (raw.pointer == nullptr) {
        if (p.must) refuse(ACLNN_ERR_PARAM_NULLPTR, "%s must not be null", p.name);
        return;
    }
    v.given = true;
    if (p.role != Role::string && on_device(reinterpret_cast<uint64_t>(raw.pointer)))
        refuse(ACLNN_ERR_PARAM_INVALID, "%s is a device address, a handle is needed", p.name);
    switch (p.role) {
        case Role::string: v.string = static_cast<const char*>(raw.pointer); break;
        case Role::tensor:
            v.tensor = *object<Tensor>(p.role, raw.pointer, f, p.name);
            unblock(v.tensor);
            break;
        case Role::scalar: v.scalar = *object<Scalar>(p.role, raw.pointer, f, p.name); break;
        case Role::ints:
            // One function, Sleep, takes an array or, on newer chips, a tensor through the same pointer.
            if (std::strcmp(f.name, "aclnnSleep") == 0 && handles().is(Kind::tensor, raw.pointer))
                v.tensor = *object<Tensor>(Role::tensor, raw.pointer, f, p.name);
            else v.ints = object<Array<int64_t>>(p.role, raw.pointer, f, p.name)->values;
            break;
        case Role::floats: {
            auto array = object<Array<float>>(p.role, raw.pointer, f, p.name);
            v.floats.assign(array->values.begin(), array->values.end());
            break;
        }
        case Role::bools: {
            auto array = object<Array<uint8_t>>(p.role, raw.pointer, f, p.name);
            v.ints.assign(array->values.begin(), array->values.end());
            break;
        }
        case Role::tensors: {
            v.handle = const_cast<void*>(raw.pointer);
            auto list = object<List>(p.role, raw.pointer, f, p.name);
            v.tensors.reserve(list->handles.size());
            for (void* item : list->handles) {
                // An empty place in a list (an index left out) is a tensor without dtype.
                v.tensors.push_back(item == nullptr ? Tensor() : *object<Tensor>(Role::tensor, item, f, p.name));
                unblock(v.tensors.back());
            }
            break;
        }
        case Role::scalars:
            for (void* item : object<List>(p.role, raw.pointer, f, p.name)->handles)
                v.scalars.push_back(*object<Scalar>(Role::scalar, item, f, p.name));
            break;
        default: break;
    }
}

// -- checks from the facts -------------------------------------------------------------------------------------------
void check_dtype(const Function& f, const Parameter& p, int dtype, const Call& call) {
    if (p.dtypes != 0 && !has_bit(p.dtypes, dtype))
        refuse(ACLNN_ERR_PARAM_INVALID, "%s has dtype %s; accepted: %s", p.name, dtype_name(dtype),
               names_of(p.dtypes, dtype_name).c_str());
    if (p.same_as >= 0) {
        const Value& other = call.values[size_t(p.same_as)];
        int want = other.given && other.tensor.dtype != ACL_DT_UNDEFINED ? other.tensor.dtype
                   : !other.tensors.empty()                               ? other.tensors[0].dtype
                                                                          : dtype;
        if (dtype != want)
            refuse(ACLNN_ERR_PARAM_INVALID, "%s has dtype %s; it must be that of %s, %s", p.name, dtype_name(dtype),
                   f.parameters[p.same_as].name, dtype_name(want));
    }
    for (int i = 0; i < f.rules; ++i) {
        const ChipRule& rule = f.chip_rules[i];
        if (rule.chip != settings().chip || p.dtypes == 0) continue;
        // Rules speak of values: "only" of the tensors that could have had all of these types, "no" not of indices.
        constexpr uint64_t indices = uint64_t(1) << ACL_INT32 | uint64_t(1) << ACL_INT64;
        bool refused = rule.only ? (p.dtypes & rule.dtypes) == rule.dtypes && !has_bit(rule.dtypes, dtype)
                                 : has_bit(rule.dtypes, dtype) && (p.dtypes & ~indices) != 0;
        if (refused)
            refuse(ACLNN_ERR_PARAM_INVALID, "%s has dtype %s, which this chip (%s) does not support", p.name,
                   dtype_name(dtype), chip_name(settings().chip));
    }
    // Not every document repeats which chips have the type.
    if (dtype == ACL_BF16 && !chip_profile().bf16)
        refuse(ACLNN_ERR_PARAM_INVALID, "%s has dtype BF16, which this chip (%s) does not have", p.name,
               chip_name(settings().chip));
    if (computable(dtype)) return;
    const Kernel* kernel = kernel_of(f.name);
    if (kernel == nullptr || !(kernel->traits & NARROW) || !is_narrow(dtype))
        refuse(ACLNN_ERR_PARAM_INVALID, "%s has dtype %s, which the emulator does not compute", p.name,
               dtype_name(dtype));
}

void check_tensor(const Function& f, const Parameter& p, const Tensor& t, const Call& call) {
    check_dtype(f, p, t.dtype, call);
    for (int64_t size : t.dims)
        if (size < 0) refuse(ACLNN_ERR_PARAM_INVALID, "%s has a negative size: %s", p.name, text(t.dims).c_str());
    if (p.formats != 0 ? !has_bit(p.formats, t.format) : !public_format(t.format))
        refuse(ACLNN_ERR_PARAM_INVALID, "%s has format %s; accepted: %s", p.name, format_name(t.format),
               p.formats ? names_of(p.formats, format_name).c_str() : "the public formats");
    int implied = p.formats == ~uint64_t(0) ? 0 : format_rank(t.format);
    if (implied != 0 && implied != t.rank())
        refuse(ACLNN_ERR_PARAM_INVALID, "%s has format %s but %d dimensions", p.name, format_name(t.format), t.rank());
    if (p.ranks != 0 ? !(p.ranks >> t.rank() & 1) : t.rank() > 8)
        refuse(ACLNN_ERR_PARAM_INVALID, "%s has %d dimensions %s; accepted: %s", p.name, t.rank(),
               text(t.dims).c_str(),
               p.ranks ? names_of(p.ranks, [](int i) { return std::to_string(i); }).c_str() : "at most 8");
    if (p.contiguous && !t.contiguous())
        refuse(ACLNN_ERR_PARAM_INVALID, "%s must be contiguous", p.name);
}

// Chips 310P and 310B run more than their documents list, so only the others refuse what is not listed. What is documented
// for the newest chip alone runs on every one.
void check_chip(const Function& f) {
    Chip chip = settings().chip;
    constexpr unsigned newest = 1u << unsigned(Chip::k950);
    unsigned listed = chip == Chip::k950 ? f.chips : f.chips & ~newest;
    if (chip == Chip::k310P || chip == Chip::k310B || listed == 0 || (listed >> unsigned(chip) & 1)) return;
    std::string names = names_of(f.chips, [](int i) { return std::string(chip_name(Chip(i))); });
    refuse(ACLNN_ERR_PARAM_INVALID, "not supported on this chip (%s); documents list %s (ASCEND_EMULATOR_CHIP)", chip_name(chip), names.c_str());
}

void check_bounds(const Parameter& p, const Tensor& t) {
    if (t.contiguous() || t.blocked.n != 0) return;
    int64_t low, high;
    if (!t.span(&low, &high)) return;
    if (low < 0 || high + 1 > t.storage.product())
        refuse(ACLNN_ERR_INNER_NULLPTR,
               "ViewShape overlap: %s of shape %s, strides %s, offset %lld leaves its storage of %lld elements", p.name,
               text(t.dims).c_str(), text(t.strides).c_str(), static_cast<long long>(t.offset),
               static_cast<long long>(t.storage.product()));
}

template <class F>
void each_tensor(const Call& call, F f) {
    for (int i = 0; i < call.function->count; ++i) {
        const Parameter& p = call.function->parameters[i];
        const Value& v = call.values[size_t(i)];
        if (!v.given) continue;
        if (p.role == Role::tensor) f(p, v.tensor);
        else if (p.role == Role::tensors)
            for (const Tensor& t : v.tensors)
                if (t.dtype != ACL_DT_UNDEFINED) f(p, t);
    }
}

void check_facts(const Function& f, const Call& call) {
    check_chip(f);
    each_tensor(call, [&](const Parameter& p, const Tensor& t) { check_tensor(f, p, t, call); });
    for (int i = 0; i < f.count; ++i) {
        const Value& v = call.values[size_t(i)];
        if (v.given && f.parameters[i].role == Role::scalar) check_dtype(f, f.parameters[i], v.scalar.dtype, call);
    }
}

uint64_t align(uint64_t n) { return (n + 511) & ~uint64_t(511); }

// Strided tensors are packed into the workspace before, or spread from it after, the kernel.
uint64_t strided_workspace(const Call& call) {
    uint64_t total = 0;
    each_tensor(call, [&](const Parameter&, const Tensor& t) {
        if (!t.contiguous()) total += align(uint64_t(bytes_for(t.dtype, t.numel())));
    });
    return total;
}

// -- checks of phase 2 -----------------------------------------------------------------------------------------------
std::vector<int64_t> places(const Tensor& t) {
    std::vector<int64_t> out{t.offset};
    for (int d = 0; d < t.rank(); ++d) {
        std::vector<int64_t> next;
        for (int64_t base : out)
            for (int64_t k = 0; k < t.dims[d]; ++k) next.push_back(base + k * t.strides[d]);
        out.swap(next);
    }
    return out;
}

// Of two tensors whose ranges meet, whether they have an element in common.
bool overlap(const Tensor& a, const Tensor& b) {
    if (a.contiguous() && b.contiguous()) return true;
    constexpr int64_t small = 4096;  // interleaved views are told apart element by element while that is cheap
    if (a.numel() > small || b.numel() > small || a.data != b.data || size_of(a.dtype) != size_of(b.dtype)) return false;
    std::vector<int64_t> p = places(a), q = places(b);
    std::set<int64_t> seen(p.begin(), p.end());
    return std::any_of(q.begin(), q.end(), [&](int64_t i) { return seen.count(i) != 0; });
}

struct Placed {
    const Parameter* parameter;
    const Tensor* tensor;
    Range range;
};

// A call over lists has hundreds of pairs: their ranges are worked out once, and most pairs are apart.
void check_aliasing(const Call& call) {
    std::vector<Placed> all;
    all.reserve(call.values.size());
    each_tensor(call, [&](const Parameter& p, const Tensor& t) {
        Range range = t.range(false);
        if (range.bytes != 0) all.push_back({&p, &t, range});
    });
    for (const Placed& out : all) {
        if (!out.parameter->output || out.parameter->in_place) continue;
        for (const Placed& other : all) {
            if (out.range.begin >= other.range.begin + other.range.bytes ||
                other.range.begin >= out.range.begin + out.range.bytes || &out == &other)
                continue;
            if (&other < &out && other.parameter->output) continue;
            if (out.parameter->reuses >= 0 && other.parameter == call.function->parameters + out.parameter->reuses &&
                out.tensor->data == other.tensor->data && out.tensor->offset == other.tensor->offset)
                continue;
            if (overlap(*out.tensor, *other.tensor))
                violation("alias", "%s: output %s shares memory with %s", call.function->name, out.parameter->name,
                          other.parameter->name);
        }
    }
}

int check_launch(const Executor& e, void* workspace, uint64_t size) {
    const char* name = e.call.function->name;
    int code = 0;
    each_tensor(e.call, [&](const Parameter& p, const Tensor& t) {
        if (t.numel() == 0 || code) return;
        if (!on_device(t.data)) {
            say("%s: %s points to host memory or to nothing (0x%llx)", name, p.name,
                static_cast<unsigned long long>(t.data));
            violation("host-pointer", "%s: %s is not device memory", name, p.name);
            code = ACLNN_ERR_RUNTIME_ERROR;
        } else if (t.data % 32 != 0) {
            violation("alignment", "%s: the data of %s is not 32-byte aligned", name, p.name);
        }
        if (!e.repeatable && t.handle != nullptr && !handles().is(Kind::tensor, t.handle))
            violation("destroyed-early", "%s: %s was destroyed between the two phases: %s", name, p.name,
                      handles().describe(t.handle).c_str());
    });
    if (code) return code;
    if (e.workspace > 0) {
        if (workspace == nullptr) {
            say("%s: workspace is null, %llu bytes were asked for", name, static_cast<unsigned long long>(e.workspace));
            return ACLNN_ERR_PARAM_NULLPTR;
        }
        if (size < e.workspace) {
            say("%s: workspaceSize is %llu, %llu bytes were asked for", name, static_cast<unsigned long long>(size),
                static_cast<unsigned long long>(e.workspace));
            return ACLNN_ERR_PARAM_INVALID;
        }
        if (!live(reinterpret_cast<uint64_t>(workspace), e.workspace)) {
            say("%s: workspace is not %llu bytes of live device memory", name,
                static_cast<unsigned long long>(e.workspace));
            violation("workspace", "%s: workspace is not live device memory", name);
            return ACLNN_ERR_RUNTIME_ERROR;
        }
    }
    return 0;
}

// What the device touches.
std::vector<Range> ranges_of(const Call& call) {
    std::vector<Range> ranges;
    ranges.reserve(call.values.size() + 1);
    each_tensor(call, [&](const Parameter& p, const Tensor& t) {
        Range range = t.range(p.output);
        if (range.bytes) ranges.push_back(range);
    });
    return ranges;
}

// The arguments of one run. Kernels do not change them, so that runs of one executor, which may overlap, share them.
std::shared_ptr<Run> run_of(Executor& e, std::vector<Range>& ranges) {
    if (e.repeatable) {
        std::lock_guard<std::mutex> guard(e.lock);
        if (!e.run) {
            check_aliasing(e.call);
            e.ranges = ranges_of(e.call);
            e.run = std::make_shared<Run>();
            static_cast<Call&>(*e.run) = e.call;
        }
        ranges.reserve(e.ranges.size() + 1);
        ranges = e.ranges;
        return e.run;
    }
    check_aliasing(e.call);
    ranges = ranges_of(e.call);
    auto run = std::make_shared<Run>();
    static_cast<Call&>(*run) = std::move(e.call);
    return run;
}

void apply_sizes(const Run& run) {
    for (const auto& [index, dims] : run.resized) {
        void* handle = run.values[size_t(index)].tensor.handle;
        auto t = handles().find<Tensor>(Kind::tensor, handle, run.function->name);
        if (!t) continue;
        t->dims = dims;
        t->strides = contiguous_strides(dims);
        t->storage = dims;
    }
}

// Where every result is empty there is nothing to compute. Kernels of groups run all the same, others wait for them.
bool nothing_to_write(const Call& call, unsigned traits) {
    bool any = false;
    int64_t elements = 0;
    each_tensor(call, [&](const Parameter& p, const Tensor& t) {
        if (p.output) any = true, elements += t.numel();
    });
    if (!any || elements > 0 || (traits & DYNAMIC)) return false;
    for (int i = 0; i < call.function->count; ++i)
        if (std::strncmp(call.function->parameters[i].name, "group", 5) == 0 && call.function->parameters[i].role == Role::string) return false;
    return true;
}

// The kernel of a function, looked for by name once. An entry is written with the same value by everybody.
const Kernel* kernel_at(int id) {
    static std::atomic<const Kernel*> known[4096] = {};
    if (id < 0 || size_t(id) >= std::size(known)) return kernel_of(function_at(id).name);
    const Kernel* found = known[id].load(std::memory_order_acquire);
    if (found == nullptr) known[id].store(found = kernel_of(function_at(id).name), std::memory_order_release);
    return found;
}

}  // namespace

// -- the two phases --------------------------------------------------------------------------------------------------
int phase1(int id, const Raw* arguments, uint64_t* workspace, aclOpExecutor** executor) {
    const Function& f = function_at(id);
    if (int code = enter(f.phase1)) return code;
    try {
        Plan plan;
        plan.function = &f;
        plan.values.resize(size_t(f.count));
        for (int i = 0; i < f.count; ++i) unpack(f, f.parameters[i], arguments[i], plan.values[size_t(i)]);
        if (workspace == nullptr || executor == nullptr)
            refuse(ACLNN_ERR_PARAM_NULLPTR, "%s must not be null", workspace == nullptr ? "workspaceSize" : "executor");
        const Kernel* kernel = kernel_at(id);
        if (kernel == nullptr) refuse(561003, "the emulator has no kernel of that name");
        check_facts(f, plan);
        kernel->plan(plan);
        each_tensor(plan, [](const Parameter& p, const Tensor& t) { check_bounds(p, t); });
        auto made = std::make_shared<Executor>();
        made->kernel = kernel;
        made->workspace = align(plan.workspace) + strided_workspace(plan);
        made->call = std::move(plan);
        *workspace = made->workspace;
        *executor = static_cast<aclOpExecutor*>(handles().create(Kind::executor, f.phase1, made));
        return 0;
    } catch (const Refusal& r) {
        say("%s(%s): %s: %s", r.code / 1000 == 161 ? "AclNN_Parameter_Error" : "AclNN_Inner_Error",
            r.code == ACLNN_ERR_PARAM_NULLPTR ? "EZ1002" : "EZ1001", f.name, r.text.c_str());
        return r.code;
    } catch (const std::exception& e) {
        say("%s: %s", f.name, e.what());
        return ACLNN_ERR_INNER;
    }
}

int phase2(int id, void* workspace, uint64_t size, aclOpExecutor* executor, void* stream) {
    const Function& f = function_at(id);
    int injected = enter(f.name);
    if (executor == nullptr) {
        say("%s: executor is null", f.name);
        return ACLNN_ERR_PARAM_NULLPTR;
    }
    auto e = handles().find<Executor>(Kind::executor, executor, f.name);
    if (!e) return ACLNN_ERR_INNER;
    if (e->call.function != &f) {
        say("%s: the executor was made by %s", f.name, e->call.function->phase1);
        violation("foreign-executor", "%s: given an executor made by %s", f.name, e->call.function->phase1);
        return ACLNN_ERR_INNER;
    }
    // Consumed now, whatever happens: a second run finds a dead handle.
    if (!e->repeatable) handles().destroy<Executor>(Kind::executor, executor, f.name);
    if (injected) return injected;
    if (int code = check_launch(*e, workspace, size)) return code;
    if (require_context()) return ACLNN_ERR_RUNTIME_ERROR;

    Task task;
    task.name = f.name;
    std::shared_ptr<Run> run = run_of(*e, task.ranges);
    uint64_t scratch = e->workspace ? reinterpret_cast<uint64_t>(workspace) : 0;
    if (scratch) task.ranges.push_back({scratch, e->workspace, true});
    task.run = [run, e, scratch] {
        // What the vendor's kernels leave there is nobody's data.
        if (scratch) std::memset(reach(scratch, e->workspace, "workspace"), 0xA5, e->workspace);
        try {
            if (!nothing_to_write(*run, e->kernel->traits)) e->kernel->run(*run);
        } catch (const Refusal& late) {  // an argument that is null and that phase 1 was not told to check
            fault("%s: %s", run->function->name, late.text.c_str());
        }
        count_kernel(run->function->name);
    };
    if (int code = launch(stream, std::move(task))) {
        say("%s: the stream answered %d", f.name, code);
        return ACLNN_ERR_RUNTIME_ERROR;
    }
    if ((e->kernel->traits & DYNAMIC) && !settings().noop) {
        if (int code = wait(stream)) return code;
        apply_sizes(*run);
    }
    return 0;
}

// -- executors by themselves -----------------------------------------------------------------------------------------
int make_repeatable(void* executor) {
    if (executor == nullptr) return ACLNN_ERR_INNER_NULLPTR;
    auto e = handles().find<Executor>(Kind::executor, executor, "aclSetAclOpExecutorRepeatable");
    if (!e) return ACLNN_ERR_INNER_NULLPTR;
    if ((e->kernel->traits & DYNAMIC)) {
        say("%s cannot be made repeatable: its output shape depends on data", e->call.function->name);
        return ACLNN_ERR_INNER;
    }
    e->repeatable = true;
    return 0;
}

int destroy_executor(void* executor) {
    if (executor == nullptr) return ACLNN_ERR_INNER_NULLPTR;
    int why = kFine;
    handles().destroy<Executor>(Kind::executor, executor, "aclDestroyAclOpExecutor", &why);
    return why == kFine ? 0 : ACLNN_ERR_INNER;
}

int set_address(void* executor, Which which, size_t index, size_t relative, void* tensor, void* address,
                const char* by) {
    if (executor == nullptr || tensor == nullptr) return ACLNN_ERR_INNER_NULLPTR;
    auto e = handles().find<Executor>(Kind::executor, executor, by);
    if (!e) return ACLNN_ERR_INNER_NULLPTR;
    size_t seen = 0;
    for (int i = 0; i < e->call.function->count; ++i) {
        const Parameter& p = e->call.function->parameters[i];
        Value& v = e->call.values[size_t(i)];
        if (p.role != Role::tensor && p.role != Role::tensors) continue;
        bool counts = which == Which::any || (which == Which::output) == (p.output && !p.in_place);
        if (!counts || seen++ != index) continue;
        Tensor* t = p.role == Role::tensor ? &v.tensor : relative < v.tensors.size() ? &v.tensors[relative] : nullptr;
        if (t == nullptr) break;
        std::lock_guard<std::mutex> guard(e->lock);
        t->data = reinterpret_cast<uint64_t>(address);
        e->run.reset();
        return 0;
    }
    say("%s: index %zu is out of range", by, index);
    return ACLNN_ERR_PARAM_INVALID;
}

// -- registration ----------------------------------------------------------------------------------------------------
Registration::Registration(const char* name, Phase<Plan> plan, Phase<Run> run, unsigned traits) {
    kernels()[name] = Kernel{std::move(plan), std::move(run), traits};
}

const Kernel* kernel_of(const char* name) {
    auto found = kernels().find(name);
    return found == kernels().end() ? nullptr : &found->second;
}

}  // namespace emu
