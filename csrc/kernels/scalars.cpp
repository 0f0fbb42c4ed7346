// Elements as Python numbers, and back: item, tolist, and tensors made from (nested) lists.
//   item(storage, offset, code) -> number
//   tolist(storage, offset, strides, code, shape) -> nested lists of numbers (a number for a 0-dim shape)
//   list_shape(sequence) -> (shape, kind): kind 0 bool, 1 int, 2 float, 3 complex, 4 something else is among the elements
//   from_list(sequence, shape, code) -> Storage of the elements in row-major order
#include "common.h"

#include <vector>

using namespace mt;

namespace {

PyObject* to_python(const char* p, int code) {
    switch (code) {
        case U8: return PyLong_FromLong(*reinterpret_cast<const uint8_t*>(p));
        case I8: return PyLong_FromLong(*reinterpret_cast<const int8_t*>(p));
        case I16: return PyLong_FromLong(*reinterpret_cast<const int16_t*>(p));
        case I32: return PyLong_FromLong(*reinterpret_cast<const int32_t*>(p));
        case I64: return PyLong_FromLongLong(*reinterpret_cast<const int64_t*>(p));
        case U16: return PyLong_FromLong(*reinterpret_cast<const uint16_t*>(p));
        case U32: return PyLong_FromUnsignedLong(*reinterpret_cast<const uint32_t*>(p));
        case U64: return PyLong_FromUnsignedLongLong(*reinterpret_cast<const uint64_t*>(p));
        case BOOL: return PyBool_FromLong(*reinterpret_cast<const uint8_t*>(p) != 0);
        case F16: return PyFloat_FromDouble(half_to_float(*reinterpret_cast<const uint16_t*>(p)));
        case BF16: return PyFloat_FromDouble(bf16_to_float(*reinterpret_cast<const uint16_t*>(p)));
        case F8E5M2: return PyFloat_FromDouble(e5m2_to_float(*reinterpret_cast<const uint8_t*>(p)));
        case F8E4M3FN: return PyFloat_FromDouble(e4m3_to_float(*reinterpret_cast<const uint8_t*>(p)));
        case F32: return PyFloat_FromDouble(*reinterpret_cast<const float*>(p));
        case F64: return PyFloat_FromDouble(*reinterpret_cast<const double*>(p));
        case F8E5M2FNUZ: return PyFloat_FromDouble(e5m2fnuz_to_float(*reinterpret_cast<const uint8_t*>(p)));
        case F8E4M3FNUZ: return PyFloat_FromDouble(e4m3fnuz_to_float(*reinterpret_cast<const uint8_t*>(p)));
        case F8E8M0: return PyFloat_FromDouble(e8m0_to_float(*reinterpret_cast<const uint8_t*>(p)));
        case C32: {
            const uint16_t* c = reinterpret_cast<const uint16_t*>(p);
            return PyComplex_FromDoubles(half_to_float(c[0]), half_to_float(c[1]));
        }
        case C64: {
            const float* c = reinterpret_cast<const float*>(p);
            return PyComplex_FromDoubles(c[0], c[1]);
        }
        default: {
            const double* c = reinterpret_cast<const double*>(p);
            return PyComplex_FromDoubles(c[0], c[1]);
        }
    }
}

PyObject* item(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("item", nargs, 3);
        StorageObject* s = as_storage(args[0]);
        const int64_t offset = as_int(args[1]);
        const int code = as_code(args[2]);
        const int64_t size = ITEMSIZE[code];
        if (offset < 0 || offset >= s->nbytes / size)
            fail_reach(offset, offset, Operand{s, nullptr, code, (int)size, {}});
        return to_python(s->ptr + offset * size, code);
    });
}

PyObject* nest(const Operand& op, const Shape& shape, int dim, const char* p) {
    if (dim == shape.ndim) return to_python(p, op.code);
    const int64_t n = shape.dim[dim];
    Ref list(PyList_New(n));
    if (!list.get()) fail_set();
    const int64_t step = wrapping_mul(op.stride[dim], op.itemsize);
    for (int64_t i = 0; i < n; ++i) {
        PyObject* x = nest(op, shape, dim + 1, shape.numel ? p + i * step : p);
        if (!x) fail_set();
        PyList_SET_ITEM(list.get(), i, x);
    }
    return list.release();
}

PyObject* tolist(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("tolist", nargs, 5);
        Shape shape;
        parse_shape(args[4], shape);
        Operand op;
        parse_operand(args, shape, op);
        return nest(op, shape, 0, op.data);
    });
}

