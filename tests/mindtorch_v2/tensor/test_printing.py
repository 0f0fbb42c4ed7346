"""The text of tensors: fixed examples on the library under test, and random ones against the oracle."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest

from mindtorch_v2 import _dtype, _printing

from .._subject import IS_ORACLE, mindtorch_only
from .._subject import subject as torch


@pytest.fixture
def oracle() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    torch.set_printoptions(profile="default")
    _printing.set_printoptions(profile="default")


EXAMPLES = [
    ("tensor(1.5)", "tensor(1.5000)"),
    ("tensor(3)", "tensor(3)"),
    ("tensor(True)", "tensor(True)"),
    ("tensor(-0.0)", "tensor(-0.)"),
    ("tensor([1.0, 2.0])", "tensor([1., 2.])"),
    ("tensor([1, -20, 300])", "tensor([  1, -20, 300])"),
    ("tensor([True, False])", "tensor([ True, False])"),
    ("tensor([1.0, 2.5, float('nan'), float('inf')])", "tensor([1.0000, 2.5000,    nan,    inf])"),
    ("tensor([1.0, -float('inf')])", "tensor([1., -inf])"),
    ("tensor([1e-5, 1.0])", "tensor([1.0000e-05, 1.0000e+00])"),
    ("tensor([1e9, 1.0])", "tensor([1.0000e+09, 1.0000e+00])"),
    ("tensor([1.0, 2000.5])", "tensor([1.0000e+00, 2.0005e+03])"),
    ("tensor([[1.0, 2.0], [3.0, 4.0]])", "tensor([[1., 2.],\n        [3., 4.]])"),
    ("zeros(2, 1, 2)", "tensor([[[0., 0.]],\n\n        [[0., 0.]]])"),
    ("arange(2000)", "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
    (
        "zeros(200, 10)",
        "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n        ...,\n        [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "        [0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.]])",
    ),
    (
        "arange(30)",
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])",
    ),
    ("tensor(1 + 2j)", "tensor(1.+2.j)"),
    ("tensor([1.5 - 2j, 3j])", "tensor([1.5000-2.j, 0.0000+3.j])"),
    ("tensor([])", "tensor([])"),
    ("zeros(0, 3)", "tensor([], size=(0, 3))"),
    ("zeros(0, dtype=torch.int64)", "tensor([], dtype=torch.int64)"),
    ("zeros(2, dtype=torch.float64)", "tensor([0., 0.], dtype=torch.float64)"),
    ("zeros(2, dtype=torch.complex128)", "tensor([0.+0.j, 0.+0.j], dtype=torch.complex128)"),
    ("zeros(2, dtype=torch.uint8)", "tensor([0, 0], dtype=torch.uint8)"),
    ("zeros(2).to(torch.bfloat16)", "tensor([0., 0.], dtype=torch.bfloat16)"),
    ("tensor([1.0, 300.0]).to(torch.float8_e5m2)", "tensor([  1., 320.], dtype=torch.float8_e5m2)"),
    ("zeros(2, 3, device='meta')", "tensor(..., device='meta', size=(2, 3))"),
    ("zeros(2, device='meta', dtype=torch.int64)", "tensor(..., device='meta', size=(2,), dtype=torch.int64)"),
    ("zeros(2, requires_grad=True)", "tensor([0., 0.], requires_grad=True)"),
    ("zeros(2, requires_grad=True) + 1", "tensor([1., 1.], grad_fn=<AddBackward0>)"),
    (
        "zeros(8, dtype=torch.float64, requires_grad=True) * 2.5 + 0.12345",
        "tensor([0.1235, 0.1235, 0.1235, 0.1235, 0.1235, 0.1235, 0.1235, 0.1235],\n"
        "       dtype=torch.float64, grad_fn=<AddBackward0>)",
    ),
    ("zeros(2, 2).transpose(0, 1)", "tensor([[0., 0.],\n        [0., 0.]])"),
]


@pytest.mark.parametrize("code, expected", EXAMPLES, ids=[code for code, _ in EXAMPLES])
def test_examples(code: str, expected: str) -> None:
    made = eval("torch." + code, {"torch": torch})
    assert repr(made) == expected
    assert str(made) == expected


def test_subclass_prints_its_name() -> None:
    class Special(torch.Tensor):
        pass

    assert repr(torch.zeros(2).as_subclass(Special)) == "Special([0., 0.])"


def test_options_change_the_text() -> None:
    value = torch.tensor([1.23456789, 20.0])
    torch.set_printoptions(precision=2)
    assert repr(value) == "tensor([ 1.23, 20.00])"
    torch.set_printoptions(sci_mode=True)
    assert repr(value) == "tensor([1.23e+00, 2.00e+01])"
    torch.set_printoptions(profile="default")
    assert repr(value) == "tensor([ 1.2346, 20.0000])"
    torch.set_printoptions(threshold=3, edgeitems=1)
    assert repr(torch.arange(5)) == "tensor([0,  ..., 4])"
    torch.set_printoptions(edgeitems=0)
    assert repr(torch.arange(5)) == "tensor([...], size=(5,))"
    torch.set_printoptions(profile="full", linewidth=20)
    assert repr(torch.arange(5)) == "tensor([0, 1, 2, 3,\n        4])"


def test_default_dtype_decides_the_suffix() -> None:
    single, double = torch.zeros(1, dtype=torch.float32), torch.zeros(1, dtype=torch.complex128)
    torch.set_default_dtype(torch.float64)
    assert repr(single) == "tensor([0.], dtype=torch.float32)"
    assert repr(double) == "tensor([0.+0.j])"


def test_printing_changes_nothing() -> None:
    value = torch.zeros(3, requires_grad=True) * 2
    before = value._version
    repr(value)
    assert value._version == before
    assert value.requires_grad and not value.is_leaf


@mindtorch_only
def test_printoptions_restores() -> None:
    before = _printing.get_printoptions()
    assert before == {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}
    with pytest.raises(ZeroDivisionError):
        with _printing.printoptions(precision=1, sci_mode=True, linewidth=10):
            assert _printing.get_printoptions()["precision"] == 1
            raise ZeroDivisionError
    assert _printing.get_printoptions() == before


# Random tensors

EXTREMES = [0.0, -0.0, 1.0, float("inf"), -float("inf"), float("nan"), 1e-5, 1e8, 1e9, 999.9, 1e-4, 1e38, 3e-39]
SCALES = [1e-6, 1e-3, 0.1, 1.0, 1.0, 1.0, 10.0, 100.0, 1e4, 1e9]


def random_options(rng: random.Random) -> dict[str, Any]:
    choices: dict[str, list[Any]] = {
        "precision": [0, 1, 2, 5, 9],
        "threshold": [0, 1, 5, 50, 1000, float("inf")],
        "edgeitems": [0, 1, 2, 5],
        "linewidth": [1, 10, 20, 40, 120],
        "profile": ["default", "short", "full"],
        "sci_mode": [True, False, None],
    }
    if rng.random() < 0.5:
        return {}
    return {name: rng.choice(values) for name, values in choices.items() if rng.random() < 0.4}


def random_part(rng: random.Random, oracle: Any, shape: list[int]) -> Any:
    part = oracle.randn(shape, dtype=oracle.float64) * rng.choice(SCALES)
    if rng.random() < 0.3:
        part = part.round()
    if rng.random() < 0.4 and part.numel():
        flat = part.reshape(-1)
        for _ in range(rng.randint(1, 3)):
            flat[rng.randrange(len(flat))] = rng.choice(EXTREMES)
    return part


def random_tensor(rng: random.Random, oracle: Any, name: str) -> Any:
    dim = rng.choice([0, 1, 1, 2, 2, 3, 4])
    shape = [rng.choice([1, 2, 3, 7, 9]) for _ in range(dim)]
    if dim and rng.random() < 0.1:
        shape[rng.randrange(dim)] = 0
    if dim == 1 and rng.random() < 0.2:
        shape = [rng.choice([100, 1000, 1001])]
    made = random_part(rng, oracle, shape)
    if name.startswith("complex"):
        made = oracle.complex(made, random_part(rng, oracle, shape))
    made = made.to(getattr(oracle, name))
    if dim > 1 and rng.random() < 0.2:
        made = made.transpose(0, -1)
    return made.to("meta") if rng.random() < 0.1 else made


@pytest.mark.oracle
@pytest.mark.parametrize("name", [item.name for item in _dtype.ALL])
def test_text_equals_the_oracles(name: str, oracle: Any) -> None:
    rng = random.Random(name)
    oracle.manual_seed(rng.randrange(10**9))
    try:
        for _ in range(60):
            options = random_options(rng)
            default = rng.choice(["float32", "float32", "float64", "float16"])
            for library, printing in ((oracle, oracle), (_dtype, _printing)):
                printing.set_printoptions(profile="default")
                printing.set_printoptions(**options)
                library.set_default_dtype(getattr(library, default))
            made = random_tensor(rng, oracle, name)
            assert _printing.tensor_str(made) == repr(made), options
            if made.dtype.is_floating_point and not name.startswith("float8"):
                made.requires_grad_()
                assert _printing.tensor_str(made) == repr(made), options
                assert _printing.tensor_str(made * 2) == repr(made * 2), options
    finally:
        oracle.set_printoptions(profile="default")
        oracle.set_default_dtype(oracle.float32)
        _dtype.set_default_dtype(_dtype.float32)


@pytest.mark.oracle
@pytest.mark.skipif(IS_ORACLE, reason="moves tensors from the oracle into the library under test")
@pytest.mark.parametrize("name", [item.name for item in _dtype.ALL])
def test_text_of_own_tensors_equals_the_oracles(name: str, oracle: Any) -> None:
    from .._oracle import from_oracle

    rng = random.Random(name)
    oracle.manual_seed(rng.randrange(10**9))
    for _ in range(30):
        made = random_tensor(rng, oracle, name)
        assert repr(from_oracle(made)) == repr(made)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("convert", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_text_equals_the_oracles(convert: str, oracle: Any) -> None:
    for dtype, shape in itertools.product((oracle.float32, oracle.float64, oracle.int32), ((3, 4), (2, 0))):
        dense = oracle.arange(shape[0] * shape[1]).reshape(shape).to(dtype)
        made = getattr(dense, convert)()
        assert _printing.tensor_str(made) == repr(made)


@pytest.mark.oracle
def test_history_that_cannot_be_rebuilt(oracle: Any) -> None:
    base = oracle.zeros(4, requires_grad=True) * 1
    with oracle.no_grad():
        view = base[:2]
        view.mul_(2)
    assert _printing.tensor_str(view) == repr(view)


@pytest.mark.oracle
def test_given_contents_replace_the_elements(oracle: Any) -> None:
    value = oracle.zeros(2, dtype=oracle.float64)
    assert _printing.tensor_str(value, tensor_contents="[x]") == value.__repr__(tensor_contents="[x]")
