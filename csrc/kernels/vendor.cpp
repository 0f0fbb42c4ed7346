// Calls of a vendor's C functions by address, at the cost of a call: ctypes, which finds the addresses, takes a
// microsecond for each. The functions are those of Ascend's object API and its operators (docs/npu.md).
//
// An operator's first phase has any number of arguments that are pointers or integers, and a few floats. On the machines
// the vendor supports (x86-64 and AArch64, Linux) the two kinds are passed in registers of their own, and only integers
// reach the stack, so one call with all integers in order and all floats behind them passes the same as the true one.
//
// Invariant: tensors and lists that `vendor_launch` makes are destroyed by it, or handed to its caller, on every path. A
// list owns its tensors once it exists.
#include "common.h"

#include <array>
#include <vector>

using namespace mt;

extern PyMethodDef vendor_methods[];  // no other file needs to know

namespace {

constexpr size_t kMost = 48;   // integers and pointers, with the two results
constexpr size_t kFloats = 8;  // registers for floats on both machines
constexpr Py_ssize_t kRank = 64;
constexpr size_t kLaunches = 4096;
constexpr size_t kFiles = 256;

using Ints = std::array<int64_t, kMost>;
using Floats = std::array<double, kFloats>;

template <size_t> using Int = int64_t;

template <size_t... I> int32_t call_with(void* f, const Ints& a, const Floats& d, std::index_sequence<I...>) {
    using F = int32_t (*)(Int<I>..., double, double, double, double, double, double, double, double);
    return reinterpret_cast<F>(f)(a[I]..., d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]);
}

using Caller = int32_t (*)(void*, const Ints&, const Floats&);
template <size_t... N> constexpr std::array<Caller, sizeof...(N)> callers(std::index_sequence<N...>) {
    return {
        [](void* f, const Ints& a, const Floats& d) { return call_with(f, a, d, std::make_index_sequence<N>()); }...};
}
constexpr auto kCallers = callers(std::make_index_sequence<kMost + 1>());

// ---------------------------------------------------------------- launches that were made

// The last launches in the order they were made. A failure is reported by a later synchronisation: this is how it is
// told which line of the program made the launch. Holds names and code objects, neither frames nor tensors.
struct Launch {
    PyObject *function = nullptr, *operation = nullptr, *device = nullptr, *stream = nullptr, *code = nullptr;
    int offset = 0;
};

// Whether a file is the package's: asked of every frame between a launch and the program, so answers are kept.
struct File {
    PyObject* name = nullptr;
    bool ours = false;
};

struct Ring {
    Launch launches[kLaunches];
    uint64_t count = 0;
    PyObject* ours = nullptr;  // a tuple of prefixes
    File files[kFiles];

    static Ring& get() {
        static Ring* all = new Ring;  // lives as long as the process: code objects may not be let go of after Python
        return *all;
    }
};

bool begins_as_ours(PyObject* ours, PyObject* file) {
    for (Py_ssize_t i = 0; ours != nullptr && i < PyTuple_GET_SIZE(ours); ++i) {
        if (PyUnicode_Tailmatch(file, PyTuple_GET_ITEM(ours, i), 0, PY_SSIZE_T_MAX, -1) == 1) return true;
    }
    return false;
}

// All code of a file shares the object that is its name.
bool is_ours(Ring& ring, PyObject* file) {
    File& known = ring.files[(reinterpret_cast<uintptr_t>(file) >> 4) % kFiles];
    if (known.name != file) {
        known.ours = begins_as_ours(ring.ours, file);
        Py_INCREF(file);
        Py_XDECREF(std::exchange(known.name, file));
    }
    return known.ours;
}

// The instruction of the user's program that this thread is at: a new reference to its code, or null.
PyObject* program_code(Ring& ring, int* offset) {
    PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame != nullptr) {
        PyCodeObject* code = PyFrame_GetCode(frame);
        if (!is_ours(ring, code->co_filename)) {
#if PY_VERSION_HEX >= 0x030b0000
            *offset = PyFrame_GetLasti(frame);
#else
            PyObject* at = PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_lasti");
            *offset = at == nullptr ? 0 : int(PyLong_AsLong(at));
            Py_XDECREF(at);
            PyErr_Clear();
#endif
            Py_DECREF(frame);
            return reinterpret_cast<PyObject*>(code);
        }
        Py_DECREF(code);
        PyFrameObject* back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    return nullptr;
}

