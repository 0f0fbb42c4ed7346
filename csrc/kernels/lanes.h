// What kernels along one dimension share: a walk over the lanes of a tensor (the runs along that dimension), dense
// operands, and the accumulation type of a dtype. Invariant: lanes are visited by `run_rows` over a shape in which the
// dimension has size one, so neighbouring lanes form a row and a kernel may work on many of them at once.
#pragma once
#include "common.h"
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

constexpr int TILE = 64;  // neighbouring lanes worked on at once
constexpr int PARTS = 32;  // partial sums of a row: enough to fill vectors, and loops over them need no -ffast-math

// Folds n values f(i) with `fold` through WIDTH partial results that all start as `start`.
template <int WIDTH, class A, class F, class G> MT_INLINE A fold_of(A start, int64_t n, F f, G fold) {
    A part[WIDTH];
    for (int j = 0; j < WIDTH; ++j) part[j] = start;
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH)
        for (int j = 0; j < WIDTH; ++j) part[j] = fold(part[j], f(i + j));
    for (int j = 0; i < n; ++i, ++j) part[j] = fold(part[j], f(i));
    for (int w = WIDTH / 2; w > 0; w /= 2)
        for (int j = 0; j < w; ++j) part[j] = fold(part[j], part[j + w]);
    return part[0];
}
template <class A, class F> MT_INLINE A sum_of(int64_t n, F f) {
    return fold_of<PARTS>(A(0), n, f, [](A a, A b) __attribute__((always_inline)) { return a + b; });
}
struct Raw16 { uint64_t lo, hi; };

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
    if (MT_UNLIKELY(offset < 0 || numel > room - offset))
        fail(PyExc_RuntimeError, "operand reaches elements %lld..%lld of a storage of %zd bytes (item size %d)",
             (long long)offset, (long long)(offset + numel - 1), op.storage->nbytes, op.itemsize);
    op.data = op.storage->ptr + offset * op.itemsize;
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
    Ref storage(storage_new((size_t)numel * ITEMSIZE[as_code(args[3])]));
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
    explicit Row(int64_t n) : heap_(n > SMALL ? (size_t)n * sizeof(A) : 0) {}
    A* get() { return heap_.template as<A>() ? heap_.template as<A>() : stack_; }
    char* bytes() { return reinterpret_cast<char*>(get()); }

  private:
    static constexpr int64_t SMALL = 512;
    A stack_[SMALL];
    Scratch heap_;
};

// Between memory of one dtype and rows of its accumulation type.
template <class T> void load_row(acc_t<T>* row, const char* from, int64_t step, int64_t n) {
    using A = acc_t<T>;
    cast_strided((char*)row, sizeof(A), CodeOf<A>::value, from, step, CodeOf<T>::value, n);
}
template <class T> void store_row(char* to, int64_t step, const acc_t<T>* row, int64_t n) {
    using A = acc_t<T>;
    cast_strided(to, step, CodeOf<T>::value, (const char*)row, sizeof(A), CodeOf<A>::value, n);
}

MT_INLINE void set_shape(Shape& shape, std::initializer_list<int64_t> dims) {
    shape.ndim = 0;
    shape.numel = 1;
    for (int64_t d : dims) shape.dim[shape.ndim++] = d, shape.numel *= d;
}

// Makes operand 0 the number of the element in row-major order. Being first, it keeps the walk in that order: for
// kernels that number elements, or write some twice.
template <int N> MT_INLINE void loop_positions(Loop<N>& loop, const Shape& shape) {
    int64_t stride[MAXD], next = 1;
    for (int i = shape.ndim - 1; i >= 0; --i) {
        stride[i] = next;
        next *= shape.dim[i];
    }
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
    const int64_t lanes = GRAIN / (length * cost + 1);
    return lanes < 1 ? 1 : lanes;
}

}  // namespace mt
