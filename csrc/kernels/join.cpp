// cat and stack: tensors copied next to each other into one result; and what a NumPy array's memory looks like. (In the
// table of random.cpp.) Invariant: every element of the result is written once, and nothing outside it.
//
//   join(out, ooff, ostride, ocode, oshape, dim, parts)    parts: [storage, offset, strides, code, shape] for each tensor,
//                                                          flat; shapes have the result's number of dimensions. Returns out.
#include "cpu.h"
#include "move.h"

#include <algorithm>

namespace mt {
namespace {

constexpr Py_ssize_t MOST = 64;   // parts that are looked at together
constexpr int64_t RUN = 1 << 14;  // bytes of the result that are written part by part

struct Part {
    Shape shape;
    Operand operand;
};

void parse_part(PyObject* const* p, const Shape& shape, int64_t dim, Part& part) {
    parse_shape(p[4], part.shape);
    const Shape& s = part.shape;
    if (s.ndim != shape.ndim) fail(PyExc_RuntimeError, "join: a part has %d dimensions, not %d", s.ndim, shape.ndim);
    for (int i = 0; i < s.ndim; ++i)
        if (i != dim && s.dim[i] != shape.dim[i]) fail(PyExc_RuntimeError, "join: a part does not fit");
    parse_operand(p, s, part.operand);
}

// Bytes between the rows of a part, where everything from `dim` inwards is one row and rows follow each other evenly;
// else -1. A part with one row may say anything.
int64_t row_step(const Part& part, int64_t dim) {
    const Shape& s = part.shape;
    const int64_t* stride = part.operand.stride;
    int64_t expected = 1;
    for (int i = s.ndim - 1; i >= dim; --i) {
        if (s.dim[i] == 1) continue;
        if (stride[i] != expected) return -1;
        expected *= s.dim[i];
    }
    int64_t step = 0, next = 0;
    for (int i = (int)dim - 1; i >= 0; --i) {
        if (s.dim[i] == 1) continue;
        if (stride[i] < 0 || (step != 0 && stride[i] != next)) return -1;
        if (step == 0) step = stride[i];
        next = checked_mul(stride[i], s.dim[i]);
        if (step == 0) return -1;  // the same row again and again
    }
    return checked_mul(step, part.operand.itemsize);
}

// `rows` rows of one part. What kind of copy it is, is asked once for all of them.
template <class T> MT_INLINE void copy_items(char* to, int64_t tstep, const char* from, int64_t fstep, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) std::memcpy(to + i * tstep, from + i * fstep, sizeof(T));
}
MT_INLINE void copy_part(char* to, int64_t tstep, const char* from, int64_t fstep, int64_t rows, int64_t length) {
    switch (length) {
        case 1: return copy_items<uint8_t>(to, tstep, from, fstep, rows);
        case 2: return copy_items<uint16_t>(to, tstep, from, fstep, rows);
        case 4: return copy_items<uint32_t>(to, tstep, from, fstep, rows);
        case 8: return copy_items<uint64_t>(to, tstep, from, fstep, rows);
        case 16: return copy_items<Raw16>(to, tstep, from, fstep, rows);
        default: break;
    }
    for (int64_t i = 0; i < rows; ++i) copy_bytes(to + i * tstep, from + i * fstep, length);
}

// Copies a few parts as rows of bytes: everything from `dim` inwards is contiguous in the result and in every part.
bool join_rows(const Shape& shape, const Operand& o, int64_t dim, const Part* parts, Py_ssize_t count) {
    if (!is_contiguous(shape, o)) return false;
    if (shape.numel == 0) return true;
    int64_t outer = 1, inner = o.itemsize, length[MOST], step[MOST];
    for (int i = 0; i < dim; ++i) outer *= shape.dim[i];
    for (int i = (int)dim + 1; i < shape.ndim; ++i) inner *= shape.dim[i];
    for (Py_ssize_t k = 0; k < count; ++k) {
        const Part& part = parts[k];
        if (part.operand.code != o.code) return false;
        length[k] = part.shape.dim[dim] * inner;
        step[k] = length[k] ? row_step(part, dim) : 0;
        if (step[k] < 0) return false;
    }
    const int64_t row = shape.dim[dim] * inner;
    // Few long rows are copied part by part instead, each with every thread.
    if (shape.numel > GIL_THRESHOLD && outer < 64) return false;
    GilRelease unlocked(shape.numel);
    parallel_for(outer, ceil_div(4 * GRAIN, row), [&](int64_t begin, int64_t end) {
        const int64_t most = std::max<int64_t>(1, RUN / row);
        at_level(MT_BODY {
            for (int64_t i = begin; i < end; i += most) {
                const int64_t rows = std::min(most, end - i);
                char* to = o.data + i * row;
                for (Py_ssize_t k = 0; k < count; ++k) {
                    if (length[k] == 0) continue;  // a part without elements may have no memory
                    copy_part(to, row, parts[k].operand.data + i * step[k], step[k], rows, length[k]);
                    to += length[k];
                }
            }
        });
    });
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
        PyObject* list = args[6];
        if (dim < 0 || dim >= shape.ndim)
            fail(PyExc_IndexError, "join: dimension %lld of %d", (long long)dim, shape.ndim);
        if (!PyList_Check(list) || PyList_GET_SIZE(list) % 5) fail(PyExc_TypeError, "join: five items for each tensor");
        const Py_ssize_t count = PyList_GET_SIZE(list) / 5;
        Part parts[MOST];
        int64_t at = 0;
        for (Py_ssize_t first = 0; first < count; first += MOST) {
            const Py_ssize_t n = count - first < MOST ? count - first : MOST;
            int64_t length = 0;
            for (Py_ssize_t k = 0; k < n; ++k) {
                parse_part(PySequence_Fast_ITEMS(list) + 5 * (first + k), shape, dim, parts[k]);
                length = checked_add(length, parts[k].shape.dim[dim]);
            }
            if (length > shape.dim[dim] - at) fail(PyExc_RuntimeError, "join: parts do not add up to the result");
            if (count <= MOST && length == shape.dim[dim] && join_rows(shape, o, dim, parts, n)) return out.release();
            for (Py_ssize_t k = 0; k < n; ++k) {
                const Part& part = parts[k];
                GilRelease unlocked(part.shape.numel);
                copy_tensor(part.shape, part.shape.numel ? o.data + at * o.stride[dim] * o.itemsize : o.data, o.stride,
                            o.code, part.operand.data, part.operand.stride, part.operand.code);
                at += part.shape.dim[dim];
            }
        }
        if (at != shape.dim[dim]) fail(PyExc_RuntimeError, "join: parts do not add up to the result");
        return out.release();
    });
}

