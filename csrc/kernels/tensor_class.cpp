// The class of `torch.Tensor`: what is read through the class asks the handlers of what it is called with, and a call of
// the class makes a tensor.
//
// Operators of a compiled class answer NotImplemented for operands that they do not know, as those of Python classes do:
// what mypyc makes of them asks the other operand itself, and raises.
//
// Invariant: what is read of a tensor never comes here. Which names are shown as something else is said by `_watched`,
// once for each name; a class is called natively only while it has Tensor's own `__new__` and `__init__`.
#include <utility>

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

// Python takes `__iadd__` for the addition of sequences too, and what that one answers is not asked about again: `t += x`
// would become NotImplemented.
int init_class(PyObject* cls, PyObject* args, PyObject* kwargs) {
    if (PyType_Type.tp_init(cls, args, kwargs) < 0) return -1;
    PyTypeObject* type = reinterpret_cast<PyTypeObject*>(cls);
    if (type->tp_as_sequence && type->tp_as_number &&
        type->tp_as_sequence->sq_inplace_concat == type->tp_as_number->nb_inplace_add)
        type->tp_as_sequence->sq_inplace_concat = nullptr;
    return 0;
}

PyTypeObject make_meta_type() {
    PyTypeObject t{};
    t.tp_name = "torch._C._TensorMeta";
    t.tp_doc = "The class of Tensor and of its subclasses.";
    t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL;
    t.tp_vectorcall_offset = offsetof(PyTypeObject, tp_vectorcall);
    t.tp_getattro = get_name;
    t.tp_init = init_class;
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

// -- operators ---------------------------------------------------------------------------------------------------------
struct Operator {
    const char *name, *reflected;
    binaryfunc PyNumberMethods::* slot;
};
constexpr Operator OPERATORS[] = {
    {"__add__", "__radd__", &PyNumberMethods::nb_add},
    {"__sub__", "__rsub__", &PyNumberMethods::nb_subtract},
    {"__mul__", "__rmul__", &PyNumberMethods::nb_multiply},
    {"__mod__", "__rmod__", &PyNumberMethods::nb_remainder},
    {"__lshift__", "__rlshift__", &PyNumberMethods::nb_lshift},
    {"__rshift__", "__rrshift__", &PyNumberMethods::nb_rshift},
    {"__and__", "__rand__", &PyNumberMethods::nb_and},
    {"__xor__", "__rxor__", &PyNumberMethods::nb_xor},
    {"__or__", "__ror__", &PyNumberMethods::nb_or},
    {"__floordiv__", "__rfloordiv__", &PyNumberMethods::nb_floor_divide},
    {"__truediv__", "__rtruediv__", &PyNumberMethods::nb_true_divide},
    {"__matmul__", "__rmatmul__", &PyNumberMethods::nb_matrix_multiply},
};
constexpr size_t COUNT = sizeof(OPERATORS) / sizeof(OPERATORS[0]), MATMUL = COUNT - 1;
PyTypeObject* base = nullptr;
binaryfunc compiled[COUNT];
ternaryfunc compiled_power = nullptr;
PyObject *text_function = nullptr, *text_dtype = nullptr, *text_item = nullptr, *text_len = nullptr;

// Tensors, numbers, scalars of NumPy, and what has a handler of its own.
bool counts(PyObject* x) {
    if (PyObject_TypeCheck(x, base) || PyFloat_Check(x) || PyLong_Check(x) || PyComplex_Check(x)) return true;
    PyTypeObject* type = Py_TYPE(x);
    if (_PyType_Lookup(type, text_function)) return true;
    return _PyType_Lookup(type, text_dtype) && _PyType_Lookup(type, text_item) && !_PyType_Lookup(type, text_len);
}

// What stands on the left and is no tensor has been asked already: then the reflected method decides.
template <size_t I> bool decides(PyObject* left, PyObject* right) {
    if (!PyObject_TypeCheck(left, base)) return true;
    // There is no matrix product with a number.
    if (I == MATMUL) return PyObject_TypeCheck(right, base) || _PyType_Lookup(Py_TYPE(right), text_function);
    return counts(right);
}

template <size_t I> PyObject* binary(PyObject* left, PyObject* right) {
    if (decides<I>(left, right)) return compiled[I](left, right);
    Py_RETURN_NOTIMPLEMENTED;
}

PyObject* power(PyObject* left, PyObject* right, PyObject* modulus) {
    if (decides<COUNT>(left, right)) return compiled_power(left, right, modulus);
    Py_RETURN_NOTIMPLEMENTED;
}

// The method by its name leads to the same function as the slot: subclasses take their slots from it.
bool rename(PyTypeObject* type, const char* name, void* function) {
    PyObject* found = PyDict_GetItemString(type->tp_dict, name);
    if (!found || !Py_IS_TYPE(found, &PyWrapperDescr_Type)) return true;
    PyObject* made = PyDescr_NewWrapper(type, reinterpret_cast<PyWrapperDescrObject*>(found)->d_base, function);
    if (!made) return false;
    const bool set = PyDict_SetItemString(type->tp_dict, name, made) == 0;
    Py_DECREF(made);
    return set;
}

template <size_t... I> bool replace_all(PyTypeObject* type, std::index_sequence<I...>) {
    const binaryfunc mine[] = {binary<I>...};
    PyNumberMethods* numbers = type->tp_as_number;
    for (size_t i = 0; i < COUNT; ++i) {
        compiled[i] = numbers->*OPERATORS[i].slot;
        if (!compiled[i]) continue;
        numbers->*OPERATORS[i].slot = mine[i];
        void* function = reinterpret_cast<void*>(mine[i]);
        if (!rename(type, OPERATORS[i].name, function) || !rename(type, OPERATORS[i].reflected, function)) return false;
    }
    compiled_power = numbers->nb_power;
    if (!compiled_power) return true;
    numbers->nb_power = power;
    void* function = reinterpret_cast<void*>(power);
    return rename(type, "__pow__", function) && rename(type, "__rpow__", function);
}

PyObject* define_operators(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return mt::guard([&]() -> PyObject* {
        mt::expect_args("define_operators", nargs, 1);
        if (!PyType_Check(args[0])) mt::fail(PyExc_TypeError, "define_operators() expects a class");
        PyTypeObject* type = reinterpret_cast<PyTypeObject*>(args[0]);
        PyObject* add = PyDict_GetItemString(type->tp_dict, "__add__");
        // Methods of a class that is not compiled do as they should; a second call would lead in a circle.
        if (!add || !Py_IS_TYPE(add, &PyWrapperDescr_Type) || base) Py_RETURN_NONE;
        text_function = PyUnicode_InternFromString("__torch_function__");
        text_dtype = PyUnicode_InternFromString("dtype");
        text_item = PyUnicode_InternFromString("item");
        text_len = PyUnicode_InternFromString("__len__");
        if (!text_function || !text_dtype || !text_item || !text_len) mt::fail_set();
        base = reinterpret_cast<PyTypeObject*>(Py_NewRef(args[0]));
        if (!replace_all(type, std::make_index_sequence<COUNT>())) mt::fail_set();
        PyType_Modified(type);
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
    MT_METHOD(
        "define_operators", define_operators,
        "define_operators(cls): operators of a compiled class answer NotImplemented for operands they do not know."),
    {nullptr, nullptr, 0, nullptr}};
