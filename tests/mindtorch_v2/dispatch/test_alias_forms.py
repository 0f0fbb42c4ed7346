"""Operators of `torch.ops.aten` that are methods, properties or functions: PyTorch's schemas, and PyTorch's answers."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._outcome import plain
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch
from ._overloads_left_out import LEFT_OUT

pytestmark = [mindtorch_only, pytest.mark.oracle]
# What is tried on each: a call that writes answers with what it wrote to.
CALLS = """
__iand__.Scalar(i(), 3)
__iand__.Tensor(i(), i() + 1)
__ior__.Scalar(i(), 3)
__ior__.Tensor(i(), i() + 1)
__ixor__.Scalar(i(), 3)
__ixor__.Tensor(i(), i() + 1)
coalesce(s()).to_dense()
indices(s().coalesce())
values(s().coalesce())
_indices(s())
_values(s())
_nnz(s())
_dimI(s())
_dimV(s())
sparse_dim(s())
dense_dim(s())
is_coalesced(s())
crow_indices(x().to_sparse_csr())
col_indices(x().to_sparse_csr())
ccol_indices(x().to_sparse_csc())
row_indices(x().to_sparse_csc())
to_sparse.sparse_dim(x(), 1).to_dense()
transpose_(x(), 0, 1)
t_(x())
squeeze_(x()[None])
squeeze_.dim(x()[None], 0)
squeeze_.dims(x()[None], [0, 1])
unsqueeze_(x(), 1)
swapaxes_(x(), 0, 1)
swapdims_(x(), 0, 1)
as_strided_(x(), [2], [1], 1)
detach_(x())
requires_grad_(x()).requires_grad
requires_grad_(x(), False).requires_grad
type_as(i(), x())
item(x()[0, 0])
is_set_to(x(), x())
is_complex(x())
is_floating_point(x())
is_inference(x())
is_signed(i())
is_nonzero(x()[0, 0])
is_distributed(x())
get_device(x())
retain_grad(x().requires_grad_() * 2)
sparse_mask(x(), s().coalesce()).to_dense()
mT(x())
mH(x())
numpy_T(x())
matrix_H(x())
is_leaf(x())
output_nr(x())
_version(x())
retains_grad(x())
data(x().requires_grad_())
atleast_1d(x()[0, 0])
atleast_2d(x()[0, 0])
atleast_3d(x())
atleast_1d.Sequence([x()[0, 0], x()])
atleast_2d.Sequence([x()[0, 0], x()])
atleast_3d.Sequence([x()[0, 0], x()])
can_cast(torch.float32, torch.int64)
promote_types(torch.float32, torch.int64)
result_type.Tensor(x(), i())
result_type.Scalar(i(), 2.5)
result_type.Scalar_Tensor(2.5, i())
result_type.Scalar_Scalar(2, 2.5)
arange(3)
arange(3.0, dtype=torch.int32)
arange.start(1, 3)
bartlett_window(3)
bartlett_window.periodic(3, False)
blackman_window(3)
blackman_window.periodic(3, False)
eye(2)
fft_fftfreq(3)
fft_rfftfreq(3, 2.0)
hamming_window(3)
hamming_window.periodic(3, False)
hamming_window.periodic_alpha(3, False, 0.5)
hamming_window.periodic_alpha_beta(3, False, 0.5, 0.4)
hann_window(3, dtype=torch.float64)
hann_window.periodic(3, False)
kaiser_window(1)
kaiser_window.periodic(3, False)
kaiser_window.beta(3, False, 10.0)
linspace.Tensor_Tensor(x()[0, 1], x()[1, 0], 4)
linspace.Tensor_Scalar(x()[0, 1], 3.0, 4, dtype=torch.int64)
linspace.Scalar_Tensor(1, x()[1, 0], 4)
logspace.Tensor_Tensor(x()[0, 1], x()[1, 0], 4, 2.0)
logspace.Tensor_Scalar(x()[0, 1], 3.0, 4)
logspace.Scalar_Tensor(1, x()[1, 0], 4)
normal.float_float(0.0, 1.0, [2]).shape
rand.generator([2], generator=None).shape
randint(1, [2])
randint.generator(1, [2], generator=None)
randint.low_generator(1, 2, [2], generator=None)
randint_like(x(), 1)
randn.generator([2], generator=None).shape
randperm.generator(1, generator=None)
""".strip().splitlines()


def _told(library: Any, call: str) -> Any:
    def x() -> Any:
        return library.tensor([[0.0, 1.5, -2.0], [3.0, 0.0, 0.25]])

    space = {
        "torch": library,
        "x": x,
        "i": lambda: library.tensor([[1, 2, 3], [4, 5, 6]]),
        "s": lambda: x().to_sparse(),
    }
    head, _, rest = call.partition("(")
    base, _, overload = head.partition(".")
    space["op"] = getattr(getattr(library.ops.aten, base), overload or "default")
    return eval(f"op({rest}", space)


@pytest.mark.parametrize("call", CALLS)
def test_answers_are_pytorchs(call: str) -> None:
    ours, theirs = _told(torch, call), _told(_oracle.load(), call)
    if call.startswith(("promote_types", "result_type")) and type(theirs) is int:
        theirs = {4: "torch.int64", 6: "torch.float32"}[theirs]  # PyTorch's operators answer with the number of a dtype
        assert str(ours) == theirs
    else:
        assert str(plain(ours)) == str(plain(theirs))


def test_schemas_are_pytorchs_and_every_one_is_tried() -> None:
    tried = {call.partition("(")[0] for call in CALLS}
    forms = submodule("_api.alias_forms")
    texts = [line for text, _ in forms._KINDS for line in text.strip().splitlines()]
    assert {text.partition("(")[0] for text in texts} == tried
    # Here `None` stands for the dtype of indices, and floats are written out.
    texts_there = [str(schema) for schema in _oracle.load()._C._jit_get_all_schemas()]
    known = {
        text.replace("ScalarType? dtype=4", "ScalarType? dtype=None").replace("1.,", "1.0,") for text in texts_there
    }
    assert [text for text in texts if f"aten::{text}" not in known] == []


def test_only_listed_overloads_are_missing() -> None:
    known = {name.removeprefix("aten::") for name in _oracle.load()._C._dispatch_get_all_op_names() if "aten::" in name}
    rows = submodule("_operators")
    # All that is declared when it is first used.
    submodule("_api.lazy_tables").load_all()
    submodule("_sparse.kernels")
    submodule("_torch_dispatch").copied_operator()
    submodule("_torch_dispatch").lifted(torch.ones(1))
    missing = set()
    for base in {name.partition(".")[0] for name in known}:
        served = {**rows._rows(base), **rows._defined("aten", base)}
        here = {base if overload == "default" else f"{base}.{overload}" for overload in served}
        missing |= {name for name in known if name.partition(".")[0] == base} - here
    assert sorted(missing - set(LEFT_OUT)) == []
    assert sorted(set(LEFT_OUT) - missing) == []
