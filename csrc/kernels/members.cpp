// What `nn.Module` is asked at every step: its parameters, buffers and submodules by name, and to be called.
//
// Invariant: a class is served here only while it has Module's own `__getattr__` and `__call__`: `quicken` puts these
// functions into the slots of a new class, and Python puts its own there again when anybody gives the class, or one it
// derives from, other methods. What is not found at sight is left to the methods in Python, and so are hooks.
#include "common.h"

#include <vector>

namespace {

constexpr Py_ssize_t MOST_ARGUMENTS = 16;

// Module's own methods, given once by `define_members`; for good, as a module is never unloaded.
PyObject *own_getattr = nullptr, *own_call = nullptr;
PyObject *text_getattr = nullptr, *text_getattribute = nullptr, *text_call = nullptr, *text_forward = nullptr;
PyObject *text_hooked = nullptr, *members[3] = {};
bool shown = false;  // a profile of Python's calls is made, in which calls of modules have a frame

// A dictionary whose lookup nobody has changed.
bool is_plain_dict(PyObject* v) { return v && (PyDict_CheckExact(v) || PyODict_CheckExact(v)); }

// Borrowed; null without an error where there is none.
PyObject* found_in(PyObject* dict, PyObject* name) {
    PyObject* found = PyDict_GetItemWithError(dict, name);
    if (!found) PyErr_Clear();
    return found;
}

PyObject* in_words(PyObject* self, PyObject* name) {
    PyObject* const given[] = {self, name};
    return PyObject_Vectorcall(own_getattr, given, 2, nullptr);
}

PyObject* get_member(PyObject* self, PyObject* name) {
    if (_PyType_Lookup(Py_TYPE(self), name)) {
        PyObject* value = PyObject_GenericGetAttr(self, name);
        if (MT_LIKELY(value || !PyErr_ExceptionMatches(PyExc_AttributeError))) return value;
        PyErr_Clear();  // a property that has no value, perhaps because there is a parameter of that name
        return in_words(self, name);
    }
    PyObject* state = PyObject_GenericGetDict(self, nullptr);
    if (!state) return nullptr;
    PyObject* value = Py_XNewRef(found_in(state, name));
    for (int i = 0; !value && i < 3; ++i) {
        PyObject* dict = found_in(state, members[i]);
        if (!is_plain_dict(dict)) break;
        Py_INCREF(dict);  // comparing names may run code, which may take the dictionary away
        value = Py_XNewRef(found_in(dict, name));
        Py_DECREF(dict);
    }
    Py_DECREF(state);
    return value ? value : in_words(self, name);
}

// Whether `forward` is the function of the class, and not an attribute of this module.
bool is_of_class(PyObject* self, PyObject* forward) {
    if (!forward || !PyFunction_Check(forward)) return false;
    PyObject* state = PyObject_GenericGetDict(self, nullptr);
    if (!state) {
        PyErr_Clear();
        return false;
    }
    const bool own = found_in(state, text_forward) != nullptr;
    Py_DECREF(state);
    return !own;
}

PyObject* call_module(PyObject* self, PyObject* args, PyObject* kwargs) {
    PyObject* hooked = PyObject_GenericGetAttr(self, text_hooked);
    if (!hooked) return nullptr;
    const bool plain = hooked == Py_False && !shown;
    Py_DECREF(hooked);
    // A new reference: the class may be given another one meanwhile.
    PyObject* forward = Py_XNewRef(plain ? _PyType_Lookup(Py_TYPE(self), text_forward) : own_call);
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (n < MOST_ARGUMENTS && (!plain || is_of_class(self, forward))) {
        PyObject* given[MOST_ARGUMENTS + 1] = {self};
        for (Py_ssize_t i = 0; i < n; ++i) given[i + 1] = PyTuple_GET_ITEM(args, i);
        PyObject* result = PyObject_VectorcallDict(forward, given, (size_t)(n + 1), kwargs);
        Py_DECREF(forward);
        return result;
    }
    Py_XDECREF(forward);
    PyObject* bound = PyObject_GetAttr(self, plain ? text_forward : text_call);
    if (!bound) return nullptr;
    PyObject* result = PyObject_Call(bound, args, kwargs);
    Py_DECREF(bound);
    return result;
}

PyObject* define_members(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return mt::guard([&]() -> PyObject* {
        mt::expect_args("define_members", nargs, 2);
        const char* const names[] = {"_parameters", "_modules", "_buffers"};
        for (int i = 0; i < 3; ++i) members[i] = PyUnicode_InternFromString(names[i]);
        text_getattr = PyUnicode_InternFromString("__getattr__");
        text_getattribute = PyUnicode_InternFromString("__getattribute__");
        text_call = PyUnicode_InternFromString("__call__");
        text_forward = PyUnicode_InternFromString("forward");
        text_hooked = PyUnicode_InternFromString("_hooked");
        if (PyErr_Occurred()) mt::fail_set();
        own_getattr = Py_NewRef(args[0]);
        own_call = Py_NewRef(args[1]);
        Py_RETURN_NONE;
    });
}

PyObject* show_modules(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return mt::guard([&]() -> PyObject* {
        mt::expect_args("show_modules", nargs, 1);
        shown = args[0] == Py_True;
        Py_RETURN_NONE;
    });
}

PyObject* quicken(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return mt::guard([&]() -> PyObject* {
        mt::expect_args("quicken", nargs, 1);
        PyTypeObject* type = reinterpret_cast<PyTypeObject*>(args[0]);
        if (!PyType_Check(args[0]) || !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
            mt::fail(PyExc_TypeError, "quicken() expects a class written in Python");
        if (!own_call) mt::fail(PyExc_RuntimeError, "quicken(): define_members() was not called");
        PyObject* usual = _PyType_Lookup(&PyBaseObject_Type, text_getattribute);
        if (_PyType_Lookup(type, text_getattr) == own_getattr && _PyType_Lookup(type, text_getattribute) == usual)
            type->tp_getattro = get_member;
        if (_PyType_Lookup(type, text_call) == own_call) type->tp_call = call_module;
        Py_RETURN_NONE;
    });
}

}  // namespace

PyMethodDef members_methods[] = {
    MT_METHOD("define_members", define_members,
              "define_members(getattr, call): Module's own methods, which serve what is no usual case."),
    MT_METHOD("show_modules", show_modules,
              "show_modules(on): calls of modules have a frame in Python, as profiles want."),
    MT_METHOD("quicken", quicken, "quicken(cls): a class of modules finds members, and calls forward, natively."),
    {nullptr, nullptr, 0, nullptr}};
