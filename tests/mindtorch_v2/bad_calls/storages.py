"""Overlapping memory, storages, exchange with NumPy and DLPack."""
from __future__ import annotations

import numpy

from ._case import Case

CASES: list[Case] = [
    Case(
        "overlap_add",
        lambda torch: dict(a=torch.zeros(3)),
        lambda torch, v: v.a.expand(2, 3).add_(1),
        "RuntimeError",
        "unsupported operation: more than one element of the written-to tensor refers to a single memory "
        "location. Please clone() the tensor before performing the operation.",
    ),
    Case(
        "overlap_copy",
        lambda torch: dict(a=torch.zeros(3), b=torch.ones(2, 3)),
        lambda torch, v: v.a.expand(2, 3).copy_(v.b),
        "RuntimeError",
        "unsupported operation: more than one element of the written-to tensor refers to a single memory "
        "location. Please clone() the tensor before performing the operation.",
    ),
    Case(
        "overlap_partial",
        lambda torch: dict(a=torch.zeros(5)),
        lambda torch, v: torch.add(v.a[:4], 1, out=v.a[1:]),
        "RuntimeError",
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
        "single memory location. Please clone() the tensor before performing the operation.",
    ),
    Case(
        "overlap_inplace_partial",
        lambda torch: dict(a=torch.zeros(5)),
        lambda torch, v: v.a[1:].add_(v.a[:4]),
        "RuntimeError",
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
        "single memory location. Please clone() the tensor before performing the operation.",
    ),
    Case(
        "set_storage_bounds",
        lambda torch: dict(a=torch.zeros(3)),
        lambda torch, v: v.a.storage()[3],
        "IndexError",
        "index 3 out of range for storage of size 3",
    ),
    Case(
        "resize_requires_grad",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.resize_(3),
        "RuntimeError",
        "cannot resize variables that require grad",
    ),
    Case(
        "resize_numpy",
        lambda torch: dict(a=torch.from_numpy(numpy.ones(3))),
        lambda torch, v: v.a.resize_(5),
        "RuntimeError",
        "Trying to resize storage that is not resizable",
    ),
    Case(
        "frombuffer_empty",
        lambda torch: {},
        lambda torch, v: torch.frombuffer(b"", dtype=torch.float32),
        "ValueError",
        "both buffer length (0) and count (-1) must not be 0",
    ),
    Case(
        "frombuffer_ragged",
        lambda torch: {},
        lambda torch, v: torch.frombuffer(b"123", dtype=torch.float32),
        "ValueError",
        "buffer length (3 bytes) after offset (0 bytes) must be a multiple of element size (4)",
    ),
    Case(
        "dlpack_requires_grad",
        lambda torch: dict(a=torch.ones(2, requires_grad=True)),
        lambda torch, v: v.a.__dlpack__(),
        "BufferError",
        "Can't export tensors that require gradient, use tensor.detach()",
    ),
]
