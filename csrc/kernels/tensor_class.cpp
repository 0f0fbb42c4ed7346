// The class of `torch.Tensor`: what is read through the class asks the handlers of what it is called with, and a call of
// the class makes a tensor.
//
// Invariant: what is read of a tensor never comes here. Which names are shown as something else is said by `_watched`,
// once for each name; a class is called natively only while it has Tensor's own `__new__` and `__init__`.
#include "common.h"

namespace {

// Given once by `define_tensor_class`; for good, as a module is never unloaded.
PyObject *kinds = nullptr, *known = nullptr, *shown = nullptr, *construct = nullptr, *tensor = nullptr;
PyObject *text_new = nullptr, *text_init = nullptr, *own_new = nullptr, *own_init = nullptr;

PyObject* get_name(PyObject* cls, PyObject* name) {
    PyObject* found = PyType_Type.tp_getattro(cls, name);
    if (!found || !tensor) return found;
    const int watched = PySet_Contains(kinds, reinterpret_cast<PyObject*>(Py_TYPE(found)));
    if (watched == 0) return found;
    PyObject* pair = watched > 0 ? PyDict_GetItemWithError(known, name) : nullptr;
    if (pair && PyTuple_CheckExact(pair) && PyTuple_GET_SIZE(pair) == 2) {
        // A subclass may have its own, and a user may have put something else there.
        if (PyTuple_GET_ITEM(pair, 0) == found) Py_SETREF(found, Py_NewRef(PyTuple_GET_ITEM(pair, 1)));
        return found;
    }
    PyObject* result = nullptr;
    if (!PyErr_Occurred()) {
        PyObject* const given[] = {name, found};
        result = PyObject_Vectorcall(shown, given, 2, nullptr);
    }
    Py_DECREF(found);
    return result;
}

PyObject* call_class(PyObject* cls, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    PyTypeObject* type = reinterpret_cast<PyTypeObject*>(cls);
    PyObject* given = PyTuple_New(n);
    if (!given) return nullptr;
    for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(given, i, Py_NewRef(args[i]));
    PyObject* by_name = PyDict_New();
    bool whole = by_name != nullptr;
    for (Py_ssize_t k = 0; whole && kwnames && k < PyTuple_GET_SIZE(kwnames); ++k)
        whole = PyDict_SetItem(by_name, PyTuple_GET_ITEM(kwnames, k), args[n + k]) == 0;
    PyObject* made = nullptr;
    if (whole) {
        if (_PyType_Lookup(type, text_new) == own_new && _PyType_Lookup(type, text_init) == own_init) {
            PyObject* const asked[] = {cls, given, by_name};
            made = PyObject_Vectorcall(construct, asked, 3, nullptr);
        } else {
            made = PyType_Type.tp_call(cls, given, by_name);
        }
    }
    Py_DECREF(given);
    Py_XDECREF(by_name);
    return made;
}

PyTypeObject make_meta_type() {
    PyTypeObject t{};
    t.tp_name = "torch._C._TensorMeta";
    t.tp_doc = "The class of Tensor and of its subclasses.";
    t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL;
    t.tp_vectorcall_offset = offsetof(PyTypeObject, tp_vectorcall);
    t.tp_getattro = get_name;
    return t;
}

PyObject* define_tensor_class(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return mt::guard([&]() -> PyObject* {
        mt::expect_args("define_tensor_class", nargs, 5);
        if (!PyType_Check(args[0]) || !PyAnySet_Check(args[1]) || !PyDict_CheckExact(args[2]))
            mt::fail(PyExc_TypeError, "define_tensor_class() expects a class, a set of classes and a dictionary");
        PyTypeObject* type = reinterpret_cast<PyTypeObject*>(args[0]);
        text_new = PyUnicode_InternFromString("__new__");
        text_init = PyUnicode_InternFromString("__init__");
        if (!text_new || !text_init) mt::fail_set();
        own_new = Py_XNewRef(_PyType_Lookup(type, text_new));
        own_init = Py_XNewRef(_PyType_Lookup(type, text_init));
        kinds = Py_NewRef(args[1]);
        known = Py_NewRef(args[2]);
        shown = Py_NewRef(args[3]);
        construct = Py_NewRef(args[4]);
        tensor = Py_NewRef(args[0]);
        type->tp_vectorcall = call_class;
        Py_RETURN_NONE;
    });
}

}  // namespace

namespace mt {
PyTypeObject TensorMetaType = make_meta_type();

bool ready_tensor_class() {
    TensorMetaType.tp_base = &PyType_Type;
    return PyType_Ready(&TensorMetaType) == 0;
}
}  // namespace mt

PyMethodDef tensor_class_methods[] = {
    MT_METHOD(
        "define_tensor_class", define_tensor_class,
        "define_tensor_class(cls, kinds, known, shown, construct): what reading through the class, and calling it, "
        "comes to."),
    {nullptr, nullptr, 0, nullptr}};
