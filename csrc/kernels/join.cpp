// cat and stack: tensors copied next to each other into one result; and what other libraries' buffers look like. (In the
// table of random.cpp.) Invariant: every element of the result is written once, and nothing outside it.
//
//   join(out, ooff, ostride, ocode, oshape, dim, parts)    parts: [storage, offset, strides, code, shape] for each tensor,
//                                                          flat; shapes have the result's number of dimensions. Returns out.
#include "common.h"

namespace mt {
namespace {

// Rows of bytes: everything from `dim` inwards is contiguous in the result and in every part.
bool join_rows(const Shape& shape, const Operand& o, int dim, PyObject* parts, Py_ssize_t count) {
    if (!is_contiguous(shape, o)) return false;
    int64_t outer = 1, inner = o.itemsize;
    for (int i = 0; i < dim; ++i) outer *= shape.dim[i];
    for (int i = dim + 1; i < shape.ndim; ++i) inner *= shape.dim[i];
    const int64_t row = shape.dim[dim] * inner;
    constexpr Py_ssize_t MOST = 16;
    if (count > MOST) return false;
    const char* source[MOST];
    int64_t length[MOST];
    for (Py_ssize_t k = 0; k < count; ++k) {
        PyObject** p = PySequence_Fast_ITEMS(parts) + 5 * k;
        Shape s;
        Operand a;
        parse_shape(p[4], s);
        parse_operand(p, s, a);
        if (a.code != o.code || !is_contiguous(s, a)) return false;
        source[k] = a.data;
        length[k] = s.dim[dim] * inner;
    }
    char* to = o.data;
    for (int64_t i = 0; i < outer; ++i, to += row) {
        int64_t at = 0;
        for (Py_ssize_t k = 0; k < count; ++k) {
            std::memcpy(to + at, source[k] + i * length[k], (size_t)length[k]);
            at += length[k];
        }
    }
    return true;
}

}  // namespace

PyObject* join(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("join", nargs, 7);
        Shape shape;
        Operand o;
        parse_shape(args[4], shape);
        Ref out(parse_output(args, shape, o));
        const int64_t dim = as_int(args[5]);
        PyObject* parts = args[6];
        if (dim < 0 || dim >= shape.ndim) fail(PyExc_IndexError, "join: dimension %lld of %d", (long long)dim, shape.ndim);
        if (!PyList_Check(parts) || PyList_GET_SIZE(parts) % 5) fail(PyExc_TypeError, "join: five items for each tensor");
        const Py_ssize_t count = PyList_GET_SIZE(parts) / 5;
        int64_t total = 0;
        for (Py_ssize_t k = 0; k < count; ++k) {
            Shape s;
            parse_shape(PyList_GET_ITEM(parts, 5 * k + 4), s);
            if (s.ndim != shape.ndim) fail(PyExc_RuntimeError, "join: a part has %d dimensions, not %d", s.ndim, shape.ndim);
            for (int i = 0; i < s.ndim; ++i)
                if (i != dim && s.dim[i] != shape.dim[i]) fail(PyExc_RuntimeError, "join: a part does not fit");
            total += s.dim[dim];
        }
        if (total != shape.dim[dim]) fail(PyExc_RuntimeError, "join: parts do not add up to the result");
        if (shape.numel == 0) return out.release();
        if (shape.numel <= GIL_THRESHOLD && join_rows(shape, o, (int)dim, parts, count)) return out.release();
        char* to = o.data;
        for (Py_ssize_t k = 0; k < count; ++k) {
            PyObject** p = PySequence_Fast_ITEMS(parts) + 5 * k;
            Shape s;
            Operand a;
            parse_shape(p[4], s);
            parse_operand(p, s, a);
            {
                GilRelease unlocked(s.numel);
                copy_tensor(s, to, o.stride, o.code, a.data, a.stride, a.code);
            }
            to += s.dim[dim] * o.stride[dim] * o.itemsize;
        }
        return out.release();
    });
}

// buffer_info(object) -> (address, shape, strides in bytes, item size, readonly): memory of other libraries.
PyObject* buffer_info(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("buffer_info", nargs, 1);
        Py_buffer view;
        if (PyObject_GetBuffer(args[0], &view, PyBUF_STRIDES) < 0) fail_set();
        PyObject* shape = PyTuple_New(view.ndim);
        PyObject* strides = PyTuple_New(view.ndim);
        if (!shape || !strides) {
            Py_XDECREF(shape);
            Py_XDECREF(strides);
            PyBuffer_Release(&view);
            fail_set();
        }
        for (int i = 0; i < view.ndim; ++i) {
            PyTuple_SET_ITEM(shape, i, PyLong_FromSsize_t(view.shape[i]));
            PyTuple_SET_ITEM(strides, i, PyLong_FromSsize_t(view.strides[i]));
        }
        PyObject* result = Py_BuildValue("(KNNnO)", (unsigned long long)(uintptr_t)view.buf, shape, strides, view.itemsize,
                                         view.readonly ? Py_True : Py_False);
        PyBuffer_Release(&view);
        if (!result) fail_set();
        return result;
    });
}

}  // namespace mt
