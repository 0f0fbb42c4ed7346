// DLPack's capsules, made and read. What their fields mean is decided in _dlpack.py; nothing is refused here but what
// cannot be read.
// Invariant: whoever consumes a capsule calls its deleter exactly once; an unconsumed capsule frees itself.
//
//   dlpack_make(address, shape, strides, type code, bits, device type, device, version, flags, owner) -> capsule
//   dlpack_take(capsule) -> None for what is no capsule of this kind or one that is used up, else
//       (major, device type, type code, bits, lanes, dimensions, shape, strides, address, owner, source)
//     version, major: of DLPack 1.0 and later; 0 for the struct before it, which has none. A later major version than ours
//     is told and nothing else is read, nor the capsule taken. Shape and strides: None where the struct has none that
//     could be read. The owner gives the memory back; the source is what a capsule of ours was made for, or None.
#include "common.h"

#include <cstdlib>

namespace mt {
namespace {

struct Tensor {
    void* data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct Managed {
    Tensor tensor;
    void* context;
    void (*deleter)(Managed*);
};
struct Versioned {
    uint32_t major, minor;
    void* context;
    void (*deleter)(Versioned*);
    uint64_t flags;
    Tensor tensor;
};
static_assert(sizeof(Tensor) == 48 && sizeof(Managed) == 64 && sizeof(Versioned) == 80, "DLPack's layout");

constexpr uint32_t MAJOR = 1;
constexpr int32_t MOST_DIMENSIONS = 1024;
template <class T> struct Names;
template <> struct Names<Managed> {
    static constexpr const char *fresh = "dltensor", *used = "used_dltensor", *owner = "mindtorch_v2.dltensor";
};
template <> struct Names<Versioned> {
    static constexpr const char *fresh = "dltensor_versioned", *used = "used_dltensor_versioned",
                                *owner = "mindtorch_v2.dltensor_versioned";
};

// Consumers call it from any thread, and some after Python has ended: then what it would free is gone already.
template <class T> void release(T* managed) {
    if (Py_IsInitialized()) {
        const PyGILState_STATE state = PyGILState_Ensure();
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        Py_XDECREF(static_cast<PyObject*>(managed->context));
        PyErr_Restore(type, value, traceback);
        PyGILState_Release(state);
    }
    std::free(managed);
}

// A capsule that nobody consumed, or the owner of what was: both end by the deleter.
template <class T> void give_back(PyObject* capsule) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    // By its name: a consumed capsule has another one.
    for (const char* name : {Names<T>::fresh, Names<T>::owner}) {
        if (!PyCapsule_IsValid(capsule, name)) continue;
        T* managed = static_cast<T*>(PyCapsule_GetPointer(capsule, name));
        if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
    }
    PyErr_Restore(type, value, traceback);
}

void read_sizes(PyObject* tuple, int64_t* into) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) into[i] = as_int(PyTuple_GET_ITEM(tuple, i));
}

template <class T> PyObject* make_capsule(PyObject* const* args) {
    PyObject *shape = args[1], *strides = args[2];
    if (!PyTuple_Check(shape) || !PyTuple_Check(strides) || PyTuple_GET_SIZE(shape) != PyTuple_GET_SIZE(strides))
        fail(PyExc_ValueError, "dlpack_make: a shape and its strides are tuples of one length");
    const size_t ndim = (size_t)PyTuple_GET_SIZE(shape);
    T* managed = static_cast<T*>(std::calloc(1, sizeof(T) + 2 * ndim * sizeof(int64_t)));
    if (managed == nullptr) {
        PyErr_NoMemory();
        fail_set();
    }
    struct Held {
        T* managed;
        ~Held() { std::free(managed); }
    } held{managed};
    Tensor& t = managed->tensor;
    t.data = PyLong_AsVoidPtr(args[0]);
    if (t.data == nullptr && PyErr_Occurred()) fail_set();
    t.shape = reinterpret_cast<int64_t*>(managed + 1);
    t.strides = t.shape + ndim;
    read_sizes(shape, t.shape);
    read_sizes(strides, t.strides);
    t.ndim = (int32_t)ndim;
    t.code = (uint8_t)as_int(args[3]);
    t.bits = (uint8_t)as_int(args[4]);
    t.lanes = 1;
    t.device_type = (int32_t)as_int(args[5]);
    t.device_id = (int32_t)as_int(args[6]);
    if constexpr (std::is_same_v<T, Versioned>) {
        managed->major = (uint32_t)as_int(args[7]);
        managed->flags = (uint64_t)as_int(args[8]);
    }
    managed->deleter = release<T>;
    PyObject* capsule = PyCapsule_New(managed, Names<T>::fresh, give_back<T>);
    if (capsule == nullptr) fail_set();
    managed->context = Py_NewRef(args[9]);
    held.managed = nullptr;
    return capsule;
}

