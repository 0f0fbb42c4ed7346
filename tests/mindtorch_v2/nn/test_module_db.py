"""Every module of PyTorch's table: weights, results, gradients, texts, pickles and refusals.

Invariant: weights from the same seed are equal bit by bit; everything else within the tolerance of its dtype.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch
from ..bad_calls import normalise
from . import _module_db

NAMES = _module_db.names()
CASES = [(name, dtype) for name in NAMES for dtype in _module_db.dtypes(name)]
# Sums of many rounded products: half precision by PyTorch's own tolerance for this module.
COARSE = {"LinearCrossEntropyLoss": 4.0, "CTCLoss": 10.0}


def same(actual: Any, expected: Any, where: str, factor: float = 1.0) -> None:
    rtol, atol = (factor * t for t in _oracle.TOLERANCES.get(_oracle.dtype_name(expected.dtype), (0.0, 0.0)))
    _oracle.assert_same(actual, expected, rtol=rtol, atol=atol, where=where, stride=False)


def size(value: Any) -> float:
    """The largest absolute value, at least one: an absolute tolerance grows with what was summed up."""
    return max(1.0, float(value.detach().abs().max()) if value.numel() else 1.0)


def same_all(actual: dict[str, Any], expected: dict[str, Any], where: str, factor: float = 1.0) -> None:
    assert list(actual) == list(expected), where
    for name, value in expected.items():
        same(actual[name], value, f"{where}: {name}", factor * size(value))


def same_second(actual: dict[str, Any], expected: dict[str, Any], where: str, factor: float) -> None:
    """As above; where a gradient does not depend on an input, it is none in one library and zeros in the other."""
    actual, expected = ({k: v for k, v in side.items() if bool(v.any())} for side in (actual, expected))
    same_all(actual, expected, where, factor)


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_module(name: str, dtype: str) -> None:
    info, oracle = _module_db.entries()[name], _oracle.load()
    twice = info.supports_gradgrad and dtype in ("float64", "complex128")
    for sample in _module_db.samples(name, dtype):
        ours, theirs = _module_db.pair(sample)
        where = str(sample)
        assert repr(ours) == repr(theirs), where
        assert ours.extra_repr() == theirs.extra_repr(), where
        if not info.is_lazy:
            _same_bits(ours, theirs, where)
        given = sample.made.forward_input
        args, kwargs = _oracle.convert_argument(given.args), _oracle.convert_argument(given.kwargs)
        expected = _module_db.run(oracle, theirs, *_module_db.leaves((given.args, given.kwargs)), twice)
        actual = _module_db.run(torch, ours, args, kwargs, twice)
        factor = COARSE.get(name, 1.0)
        assert len(actual.outputs) == len(expected.outputs), where
        for mine, other in zip(actual.outputs, expected.outputs):
            same(mine, other, where, factor * size(other))
        same_all(actual.gradients, expected.gradients, f"{where}, gradients", factor)
        if expected.second:
            same_second(actual.second, expected.second, f"{where}, second gradients", factor * 10)
        same_all(actual.buffers, expected.buffers, f"{where}, buffers")
        if info.is_lazy:
            assert repr(ours) == repr(theirs), where
            _same_bits(ours, theirs, where)
        _survives_copying(ours, args, kwargs, where)


def _same_bits(ours: Any, theirs: Any, where: str) -> None:
    mine, other = ours.state_dict(), theirs.state_dict()
    assert list(mine) == list(other), where
    assert {k: dict(v) for k, v in mine._metadata.items()} == {k: dict(v) for k, v in other._metadata.items()}, where
    for key, value in other.items():
        assert _oracle.load().equal(_oracle.to_oracle(mine[key]), value), f"{where}: {key} starts with other values"


def _survives_copying(module: Any, args: Any, kwargs: Any, where: str) -> None:
    def answer(of: Any) -> list[Any]:
        torch.manual_seed(3)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _module_db.tensors(of(*args, **kwargs), torch.Tensor)

    # A copy is made before either is called: a call may change running statistics.
    others = [copy.deepcopy(module), pickle.loads(pickle.dumps(module))]
    expected = answer(module)
    for other in others:
        assert type(other) is type(module) and repr(other) == repr(module), where
        assert other.training is module.training, where
        for mine, wanted in zip(answer(other), expected, strict=True):
            assert torch.equal(torch.nan_to_num(mine), torch.nan_to_num(wanted)), where


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_without_data(name: str) -> None:
    """Where PyTorch's module can be called on the meta device, ours can, with results of the same shape and dtype."""
    for sample in _module_db.samples(name, "float32"):
        ours, theirs = _module_db.pair(sample)
        given = sample.made.forward_input
        oracle = _oracle.load()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = theirs(*given.args, **given.kwargs)
            try:
                theirs.to("meta")(*_on_meta(given.args, oracle), **_on_meta(given.kwargs, oracle))
            except (NotImplementedError, RuntimeError):
                continue
            args, kwargs = _oracle.convert_argument(given.args), _oracle.convert_argument(given.kwargs)
            actual = ours.to("meta")(*_on_meta(args, torch), **_on_meta(kwargs, torch))
        assert _described(actual, torch) == [(*d[:2], "meta") for d in _described(expected, oracle)], str(sample)


