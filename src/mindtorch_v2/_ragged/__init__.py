"""Nested tensors: many tensors whose sizes differ, in one.

A nested tensor is a tensor whose storage is `parts.Parts`: one dense tensor of values, and a structure that says which
part of them each of the many is. The jagged layout has one ragged dimension and offsets into the values; the strided
one has a flat buffer, and sizes, strides and an offset for each. The dispatcher's bit NESTED brings every call with
such a tensor to `table`, above autograd: kernels are dense operators on the values. Only the way in (`history.wrap`)
and the way out (`history.values_of`) are known to autograd, each the other's derivative.

Invariant: nothing here is loaded before the first nested tensor is asked for. An operator without a kernel here raises
an error that names it and the layout.
"""