PyObject* dlpack_make(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("dlpack_make", nargs, 10);
        return as_int(args[7]) ? make_capsule<Versioned>(args) : make_capsule<Managed>(args);
    });
}

PyObject* sizes_of(const int64_t* values, int32_t ndim) {
    if (ndim < 0 || ndim > MOST_DIMENSIONS || (ndim > 0 && values == nullptr)) return Py_NewRef(Py_None);
    PyObject* tuple = PyTuple_New(ndim);
    for (int32_t i = 0; tuple != nullptr && i < ndim; ++i) {
        PyObject* value = PyLong_FromLongLong(values[i]);
        if (value == nullptr) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, value);
    }
    if (tuple == nullptr) fail_set();
    return tuple;
}

template <class T> PyObject* take_capsule(PyObject* capsule) {
    T* managed = static_cast<T*>(PyCapsule_GetPointer(capsule, Names<T>::fresh));
    if (managed == nullptr) fail_set();
    uint32_t major = 0;
    if constexpr (std::is_same_v<T, Versioned>) {
        major = managed->major;
        if (major > MAJOR)
            return Py_BuildValue("(IOOOOOOOOOO)", major, Py_None, Py_None, Py_None, Py_None, Py_None, Py_None, Py_None,
                                 Py_None, Py_None, Py_None);
    }
    // The owner first: from here on it gives the memory back, whatever fails.
    PyObject* owner = PyCapsule_New(managed, Names<T>::owner, give_back<T>);
    if (owner == nullptr) fail_set();
    if (PyCapsule_SetName(capsule, Names<T>::used) < 0) {
        PyCapsule_SetDestructor(owner, nullptr);
        Py_DECREF(owner);
        fail_set();
    }
    const Tensor& t = managed->tensor;
    PyObject *shape = nullptr, *strides = nullptr;
    try {
        shape = sizes_of(t.shape, t.ndim);
        strides = t.strides == nullptr ? Py_NewRef(Py_None) : sizes_of(t.strides, t.ndim);
    } catch (...) {
        Py_XDECREF(shape);
        Py_DECREF(owner);
        throw;
    }
    PyObject* source = managed->deleter == release<T> ? static_cast<PyObject*>(managed->context) : Py_None;
    // As a number: an offset that leads out of all memory is the reader's to refuse.
    const unsigned long long address = t.data == nullptr ? 0 : (uintptr_t)t.data + t.byte_offset;
    return Py_BuildValue("(IiiiiiNNNNO)", major, (int)t.device_type, (int)t.code, (int)t.bits, (int)t.lanes,
                         (int)t.ndim, shape, strides, PyLong_FromUnsignedLongLong(address), owner, source);
}

PyObject* dlpack_take(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("dlpack_take", nargs, 1);
        if (PyCapsule_IsValid(args[0], Names<Versioned>::fresh)) return take_capsule<Versioned>(args[0]);
        if (PyCapsule_IsValid(args[0], Names<Managed>::fresh)) return take_capsule<Managed>(args[0]);
        Py_RETURN_NONE;
    });
}

}  // namespace
}  // namespace mt

using namespace mt;
extern PyMethodDef dlpack_methods[];  // no other file needs to know
PyMethodDef dlpack_methods[] = {MT_METHOD("dlpack_make", dlpack_make, "A capsule of a tensor."),
                                MT_METHOD("dlpack_take", dlpack_take, "What a capsule says, which is used up."),
                                {nullptr, nullptr, 0, nullptr}};
