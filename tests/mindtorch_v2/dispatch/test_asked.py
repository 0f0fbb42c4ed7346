"""Tensors whose handler answers for their sizes, strides, device and layout: who is asked, what the answers give."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

# What handlers are asked, by what they answer: nothing, None, or something else than the tensor was made with.
NONE = dict.fromkeys(
    "aten.sym_size.default aten.sym_stride.default aten.dim.default aten.sym_numel.default aten.numel.default "
    "aten.is_contiguous.default aten.is_contiguous.memory_format aten.sym_storage_offset.default prim.device.default "
    "prim.layout.default".split()
)
QUESTIONS = {
    "shape": lambda t, library: tuple(t.shape),
    "size": lambda t, library: tuple(t.size()),
    "size of one": lambda t, library: t.size(0),
    "stride": lambda t, library: t.stride(),
    "stride of one": lambda t, library: t.stride(-1),
    "dim": lambda t, library: t.dim(),
    "ndim": lambda t, library: t.ndim,
    "numel": lambda t, library: t.numel(),
    "is_contiguous": lambda t, library: t.is_contiguous(),
    "is_contiguous of a format": lambda t, library: t.is_contiguous(memory_format=library.channels_last),
    "storage_offset": lambda t, library: t.storage_offset(),
    "device": lambda t, library: str(t.device),
    "layout": lambda t, library: str(t.layout),
    "nbytes": lambda t, library: t.nbytes,
    "len": lambda t, library: len(t),
    "is_cpu": lambda t, library: t.is_cpu,
    "is_sparse": lambda t, library: t.is_sparse,
}
OPTIONS: list[dict[str, Any]] = [
    {"dispatch_sizes_strides_policy": "sizes"},
    {"dispatch_sizes_strides_policy": "strides"},
    {"dispatch_device": True},
    {"dispatch_layout": True},
    {},
]


def _answers(library: Any) -> list[dict[str, Any]]:
    other = {
        "aten.sym_size.default": (5, 3),
        "aten.sym_stride.default": (7, 1),
        "aten.dim.default": 4,
        "aten.sym_numel.default": 99,
        "aten.numel.default": 98,
        "aten.is_contiguous.default": False,
        "aten.is_contiguous.memory_format": True,
        "aten.sym_storage_offset.default": 3,
        "prim.device.default": library.device("meta"),
        "prim.layout.default": library.sparse_csr,
    }
    return [{}, NONE, other]


def _told(library: Any, wraps: bool, options: dict[str, Any]) -> dict[str, Any]:
    log: list[Any] = []
    answers: dict[str, Any] = {}

    class Asked(library.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append((str(func), len(args), kwargs))
            return answers.get(str(func), NotImplemented)

    def made() -> Any:
        if wraps:
            return library.Tensor._make_wrapper_subclass(Asked, (2, 3), **options)
        return library.Tensor._make_subclass(Asked, library.zeros(2, 3), **options)

    made()
    t, told = made(), {}
    for name, question in QUESTIONS.items():
        for i, given in enumerate(_answers(library)):
            answers.clear()
            answers.update(given)
            log.clear()
            try:
                found = question(t, library)
            except Exception as error:
                found = type(error).__name__, str(error).partition(";")[0]
            told[f"{name} {i}"] = found, list(log)
    return told


@pytest.mark.oracle
@pytest.mark.parametrize("wraps", [True, False], ids=["wrapper", "memory"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_handlers_are_asked_as_pytorchs_are(options: dict[str, Any], wraps: bool) -> None:
    assert _told(torch, wraps, options) == _told(_oracle.load(), wraps, options)


@pytest.mark.oracle
def test_a_policy_that_is_none_is_refused() -> None:
    for library in (torch, _oracle.load()):
        kind = type("Asked", (library.Tensor,), {"__torch_dispatch__": classmethod(lambda *a, **k: None)})
        with pytest.raises(ValueError, match="Unknown sizes_strides_policy: all; expected 'strides' or 'sizes'"):
            library.Tensor._make_wrapper_subclass(kind, (2,), dispatch_sizes_strides_policy="all")


def test_the_class_shows_what_it_inherits() -> None:
    kind: Any = type("Asked", (torch.Tensor,), {"__torch_dispatch__": classmethod(lambda *a, **k: None)})
    torch.Tensor._make_wrapper_subclass(kind, (2,), dispatch_sizes_strides_policy="sizes")
    for name in ("size", "stride", "layout", "device", "shape"):
        assert getattr(kind, name) is getattr(torch.Tensor, name)


def _calls(library: Any) -> list[str]:
    """What a handler sees that lets functions run one level deeper."""
    seen: list[str] = []

    class Logged(library.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return library.overrides.redispatch_function(func, types, args, kwargs)

    def scaled(a: Any, b: Any) -> Any:
        if library.overrides.has_torch_function((a, b)):
            return library.overrides.handle_torch_function(scaled, (a, b), a, b)
        return library.mul(a, b) + 1

    x = library.tensor([3.0]).as_subclass(Logged)
    seen.append(type(scaled(x, x)).__name__)
    seen.append(type(library.nn.functional.relu(x)).__name__)
    seen.append(str(tuple(x.shape)))
    return seen


@pytest.mark.oracle
def test_redispatch_function_skips_one_level() -> None:
    assert _calls(torch) == _calls(_oracle.load())


@pytest.mark.parametrize("name", "nelement ndimension is_signed get_device unique retain_grad is_shared t_".split())
def test_methods_called_through_the_class_ask_the_subclass(name: str) -> None:
    seen: list[Any] = []

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return -1

    method = getattr(torch.Tensor, name)
    assert method(torch.ones(2).as_subclass(Seen)) == -1
    assert seen == [method]
