// Classes whose instances are values: `cls(value)` where such an instance was made before is that instance. And how a
// compiled module is begun, and tuples of one small int, which layers are given again and again: there is one of each.
//
// Invariant: what cannot be found by one argument is made by the class, as ever.
#include "common.h"

#include <cstring>

namespace {

constexpr Py_ssize_t MOST_KEPT = 4;
struct Kept {
    PyTypeObject* type;
    PyObject* known;  // by argument
};
Kept kept[MOST_KEPT] = {};

// `cls(value)` where such an instance was made before is that instance; every other call is made as ever.
PyObject* call_kept(PyObject* callable, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    if (PyVectorcall_NARGS(nargsf) == 1 && !kwnames) {
        for (const Kept& each : kept) {
            if (reinterpret_cast<PyObject*>(each.type) != callable) continue;
            PyObject* found = PyDict_GetItemWithError(each.known, args[0]);
            if (found) return Py_NewRef(found);
            PyErr_Clear();  // what cannot be a key is refused by the class
            break;
        }
    }
    PyObject* given = PyTuple_New(PyVectorcall_NARGS(nargsf));
    for (Py_ssize_t i = 0; given && i < PyTuple_GET_SIZE(given); ++i) PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
    PyObject* by_name = kwnames && given ? PyDict_New() : nullptr;
    bool whole = given && (by_name || !kwnames);
    for (Py_ssize_t k = 0; whole && kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
        whole = PyDict_SetItem(by_name, PyTuple_GET_ITEM(kwnames, k), args[PyTuple_GET_SIZE(given) + k]) == 0;
    PyObject* made = whole ? PyType_Type.tp_call(callable, given, by_name) : nullptr;
    Py_XDECREF(given);
    Py_XDECREF(by_name);
    return made;
}

PyObject* keep_instances(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return mt::guard([&]() -> PyObject* {
        mt::expect_args("keep_instances", nargs, 2);
        if (!PyType_Check(args[0]) || Py_TYPE(args[0]) != &PyType_Type || !PyDict_CheckExact(args[1]))
            mt::fail(PyExc_TypeError, "keep_instances() expects a class and a dictionary");
        for (Kept& each : kept) {
            if (each.type) continue;
            each = {reinterpret_cast<PyTypeObject*>(Py_NewRef(args[0])), Py_NewRef(args[1])};
            each.type->tp_vectorcall = call_kept;
            Py_RETURN_NONE;
        }
        mt::fail(PyExc_ValueError, "keep_instances(): there are too many classes");
    });
}

// A module of the library of compiled modules, which gives the function that makes it in a capsule.
PyObject* begin_module(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return mt::guard([&]() -> PyObject* {
        mt::expect_args("begin_module", nargs, 1);
        const char* name = PyCapsule_CheckExact(args[0]) ? PyCapsule_GetName(args[0]) : nullptr;
        if (!name || !std::strstr(name, "._core__mypyc.init_"))
            mt::fail(PyExc_TypeError, "begin_module() takes a module of the library of compiled modules");
        const auto begin = reinterpret_cast<PyObject* (*)()>(PyCapsule_GetPointer(args[0], name));
        return begin ? begin() : nullptr;
    });
}

// Of an int that a C long holds.
PyObject* repeat(PyObject* number, int copies) {
    PyObject* made = PyTuple_New(copies);
    for (int i = 0; made && i < copies; ++i) PyTuple_SET_ITEM(made, i, Py_NewRef(number));
    return made;
}

constexpr long MOST_SHARED = 16;
constexpr int MOST_COPIES = 3;
struct Shared {
    PyObject* tuples[MOST_COPIES][MOST_SHARED] = {};
    Shared() {
        for (long value = 0; value < MOST_SHARED; ++value) {
            PyObject* number = PyLong_FromLong(value);
            for (int i = 0; number && i < MOST_COPIES; ++i) tuples[i][value] = repeat(number, i + 1);
            Py_XDECREF(number);
        }
        PyErr_Clear();  // what there was no memory for is made when it is asked for
    }
};

}  // namespace

namespace mt {
PyObject* repeated(PyObject* number, int copies) {
    static const Shared shared;
    const long value = PyLong_AsLong(number);
    if (value < 0 || value >= MOST_SHARED || copies < 1 || copies > MOST_COPIES) return repeat(number, copies);
    PyObject* known = shared.tuples[copies - 1][value];
    return known ? Py_NewRef(known) : repeat(number, copies);
}
}  // namespace mt

PyMethodDef instances_methods[] = {
    MT_METHOD("begin_module", begin_module, "begin_module(capsule): the compiled module that it makes."),
    MT_METHOD("keep_instances", keep_instances,
              "keep_instances(cls, known): cls(value) is known[value] where there is one."),
    {nullptr, nullptr, 0, nullptr}};
