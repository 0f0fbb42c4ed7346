// What kernels along one dimension share: a walk over the lanes of a tensor (the runs along that dimension), dense
// operands, and the accumulation type of a dtype. Invariant: lanes are visited by `run_rows` over a shape in which the
// dimension has size one, so neighbouring lanes form a row and a kernel may work on many of them at once.
#pragma once
#include "common.h"
#include "move.h"
#include "pointwise_loop.h"

#include <cstdlib>
#include <initializer_list>

namespace mt {

// The type in which floats are accumulated.
template <class T> using acc_t = typename std::conditional<std::is_same<T, double>::value, double, float>::type;

// Calls f with a value of the element type for the four dtypes that float kernels exist for.
template <class F> MT_INLINE void dispatch_float(int code, const char* op, F&& f) {
    switch (code) {
        case F32: f(float()); return;
        case F64: f(double()); return;
        case F16: f(Half()); return;
        case BF16: f(BFloat16()); return;
        default: fail_dtype(op, code);
    }
}

// The same for every dtype PyTorch does arithmetic in when it indexes: no float8, no wide unsigned integers.
template <class F> MT_INLINE void dispatch_arithmetic(int code, const char* op, F&& f) {
    switch (code) {
        case U8: f(uint8_t()); return;
        case I8: f(int8_t()); return;
        case I16: f(int16_t()); return;
        case I32: f(int32_t()); return;
        case I64: f(int64_t()); return;
        case BOOL: f(Bool()); return;
        case C64: f(Complex<float>()); return;
        case C128: f(Complex<double>()); return;
        default: dispatch_float(code, op, f);
    }
}

#define MT_EACH(i) [&](int64_t i) __attribute__((always_inline))

constexpr int TILE = 64;   // neighbouring lanes worked on at once
constexpr int PARTS = 32;  // partial sums of a row: enough to fill vectors, and loops over them need no -ffast-math

template <int WIDTH, class A, class G> MT_INLINE A fold_parts(A* part, G fold) {
    for (int w = WIDTH / 2; w > 0; w /= 2)
        for (int j = 0; j < w; ++j) part[j] = fold(part[j], part[j + w]);
    return part[0];
}
// Folds n values f(i) in a fixed order: PARTS at a time, then 8, then one by one.
template <class A, class F, class G> MT_INLINE A fold_of(A start, int64_t n, F f, G fold) {
    A result = start;
    int64_t i = 0;
    if (n >= PARTS) {
        A part[PARTS];
        for (int j = 0; j < PARTS; ++j) part[j] = start;
        for (; i + PARTS <= n; i += PARTS)
            for (int j = 0; j < PARTS; ++j) part[j] = fold(part[j], f(i + j));
        result = fold_parts<PARTS>(part, fold);
    }
    if (n - i >= 8) {
        A part[8];
        for (int j = 0; j < 8; ++j) part[j] = start;
        for (; i + 8 <= n; i += 8)
            for (int j = 0; j < 8; ++j) part[j] = fold(part[j], f(i + j));
        result = fold(result, fold_parts<8>(part, fold));
    }
    for (; i < n; ++i) result = fold(result, f(i));
    return result;
}
template <class A> struct Plus {
    MT_INLINE A operator()(A a, A b) const { return a + b; }
};
template <class A, class F> MT_INLINE A sum_of(int64_t n, F f) { return fold_of(A(0), n, f, Plus<A>()); }

// Two sums in one pass over the data: of f(i) and of g(i, f(i)).
template <class A, class F, class G> MT_INLINE void two_sums_of(int64_t n, F f, G g, A& first, A& second) {
    int64_t i = 0;
    first = second = 0;
    if (n >= PARTS) {
        A a[PARTS] = {}, b[PARTS] = {};
        for (; i + PARTS <= n; i += PARTS)
            for (int j = 0; j < PARTS; ++j) {
                const A v = f(i + j);
                a[j] += v;
                b[j] += g(i + j, v);
            }
        first = fold_parts<PARTS>(a, Plus<A>());
        second = fold_parts<PARTS>(b, Plus<A>());
    }
    const int64_t done = i, rest = n - i;
    first += sum_of<A>(rest, MT_EACH(k) { return f(done + k); });
    second += sum_of<A>(rest, MT_EACH(k) { return g(done + k, f(done + k)); });
}

// Moving data needs the size of an element only.
template <class F> MT_INLINE void dispatch_size(int itemsize, F&& f) {
    switch (itemsize) {
        case 1: f(uint8_t()); return;
        case 2: f(uint16_t()); return;
        case 4: f(uint32_t()); return;
        case 8: f(uint64_t()); return;
        default: f(Raw16()); return;
    }
}

// A dimension in [-ndim, ndim). A tensor without dimensions has the lanes of a one-dimensional one of one element.
inline int parse_dim(PyObject* o, const Shape& shape) {
    const int64_t n = shape.ndim ? shape.ndim : 1;
    const int64_t dim = as_int(o);
    if (MT_UNLIKELY(dim < -n || dim >= n))
        fail(PyExc_IndexError, "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
             -(long long)n, (long long)n - 1, (long long)dim);
    return int(dim < 0 ? dim + n : dim);
}

inline int64_t parse_count(PyObject* o) {
    const int64_t n = as_int(o);
    if (MT_UNLIKELY(n < 0)) fail(PyExc_ValueError, "expected a count, got %lld", (long long)n);
    return n;
}

// An operand of `numel` elements that lie one after the other; the strides (args[2]) are not read.
inline void parse_dense(PyObject* const* args, int64_t numel, Operand& op) {
    op.storage = as_storage(args[0]);
    const int64_t offset = as_int(args[1]);
    op.code = as_code(args[3]);
    op.itemsize = ITEMSIZE[op.code];
    const int64_t room = op.storage->nbytes / op.itemsize;
    // Where nothing is read, it may begin anywhere.
    if (MT_UNLIKELY(offset < 0 || numel < 0 || (numel != 0 && numel > room - offset)))
        fail_reach(offset, saturated_add(offset, numel - 1), op);
    op.data = op.storage->ptr + (numel ? offset * op.itemsize : 0);
}
inline bool parse_dense_or_none(PyObject* const* args, int64_t numel, Operand& op) {
    if (args[0] == Py_None) {
        op.data = nullptr;
        op.code = op.itemsize = 0;
        return false;
    }
    parse_dense(args, numel, op);
    return true;
}
// The same for a result: None makes a new storage. Returns a new reference.
inline PyObject* parse_dense_output(PyObject* const* args, int64_t numel, Operand& op) {
    if (args[0] != Py_None) {
        parse_dense(args, numel, op);
        Py_INCREF(args[0]);
        return args[0];
    }
    Ref storage(storage_new(numel, ITEMSIZE[as_code(args[3])]));
    PyObject* with[4] = {storage.get(), args[1], args[2], args[3]};
    parse_dense(with, numel, op);
    return storage.release();
}
MT_INLINE PyObject* none() {
    Py_INCREF(Py_None);
    return Py_None;
}
inline void expect_code(const char* what, int got, int want) {
    if (MT_UNLIKELY(got != want))
        fail(PyExc_RuntimeError, "%s: expected dtype %s, got %s", what, CODE_NAME[want], CODE_NAME[got]);
}
// n values of type A for the time of a call: on the stack when they are few.
template <class A> class Row {
public:
    explicit Row(int64_t n) {
        if (MT_UNLIKELY(n > SMALL)) data_ = reinterpret_cast<A*>(block_alloc(checked_bytes(n, sizeof(A)), &capacity_));
    }
    ~Row() {
        if (MT_UNLIKELY(data_ != stack_)) block_free(reinterpret_cast<char*>(data_), capacity_);
    }
    Row(const Row&) = delete;
    Row& operator=(const Row&) = delete;
    A* get() const { return data_; }
    char* bytes() const { return reinterpret_cast<char*>(data_); }

private:
    static constexpr int64_t SMALL = 512;
    A stack_[SMALL];
    A* data_ = stack_;
    size_t capacity_ = 0;
};

// A Python number in a float or integer type: the common kinds without a detour.
template <class A> MT_INLINE A number_as(PyObject* o, int code) {
    if constexpr (!IsComplex<A>::value) {
        if (PyLong_CheckExact(o)) {
            int overflow;
            const long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
            if (MT_LIKELY(!overflow)) return (A)v;
        }
        if constexpr (std::is_floating_point<A>::value)
            if (PyFloat_CheckExact(o)) return (A)PyFloat_AS_DOUBLE(o);
    }
    alignas(16) char value[16];
    number_into(o, code, value);
    A v;
    std::memcpy(&v, value, sizeof v);
    return v;
}

// Between memory of one dtype and rows of its accumulation type.
template <class T> void load_row(acc_t<T>* row, const char* from, int64_t step, int64_t n) {
    using A = acc_t<T>;
    cast_strided((char*)row, sizeof(A), CodeOf<A>::value, from, step, CodeOf<T>::value, n);
}
template <class T> void store_row(char* to, int64_t step, const acc_t<T>* row, int64_t n) {
    using A = acc_t<T>;
    cast_strided(to, step, CodeOf<T>::value, (const char*)row, sizeof(A), CodeOf<A>::value, n);
}

// n such rows of w dense elements, `step` bytes apart in memory and adjoining in the tile.
template <class T> void load_rows(acc_t<T>* tile, const char* from, int64_t step, int64_t n, int64_t w) {
    for (int64_t i = 0; i < n; ++i) load_row<T>(tile + i * w, from + i * step, sizeof(T), w);
}
template <class T> void store_rows(char* to, int64_t step, const acc_t<T>* tile, int64_t n, int64_t w) {
    for (int64_t i = 0; i < n; ++i) store_row<T>(to + i * step, sizeof(T), tile + i * w, w);
}

MT_INLINE void set_shape(Shape& shape, std::initializer_list<int64_t> dims) {
    shape.ndim = 0;
    for (int64_t d : dims) shape.dim[shape.ndim++] = d;
    shape.numel = checked_numel(shape.dim, shape.ndim);
}

// Makes operand 0 the number of the element in row-major order. Being first, it keeps the walk in that order: for
// kernels that number elements, or write some twice.
template <int N> MT_INLINE void loop_positions(Loop<N>& loop, const Shape& shape) {
    int64_t stride[MAXD];
    dense_strides(shape, stride);
    loop_operand(loop, 0, nullptr, shape, stride, 1);
}
constexpr int64_t SERIAL = std::numeric_limits<int64_t>::max();  // a grain that keeps run_rows in one thread

template <int N> struct Lanes {
    Loop<N> loop;     // over the other dimensions; its numel counts lanes
    int64_t length;   // elements in a lane
    int64_t step[N];  // bytes between neighbours in it
    bool unit;        // all operands are contiguous along the lanes
    bool columns;     // all operands are contiguous across neighbouring lanes
};

// shape.numel must not be 0. The first operand decides the order of the walk.
template <int N> MT_INLINE void lanes_of(Lanes<N>& lanes, const Shape& shape, int dim, Operand* const (&ops)[N]) {
    Shape rest;
    rest.ndim = shape.ndim;
    for (int i = 0; i < shape.ndim; ++i) rest.dim[i] = i == dim ? 1 : shape.dim[i];
    lanes.length = shape.ndim ? shape.dim[dim] : 1;
    rest.numel = shape.numel / lanes.length;
    loop_begin(lanes.loop, rest);
    lanes.unit = true;
    for (int k = 0; k < N; ++k) {
        loop_operand(lanes.loop, k, ops[k]->data, rest, ops[k]->stride, ops[k]->itemsize);
        lanes.step[k] = lanes.length > 1 ? ops[k]->stride[dim] * ops[k]->itemsize : ops[k]->itemsize;
        lanes.unit &= lanes.step[k] == ops[k]->itemsize;
    }
    loop_finish(lanes.loop);
    lanes.columns = true;
    for (int k = 0; k < N; ++k) lanes.columns &= lanes.loop.step[k][0] == ops[k]->itemsize;
}

// Lanes one thread should at least get; `cost` is in cheap element operations per element.
MT_INLINE int64_t lane_grain(int64_t length, int64_t cost) {
    const int64_t lanes = GRAIN / saturated_add(saturated_mul(length, cost), 1);
    return lanes < 1 ? 1 : lanes;
}

}  // namespace mt
