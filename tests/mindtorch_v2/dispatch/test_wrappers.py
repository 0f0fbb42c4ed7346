"""Tensors whose data are other tensors (`_make_wrapper_subclass`, `__torch_dispatch__`): values, printing, storages,
copies.

Invariant: nothing reads the memory that such a tensor does not have.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from .._subject import IS_ORACLE, mindtorch_only
from .._subject import subject as torch

LOG: list[str] = []


def unwrapped(x: Any) -> Any:
    if isinstance(x, Wrapper):
        return x.inside
    return type(x)(unwrapped(y) for y in x) if isinstance(x, (list, tuple)) else x


def wrapped(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return Wrapper(x)
    return type(x)(wrapped(y) for y in x) if isinstance(x, (list, tuple)) else x


class Wrapper(torch.Tensor):
    inside: Any

    @staticmethod
    def __new__(cls: Any, inside: Any, requires_grad: bool = False) -> Any:
        t = torch.Tensor._make_wrapper_subclass(
            cls, inside.shape, strides=inside.stride(), dtype=inside.dtype, requires_grad=requires_grad
        )
        t.inside = inside
        return t

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __repr__(self, **kwargs: Any) -> str:
        return super().__repr__(tensor_contents=f"<{self.inside.tolist()}>")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        LOG.append(str(func))
        return wrapped(func(*unwrapped(args), **{k: unwrapped(v) for k, v in (kwargs or {}).items()}))


@pytest.fixture
def w() -> Any:
    LOG.clear()
    return Wrapper(torch.arange(3.0))


def test_values_are_asked_of_the_handler(w: Any) -> None:
    assert w[1].item() == 1.0 and float(w[2]) == 2.0 and bool(w[1]) and int(w.sum()) == 3
    assert LOG.count("aten._local_scalar_dense.default") == 4


def test_lists_and_arrays_are_refused(w: Any) -> None:
    with pytest.raises(RuntimeError, match=r"^.tolist\(\) is not supported for tensor subclasses, got Wrapper$"):
        w.tolist()
    for call in (w.numpy, w.__array__, lambda: w.numpy(force=True)):
        with pytest.raises(RuntimeError, match=r"^.numpy\(\) is not supported for tensor subclasses.$"):
            call()


def test_printing_shows_what_the_class_says(w: Any) -> None:
    assert repr(w) == "Wrapper(<[0.0, 1.0, 2.0]>)"
    assert LOG == []
    t = Wrapper(torch.ones(1), requires_grad=True)
    assert repr(t) == "Wrapper(<[1.0]>, requires_grad=True)" and "grad_fn=<MulBackward0>" in repr(t * 2)


@mindtorch_only
def test_printing_asks_the_handler_for_elements(w: Any) -> None:
    # PyTorch ends in an error of the class's __format__ here.
    assert torch.Tensor.__repr__(w) == "Wrapper([0., 1., 2.])"


def test_the_storage_has_a_size_and_no_memory(w: Any) -> None:
    storage = w.untyped_storage()
    assert storage.nbytes() == 12 and storage.device.type == "cpu" and w.data_ptr() == 0
    with pytest.raises(RuntimeError, match="Attempted to access the data pointer on an invalid python storage."):
        storage.data_ptr()
    if not IS_ORACLE:  # where PyTorch reads address 0
        for call in (lambda: storage[0], storage.tolist, lambda: list(storage), lambda: storage.fill_(1)):
            with pytest.raises(RuntimeError, match="on an invalid python storage|its data is not allocated yet"):
                call()


def test_deep_copies_are_clones(w: Any) -> None:
    LOG.clear()
    other = copy.deepcopy(w)
    assert type(other) is Wrapper and LOG == ["aten.clone.default"] and other.inside is not w.inside
    leaf = Wrapper(torch.ones(2), requires_grad=True)
    assert copy.deepcopy(leaf).requires_grad


class Slotted(torch.Tensor):
    """Without memory; what it consists of stands in a slot."""

    __slots__ = ("inside",)

    @staticmethod
    def __new__(cls, inside: Any) -> Any:
        new = torch.Tensor._make_subclass(cls, inside.to("meta"), inside.requires_grad)
        new.inside = inside
        return new

    def clone(self) -> Any:
        return type(self)(self.inside.clone())


def test_deep_copies_have_slots_and_attributes() -> None:
    first = Slotted(torch.arange(2.0))
    first.label = ["x"]
    second = copy.deepcopy(first)
    assert type(second) is Slotted and second.inside is not first.inside and second.inside.tolist() == [0.0, 1.0]
    assert second.label == ["x"] and second.label is not first.label


def test_indexing_uses_the_operators_it_is_made_of(w: Any) -> None:
    w[0] = 5.0
    assert LOG == ["aten.select.int", "aten.copy_.default"]
    LOG.clear()
    w[0:2] = 6.0
    assert LOG == ["aten.slice.Tensor", "aten.fill_.Tensor"]
    LOG.clear()
    w[w > 1] = 7.0
    assert LOG[0] == "aten.gt.Scalar" and LOG[-1] == "aten.index_put_.default"
    LOG.clear()
    assert w[w > 1].inside.tolist() == [7, 7, 7 if len(w[w > 1]) == 3 else 2][: len(w[w > 1])]
    assert "aten.index.Tensor" in LOG and "aten.masked_select.default" not in LOG


class Handled(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented


class Plain(torch.Tensor):
    pass


NO_TENSOR = (
    "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class "
    "inherits from Tensor."
)


@pytest.mark.parametrize(
    "args, kwargs, kind, text",
    [
        ((Plain, (2,)), {}, TypeError, "Plain must define __torch_dispatch__"),
        ((torch.Tensor, (2,)), {}, TypeError, "Tensor must define __torch_dispatch__"),
        ((int, (2,)), {}, TypeError, NO_TENSOR),
        ((3, (2,)), {}, TypeError, "cls must be a type (got int)"),
        (
            (Handled, 2),
            {},
            TypeError,
            "_make_wrapper_subclass(): argument 'size' (position 2) must be tuple of ints, not int",
        ),
        (
            (Handled, ("a",)),
            {},
            TypeError,
            "_make_wrapper_subclass(): argument 'size' (position 2) must be tuple of ints, but found element of type "
            "str at pos 0",
        ),
        (
            (Handled, (2,)),
            {"strides": (1, 1)},
            RuntimeError,
            "dimensionality of sizes (1) must match dimensionality of strides (2)",
        ),
        ((Handled, (2,)), {"storage_offset": 3}, RuntimeError, "setting storage offset without stride not supported"),
        (
            (Handled, (2,)),
            {"dtype": torch.int8, "requires_grad": True},
            RuntimeError,
            "Only Tensors of floating point and complex dtype can require gradients",
        ),
    ],
)
def test_wrappers_that_cannot_be_made(args: Any, kwargs: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as raised:
        torch.Tensor._make_wrapper_subclass(*args, **kwargs)
    assert str(raised.value) == text


@pytest.mark.parametrize(
    "args, text",
    [
        ((int, torch.ones(1)), NO_TENSOR),
        ((3, torch.ones(1)), "cls must be a type (got int)"),
        ((Plain, 3), "_make_subclass(): argument 'data' (position 2) must be Tensor, not int"),
    ],
)
def test_subclasses_that_cannot_be_made(args: Any, text: str) -> None:
    with pytest.raises(TypeError) as raised:
        torch.Tensor._make_subclass(*args)
    assert str(raised.value) == text


def test_data_of_a_subclass_is_of_that_subclass() -> None:
    t = torch.ones(2).as_subclass(Plain)
    assert type(t.data) is Plain and t.data._version == 0
