"""Which rows are compared with PyTorch, with which of its own sample inputs, and how closely.

Invariant: a row is either covered by an OpInfo of PyTorch, or by samples in `_own.py`, or listed there with a reason;
`test_rows_covered.py` fails for one that is none of these.
"""

from __future__ import annotations

import functools
import itertools
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .. import _oracle
from .._subject import IS_ORACLE, submodule
from .._subject import subject as torch
from . import _own

DTYPES = ["float32", "float64", "int64", "bool", "float16", "bfloat16", "complex64", "int32", "uint8"]
SAMPLES = 12
# Enough to choose from; some generators make hundreds.
LOOK_AHEAD = 40
# Larger inputs test speed, not rules.
MAX_ELEMENTS = 20_000


class Covered(NamedTuple):
    """An operator of PyTorch's table that a row of ours answers for."""

    row: str
    info: Any

    @property
    def label(self) -> str:
        variant = self.info.variant_test_name
        return f"{self.info.name}-{variant}" if variant else str(self.info.name)


@functools.cache
def row_names() -> tuple[str, ...]:
    """The names a user calls, one for all overloads, in-place and out= forms of a row."""
    if IS_ORACLE:
        return _own.ROWS_WHEN_PYTORCH_IS_TESTED
    registry = submodule("_dispatch.registry")
    torch.ones(1)
    submodule("_api.lazy_tables").load_all()
    found = {op.title() for op in registry.ops() if op.row is not None and op.row.kind not in ("inplace", "out")}
    return tuple(sorted(found))


@functools.cache
def _by_name() -> dict[str, list[Any]]:
    """OpInfos by every name they answer to: their own, an alias, or else the last part of `nn.functional.<name>`."""
    found: dict[str, list[Any]] = {}
    for info in _oracle.load_op_db():
        for name in {info.name, *(alias.name for alias in info.aliases)}:
            found.setdefault(name, []).append(info)
    for name in list(found):
        prefix, _, last = name.rpartition(".")
        if prefix == "nn.functional":
            found.setdefault(last, found[name])
        elif prefix in ("linalg", "special", "fft"):
            found.setdefault(f"{prefix}_{last}", found[name])
    return found


@functools.cache
def covered() -> tuple[Covered, ...]:
    if not _oracle.available():
        return ()
    result: list[Covered] = []
    seen: set[int] = set()
    for row in (*row_names(), *_own.WRITTEN_BY_HAND, *_own.FUNCTIONS):
        for info in _by_name().get(_own.INFO_NAMES.get(row, row), []):
            if id(info) not in seen and not _skipped(info) and in_subject(info) is not None:
                seen.add(id(info))
                result.append(Covered(row, info))
    return tuple(result)


def _skipped(info: Any) -> bool:
    return info.name in _own.SKIPPED_INFOS or (info.name, info.variant_test_name) in _own.SKIPPED_VARIANTS


def has_info(row: str) -> bool:
    return any(case.row == row for case in covered()) or _answered_by_another_name(row)


def _answered_by_another_name(row: str) -> bool:
    """Two rows may be names of one operator, such as `arccos` and `acos`; PyTorch has one OpInfo for both."""
    infos = {id(info) for info in _by_name().get(_own.INFO_NAMES.get(row, row), [])}
    return any(id(case.info) in infos for case in covered())


def supported(info: Any, dtype: str) -> bool:
    if (info.name, dtype) in _own.UNSUPPORTED:
        return False
    return getattr(_oracle.load(), dtype) in info.dtypes


def samples(info: Any, dtype: str, requires_grad: bool = False, count: int = SAMPLES) -> Iterator[Any]:
    """Up to `count` of PyTorch's sample inputs, spread over its list. They are shared: a test may not write to them."""
    listed = _listed(Key(info), dtype, requires_grad)
    if len(listed) <= count:
        yield from listed
        return
    step = len(listed) / count
    for position in range(count):
        yield listed[int(position * step)]


def _drops(kwargs: dict[str, Any]) -> bool:
    return bool(kwargs.get("dropout_p") or ("attn_mask" in kwargs and kwargs.get("training")))


class Key:
    """An OpInfo, which has no hash, as a key."""

    def __init__(self, info: Any) -> None:
        self.info = info

    def __hash__(self) -> int:
        return id(self.info)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and other.info is self.info