void record_launch(PyObject* function, PyObject* operation, PyObject* device, PyObject* stream) {
    Ring& ring = Ring::get();
    Launch next{function, operation, device, stream, nullptr, 0};
    next.code = program_code(ring, &next.offset);
    for (PyObject* kept : {function, operation, device, stream}) Py_INCREF(kept);
    Launch old = std::exchange(ring.launches[ring.count++ % kLaunches], next);
    for (PyObject* gone : {old.function, old.operation, old.device, old.stream, old.code}) Py_XDECREF(gone);
}

PyObject* vendor_record(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_record", nargs, 4);
        record_launch(args[0], args[1], args[2], args[3]);
        Py_RETURN_NONE;
    });
}

PyObject* vendor_launches(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        Ring& ring = Ring::get();
        if (nargs == 0) return PyLong_FromUnsignedLongLong(ring.count);
        expect_args("vendor_launches", nargs, 1);
        uint64_t n = PyLong_AsUnsignedLongLong(args[0]);
        if (PyErr_Occurred()) fail_set();
        if (n >= ring.count || ring.count - n > kLaunches) fail(PyExc_IndexError, "no such launch is remembered");
        const Launch& one = ring.launches[n % kLaunches];
        return Py_BuildValue("OOOOOi", one.function, one.operation, one.device, one.stream,
                             one.code == nullptr ? Py_None : one.code, one.offset);
    });
}

PyObject* vendor_ours(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_ours", nargs, 1);
        if (!PyTuple_Check(args[0])) fail(PyExc_TypeError, "vendor_ours() expects a tuple");
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); ++i) {
            if (!PyUnicode_Check(PyTuple_GET_ITEM(args[0], i))) fail(PyExc_TypeError, "a prefix is a str");
        }
        Ring& ring = Ring::get();
        Py_INCREF(args[0]);
        Py_XDECREF(std::exchange(ring.ours, args[0]));
        for (File& known : ring.files) Py_XDECREF(std::exchange(known.name, nullptr));
        Py_RETURN_NONE;
    });
}

// What a thread keeps for its launches, at a third of the cost of threading.local.
PyObject* vendor_thread(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        static PyObject* const key = PyUnicode_InternFromString("mindtorch_v2.vendor_thread");
        PyObject* kept = PyThreadState_GetDict();
        if (kept == nullptr || key == nullptr) fail(PyExc_RuntimeError, "this thread has no state");
        if (nargs == 0) {
            PyObject* found = PyDict_GetItemWithError(kept, key);
            if (found == nullptr && PyErr_Occurred()) fail_set();
            if (found == nullptr) Py_RETURN_NONE;
            Py_INCREF(found);
            return found;
        }
        expect_args("vendor_thread", nargs, 1);
        if (PyDict_SetItem(kept, key, args[0]) != 0) fail_set();
        Py_RETURN_NONE;
    });
}

// ---------------------------------------------------------------- calls

// An address or a handle; None is a null pointer.
int64_t whole(PyObject* value) {
    if (value == Py_None) return 0;
    if (!PyLong_Check(value)) fail(PyExc_TypeError, "an integer or None is required, not %s", Py_TYPE(value)->tp_name);
    int overflow = 0;
    long long found = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (MT_LIKELY(overflow == 0)) return found;
    return int64_t(PyLong_AsUnsignedLongLongMask(value));  // as C would pass it: the callee reads what it declares
}

void* address(PyObject* value) {
    int64_t found = whole(value);
    if (found == 0) fail(PyExc_ValueError, "the address of a function is required");
    return reinterpret_cast<void*>(found);
}

Py_ssize_t sizes(PyObject* tuple, int64_t* out) {
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > kRank) {
        fail(PyExc_TypeError, "a tuple of at most %zd sizes is required", kRank);
    }
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    for (Py_ssize_t i = 0; i < n; ++i) out[i] = whole(PyTuple_GET_ITEM(tuple, i));
    return n;
}

int32_t second_phase(void* function, void* workspace, uint64_t size, void* executor, void* stream) {
    using Run = int32_t (*)(void*, uint64_t, void*, void*);
    int32_t code = 0;
    Py_BEGIN_ALLOW_THREADS;  // it may wait for room in the stream, or for the device
    code = reinterpret_cast<Run>(function)(workspace, size, executor, stream);
    Py_END_ALLOW_THREADS;
    return code;
}

