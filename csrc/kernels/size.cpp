// The part of `Size` that every program uses at every step: making one of a tuple, picking sizes, slices, joining.
//
// Invariant: a tuple everywhere a tuple is expected. What is no plain case (other iterables, elements that are no ints,
// operands that are no tuples) goes to the functions that `define_size` was given.
#include "common.h"

namespace {

PyTypeObject* size_class = nullptr;  // the class of results, which derives from ShapeType
PyObject* checked = nullptr;         // checked(sizes): a tuple of ints, or what is wrong with them
PyObject* joined = nullptr;          // joined(left, right): a sum that is no plain case

bool only_ints(PyObject* const* items, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; ++i)
        if (!PyLong_CheckExact(items[i])) return false;
    return true;
}

PyObject* const* items_of(PyObject* sequence) {
    return PyTuple_Check(sequence) ? reinterpret_cast<PyTupleObject*>(sequence)->ob_item
                                   : reinterpret_cast<PyListObject*>(sequence)->ob_item;
}

void fill(PyObject* tuple, Py_ssize_t at, PyObject* const* items, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; ++i) {
        Py_INCREF(items[i]);
        PyTuple_SET_ITEM(tuple, at + i, items[i]);
    }
}

PyObject* of_items(PyObject* const* items, Py_ssize_t n, PyObject* const* more = nullptr, Py_ssize_t m = 0) {
    PyObject* made = size_class->tp_alloc(size_class, n + m);
    if (!made) return nullptr;
    fill(made, 0, items, n);
    fill(made, n, more, m);
    return made;
}

PyObject* shape_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
    PyObject* sizes = nullptr;
    if (!size_class) {
        PyErr_SetString(PyExc_TypeError, "Shape is made by the class that was given to define_size()");
        return nullptr;
    }
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "tuple() takes no keyword arguments");
        return nullptr;
    }
    if (!PyArg_UnpackTuple(args, "tuple", 0, 1, &sizes)) return nullptr;
    if (!sizes) return of_items(nullptr, 0);
    if ((PyTuple_CheckExact(sizes) || PyList_CheckExact(sizes)) && only_ints(items_of(sizes), Py_SIZE(sizes)))
        return of_items(items_of(sizes), Py_SIZE(sizes));
    PyObject* plain = PyObject_CallOneArg(checked, sizes);
    if (!plain) return nullptr;
    PyObject* made = nullptr;
    if (PyTuple_Check(plain)) made = of_items(items_of(plain), Py_SIZE(plain));
    else PyErr_SetString(PyExc_TypeError, "sizes that were checked must be a tuple");
    Py_DECREF(plain);
    return made;
}

PyObject* subscript(PyObject* self, PyObject* key) {
    PyObject* found = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
    if (!found || !PyTuple_CheckExact(found) || !PySlice_Check(key)) return found;
    PyObject* made = of_items(items_of(found), Py_SIZE(found));
    Py_DECREF(found);
    return made;
}

PyObject* add(PyObject* left, PyObject* right) {
    if (!PyTuple_Check(left) || !PyTuple_Check(right) || !only_ints(items_of(left), Py_SIZE(left)) ||
        !only_ints(items_of(right), Py_SIZE(right)))
        return PyObject_CallFunctionObjArgs(joined, left, right, nullptr);
    return of_items(items_of(left), Py_SIZE(left), items_of(right), Py_SIZE(right));
}

PyMappingMethods mapping = {nullptr, subscript, nullptr};

PyNumberMethods make_number() {
    PyNumberMethods n{};
    n.nb_add = add;
    return n;
}
PyNumberMethods number = make_number();

PyTypeObject make_type() {
    PyTypeObject t{};
    t.tp_name = "mindtorch_v2._native.Shape";
    t.tp_doc = "What `Size` derives from: a tuple whose slices and sums are sizes again.";
    t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
    t.tp_as_mapping = &mapping;
    t.tp_as_number = &number;
    t.tp_new = shape_new;
    return t;
}

}  // namespace

namespace mt {
PyTypeObject ShapeType = make_type();

bool ready_shape_type() {
    ShapeType.tp_base = &PyTuple_Type;
    return PyType_Ready(&ShapeType) == 0;
}
}  // namespace mt

namespace {

PyObject* define_size(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return mt::guard([&]() -> PyObject* {
        mt::expect_args("define_size", nargs, 3);
        if (!PyType_Check(args[0]) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(args[0]), &mt::ShapeType))
            mt::fail(PyExc_TypeError, "define_size() expects a class that derives from Shape");
        for (int i = 0; i < 3; ++i) Py_INCREF(args[i]);  // for good: a module is never unloaded
        size_class = reinterpret_cast<PyTypeObject*>(args[0]);
        checked = args[1];
        joined = args[2];
        Py_RETURN_NONE;
    });
}

}  // namespace

PyMethodDef size_methods[] = {
    MT_METHOD("define_size", define_size,
              "define_size(cls, checked, joined): the class of sizes, and what serves its rarer cases."),
    {nullptr, nullptr, 0, nullptr}};
