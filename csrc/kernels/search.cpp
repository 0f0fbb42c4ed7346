// Places, counts and distinct values of rows that lie densely in memory: what sorts and masks of whole tensors would do in
// many calls.
//
// Invariant: operands are row-major and without gaps (checked here); what another thread writes meanwhile may change an
// answer, and never where memory is touched.
#include "common.h"

#include <algorithm>
#include <vector>

using namespace mt;

namespace {

// Runs f(T*) for the element type of a code; false for types that are not searched here.
template <class F> bool with_type(int code, F&& f) {
    switch (code) {
        case U8: f(static_cast<uint8_t*>(nullptr)); return true;
        case I8: f(static_cast<int8_t*>(nullptr)); return true;
        case I16: f(static_cast<int16_t*>(nullptr)); return true;
        case I32: f(static_cast<int32_t*>(nullptr)); return true;
        case I64: f(static_cast<int64_t*>(nullptr)); return true;
        case F32: f(static_cast<float*>(nullptr)); return true;
        case F64: f(static_cast<double*>(nullptr)); return true;
        default: return false;
    }
}

void require_dense(const char* name, const Shape& shape, const Operand& op) {
    if (shape.numel > 1 && !is_contiguous(shape, op)) fail(PyExc_ValueError, "%s() expects rows without gaps", name);
}

template <class T> bool is_nan(T v) { return v != v; }

// NaN stands behind everything.
template <class T> bool before(T a, T b) { return a < b || (!is_nan(a) && is_nan(b)); }

template <class T> int64_t place(const T* row, int64_t n, T value, bool right) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        // PyTorch's comparisons, also for NaN.
        if (right ? !(row[middle] > value) : !(row[middle] >= value)) low = middle + 1;
        else high = middle;
    }
    return low;
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
                    for (int64_t i = begin; i < end; ++i) {
                        const T* row = rows.as<T>() + (one ? 0 : i / each * n);
                        const int64_t found = place(row, n, values.as<T>()[i], right);
                        if (out.code == I64) out.as<int64_t>()[i] = found;
                        else out.as<int32_t>()[i] = (int32_t)found;
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

// bincount(x(4), n, minlength): (storage of int64 counts, how many), or None when the elements are none to be counted
PyObject* bincount(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("bincount", nargs, 6);
        Shape shape{1, as_int(args[4]), {as_int(args[4])}};
        const int64_t least = as_int(args[5]);
        if (shape.numel < 0 || least < 0) fail(PyExc_ValueError, "bincount() expects sizes that are not negative");
        Operand x;
        parse_operand(args, shape, x);
        require_dense("bincount", shape, x);
        if (!is_int_code(x.code)) Py_RETURN_NONE;
        // Read once: the largest of these values is the size of what they count into.
        std::vector<int64_t> values((size_t)shape.numel);
        const bool served = with_type(x.code, [&](auto* type) {
            using T = std::remove_pointer_t<decltype(type)>;
            for (int64_t i = 0; i < shape.numel; ++i) values[(size_t)i] = (int64_t)x.as<T>()[i];
        });
        int64_t most = -1;
        for (int64_t v : values) {
            if (v < 0) Py_RETURN_NONE;
            most = std::max(most, v);
        }
        if (!served || most >= (int64_t)1 << 40) Py_RETURN_NONE;
        const int64_t size = std::max(least, most + 1);
        Ref made(storage_new(size, 8));
        int64_t* counts = reinterpret_cast<int64_t*>(reinterpret_cast<StorageObject*>(made.get())->ptr);
        std::fill(counts, counts + size, (int64_t)0);
        for (int64_t v : values) ++counts[v];
        return Py_BuildValue("(OL)", made.get(), (long long)size);
    });
}