// A vendor function with what calling it takes; held by a capsule.
struct Function {
    void *create, *destroy, *create_list, *destroy_list, *phase1, *phase2, *destroy_executor;
    std::string letters;
    PyObject* name;
};

constexpr const char* kFunction = "mindtorch_v2.vendor_function";

PyObject* vendor_function(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_function", nargs, 9);
        if (!PyBytes_Check(args[7]) || !PyUnicode_Check(args[8])) {
            fail(PyExc_TypeError, "vendor_function() expects seven addresses, letters and a name");
        }
        std::string letters(PyBytes_AS_STRING(args[7]), size_t(PyBytes_GET_SIZE(args[7])));
        size_t floating = 0;
        for (char letter : letters) {
            if (std::strchr("tlisdf", letter) == nullptr || letter == 0) fail(PyExc_ValueError, "an unknown letter");
            floating += letter == 'd' || letter == 'f';
        }
        if (floating > kFloats || letters.size() - floating + 2 > kMost) fail(PyExc_ValueError, "too many arguments");
        auto* made =
            new Function{address(args[0]), address(args[1]), address(args[2]), address(args[3]), address(args[4]),
                         address(args[5]), address(args[6]), letters,          args[8]};
        PyObject* capsule = PyCapsule_New(made, kFunction, [](PyObject* self) {
            auto* f = static_cast<Function*>(PyCapsule_GetPointer(self, kFunction));
            Py_DECREF(f->name);
            delete f;
        });
        if (capsule == nullptr) delete made;
        else Py_INCREF(made->name);
        return capsule;
    });
}

// The tensors and lists made for one launch. Unless they are given away they are destroyed with it.
struct Made {
    const Function& f;
    std::vector<void*> tensors, lists;

    explicit Made(const Function& function) : f(function) { tensors.reserve(8); }
    ~Made() { destroy(); }

    int32_t destroy() {
        int32_t worst = all(f.destroy, tensors), code = all(f.destroy_list, lists);
        return worst != 0 ? worst : code;
    }

    static int32_t all(void* function, std::vector<void*>& handles) {
        using Destroy = int32_t (*)(void*);
        int32_t worst = 0;
        for (void* handle : handles) {
            int32_t code = handle == nullptr ? 0 : reinterpret_cast<Destroy>(function)(handle);
            if (worst == 0) worst = code;
        }
        handles.clear();
        return worst;
    }

    // The places of a list that were left out are not given.
    static PyObject* give(std::vector<void*>& handles) {
        PyObject* list = PyList_New(0);
        if (list == nullptr) fail_set();
        for (void*& handle : handles) {
            if (handle == nullptr) continue;
            PyObject* number = PyLong_FromVoidPtr(handle);
            int bad = number == nullptr ? -1 : PyList_Append(list, number);
            Py_XDECREF(number);
            if (bad != 0) {
                Py_DECREF(list);
                fail_set();
            }
            handle = nullptr;
        }
        handles.clear();
        return list;
    }
};

// A tensor of (shape, strides or None, dtype, offset, format, bytes of the storage, bytes of an element, address); null
// when the vendor made none.
void* describe(PyObject* given, const Function& f) {
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 8) {
        fail(PyExc_TypeError, "a tensor's description has eight parts");
    }
    PyObject* const* part = reinterpret_cast<PyTupleObject*>(given)->ob_item;
    int64_t shape[kRank], strides[kRank];
    Py_ssize_t rank = sizes(part[0], shape);
    const int64_t* steps = nullptr;
    if (part[1] != Py_None) {
        if (sizes(part[1], strides) != rank) fail(PyExc_ValueError, "a stride for each size is required");
        steps = strides;
    }
    int64_t item = whole(part[6]);
    if (item <= 0) fail(PyExc_ValueError, "an element has at least one byte");
    int64_t count = whole(part[5]) / item;
    using Create =
        void* (*)(const int64_t*, uint64_t, int32_t, const int64_t*, int64_t, int32_t, const int64_t*, uint64_t, void*);
    return reinterpret_cast<Create>(f.create)(shape, uint64_t(rank), int32_t(whole(part[2])), steps, whole(part[3]),
                                              int32_t(whole(part[4])), &count, 1,
                                              reinterpret_cast<void*>(whole(part[7])));
}

// What a launch that Python has to go on with stopped at.
enum Stage : int { kGoOn = -1, kNoTensor = 0, kPhase1 = 1, kWorkspace = 2, kPhase2 = 3, kRelease = 4, kNoList = 5 };

