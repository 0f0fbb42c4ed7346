// Advanced indexing: t[i, j] and t[i, j] = value with index tensors, which are made into offsets first.
// Invariant: the offsets were checked and lie in memory of their own, so nothing that is written changes them.
//   index_get(src, offset, strides, code, indices, dims, sizes, steps, out|None.., shape) -> out
//   index_put(dst, offset, strides, code, indices, dims, sizes, steps, src.., shape, accumulate) -> None
//       `shape` is the broadcast shape of the result; `strides` are the source's over it, 0 where an index decides.
//       indices: a tuple or list of (storage, offset, strides over shape), int64. For each of them `dims` has the
//       number named in the error, `sizes` the size of the indexed dimension, `steps` its stride in the source;
//       negative indices count from the end. src may be a number.
#include "indexing.h"

namespace mt {
namespace {

// The index tensors of one call, checked, and made into one tensor of byte offsets. It covers only the dimensions of
// the result along which some index moves; along the others its stride is 0.
class Offsets {
public:
    // args: indices, dims, sizes, steps.
    Offsets(PyObject* const* args, const Shape& shape, int itemsize) : count_(parse(args, shape)), room_(numel_) {
        int64_t* offset = room_.get();
        std::fill_n(offset, numel_, 0);
        for (int k = 0; k < count_; ++k) add_index(k, itemsize);
        data = room_.bytes();
    }
    char* data;
    int64_t stride[MAXD];

    // The elements an indexed operand can reach, and whether they lie in its storage.
    void check_reach(const Shape& shape, const Operand& op, int64_t offset) const {
        if (shape.numel == 0) return;
        int64_t low = offset, high = offset;
        bool overflow = false;
        auto extend = [&](int64_t step, int64_t size) {
            int64_t reach;
            overflow |= __builtin_mul_overflow(step, size - 1, &reach);
            overflow |= __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
        };

        for (int i = 0; i < shape.ndim; ++i) extend(op.stride[i], shape.dim[i]);
        for (int k = 0; k < count_; ++k) extend(step_[k], size_[k]);
        if (overflow || low < 0 || high >= op.storage->nbytes / op.itemsize) fail_reach(low, high, op);
    }

private:
    int64_t dim_[MAXD], size_[MAXD], step_[MAXD];
    const char* index_[MAXD];
    int64_t index_stride_[MAXD][MAXD];
    Shape own_;  // the shape of the offsets: 1 where no index moves
    int64_t numel_;
    int count_;
    Row<int64_t> room_;

    int parse(PyObject* const* args, const Shape& shape) {
        if (!PyTuple_Check(args[0]) && !PyList_Check(args[0]))
            fail(PyExc_TypeError, "indices must be a tuple or a list, got %s", Py_TYPE(args[0])->tp_name);
        const int count = (int)PySequence_Fast_GET_SIZE(args[0]);
        if (count > MAXD) fail(PyExc_ValueError, "too many indices: %d", count);
        parse_ints(args[1], count, dim_);
        parse_ints(args[2], count, size_);
        parse_ints(args[3], count, step_);
        static PyObject* const long_code = PyLong_FromLong(I64);
        own_.ndim = shape.ndim;
        for (int i = 0; i < shape.ndim; ++i) own_.dim[i] = 1;
        for (int k = 0; k < count; ++k) {
            PyObject* item = PySequence_Fast_GET_ITEM(args[0], k);
            if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 3)
                fail(PyExc_TypeError, "an index is a tuple (storage, offset, strides)");
            PyObject* operand[4] = {PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1), PyTuple_GET_ITEM(item, 2),
                                    long_code};
            Operand op;
            parse_operand(operand, shape, op);
            index_[k] = op.data;
            for (int i = 0; i < shape.ndim; ++i) {
                index_stride_[k][i] = op.stride[i];
                if (op.stride[i]) own_.dim[i] = shape.dim[i];
            }
        }
        numel_ = own_.numel = shape.numel ? checked_numel(own_.dim, own_.ndim) : 0;
        dense_strides(own_, stride);
        for (int i = 0; i < shape.ndim; ++i)
            if (own_.dim[i] <= 1) stride[i] = 0;
        return count;
    }

