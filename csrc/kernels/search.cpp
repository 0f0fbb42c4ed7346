// Places in rows that lie densely in memory, and whether all elements are equal.
#include "search.h"

#include <vector>

using namespace mt;

namespace {

// Places of `count` values in one row, as Out.
template <class Out, class T>
void search_row(const T* row, int64_t n, const T* values, int64_t count, bool right, Out* out) {
    int64_t i = 0;
    if (n <= saturated_mul(count, 4) && is_sorted(row, n))
        for (; i + SEARCHES <= count; i += SEARCHES) {
            int64_t found[SEARCHES];
            if (right) places_of<true>(row, n, values + i, found);
            else places_of<false>(row, n, values + i, found);
            for (int j = 0; j < SEARCHES; ++j) out[i + j] = (Out)found[j];
        }
    for (; i < count; ++i) out[i] = (Out)place_of(row, n, values[i], right);
}

// searchsorted(rows(4), row_shape, values(4), value_shape, out(4), right): whether the dtype is served
PyObject* searchsorted(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("searchsorted", nargs, 15);
        Shape row_shape, shape;
        Operand rows, values, out;
        parse_shape(args[4], row_shape);
        parse_shape(args[9], shape);
        parse_operand(args, row_shape, rows);
        parse_operand(args + 5, shape, values);
        parse_operand(args + 10, shape, out);
        require_dense("searchsorted", row_shape, rows);
        require_dense("searchsorted", shape, values);
        require_dense("searchsorted", shape, out);
        const bool right = as_int(args[14]) != 0;
        if (rows.code != values.code || (out.code != I32 && out.code != I64)) Py_RETURN_FALSE;
        if (row_shape.ndim < 1) fail(PyExc_ValueError, "searchsorted() expects a sequence");
        const int64_t n = row_shape.dim[row_shape.ndim - 1];
        const bool one = row_shape.ndim == 1;
        const int64_t each = one ? shape.numel : shape.ndim > 0 ? shape.dim[shape.ndim - 1] : 1;
        if (!one && each > 0 && n > 0 && shape.numel / each != row_shape.numel / n)
            fail(PyExc_ValueError, "searchsorted() expects as many rows of values as of boundaries");
        bool served = false;
        {
            GilRelease gil(shape.numel * 16);
            served = with_type(rows.code, [&](auto* type) {
                using T = std::remove_pointer_t<decltype(type)>;
                parallel_for(shape.numel, 2048, [&](int64_t begin, int64_t end) {
                    while (begin < end) {
                        // Up to the end of the row of values.
                        const int64_t r = one ? 0 : begin / each;
                        const int64_t stop = one ? end : std::min(end, (r + 1) * each);
                        const T* row = rows.as<T>() + r * n;
                        const T* given = values.as<T>() + begin;
                        if (out.code == I64) search_row(row, n, given, stop - begin, right, out.as<int64_t>() + begin);
                        else search_row(row, n, given, stop - begin, right, out.as<int32_t>() + begin);
                        begin = stop;
                    }
                });
            });
        }
        return PyBool_FromLong(served);
    });
}

// equal(a(4), b(4), shape): whether all elements are; None for dtypes that are not served
PyObject* equal(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("equal", nargs, 9);
        Shape shape;
        Operand a, b;
        parse_shape(args[8], shape);
        parse_operand(args, shape, a);
        parse_operand(args + 4, shape, b);
        require_dense("equal", shape, a);
        require_dense("equal", shape, b);
        if (a.code != b.code) Py_RETURN_NONE;
        bool same = true;
        const bool served = with_type(a.code == BOOL ? (int)U8 : a.code, [&](auto* type) {
            using T = std::remove_pointer_t<decltype(type)>;
            GilRelease gil(shape.numel);
            const T *x = a.as<T>(), *y = b.as<T>();
            for (int64_t begin = 0; same && begin < shape.numel; begin += 4096) {
                const int64_t end = std::min(shape.numel, begin + 4096);
                bool all = true;
                for (int64_t i = begin; i < end; ++i) all &= x[i] == y[i];
                same = all;
            }
        });
        if (!served) Py_RETURN_NONE;
        return PyBool_FromLong(same);
    });
}

}  // namespace

PyMethodDef search_methods[] = {
    MT_METHOD("searchsorted", searchsorted, "Where values stand in sorted rows; False for dtypes that are not served."),
    MT_METHOD("equal", equal, "Whether all elements are equal; None for dtypes that are not served."),
    {nullptr, nullptr, 0, nullptr}};