def _described(value: Any, library: Any) -> list[tuple[Any, ...]]:
    found = _module_db.tensors(value, library.Tensor)
    return [(tuple(t.shape), _oracle.dtype_name(t.dtype), t.device.type) for t in found]


def _on_meta(values: Any, library: Any) -> Any:
    return _oracle.tree_map(lambda t: t.detach().to("meta"), values, lambda v: isinstance(v, library.Tensor))


ERRORS = [name for name in NAMES if _module_db.entries()[name].module_error_inputs_func]


@pytest.mark.oracle
@pytest.mark.parametrize("name", ERRORS)
def test_refusals(name: str) -> None:
    """What the table knows to be wrong is refused with PyTorch's type and text."""
    info, oracle = _module_db.entries()[name], _oracle.load()
    for wrong in info.module_error_inputs_func(info, "cpu", oracle.float32, False, True):
        sample = wrong.module_error_input
        expected = _complaint(oracle, name, sample.constructor_input, sample.forward_input, lambda v: v)
        actual = _complaint(torch, name, sample.constructor_input, sample.forward_input, _oracle.convert_argument)
        assert actual == expected


def _complaint(library: Any, name: str, made: Any, given: Any, convert: Any) -> tuple[str, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = getattr(library.nn, name)(*convert(made.args), **convert(made.kwargs))
            if given is not None:
                module(*convert(given.args), **convert(given.kwargs))
    except Exception as error:
        return type(error).__name__, normalise(str(error))
    return "", "no complaint"


# -- every class, also those that the table leaves out -----------------------------------------------------------------
def _classes() -> list[str]:
    if not _oracle.available():
        return []
    known = [name for name in _oracle.load().nn.modules.__all__ if hasattr(torch.nn, name)]
    return sorted(name for name in known if name not in _module_db.ELSEWHERE and "Transformer" not in name)


def _parameters(function: Any) -> list[tuple[str, Any, str]]:
    return [(p.name, p.kind, repr(p.default)) for p in inspect.signature(function).parameters.values()]


@pytest.mark.oracle
@pytest.mark.parametrize("name", _classes())
def test_signatures(name: str) -> None:
    ours, theirs = getattr(torch.nn, name), getattr(_oracle.load().nn, name)
    assert _parameters(ours) == _parameters(theirs)
    if hasattr(theirs, "forward"):
        assert _parameters(ours.forward) == _parameters(theirs.forward)
    assert getattr(ours, "_version", None) == getattr(theirs, "_version", None)


# What PyTorch's own compilers leave in the class.
NOT_HERE = frozenset(["T_destination"])


@pytest.mark.oracle
@pytest.mark.parametrize("name", [*_classes(), "Module"])
def test_names(name: str) -> None:
    """Everything public that PyTorch's class has, and in the file where PyTorch has it."""
    ours, theirs = getattr(torch.nn, name), getattr(_oracle.load().nn, name)
    assert {n for n in set(dir(theirs)) - set(dir(ours)) if not n.startswith("_")} <= NOT_HERE
    if hasattr(theirs, "forward"):
        assert ours.__module__.partition(".")[2] == theirs.__module__.partition(".")[2]
    assert ours.__qualname__ == theirs.__qualname__


FILES = """nn nn.functional nn.init nn.parameter nn.grad nn.common_types nn.parallel nn.parallel.comm nn.modules.utils
nn.modules.module nn.modules.lazy nn.modules.batchnorm nn.modules.instancenorm nn.modules.conv nn.modules.linear
nn.modules.container nn.modules.loss nn.modules.pooling nn.modules.padding nn.modules.normalization nn.modules.sparse
nn.modules.dropout nn.modules.distance nn.modules.flatten nn.modules.fold nn.modules.upsampling nn.modules.adaptive
nn.modules.pixelshuffle nn.modules.channelshuffle""".split()
# Quantization and distribution are later issues; `T` and `DType` are names for types, the notes are texts.
LATER = frozenset(
    """quantized intrinsic qat quantizable DistributedDataParallel DistributedDataParallelCPU DType T
    reproducibility_notes sparse_support_notes tf32_notes convolution_notes""".split()
)


@pytest.mark.oracle
@pytest.mark.parametrize("path", FILES)
def test_names_of_files(path: str) -> None:
    """Everything public that is defined in PyTorch's module of that name; not what it happens to import."""
    ours = importlib.import_module(f"{torch.__name__}.{path}")
    theirs = importlib.import_module(f"torch.{path}")
    own = [n for n in dir(theirs) if _defined(theirs, n)] + list(getattr(theirs, "__all__", ()))
    assert sorted(n for n in set(own) - set(dir(ours)) - LATER if "Transformer" not in n) == []
    assert all(hasattr(ours, n) for n in set(own) - LATER if "Transformer" not in n)


def _defined(module: Any, name: str) -> bool:
    value = getattr(module, name)
    return not name.startswith("_") and getattr(value, "__module__", None) == module.__name__


def test_the_table_is_asked() -> None:
    """Without the oracle: what the tables above call a module can be made, called, copied and pickled."""
    layer = torch.nn.Conv2d(2, 3, 2, padding=1)
    x = torch.ones(1, 2, 4, 4)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(x), layer(x))
        assert repr(other) == "Conv2d(2, 3, kernel_size=(2, 2), stride=(1, 1), padding=(1, 1))"
