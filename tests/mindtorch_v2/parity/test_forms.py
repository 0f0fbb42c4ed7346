"""In-place forms, out= forms and the meta device of every row.

Invariant: a row's in-place and out= forms give what PyTorch's give, and its meta kernel gives its cpu kernel's layout.
"""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import IS_ORACLE
from .._subject import subject as torch
from . import _infos, _own
from .test_layouts import LAYOUTS

pytestmark = pytest.mark.oracle


def with_inplace() -> list[_infos.Covered]:
    found = []
    for case in _infos.covered():
        name = case.info.name.rpartition(".")[2] + "_"
        if case.info.inplace_variant is not None and hasattr(torch.Tensor, name) and case.row not in _own.RANDOM_ROWS:
            found.append(case)
    return found


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16"])
@pytest.mark.parametrize("case", with_inplace(), ids=lambda case: case.label)
def test_inplace(case: _infos.Covered, dtype: str) -> None:
    info = case.info
    if not _infos.supported(info, dtype):
        return
    name = info.name.rpartition(".")[2] + "_"
    for sample in _infos.samples(info, dtype, count=5):
        if sample.broadcasts_input:
            continue
        where = f"{name} {dtype} {_infos.describe(sample)}"
        args, kwargs = _infos.arguments(sample)
        mine_args, mine_kwargs = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
        args = _infos.fresh(args)
        expected = _infos.attempt(info.inplace_variant, args, kwargs)
        actual = _infos.attempt(getattr(torch.Tensor, name), mine_args, mine_kwargs)
        if isinstance(expected, _infos.Failure):
            assert isinstance(actual, _infos.Failure) and actual.kind == expected.kind, f"{where}: {actual}, {expected}"
            assert mine_args[0]._version == 0, where
            continue
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual}"
        assert actual is mine_args[0], where
        assert actual._version == 1, f"{where}: version {actual._version}"
        _oracle.assert_same(actual, expected, where=where, computed_in=dtype)


def with_out() -> list[_infos.Covered]:
    return [
        case
        for case in _infos.covered()
        if case.info.supports_out and case.row not in _own.RANDOM_ROWS and case.row not in _own.NO_OUT
    ]


@pytest.mark.parametrize("case", with_out(), ids=lambda case: case.label)
def test_out(case: _infos.Covered) -> None:
    info = case.info
    dtype = next((name for name in ("float64", "int64", "bool") if _infos.supported(info, name)), None)
    if dtype is None:
        return
    for sample in _infos.samples(info, dtype, count=6):
        where = f"{case.label} out= {_infos.describe(sample)}"
        args, kwargs = _infos.arguments(sample)
        mine_args, mine_kwargs = _oracle.convert_argument(args), _oracle.convert_argument(kwargs)
        expected = _infos.attempt(_infos.in_oracle(info), args, kwargs)
        many = isinstance(expected, (list, tuple))
        if not many and not isinstance(expected, _oracle.load().Tensor):
            continue
        if many and not all(isinstance(item, _oracle.load().Tensor) for item in expected):
            continue  # a list among the results
        targets = [_filled(item) for item in (expected if many else [expected])]
        given = tuple(targets) if many else targets[0]
        # What PyTorch's out= gives, which keeps the strides of the target.
        reference = tuple(_infos.fresh(_oracle.to_oracle(item)) for item in targets)
        theirs = _infos.attempt(_infos.in_oracle(info), args, {**kwargs, "out": reference if many else reference[0]})
        if isinstance(theirs, _infos.Failure):
            continue
        actual = _infos.attempt(_infos.in_subject(info), mine_args, {**mine_kwargs, "out": given})
        assert not isinstance(actual, _infos.Failure), f"{where}: {actual}"
        results = list(actual) if many else [actual]
        assert all(left is right for left, right in zip(results, targets)), f"{where}: returned something else"
        mine, theirs = (_infos.comparable(case.row, value) for value in (results, list(reference)))
        _oracle.assert_same(mine, theirs, where=where, computed_in=dtype)


