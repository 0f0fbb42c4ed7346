"""A subclass's `__torch_function__` is asked for properties and methods that are no operators, as PyTorch asks it."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

PROPERTIES = (
    "T H mT mH real requires_grad grad data shape dtype device is_leaf grad_fn _version layout ndim is_sparse itemsize "
    "nbytes output_nr _base retains_grad is_meta is_quantized is_cuda is_cpu is_nested"
).split()
CALLS = (
    *(f"t.{name}" for name in PROPERTIES),
    *("setattr(t, 'requires_grad', True)", "setattr(t, 'grad', None)", "setattr(t, 'data', x)"),
    *("t.new_tensor([1])", "t.new_zeros(2)", "t.tolist()", "t[0, 0].item()", "t.numpy()", "t.__array__()", "len(t)"),
    *("bool(t[0, 0])", "float(t[0, 0])", "int(t[0, 0])", "repr(t)", "1.0 in t", "t.to('meta')", "t.long()", "t.cpu()"),
    *("t.untyped_storage()", "t.storage_offset()", "t.data_ptr()", "t.element_size()", "t.stride()", "t.size()"),
    *("t.dim()", "t.is_contiguous()", "t.type()", "t.share_memory_()", "t.is_shared()", "t.is_floating_point()"),
    *("t.numel()", "t.dense_dim()", "t.apply_(lambda a: a)", "t.map_(x, lambda a, b: a)", "t.requires_grad_()"),
    *(
        "t == 1",
        "t != 1",
        "t < 1",
        "t >= 1",
        "t + 1",
        "1 - t",
        "2**t",
        "t.split(1)",
        "t.__dlpack__()",
        "t.__reduce_ex__(2)",
    ),
    *("torch.linspace(t[0, 0], 2.0, 3)", "torch.logspace(t[0, 0], 2, 3)", "torch.tensor(t)", "torch.as_tensor(t)"),
    *("torch.zeros_like(t)", "torch.is_floating_point(t)", "t.register_hook(print)", "t.retain_grad()"),
)


def asked(lib: Any, call: str) -> tuple[str, list[str]]:
    """The type of the result, or of the exception, and the names of what the handler was asked."""
    log: list[str] = []

    class Logging(lib.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    names = {"torch": lib, "t": lib.ones(2, 3).as_subclass(Logging), "x": lib.ones(2, 3)}
    log.clear()
    try:
        kind = type(eval(call, names)).__name__
    except Exception as error:  # what is raised is an answer as well
        kind = type(error).__name__
    return kind, log


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_as_pytorch(call: str) -> None:
    assert asked(torch, call) == asked(_oracle.load(), call)


def test_the_handler_gets_tensors_own() -> None:
    seen: list[Any] = []

    class T(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return "nobody" if func is torch.Tensor.size else super().__torch_function__(func, types, args, kwargs)

    t = torch.ones(2, 3).as_subclass(T)
    assert t.size() == "nobody" and t.shape == (2, 3) and t.stride() == (3, 1)
    assert seen == [torch.Tensor.size, torch.Tensor.shape.__get__, torch.Tensor.stride]
    t.requires_grad = True
    assert seen[-1] == torch.Tensor.requires_grad.__set__ and torch.Tensor.requires_grad.__get__(t)


def test_what_a_class_defines_stays() -> None:
    class Mixin:
        def size(self) -> str:
            return "of the mixin"

    class T(Mixin, torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(func, types, args, kwargs)

        @property
        def shape(self) -> str:
            return "its own"

    class U(T):
        def dim(self) -> str:
            return "of a subclass"

    t = torch.ones(2).as_subclass(U)
    assert (t.size(), t.shape, t.dim(), t.ndim) == ("of the mixin", "its own", "of a subclass", 1)


def test_plain_subclasses_are_not_watched() -> None:
    class Plain(torch.Tensor):
        pass

    assert "size" not in vars(Plain) and "shape" not in vars(Plain)
    assert type(torch.ones(2).as_subclass(Plain).new_tensor([1])) is Plain


def test_parts_of_complex_numbers_are_assigned() -> None:
    z = torch.zeros(2, dtype=torch.complex64)
    z.real = torch.tensor([1.0, 2.0])
    z.imag = torch.tensor([3.0, 4.0])
    assert z.tolist() == [1 + 3j, 2 + 4j]
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        torch.zeros(2).imag = torch.zeros(2)