PyObject* stopped(Stage stage, int32_t code, uint64_t size, void* executor, Made& made) {
    PyObject* tensors = Made::give(made.tensors);
    return Py_BuildValue("iiKNNN", int(stage), int(code), static_cast<unsigned long long>(size),
                         PyLong_FromVoidPtr(executor), tensors, Made::give(made.lists));
}

Stage make_tensor(PyObject* given, Made& made, int64_t& handle) {
    handle = 0;
    if (given == Py_None) return kGoOn;
    void* one = describe(given, made.f);
    if (one == nullptr) return kNoTensor;
    made.tensors.push_back(one);
    handle = reinterpret_cast<int64_t>(one);
    return kGoOn;
}

// Its tensors are the launch's own until there is a list of them.
Stage make_list(PyObject* given, Made& made, int64_t& handle) {
    handle = 0;
    if (given == Py_None) return kGoOn;
    if (!PyList_Check(given)) fail(PyExc_TypeError, "a list of tensors' descriptions is required");
    size_t before = made.tensors.size();
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(given); ++i) {
        PyObject* item = PyList_GET_ITEM(given, i);
        void* one = item == Py_None ? nullptr : describe(item, made.f);
        if (one == nullptr && item != Py_None) return kNoTensor;
        made.tensors.push_back(one);
    }
    using Create = void* (*)(void* const*, uint64_t);
    void* list = reinterpret_cast<Create>(made.f.create_list)(made.tensors.data() + before,
                                                              uint64_t(made.tensors.size() - before));
    if (list == nullptr) return kNoList;
    made.tensors.resize(before);
    made.lists.push_back(list);
    handle = reinterpret_cast<int64_t>(list);
    return kGoOn;
}

// Device memory for a second phase. It is let go as soon as that is queued: memory is reused in the stream's order.
struct Workspace {
    PyObject* held = nullptr;
    void* at = nullptr;

    ~Workspace() { Py_XDECREF(held); }

    // Without memory everything made for the launch goes, and the exception that `take` raised is left.
    void take(PyObject* take, PyObject* device, uint64_t size, void* executor, Made& made) {
        static PyObject* const name = PyUnicode_InternFromString("address");
        PyObject* wanted = PyLong_FromUnsignedLongLong(size);
        PyObject* const given[] = {wanted, device};
        if (wanted != nullptr && name != nullptr) held = PyObject_Vectorcall(take, given, 2, nullptr);
        Py_XDECREF(wanted);
        PyObject* found = held == nullptr ? nullptr : PyObject_GetAttr(held, name);
        at = found == nullptr ? nullptr : PyLong_AsVoidPtr(found);
        Py_XDECREF(found);
        if (!PyErr_Occurred()) return;
        PyObject *kind = nullptr, *error = nullptr, *trace = nullptr;
        PyErr_Fetch(&kind, &error, &trace);
        reinterpret_cast<int32_t (*)(void*)>(made.f.destroy_executor)(executor);
        made.destroy();
        PyErr_Restore(kind, error, trace);
        fail_set();
    }
};

