// Calls of a vendor's C functions by address, at the cost of a call: ctypes, which finds the addresses, takes a
// microsecond for each. The functions are those of Ascend's object API and its operators (docs/npu.md).
//
// An operator's first phase has any number of arguments that are pointers or integers, and a few floats. On the machines
// the vendor supports (x86-64 and AArch64, Linux) the two kinds are passed in registers of their own, and only integers
// reach the stack, so one call with all integers in order and all floats behind them passes the same as the true one.
#include "common.h"

#include <array>

using namespace mt;

extern PyMethodDef vendor_methods[];  // no other file needs to know

namespace {

constexpr size_t kMost = 48;   // integers and pointers, with the two results
constexpr size_t kFloats = 8;  // registers for floats on both machines
constexpr Py_ssize_t kRank = 64;

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

// An address or a handle; None is a null pointer.
int64_t whole(PyObject* value) {
    if (value == Py_None) return 0;
    if (!PyLong_Check(value)) fail(PyExc_TypeError, "an integer or None is required, not %s", Py_TYPE(value)->tp_name);
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

PyObject* vendor_tensor(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_tensor", nargs, 8);
        using Create = void* (*)(const int64_t*, uint64_t, int32_t, const int64_t*, int64_t, int32_t, const int64_t*,
                                 uint64_t, void*);
        auto create = reinterpret_cast<Create>(address(args[0]));
        int64_t shape[kRank], strides[kRank];
        Py_ssize_t rank = sizes(args[1], shape);
        const int64_t* given = nullptr;
        if (args[2] != Py_None) {
            if (sizes(args[2], strides) != rank) fail(PyExc_ValueError, "a stride for each size is required");
            given = strides;
        }
        int64_t count = whole(args[6]);
        void* made = create(shape, uint64_t(rank), int32_t(whole(args[3])), given, whole(args[4]),
                            int32_t(whole(args[5])), &count, 1, reinterpret_cast<void*>(whole(args[7])));
        if (made == nullptr) Py_RETURN_NONE;
        return PyLong_FromVoidPtr(made);
    });
}

PyObject* vendor_phase1(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_phase1", nargs, 3);
        void* function = address(args[0]);
        if (!PyBytes_Check(args[1]) || !PyList_Check(args[2])) {
            fail(PyExc_TypeError, "vendor_phase1() expects an address, letters and a list");
        }
        const char* letters = PyBytes_AS_STRING(args[1]);
        Py_ssize_t n = PyBytes_GET_SIZE(args[1]);
        if (PyList_GET_SIZE(args[2]) != n) fail(PyExc_ValueError, "an argument for each letter is required");
        Ints ints;
        Floats floats{};
        size_t used = 0, floating = 0;
        for (Py_ssize_t i = 0; i < n; ++i) {
            PyObject* value = PyList_GET_ITEM(args[2], i);
            if (used + 2 >= kMost || floating >= kFloats) fail(PyExc_ValueError, "too many arguments");
            switch (letters[i]) {
                case 'i': ints[used++] = whole(value); break;
                case 's':
                    if (value != Py_None && !PyBytes_Check(value)) fail(PyExc_TypeError, "bytes are required");
                    ints[used++] = value == Py_None ? 0 : reinterpret_cast<int64_t>(PyBytes_AS_STRING(value));
                    break;
                default: {
                    double x = PyFloat_AsDouble(value);
                    if (x == -1.0 && PyErr_Occurred()) fail(PyExc_TypeError, "a float is required");
                    if (letters[i] == 'f') {  // the lower half of the register
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
        int32_t code = kCallers[used](function, ints, floats);
        return Py_BuildValue("iKN", code, static_cast<unsigned long long>(size), PyLong_FromVoidPtr(executor));
    });
}

PyObject* vendor_phase2(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("vendor_phase2", nargs, 5);
        using Run = int32_t (*)(void*, uint64_t, void*, void*);
        auto run = reinterpret_cast<Run>(address(args[0]));
        void* workspace = reinterpret_cast<void*>(whole(args[1]));
        auto size = uint64_t(whole(args[2]));
        void* executor = reinterpret_cast<void*>(whole(args[3]));
        void* stream = reinterpret_cast<void*>(whole(args[4]));
        int32_t code = 0;
        Py_BEGIN_ALLOW_THREADS;  // it may wait for room in the stream, or for the device
        code = run(workspace, size, executor, stream);
        Py_END_ALLOW_THREADS;
        return PyLong_FromLong(code);
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
    MT_METHOD("vendor_tensor", vendor_tensor,
              "vendor_tensor(create, shape, strides, dtype, offset, format, count, ptr): a handle, or None."),
    MT_METHOD("vendor_phase1", vendor_phase1,
              "vendor_phase1(function, letters, arguments): (code, bytes of workspace, executor). Letters: i integers "
              "and pointers, s bytes, d double, f float."),
    MT_METHOD("vendor_phase2", vendor_phase2, "vendor_phase2(function, workspace, size, executor, stream): the code."),
    MT_METHOD("vendor_destroy", vendor_destroy, "vendor_destroy(function, handles): the first code that is not 0."),
    {nullptr, nullptr, 0, nullptr}};
