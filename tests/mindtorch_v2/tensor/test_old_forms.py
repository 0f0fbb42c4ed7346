"""Old forms of calls that programs still use: storages as data, byte masks without dimensions, names of modules."""

from __future__ import annotations

import importlib
import types
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from .._outcome import outcome
from .._subject import subject

Call = Callable[[Any], Any]


def _storage_calls() -> dict[str, Call]:
    def two(torch: Any, dtype: Any) -> Any:
        return torch.tensor([1, 2], dtype=dtype)

    def shared(torch: Any) -> list[bool]:
        t = two(torch, torch.float32)
        made = (
            torch.tensor(t.storage()),
            torch.as_tensor(t.storage()),
            t.new_tensor(t.storage()),
            torch.tensor(t.untyped_storage(), dtype=torch.float32),
        )
        return [x.data_ptr() == t.data_ptr() for x in made]

    calls: dict[str, Call] = {
        "shared": shared,
        "other dtype": lambda torch: torch.tensor(two(torch, torch.int64).storage()),
        "dtype said": lambda torch: torch.tensor(two(torch, torch.int64).storage(), dtype=torch.int64),
        "wrong dtype said": lambda torch: torch.as_tensor(two(torch, torch.int64).storage(), dtype=torch.float32),
        "bytes": lambda torch: torch.tensor(two(torch, torch.int64).untyped_storage()),
        "bytes as new": lambda torch: torch.ones(1).new_tensor(two(torch, torch.int64).untyped_storage()),
        "gradient": lambda torch: torch.tensor(two(torch, torch.float32).storage(), requires_grad=True),
        "base type": lambda torch: type("Mine", (torch.FloatTensor,), {}),
    }
    for name in ("uint8", "int16", "int64", "float16", "float64", "complex64", "bool", "bfloat16"):
        calls[f"set_ {name}"] = lambda torch, name=name: torch.empty(2, dtype=getattr(torch, name)).set_(
            two(torch, torch.float32).storage()
        )
    return calls


def _mask_calls() -> dict[str, Call]:
    calls: dict[str, Call] = {}
    for value in (0, 1):
        for kind in ("uint8", "bool"):
            for shape in ((), (3,), (2, 3)):

                def of(torch: Any, shape: Any = shape, kind: str = kind, value: int = value) -> tuple[Any, Any]:
                    return torch.arange(6)[: max(1, len(shape) * 3)].sum() if not shape else torch.arange(
                        shape[0] * (shape[1] if len(shape) > 1 else 1)
                    ).reshape(shape), torch.tensor(value, dtype=getattr(torch, kind))

                def write(torch: Any, of: Any = of) -> Any:
                    t, mask = of(torch)
                    t[mask] = 5
                    return t

                def wrong(torch: Any, of: Any = of) -> Any:
                    t, mask = of(torch)
                    t[mask] = torch.ones(2)
                    return t

                calls |= {
                    f"read {value} {kind} {shape}": lambda torch, of=of: of(torch)[0][of(torch)[1]],
                    f"last {value} {kind} {shape}": lambda torch, of=of: of(torch)[0][..., of(torch)[1]],
                    f"write {value} {kind} {shape}": write,
                    f"wrong {value} {kind} {shape}": wrong,
                }
    return calls


def _error_calls() -> dict[str, Call]:
    def select(shape: tuple[int, ...], dim: int, *index: int) -> Call:
        return lambda torch: torch.ones(shape).index_select(dim, torch.tensor(index, dtype=torch.int64))

    return {
        "select empty axis": select((0, 3), 0, 1),
        "select nothing": select((0, 3), 0),
        "select beyond": select((2, 0), 0, 5),
        "select negative": select((2, 0), 0, -1),
        "select within": select((2, 0), 0, 1, 0),
        "select of one dimension": select((0,), 0, 0),
        "put shape before dtype": lambda torch: torch.arange(4).index_put((torch.tensor([0, 1]),), torch.ones(3)),
        "put dtype": lambda torch: torch.arange(4).index_put((torch.tensor([0, 1]),), torch.ones(2)),
        "broadcast negative": lambda torch: torch.broadcast_shapes((2,), (-1,)),
        "broadcast negative first": lambda torch: torch.broadcast_shapes((-1,), (2,)),
        "broadcast negative alone": lambda torch: torch.broadcast_shapes((1, -1)),
        "broadcast negative later": lambda torch: torch.broadcast_shapes((5, 2), (2, -3)),
        "variable": lambda torch: torch.autograd.variable([1]),
    }