    void add_index(int k, int itemsize) {
        if (numel_ == 0) return;
        if (size_[k] == 0) fail(PyExc_IndexError, "index is out of bounds for dimension with size 0");
        const int64_t size = size_[k], step = wrapping_mul(step_[k], itemsize);
        Loop<2> loop;
        loop_begin(loop, own_);
        loop_operand(loop, 0, room_.bytes(), own_, stride, 8);
        loop_operand(loop, 1, const_cast<char*>(index_[k]), own_, index_stride_[k], 8);
        loop_finish(loop);
        const int64_t os = loop.step[0][0], xs = loop.step[1][0];
        run_rows(loop, GRAIN, [&](char* const* p, int64_t n) {
            for (int64_t i = 0; i < n; ++i) {
                const int64_t given = read_once(p[1] + i * xs);
                const int64_t x = given < 0 ? given + size : given;
                if (MT_UNLIKELY((uint64_t)x >= (uint64_t)size))
                    fail(PyExc_IndexError, "index %lld is out of bounds for dimension %lld with size %lld",
                         (long long)given, (long long)dim_[k], (long long)size);
                int64_t& offset = *reinterpret_cast<int64_t*>(p[0] + i * os);
                offset = (int64_t)((uint64_t)offset + (uint64_t)wrapping_mul(x, step));  // fits: see check_reach
            }
        });
    }
};

// The indexed operand of index_get and index_put: bounds are checked with the indices, not by strides alone.
void parse_indexed(PyObject* const* args, const Shape& shape, const Offsets& offsets, Operand& op) {
    op.storage = as_storage(args[0]);
    const int64_t offset = as_int(args[1]);
    parse_ints(args[2], shape.ndim, op.stride);
    op.code = as_code(args[3]);
    op.itemsize = ITEMSIZE[op.code];
    offsets.check_reach(shape, op, offset);
    op.data = op.storage->ptr + (shape.numel ? offset * op.itemsize : 0);
}

}  // namespace

PyObject* index_get(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("index_get", nargs, 13);
        Shape shape;
        parse_shape(args[12], shape);
        const Offsets offsets(args + 4, shape, ITEMSIZE[as_code(args[3])]);
        Operand src, o;
        parse_indexed(args, shape, offsets, src);
        Ref out(parse_output(args + 8, shape, o));
        expect_code("index", o.code, src.code);
        if (shape.numel == 0) return out.release();
        Loop<3> loop;
        loop_begin(loop, shape);
        loop_operand(loop, 0, o.data, shape, o.stride, o.itemsize);
        loop_operand(loop, 1, offsets.data, shape, offsets.stride, 8);
        loop_operand(loop, 2, src.data, shape, src.stride, src.itemsize);
        loop_finish(loop);
        const int64_t os = loop.step[0][0], xs = loop.step[1][0], ss = loop.step[2][0];
        GilRelease unlocked(shape.numel);
        dispatch_size(src.itemsize, [&](auto t) {
            run_rows(loop, GRAIN / 2, [&](char* const* p, int64_t n) {
                gather_row<decltype(t)>(p[0], os, p[1], xs, p[2], ss, 1, n, Trusted());
            });
        });
        return out.release();
    });
}

static void put_all(const Shape& shape, const Operand& dst, const Offsets& offsets, const Operand& src,
                    ScatterRow row) {
    // Two writes cannot meet where they differ along a dimension in which no index moves: threads share such a one.
    int along = -1;
    for (int i = 0; i < shape.ndim; ++i)
        if (offsets.stride[i] == 0 && dst.stride[i] && (along < 0 || shape.dim[i] > shape.dim[along])) along = i;
    const Writes writes{1, nullptr, {}};
    split(shape, along, [&](const Shape& mine, int d, int64_t begin) {
        Loop<4> loop;
        loop_begin(loop, mine);
        loop_positions(loop, mine);
        loop_operand(loop, 1, moved(dst.data, dst.stride, dst.itemsize, d, begin), mine, dst.stride, dst.itemsize);
        loop_operand(loop, 2, offsets.data, mine, offsets.stride, 8);
        loop_operand(loop, 3, moved(src.data, src.stride, src.itemsize, d, begin), mine, src.stride, src.itemsize);
        loop_finish(loop);
        const int64_t ds = loop.step[1][0], xs = loop.step[2][0], ss = loop.step[3][0];
        run_rows(loop, SERIAL, [&](char* const* p, int64_t n) { row(p[1], ds, p[2], xs, p[3], ss, n, writes); });
    });
}

PyObject* index_put(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
    return guard([&]() -> PyObject* {
        expect_args("index_put", nargs, 14);
        Shape shape;
        parse_shape(args[12], shape);
        const bool accumulate = as_bool(args[13]);
        const Offsets offsets(args + 4, shape, ITEMSIZE[as_code(args[3])]);
        Operand dst, src;
        alignas(16) char number[16];
        parse_indexed(args, shape, offsets, dst);
        parse_operand_or_number(args + 8, shape, dst.code, src, number);
        expect_time_for(shape.numel);
        expect_code("index_put", src.code, dst.code);
        const ScatterRow row =
            accumulate ? index_row_of<ADD, true>(dst.code, "index_put") : scatter_row_of<ASSIGN, true>(dst.code, "");
        if (shape.numel == 0) return none();
        {
            GilRelease unlocked(shape.numel);
            put_all(shape, dst, offsets, src, row);
        }
        return none();
    });
}

}  // namespace mt