PyObject* vendor_launch(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_launch", nargs, 6);
        auto* f = static_cast<Function*>(PyCapsule_GetPointer(args[0], kFunction));
        if (f == nullptr) fail_set();
        if (!PyList_Check(args[1])) fail(PyExc_TypeError, "vendor_launch() expects a list of arguments");
        if (PyList_GET_SIZE(args[1]) != Py_ssize_t(f->letters.size())) {
            fail(PyExc_ValueError, "an argument for each letter is required");
        }
        Made made(*f);
        Ints ints;
        Floats floats{};
        size_t used = 0, floating = 0;
        for (size_t i = 0; i < f->letters.size(); ++i) {
            PyObject* value = PyList_GET_ITEM(args[1], Py_ssize_t(i));
            switch (f->letters[i]) {
                case 't':
                case 'l': {
                    auto make = f->letters[i] == 't' ? make_tensor : make_list;
                    Stage stage = make(value, made, ints[used++]);
                    if (stage != kGoOn) return stopped(stage, 0, 0, nullptr, made);
                    break;
                }
                case 'i': ints[used++] = whole(value); break;
                case 's':
                    if (value != Py_None && !PyBytes_Check(value)) fail(PyExc_TypeError, "bytes are required");
                    ints[used++] = value == Py_None ? 0 : reinterpret_cast<int64_t>(PyBytes_AS_STRING(value));
                    break;
                default: {
                    double x = PyFloat_AsDouble(value);
                    if (x == -1.0 && PyErr_Occurred()) fail(PyExc_TypeError, "a float is required");
                    if (f->letters[i] == 'f') {  // the lower half of the register
                        float narrow = float(x);
                        x = 0;
                        std::memcpy(&x, &narrow, sizeof narrow);
                    }
                    floats[floating++] = x;
                }
            }
        }
        uint64_t size = 0;
        void* executor = nullptr;
        ints[used++] = reinterpret_cast<int64_t>(&size);
        ints[used++] = reinterpret_cast<int64_t>(&executor);
        int32_t code = kCallers[used](f->phase1, ints, floats);
        if (code != 0) return stopped(kPhase1, code, size, executor, made);
        if (args[5] == Py_False || (size != 0 && args[5] == Py_True)) {
            return stopped(kWorkspace, code, size, executor, made);
        }
        void* stream = reinterpret_cast<void*>(whole(args[4]));
        Workspace workspace;
        if (size != 0) workspace.take(args[5], args[3], size, executor, made);
        code = second_phase(f->phase2, workspace.at, size, executor, stream);
        record_launch(f->name, args[2], args[3], args[4]);
        if (code != 0) return stopped(kPhase2, code, size, nullptr, made);
        code = made.destroy();
        if (code != 0) return stopped(kRelease, code, size, nullptr, made);
        Py_RETURN_NONE;
    });
}

PyObject* vendor_phase2(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_phase2", nargs, 5);
        void* run = address(args[0]);
        void* workspace = reinterpret_cast<void*>(whole(args[1]));
        auto size = uint64_t(whole(args[2]));
        void* executor = reinterpret_cast<void*>(whole(args[3]));
        void* stream = reinterpret_cast<void*>(whole(args[4]));
        return PyLong_FromLong(second_phase(run, workspace, size, executor, stream));
    });
}

PyObject* vendor_destroy(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_destroy", nargs, 2);
        using Destroy = int32_t (*)(void*);
        auto destroy = reinterpret_cast<Destroy>(address(args[0]));
        if (!PyList_Check(args[1])) fail(PyExc_TypeError, "vendor_destroy() expects an address and a list");
        int32_t worst = 0;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[1]); ++i) {
            PyObject* handle = PyList_GET_ITEM(args[1], i);
            if (handle == Py_None) continue;
            int32_t code = destroy(reinterpret_cast<void*>(whole(handle)));
            if (worst == 0) worst = code;
        }
        return PyLong_FromLong(worst);
    });
}

}  // namespace

PyMethodDef vendor_methods[] = {
    MT_METHOD(
        "vendor_function", vendor_function,
        "vendor_function(create, destroy, create list, destroy list, phase1, phase2, destroy executor, letters, name): "
        "what vendor_launch calls. Letters: t tensors, l lists of tensors, i integers and pointers, s bytes, d double, "
        "f float."),
    MT_METHOD(
        "vendor_launch", vendor_launch,
        "vendor_launch(function, arguments, operator, device, stream, whole): both phases. `whole` gives memory for "
        "a workspace, as whole(bytes, device).address; or it is True where none is given, False where phase 2 is "
        "the caller's. None when all is done and released, else (where it stopped: 0 making a tensor, 1 phase 1, "
        "2 before phase 2, 3 phase 2, 4 releasing, 5 making a list; the code, bytes of workspace, executor, "
        "tensors and lists that are alive)."),
    MT_METHOD("vendor_phase2", vendor_phase2, "vendor_phase2(function, workspace, size, executor, stream): the code."),
    MT_METHOD("vendor_destroy", vendor_destroy, "vendor_destroy(function, handles): the first code that is not 0."),
    MT_METHOD("vendor_record", vendor_record, "vendor_record(function, operator, device, stream): remember a launch."),
    MT_METHOD(
        "vendor_launches", vendor_launches,
        "vendor_launches(n): launch n as (function, operator, device, stream, code or None, offset); without n how "
        "many there were."),
    MT_METHOD("vendor_ours", vendor_ours, "vendor_ours(prefixes): how names of files begin that are no program's."),
    MT_METHOD("vendor_thread", vendor_thread,
              "vendor_thread(): what this thread keeps; vendor_thread(value): have it keep that."),
    {nullptr, nullptr, 0, nullptr}};
