// What the C files of the compiled modules begin with, before mypyc's own headers.
//
// Invariant: meaning stays as it is; only what is asked on every call is answered sooner.
#pragma once
#include <Python.h>

// Nearly every tensor is of the one class that derives directly from the compiled one, so a look at the first base
// spares a walk along the method resolution order.
static inline int mt_type_check(PyObject* object, PyTypeObject* type) {
    PyTypeObject* own = Py_TYPE(object);
    return own == type || own->tp_base == type || PyType_IsSubtype(own, type);
}
#undef PyObject_TypeCheck
#define PyObject_TypeCheck(object, type) mt_type_check((PyObject*)(object), type)