# Tests of one operator follow each other, so a short memory saves most of the generators' time.
@functools.lru_cache(maxsize=8)
def _listed(key: Key, dtype: str, requires_grad: bool) -> tuple[Any, ...]:
    oracle = _oracle.load()
    oracle.default_generator.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Not info.sample_inputs(): that asks inspect where each sample was made, which is most of its time.
        made = key.info.sample_inputs_func(key.info, "cpu", getattr(oracle, dtype), requires_grad)
        taken = [sample for sample in itertools.islice(made, LOOK_AHEAD) if _size(sample) <= MAX_ELEMENTS]
        # Dropout inside another operator has values that nobody can compare.
        return tuple(sample for sample in taken if not _drops(sample.kwargs))


def _size(sample: Any) -> int:
    total = 0

    def add(tensor: Any) -> Any:
        nonlocal total
        total += tensor.numel()
        return tensor

    _oracle.tree_map(add, [sample.input, *sample.args, sample.kwargs], _oracle.is_oracle_tensor)
    return total


def in_oracle(info: Any) -> Callable[..., Any]:
    function: Callable[..., Any] = info.op
    return function


@functools.cache
def _path(name: str) -> Any:
    """`nn.functional.relu` in the library under test: a function, or else a method of Tensor."""
    value: Any = torch
    for part in name.split("."):
        value = getattr(value, part, None)
        if value is None or isinstance(value, torch.dtype):
            return getattr(torch.Tensor, name.rpartition(".")[2], None)
    return value


def in_subject(info: Any) -> Any:
    """The same call in the library under test; None where it has no such name.

    Where PyTorch's table wraps the operator in a Python function, that very function is used, with `torch` meaning the
    library under test.
    """
    return rebound(info.op) or _path(info.name)


def by_overload(function: Any) -> Any:
    """`torch.ops.aten.slice.Tensor` in the library under test; None for anything else, and for what it has not."""
    found: Any = None
    if type(function).__name__ in ("OpOverload", "OpOverloadPacket"):
        found = torch.ops
        for part in str(function).split("."):
            found = getattr(found, part, None)
    return found


def rebound(function: Any) -> Any:
    """A function of PyTorch's table with `torch` meaning the library under test; None for any other function."""
    if isinstance(function, functools.partial) and function.func.__module__ == "torch.nn.functional":
        inner = getattr(torch.nn.functional, function.func.__name__, None)
        return inner and functools.partial(inner, *function.args, **function.keywords)
    if not isinstance(function, types.FunctionType) or not function.__module__.startswith("torch.testing"):
        return None
    scope = {**function.__globals__, "torch": torch}
    if "wrapper_set_seed" in function.__code__.co_names:
        scope["wrapper_set_seed"] = rebound(scope["wrapper_set_seed"])
    made = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def arguments(sample: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (sample.input, *sample.args), dict(sample.kwargs)


def fresh(value: Any) -> Any:
    """A copy of an oracle argument that shares no memory with it and keeps its layout."""
    oracle = _oracle.load()
    return _oracle.tree_map(lambda t: _oracle.transfer(t, oracle), value, _oracle.is_oracle_tensor)


def comparable(row: str, value: Any) -> Any:
    """Results as they are compared: without their sign where that is free."""
    if row not in _own.UP_TO_SIGN:
        return value

    def is_tensor(item: Any) -> bool:
        return _oracle.is_oracle_tensor(item) or _oracle.is_subject_tensor(item)

    return _oracle.tree_map(lambda t: t.abs(), list(value), is_tensor)


class Failure(NamedTuple):
    """A call that raised."""

    kind: str
    text: str


def attempt(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return Failure(type(error).__name__, str(error))


def refused_alike(actual: Any, expected: Failure, where: str) -> None:
    """By the same exception, in the same words; where PyTorch's text goes on, that is its C++ stack."""
    assert isinstance(actual, Failure), f"{where}: no exception, expected {expected}"
    mine, theirs = ((failure.kind, failure.text.split("\n")[0].strip()) for failure in (actual, expected))
    assert mine == theirs, f"{where}: {actual}, expected {expected}"


def describe(sample: Any) -> str:
    def short(value: Any) -> Any:
        return f"{_oracle.dtype_name(value.dtype)}{list(value.shape)}/{list(value.stride())}"

    shown = _oracle.tree_map(short, [sample.input, *sample.args], _oracle.is_oracle_tensor)
    extra = _oracle.tree_map(short, dict(sample.kwargs), _oracle.is_oracle_tensor)
    return f"({', '.join(map(str, shown))}, {extra})"
