"""Sparse layouts: COO, CSR, CSC, BSR and BSC.

A sparse tensor is a `Tensor` whose storage is `parts.Parts`: dense tensors of indices and values. The dispatcher's bit
SPARSE brings every call with such a tensor to `table`, which knows the kernels; they are Python over dense operators of
the parts, so they run on each device that has those.

Invariant: nothing here is loaded before the first sparse tensor is asked for. An operator without a kernel here raises
an error that names it and the layout.
"""