// What NumPy's __array_struct__ points to.
struct ArrayInterface {
    int two, ndim;
    char kind;
    int itemsize, flags;
    Py_ssize_t *shape, *strides;
    void* data;
    PyObject* descr;
};
constexpr int WRITEABLE = 0x0400;

static PyObject* ints_of(const Py_ssize_t* values, int n) {
    Ref tuple(PyTuple_New(n));
    if (!tuple.get()) fail_set();
    for (int i = 0; i < n; ++i) {
        PyObject* v = PyLong_FromSsize_t(values[i]);
        if (!v) fail_set();
        PyTuple_SET_ITEM(tuple.get(), i, v);
    }
    return tuple.release();
}

// array_info(array) -> (address, shape, strides in bytes, item size, readonly): the memory of a NumPy array, read from
// the structure it offers; the buffer protocol would have NumPy write a format string for every call.
PyObject* array_info(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("array_info", nargs, 1);
        static PyObject* const name = PyUnicode_InternFromString("__array_struct__");
        Ref capsule(PyObject_GetAttr(args[0], name));
        if (!capsule.get()) fail_set();
        auto* a = static_cast<ArrayInterface*>(PyCapsule_GetPointer(capsule.get(), nullptr));
        if (!a) fail_set();
        if (a->two != 2) fail(PyExc_ValueError, "array_info: not an array structure");
        Ref shape(ints_of(a->shape, a->ndim)), strides(ints_of(a->strides, a->ndim));
        PyObject* result = PyTuple_New(5);
        if (!result) fail_set();
        PyTuple_SET_ITEM(result, 0, PyLong_FromVoidPtr(a->data));
        PyTuple_SET_ITEM(result, 1, shape.release());
        PyTuple_SET_ITEM(result, 2, strides.release());
        PyTuple_SET_ITEM(result, 3, PyLong_FromLong(a->itemsize));
        PyTuple_SET_ITEM(result, 4, PyBool_FromLong(!(a->flags & WRITEABLE)));
        return result;
    });
}

}  // namespace mt
