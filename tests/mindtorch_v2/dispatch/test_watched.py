"""A subclass's `__torch_function__` is asked for properties and methods that are no operators, as PyTorch asks it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch
from .._subject import submodule

overrides = submodule("overrides")

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


class Mode(overrides.TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


# What is done with a plain tensor `x`, and the names of the functions that a mode is shown.
SHOWN_TO_MODES = {
    **{
        f"x.{name}": "__get__"
        for name in """shape dtype device grad is_leaf requires_grad data layout ndim grad_fn _version real is_sparse
        itemsize nbytes is_cpu is_meta output_nr""".split()
    },
    **{
        f"x.{name}()": name
        for name in """size dim numel tolist stride is_contiguous cpu type element_size data_ptr storage_offset
        untyped_storage get_device retain_grad is_floating_point contiguous requires_grad_ __len__ __repr__""".split()
    },
    "len(x)": "__len__",
    "x.sum().item()": "sum item",
    "bool(x[0])": "__getitem__ __bool__",
    "int(x[0].detach())": "__getitem__ detach __int__",
    "f'{x[0].detach():.2f}'": "__getitem__ detach __format__",
    "x.detach().numpy()": "detach numpy",
    "x.sum().backward()": "sum backward",
    "x.clone().detach_()": "clone detach_",
    "x.register_hook(lambda g: g)": "register_hook",
    "x.to('cpu')": "to",
    "x == 1": "__eq__",
    "torch.tensor(1)": "tensor",
    "torch.as_tensor([1])": "as_tensor",
    "torch.asarray([1], copy=True)": "asarray",
}


@pytest.mark.parametrize("text", SHOWN_TO_MODES)
def test_modes_see_what_plain_tensors_answer(text: str) -> None:
    x = torch.ones(2, requires_grad=True)
    with Mode() as mode:
        eval(text, {"x": x, "torch": torch})
    assert " ".join(mode.seen) == SHOWN_TO_MODES[text]


def test_after_a_mode_tensors_answer_by_themselves() -> None:
    before = {name: vars(torch.Tensor).get(name) for name in ("item", "shape", "size", "__len__")}
    item = torch.Tensor.item
    with Mode() as outer:
        with Mode() as inner:
            assert torch.ones(1).item() == 1.0
            assert torch.Tensor.item is item
        torch.ones(1).item()
    assert inner.seen == ["ones", "item"] and outer.seen == ["ones", "item"] * 2
    assert {name: vars(torch.Tensor).get(name) for name in before} == before
    assert len(torch.ones(3)) == 3 and len(outer.seen) == 4


def test_a_mode_is_of_its_thread() -> None:
    found: list[int] = []
    with Mode() as mode:
        thread = threading.Thread(target=lambda: found.append(torch.ones(3).numel()))
        thread.start()
        thread.join()
    assert found == [3] and mode.seen == []


def test_a_mode_that_fails_leaves_tensors_as_they_were() -> None:
    class Failing(Mode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise ValueError(func.__name__)

    x = torch.ones(2)
    with pytest.raises(ValueError, match="numel"), Failing():
        x.numel()
    assert x.numel() == 2 and x.shape == (2,)
