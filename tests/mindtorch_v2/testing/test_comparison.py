"""`assert_close` and what it is made of: which pairs pass, and what is said of those that do not, as the oracle."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from .._outcome import outcome
from .._subject import subject as torch
from .._subject import submodule

testing = submodule("testing")
nan, inf = float("nan"), float("inf")

# A name, and a function of the library that calls `close` on a pair; every outcome is compared.
Call = Callable[[Any, Callable[..., None]], None]
CASES: dict[str, Call] = {
    # values
    "equal": lambda t, close: close(t.arange(6.0), t.arange(6.0)),
    "near": lambda t, close: close(t.ones(3), t.ones(3) + 1e-7),
    "one wrong": lambda t, close: close(t.tensor([1.0, 2.0, 3.0]), t.tensor([1.0, 2.5, 3.0])),
    "several wrong": lambda t, close: close(t.arange(12.0).view(3, 4), t.arange(12.0).view(3, 4).flip(0)),
    "all wrong": lambda t, close: close(t.zeros(2, 3, 4), t.ones(2, 3, 4)),
    "expected zero": lambda t, close: close(t.ones(2), t.zeros(2)),
    "scalar": lambda t, close: close(t.tensor(1.0), t.tensor(2.0)),
    "scalar zero": lambda t, close: close(t.tensor(1.0), t.tensor(0.0)),
    "integers": lambda t, close: close(t.tensor([1, 2, 3]), t.tensor([1, 2, 9])),
    "unsigned": lambda t, close: close(t.tensor([0, 255], dtype=t.uint8), t.tensor([255, 0], dtype=t.uint8)),
    "bools": lambda t, close: close(t.tensor([True, False]), t.tensor([True, True])),
    "uint16": lambda t, close: close(t.tensor([1, 2], dtype=t.uint16), t.tensor([1, 3], dtype=t.uint16)),
    "complex": lambda t, close: close(t.tensor([1 + 2j, 3 - 1j]), t.tensor([1 + 2j, 3 + 1j])),
    "complex scalar": lambda t, close: close(t.tensor(1 + 2j), t.tensor(1 - 2j)),
    "half": lambda t, close: close(t.ones(2).half(), t.tensor([1.0, 1.01]).half()),
    "bfloat16": lambda t, close: close(t.ones(2).bfloat16(), t.tensor([1.0, 1.1]).bfloat16()),
    "bfloat16 close": lambda t, close: close(t.ones(2).bfloat16(), t.tensor([1.0, 1.01]).bfloat16()),
    "double": lambda t, close: close(t.ones(2).double(), t.ones(2).double() + 1e-6),
    "float8": lambda t, close: close(t.ones(4).to(t.float8_e4m3fn), t.tensor([1.0, 2.0, 1.0, 3.0]).to(t.float8_e4m3fn)),
    "float8 tolerance": lambda t, close: close(
        t.ones(2).to(t.float8_e5m2), t.ones(2).to(t.float8_e5m2), rtol=0.1, atol=0.0
    ),
    "float8 equal": lambda t, close: close(t.ones(2).to(t.float8_e5m2), t.ones(2).to(t.float8_e5m2)),
    "nan": lambda t, close: close(t.tensor([nan, 1.0]), t.tensor([nan, 1.0])),
    "nan equal": lambda t, close: close(t.tensor([nan, 1.0]), t.tensor([nan, 1.0]), equal_nan=True),
    "nan one": lambda t, close: close(t.tensor([nan, 1.0, 5.0]), t.tensor([0.0, 1.0, 2.0]), equal_nan=True),
    "nan scalar": lambda t, close: close(t.tensor(nan), t.tensor(nan)),
    "inf": lambda t, close: close(t.tensor([inf, -inf]), t.tensor([inf, inf])),
    "inf equal": lambda t, close: close(t.tensor([inf, -inf]), t.tensor([inf, -inf])),
    "empty": lambda t, close: close(t.ones(0, 3), t.ones(0, 3)),
    "tolerances": lambda t, close: close(t.ones(2), t.ones(2) * 1.1, rtol=0.2, atol=0.0),
    "tolerances small": lambda t, close: close(t.ones(2), t.ones(2) * 1.1, rtol=0.01, atol=0.02),
    "exactly": lambda t, close: close(t.ones(2), t.ones(2) + 1e-6, rtol=0, atol=0),
    "exact scalar": lambda t, close: close(t.tensor(3), t.tensor(4)),
    "only rtol": lambda t, close: close(t.ones(2), t.ones(2), rtol=0.1),
    "only atol": lambda t, close: close(1.0, 1.0, atol=0.1),
    "negative tolerance": lambda t, close: close(t.ones(2), t.ones(2), rtol=-1.0, atol=0.0),
    "requires grad": lambda t, close: close(t.ones(2, requires_grad=True), t.zeros(2)),
    # attributes
    "shape": lambda t, close: close(t.ones(2, 3), t.ones(3, 2)),
    "dtype": lambda t, close: close(t.ones(2), t.ones(2, dtype=t.float64)),
    "dtype free": lambda t, close: close(t.ones(2), t.ones(2, dtype=t.float64), check_dtype=False),
    "dtype free wrong": lambda t, close: close(t.ones(2), t.tensor([1, 2]), check_dtype=False),
    "dtype free unsigned": lambda t, close: close(
        t.tensor([1, 2], dtype=t.uint16), t.tensor([1, 2], dtype=t.int8), check_dtype=False
    ),
    "device": lambda t, close: close(t.ones(2), t.ones(2, device="meta")),
    "device free": lambda t, close: close(t.ones(2), t.ones(2, device="meta"), check_device=False),
    "meta": lambda t, close: close(t.ones(2, device="meta"), t.zeros(2, device="meta")),
    "meta shape": lambda t, close: close(t.ones(2, device="meta"), t.zeros(3, device="meta")),
    "stride": lambda t, close: close(t.ones(2, 3), t.ones(3, 2).t(), check_stride=True),
    "stride free": lambda t, close: close(t.ones(2, 3), t.ones(3, 2).t()),
    "layout": lambda t, close: close(t.ones(2, 3), t.ones(2, 3), check_layout=False),
    # other leaves
    "numbers": lambda t, close: close(1.0, 1.5),
    "numbers close": lambda t, close: close(1.0, 1.0 + 1e-9),
    "number zero": lambda t, close: close(1, 0),
    "number types": lambda t, close: close(1, 1.0),
    "number types free": lambda t, close: close(1, 1.0, check_dtype=False),
    "number nan": lambda t, close: close(nan, nan),
    "number nan equal": lambda t, close: close(nan, nan, equal_nan=True),
    "number inf": lambda t, close: close(inf, 1.0),
    "number complex": lambda t, close: close(1 + 1j, 1 - 1j),
    "booleans": lambda t, close: close(True, False),
    "boolean and integer": lambda t, close: close(True, 1),
    "none": lambda t, close: close(None, None),
    "none and number": lambda t, close: close(None, 3),
    "tensor and none": lambda t, close: close(t.ones(1), None),
    "numpy": lambda t, close: close(np.ones(3), np.array([1.0, 1.0, 2.0])),
    "numpy close": lambda t, close: close(np.ones(3, np.float32), np.ones(3, np.float32)),
    "numpy dtype": lambda t, close: close(np.ones(3), np.ones(3, np.float32)),
    "numpy scalars": lambda t, close: close(np.float64(1.0), np.float64(2.0)),
    "numpy and number": lambda t, close: close(np.float32(1.0), 1.5),
    "numpy bools": lambda t, close: close(np.bool_(True), False),
    "numpy and tensor": lambda t, close: close(np.ones(2), t.ones(2)),
    "tensor and list": lambda t, close: close(t.ones(2), [1.0, 1.0]),
    "tensor and number": lambda t, close: close(t.tensor(1.0), 1.0),
    "strings": lambda t, close: close("a", "a"),
    "objects": lambda t, close: close({1}, {1}),
    # containers
    "list": lambda t, close: close([t.ones(2), t.zeros(2)], [t.ones(2), t.ones(2)]),
    "list equal": lambda t, close: close([t.ones(2), 1, None], (t.ones(2), 1, None)),
    "list lengths": lambda t, close: close([1, 2], [1, 2, 3]),
    "list of strings": lambda t, close: close(["a"], ["a"]),
    "nested": lambda t, close: close({"a": [1, {"b": t.ones(2)}]}, {"a": [1, {"b": t.zeros(2)}]}),
    "nested lengths": lambda t, close: close({"a": [1, [2]]}, {"a": [1, [2, 3]]}),
    "nested none": lambda t, close: close([[None]], [[1]]),
    "nested bool": lambda t, close: close([[True]], [[False]]),
    "nested tolerance": lambda t, close: close([1.0], [1.0], rtol=0.1),
    "mapping": lambda t, close: close({"b": 1, "a": 2}, {"a": 3, "b": 4}),
    "mapping keys": lambda t, close: close({"b": 1, "a": 2}, {"a": 3, "c": 4, "d": 5}),
    "mapping ordered": lambda t, close: close(OrderedDict(a=t.ones(1)), {"a": t.zeros(1)}),
    "mapping mixed keys": lambda t, close: close({1: 1.0, "a": 2.0}, {1: 1.0, "a": 2.0}),
    "list and mapping": lambda t, close: close([1], {0: 1}),
    "tuple of numpy": lambda t, close: close((np.ones(1),), (np.zeros(1),)),
    "int keys": lambda t, close: close({3: [1.0, 2.0]}, {3: [1.0, 2.1]}),
    # messages
    "message": lambda t, close: close(t.ones(1), t.zeros(1), msg="another text"),
    "message function": lambda t, close: close([t.ones(1)], [t.zeros(1)], msg=lambda text: f"<{text}>"),
    "message empty": lambda t, close: close(t.ones(1), t.zeros(1), msg=""),
    "message unused": lambda t, close: close(t.ones(1), t.ones(1), msg=lambda text: 1 / 0),
    "message of structure": lambda t, close: close([1], [1, 2], msg="another text"),
    "subclass": lambda t, close: close(t.nn.Parameter(t.ones(2)), t.ones(2)),
    "subclass refused": lambda t, close: close(t.nn.Parameter(t.ones(2)), t.ones(2), allow_subclasses=False),
    "unknown option": lambda t, close: close(t.ones(2), t.ones(2), check_colour=True),
}


def said(library: Any, case: Call) -> Any:
    result, warned = outcome(lambda: case(library, library.testing.assert_close))
    return str(result).replace("mindtorch_v2", "torch"), warned


@pytest.mark.parametrize("name", CASES)
def test_assert_close(oracle: ModuleType, name: str) -> None:
    assert said(torch, CASES[name]) == said(oracle, CASES[name])


def test_messages_without_the_oracle() -> None:
    with pytest.raises(AssertionError) as caught:
        testing.assert_close([torch.tensor([[1.0, 2.0], [3.0, 4.0]])], [torch.tensor([[1.0, 2.0], [3.0, 5.0]])])
    assert str(caught.value) == (
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 4 (25.0%)\n"
        "Greatest absolute difference: 1.0 at index (1, 1) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.20000000298023224 at index (1, 1) (up to 1.3e-06 allowed)\n\n"
        "The failure occurred for item [0]"
    )
    testing.assert_close(torch.ones(2), torch.ones(2) + 1e-7)


def allclose_cases(library: Any, close: Callable[..., None]) -> list[Any]:
    t = library
    return [
        outcome(call)
        for call in (
            lambda: close(t.ones(2), t.ones(2) * 1.00001),
            lambda: close([1.0, 2.0], [1.0, 2.1]),
            lambda: close(t.ones(2), 2),
            lambda: close(t.tensor([nan]), [nan]),
            lambda: close(t.tensor([nan]), [nan], equal_nan=False),
            lambda: close(t.ones(2).half(), t.ones(2) * 1.01, msg="text"),
            lambda: close(t.ones(2), t.ones(2), rtol=0.1),
            lambda: close(t.ones(2), t.ones(2) + 0.1, rtol=0.0, atol=0.2),
        )
    ]


def test_assert_allclose(oracle: ModuleType) -> None:
    """The deprecated function: its warning, wider tolerances, NaN equals NaN."""
    mine = allclose_cases(torch, testing.assert_allclose)
    assert mine == allclose_cases(oracle, oracle.testing.assert_allclose)
    assert all(warned for _, warned in mine)


# -- the parts that other test libraries build on --------------------------------------------------------------------
def parts(library: Any) -> list[Any]:
    t, c = library, sys.modules[library.testing.__name__ + "._comparison"]

    class Even(c.Pair):
        """Integers that are equal modulo two."""

        def __init__(self, actual: Any, expected: Any, **options: Any) -> None:
            self._check_inputs_isinstance(actual, expected, cls=int)
            super().__init__(actual, expected, **options)

        def compare(self) -> None:
            if (self.actual - self.expected) % 2:
                self._fail(AssertionError, f"{self.actual} and {self.expected} differ in parity")

        def extra_repr(self) -> Any:
            return ["id", ("half", self.actual / 2)]

    class Broken(c.Pair):
        def compare(self) -> None:
            raise RuntimeError("broken")

    class Uninitialised(c.Pair):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            raise RuntimeError("never")

        def compare(self) -> None:
            pass

    def metas(*args: Any, **kwargs: Any) -> Any:
        return [(m.type.__name__, m.msg, m.id, str(m)) for m in c.not_close_error_metas(*args, **kwargs)]

    calls: list[Callable[[], Any]] = [
        lambda: metas([1, 2, 3], [3, 3, 4], pair_types=(Even,)),
        lambda: metas("a", "b"),
        lambda: metas(["a", {"k": 1}], ["a", {"k": 2}]),
        lambda: metas(t.ones(2), t.ones(2)),
        lambda: metas([1], [2], pair_types=(Broken,)),
        lambda: metas([1], [2], pair_types=(Uninitialised,)),
        lambda: metas([1.5], [2], pair_types=(Even,)),
        lambda: metas((1,), (2,), sequence_types=(list,)),
        lambda: repr(Even(2, 4, id=(1, "a"))),
        lambda: repr(c.NumberPair(1, 2.5)),
        lambda: repr(c.TensorLikePair(t.ones(2), t.zeros(2), id=(0,))),
        lambda: repr(c.originate_pairs({"a": [1]}, {"a": [2]}, pair_types=(c.ObjectPair,))),
        lambda: c.default_tolerances(t.float16, t.ones(2).double()),
        lambda: c.default_tolerances(t.int64),
        lambda: c.default_tolerances("float32"),
        lambda: c.default_tolerances(t.float32, dtype_precisions={t.float32: (1.0, 2.0)}),
        lambda: c.get_tolerances(t.float32, rtol=0.1, atol=None),
        lambda: c.get_tolerances(t.float32, rtol=0.1, atol=0.2),
        lambda: c.make_scalar_mismatch_msg(1, 2, rtol=0, atol=0, identifier="Colours"),
        lambda: c.make_scalar_mismatch_msg(1, 2, rtol=0, atol=1, identifier=lambda name: name.lower()),
        lambda: c.make_tensor_mismatch_msg(
            t.ones(2, 2), t.zeros(2, 2), t.eye(2).bool(), rtol=0.5, atol=0, identifier="Pictures"
        ),
        lambda: str(c.ErrorMeta(ValueError, "text", id=(1, "a")).to_error()),
        lambda: str(c.ErrorMeta(ValueError, "text").to_error(lambda text: text * 2)),
        lambda: str(c.ErrorMeta(ValueError, "text")),
        lambda: c.NonePair(1, 2),
        lambda: c.BooleanPair(1, True, id=()),
        lambda: c.NumberPair("1", 2),
        lambda: c.TensorLikePair(1, "a"),
    ]
    return [outcome(call) for call in calls]


def test_parts(oracle: ModuleType) -> None:
    for number, (mine, theirs) in enumerate(zip(parts(torch), parts(oracle))):
        assert str(mine).replace("mindtorch_v2", "torch") == str(theirs), number