bool is_sequence(PyObject* o) { return PyList_Check(o) || PyTuple_Check(o); }

void scan(PyObject* o, size_t dim, const std::vector<int64_t>& shape, int& kind) {
    if (dim == shape.size()) {
        int k;
        if (PyBool_Check(o)) k = 0;
        else if (PyLong_CheckExact(o)) {  // a ragged size is an int by its class, and no number
            int overflow = 0;
            (void)PyLong_AsLongLongAndOverflow(o, &overflow);
            k = overflow ? 4 : 1;                 // the caller refuses what no int64 holds
        } else if (PyFloat_CheckExact(o)) k = 2;  // NumPy's float64 is a float, and keeps its own dtype
        else if (PyComplex_CheckExact(o)) k = 3;
        else k = 4;
        if (k > kind) kind = k;
        return;
    }
    if (!is_sequence(o)) {
        // A tensor or array among lists is for the caller; a number where a list belongs is PyTorch's error.
        if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o))
            fail(PyExc_TypeError, "expected sequence object with len >= 0 or number");
        kind = 4;
        return;
    }
    const int64_t n = PySequence_Fast_GET_SIZE(o);
    if (n != shape[dim])
        fail(PyExc_ValueError, "expected sequence of length %lld at dim %zu (got %lld)", (long long)shape[dim], dim,
             (long long)n);
    PyObject** items = PySequence_Fast_ITEMS(o);
    for (int64_t i = 0; i < n; ++i) scan(items[i], dim + 1, shape, kind);
}

PyObject* list_shape(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("list_shape", nargs, 1);
        std::vector<int64_t> shape;
        PyObject* o = args[0];
        while (is_sequence(o)) {
            if (shape.size() >= (size_t)MAXD) fail(PyExc_ValueError, "too many dimensions '%s'", Py_TYPE(o)->tp_name);
            const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
            shape.push_back(n);
            if (n == 0) break;
            o = PySequence_Fast_ITEMS(o)[0];
        }
        int kind = -1;
        scan(args[0], 0, shape, kind);
        PyObject* dims = PyTuple_New((Py_ssize_t)shape.size());
        if (!dims) fail_set();
        for (size_t i = 0; i < shape.size(); ++i) PyTuple_SET_ITEM(dims, (Py_ssize_t)i, PyLong_FromLongLong(shape[i]));
        return Py_BuildValue("(Ni)", dims, kind);
    });
}

char* write(PyObject* o, int dim, const Shape& shape, int code, int64_t size, char* p) {
    if (dim == shape.ndim) {
        if (code == F32 && PyFloat_CheckExact(o)) *reinterpret_cast<float*>(p) = (float)PyFloat_AS_DOUBLE(o);
        else if (code == F64 && PyFloat_CheckExact(o)) *reinterpret_cast<double*>(p) = PyFloat_AS_DOUBLE(o);
        else number_into(o, code, p);
        return p + size;
    }
    for (int64_t i = 0; i < shape.dim[dim]; ++i) {
        // Asked again each time, and held: converting a number may run Python code, which may change the list.
        if (!is_sequence(o) || PySequence_Fast_GET_SIZE(o) != shape.dim[dim])
            fail(PyExc_ValueError, "from_list: the sequence does not have the shape it was said to have");
        Ref item(PySequence_Fast_GET_ITEM(o, i));
        Py_INCREF(item.get());
        p = write(item.get(), dim + 1, shape, code, size, p);
    }
    return p;
}

PyObject* from_list(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("from_list", nargs, 3);
        Shape shape;
        parse_shape(args[1], shape);
        const int code = as_code(args[2]);
        Ref out(storage_new(shape.numel, ITEMSIZE[code]));
        if (shape.numel > 0)
            write(args[0], 0, shape, code, ITEMSIZE[code], reinterpret_cast<StorageObject*>(out.get())->ptr);
        return out.release();
    });
}

}  // namespace

PyMethodDef scalars_methods[] = {
    MT_METHOD("item", item, "One element as a Python number."),
    MT_METHOD("tolist", tolist, "Elements as nested lists of Python numbers."),
    MT_METHOD("list_shape", list_shape, "Shape and kind of a nested list."),
    MT_METHOD("from_list", from_list, "A Storage holding the numbers of a nested list."),
    {nullptr, nullptr, 0, nullptr},
};
