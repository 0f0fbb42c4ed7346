// What the files of matrix products share: a call, and operands that are widened. See matmul.cpp.
#pragma once
#include "common.h"

#pragma GCC visibility push(hidden)
namespace mt {

struct ProductCall {
    Operand a, b, out;  // strides: batch, row, column
    const Operand* c;   // what beta multiplies
    int64_t batch, m, n, k;
    PyObject *alpha, *beta;
    int conjugated = 0;  // 1: a, 2: b
};

// A dense copy of an operand in the dtype of the kernel.
class Widened {
public:
    Widened(const Operand& op, int64_t batch, int64_t rows, int64_t columns, int code, bool read)
        : room_(checked_numel({batch, rows, columns}), ITEMSIZE[code]) {
        set_shape(shape_, {batch, rows, columns});
        self = op;
        self.data = room_.as<char>();
        self.code = code;
        self.itemsize = ITEMSIZE[code];
        self.stride[0] = rows * columns, self.stride[1] = columns, self.stride[2] = 1;
        if (read) copy_tensor(shape_, self.data, self.stride, code, op.data, op.stride, op.code);
    }
    void write_to(const Operand& op) const {
        copy_tensor(shape_, op.data, op.stride, op.code, self.data, self.stride, self.code);
    }
    Operand self;

private:
    Scratch room_;
    Shape shape_;
};

// Products of two-byte floats, for one code of all operands. The first: those that are read as they lie, one after the
// other; false, with nothing written, of any other.
bool multiply_halves_in_place(const ProductCall& call, double beta);
void multiply_halves(const ProductCall& call, double beta);

}  // namespace mt
#pragma GCC visibility pop