CALLS = _storage_calls() | _mask_calls() | _error_calls()


@pytest.mark.oracle
@pytest.mark.parametrize("name", CALLS)
def test_calls_are_answered_as_pytorch_answers(name: str, oracle: Any) -> None:
    # Whether the warning about typed storages was given before depends on what ran before.
    assert outcome(lambda: CALLS[name](subject))[0] == outcome(lambda: CALLS[name](oracle))[0]


def test_a_byte_without_dimensions_is_a_mask() -> None:
    t = subject.tensor(3)
    assert t[subject.tensor(1, dtype=subject.uint8)].tolist() == [3]
    assert t[subject.tensor(0, dtype=subject.uint8)].tolist() == []


@pytest.mark.parametrize(
    "name", ["autograd.gradcheck", "autograd.variable", "multiprocessing.spawn", "nn.utils.weight_norm"]
)
def test_a_module_does_not_hide_the_function_of_its_name(name: str) -> None:
    package, _, last = name.rpartition(".")
    importlib.import_module(f"{subject.__name__}.{name}")
    found = getattr(importlib.import_module(f"{subject.__name__}.{package}"), last)
    assert callable(found) and not isinstance(found, types.ModuleType)


def _operator_calls() -> dict[str, Call]:
    keys: dict[str, Call] = {
        "mask": lambda torch: [torch.tensor([True, False])],
        "whole mask": lambda torch: [torch.arange(6).reshape(2, 3) > 2],
        "second": lambda torch: [None, torch.tensor([True, False, True])],
        "int32": lambda torch: [torch.tensor([1], dtype=torch.int32)],
        "float": lambda torch: [torch.tensor([1.0])],
        "int8": lambda torch: [torch.tensor([1], dtype=torch.int8)],
        "two masks": lambda torch: [torch.tensor([True, False])] * 2,
        "wrong mask": lambda torch: [torch.tensor([True])],
        "number": lambda torch: [torch.tensor(1)],
    }

    def source(torch: Any) -> Any:
        return torch.arange(6.0).reshape(2, 3)

    calls: dict[str, Call] = {}
    for name, key in keys.items():
        calls[f"index {name}"] = lambda torch, key=key: torch.ops.aten.index.Tensor(source(torch), key(torch))
        calls[f"put {name}"] = lambda torch, key=key: torch.ops.aten.index_put.default(
            source(torch), key(torch), torch.tensor(9.0)
        )
        calls[f"put_ {name}"] = lambda torch, key=key: torch.ops.aten.index_put_(
            source(torch), key(torch), torch.tensor(9.0)
        )
    return calls


OPERATOR_CALLS = _operator_calls()


@pytest.mark.oracle
@pytest.mark.parametrize("name", OPERATOR_CALLS)
def test_operators_take_masks_for_indices(name: str, oracle: Any) -> None:
    assert outcome(lambda: OPERATOR_CALLS[name](subject)) == outcome(lambda: OPERATOR_CALLS[name](oracle))


def test_numbers_stand_for_the_tensors_of_a_sum() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yes, two, four = subject.tensor(True), subject.tensor(2), subject.tensor(4)
        assert bool(subject.add(yes, yes, True)) is True
        assert subject.add(two, four, 3).item() == subject.add(two, 4, 3).item() == subject.add(2, 4, 3).item() == 14
        assert subject.sub(two, four, 3).item() == -10 and two.add(four, 3).item() == 14
        with pytest.raises(TypeError):
            subject.add(subject.ones(2), subject.ones(2), 3)


def test_types_as_defaults_are_warned_of() -> None:
    before = subject.get_default_dtype()
    subject.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match=r"set_default_tensor_type\(\) is deprecated as of PyTorch 2.1"):
            subject.set_default_tensor_type(subject.DoubleTensor)
        assert subject.get_default_dtype() is subject.float64
    finally:
        subject.set_warn_always(False)
        subject.set_default_dtype(before)


@pytest.mark.parametrize("count, text", [(2**31, "Overflow when unpacking long"), (2**65, "long long")])
def test_counts_of_threads_beyond_an_int_are_refused(count: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        subject.set_num_interop_threads(count)