// median(x(4), shape, values(4), places(4), skip_nan): of each row; whether the dtype is served
PyObject* median(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("median", nargs, 14);
        Shape shape;
        Operand x, values, places;
        parse_shape(args[4], shape);
        if (shape.ndim != 2) fail(PyExc_ValueError, "median() expects rows");
        parse_operand(args, shape, x);
        Shape flat{1, shape.dim[0], {shape.dim[0]}};
        parse_operand(args + 5, flat, values);
        parse_operand(args + 9, flat, places);
        require_dense("median", shape, x);
        require_dense("median", flat, values);
        require_dense("median", flat, places);
        const bool skip = as_int(args[13]) != 0;
        const int64_t n = shape.dim[1];
        if (n < 1) fail(PyExc_ValueError, "median() expects rows with elements");
        if (values.code != x.code || places.code != I64) Py_RETURN_FALSE;
        bool served = false;
        {
            GilRelease gil(shape.numel * 4);
            served = with_type(x.code, [&](auto* type) {
                using T = std::remove_pointer_t<decltype(type)>;
                std::vector<std::pair<T, int64_t>> row((size_t)n);
                for (int64_t r = 0; r < shape.dim[0]; ++r) {
                    int64_t bad = 0;
                    for (int64_t i = 0; i < n; ++i) {
                        row[(size_t)i] = {x.as<T>()[r * n + i], i};
                        bad += is_nan(row[(size_t)i].first);
                    }
                    int64_t at = (n - 1) / 2;
                    if (bad) at = skip ? std::max((int64_t)0, n - bad - 1) / 2 : n - bad;
                    std::nth_element(row.begin(), row.begin() + at, row.end(), [](const auto& a, const auto& b) {
                        return before(a.first, b.first) || (!before(b.first, a.first) && a.second < b.second);
                    });
                    values.as<T>()[r] = row[(size_t)at].first;
                    places.as<int64_t>()[r] = row[(size_t)at].second;
                }
            });
        }
        return PyBool_FromLong(served);
    });
}

// unique(x(4), n): (storage of values, how many, storage of inverse, storage of counts), or None for other dtypes
PyObject* unique(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("unique", nargs, 5);
        Shape shape{1, as_int(args[4]), {as_int(args[4])}};
        if (shape.numel < 0) fail(PyExc_ValueError, "unique() expects a size that is not negative");
        Operand x;
        parse_operand(args, shape, x);
        require_dense("unique", shape, x);
        const int64_t n = shape.numel;
        Ref values, inverse, counts;
        int64_t found = 0;
        const bool served = with_type(x.code == BOOL ? (int)U8 : x.code, [&](auto* type) {
            using T = std::remove_pointer_t<decltype(type)>;
            std::vector<std::pair<T, int64_t>> sorted((size_t)n);
            for (int64_t i = 0; i < n; ++i) sorted[(size_t)i] = {x.as<T>()[i], i};
            std::stable_sort(sorted.begin(), sorted.end(),
                             [](const auto& a, const auto& b) { return before(a.first, b.first); });
            for (int64_t i = 0; i < n; ++i) found += i == 0 || sorted[(size_t)i].first != sorted[(size_t)i - 1].first;
            values.reset(storage_new(found, sizeof(T)));
            inverse.reset(storage_new(n, 8));
            counts.reset(storage_new(found, 8));
            const auto memory = [](const Ref& r) { return reinterpret_cast<StorageObject*>(r.get())->ptr; };
            T* value = reinterpret_cast<T*>(memory(values));
            int64_t* run_of = reinterpret_cast<int64_t*>(memory(inverse));
            int64_t* length = reinterpret_cast<int64_t*>(memory(counts));
            int64_t run = -1;
            for (int64_t i = 0; i < n; ++i) {
                if (i == 0 || sorted[(size_t)i].first != sorted[(size_t)i - 1].first) {
                    value[++run] = sorted[(size_t)i].first;
                    length[run] = 0;
                }
                ++length[run];
                run_of[sorted[(size_t)i].second] = run;
            }
        });
        if (!served) Py_RETURN_NONE;
        return Py_BuildValue("(OLOO)", values.get(), (long long)found, inverse.get(), counts.get());
    });
}

}  // namespace

PyMethodDef search_methods[] = {
    MT_METHOD("searchsorted", searchsorted, "Where values stand in sorted rows; False for dtypes that are not served."),
    MT_METHOD("equal", equal, "Whether all elements are equal; None for dtypes that are not served."),
    MT_METHOD("bincount", bincount, "How often each int occurs; None for what is not counted here."),
    MT_METHOD("median", median, "The lower middle of each row and its place; False for dtypes that are not served."),
    MT_METHOD("unique", unique, "Distinct values in order, the run of each element, the lengths of the runs."),
    {nullptr, nullptr, 0, nullptr}};