def _filled(expected: Any) -> Any:
    """A target of the right shape and dtype, in memory order reversed from the usual where it has two dimensions."""
    made = _oracle.from_oracle(expected.detach(), requires_grad=False)
    if made.dim() == 2 and made.numel():
        made = made.t().contiguous().t()
    made.fill_(1)
    return _oracle.transfer(made, torch)


@pytest.mark.parametrize("dtype", _infos.DTYPES)
@pytest.mark.parametrize("case", _infos.covered(), ids=lambda case: case.label)
def test_meta_agrees_with_cpu(case: _infos.Covered, dtype: str) -> None:
    """In shape, strides and dtype."""
    if not _infos.supported(case.info, dtype):
        return
    first = dtype == next((name for name in ("float32", "int64", "bool") if _infos.supported(case.info, name)), None)
    for sample in _infos.samples(case.info, dtype, count=_infos.SAMPLES if first else 3):
        check_meta(case, *_infos.arguments(sample), f"{case.label} {dtype} meta {_infos.describe(sample)}")
    # PyTorch's own meta device forgets strides here and there.
    for layout, change in LAYOUTS.items() if first and not IS_ORACLE else ():
        if layout in _own.WRONG_LAYOUTS.get(case.row, ()):
            continue
        for sample in _infos.samples(case.info, dtype, count=2):
            args, kwargs = _infos.arguments(sample)
            args = _oracle.tree_map(change, args, _oracle.is_oracle_tensor)
            check_meta(case, args, kwargs, f"{case.label} {dtype} {layout} meta {_infos.describe(sample)}")


def check_meta(case: _infos.Covered, args: Any, kwargs: Any, where: str) -> None:
    if _reads_data(case.info, args, kwargs) or case.row in _own.OTHER_ON_META:
        return
    function = _infos.in_subject(case.info)
    mine, others = ((_oracle.convert_argument(args), _oracle.convert_argument(kwargs)) for _ in range(2))
    torch.manual_seed(0)
    on_cpu = _infos.attempt(function, *mine)
    if isinstance(on_cpu, _infos.Failure):
        return  # test_values and test_layouts report it
    on_meta = _infos.attempt(function, *map(_to_meta, others))
    assert not isinstance(on_meta, _infos.Failure), f"{where}: {on_meta}"
    assert _layouts(on_meta) == _layouts(on_cpu), where
    if not _names_a_device(args, kwargs):
        assert all(item.device.type == "meta" for item in _tensors(on_meta)), where


def _reads_data(info: Any, args: Any, kwargs: Any) -> bool:
    """Whether the shape depends on values (masks, indices, nonzero): then PyTorch too refuses the call on meta."""
    is_tensor = _oracle.is_oracle_tensor
    meta_args = _oracle.tree_map(lambda tensor: tensor.to("meta"), args, is_tensor)
    meta_kwargs = _oracle.tree_map(lambda tensor: tensor.to("meta"), kwargs, is_tensor)
    return isinstance(_infos.attempt(_infos.in_oracle(info), meta_args, meta_kwargs), _infos.Failure)


def _names_a_device(args: Any, kwargs: Any) -> bool:
    """Factories, and conversions to a device that is an argument."""
    oracle = _oracle.load()
    named = [item for item in [*args, *kwargs.values()] if isinstance(item, (oracle.device, str))]
    return bool(named) or not any(isinstance(item, oracle.Tensor) for item in _flat(args))


def _flat(args: Any) -> list[Any]:
    found: list[Any] = []
    _oracle.tree_map(found.append, list(args), lambda item: not isinstance(item, (list, tuple, dict)))
    return found


def _to_meta(value: Any) -> Any:
    return _oracle.tree_map(lambda tensor: _oracle.as_meta(tensor), value, _oracle.is_subject_tensor)


def _tensors(value: Any) -> list[Any]:
    items = value if isinstance(value, (list, tuple)) else [value]
    return [item for item in items if isinstance(item, torch.Tensor)]


def _layouts(value: Any) -> Any:
    return [_oracle.layout(item) for item in _tensors(value)]
