"""The last net of operators' calls: what it tells again, and whose exceptions it leaves alone.

Invariant: a rule or kernel of our own that stumbles is told as a refusal of the call; exceptions of others stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = mindtorch_only


@pytest.fixture(autouse=True)
def net() -> Iterator[None]:
    from mindtorch_v2._dispatch.unforeseen import NET

    NET.on = True
    yield
    NET.on = False


@pytest.fixture
def stumbling(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`stumbling(error)` makes `sinc` of a CPU raise it, from inside."""
    from mindtorch_v2._dispatch import registry
    from mindtorch_v2._dispatch.keys import CPU
    from mindtorch_v2._dispatch.op import FnKernel

    op = registry.get("sinc")
    torch.sinc(torch.ones(1))

    def use(error: Exception) -> None:
        # Written here, its frame would be somebody else's.
        space: dict[str, Any] = {"__name__": "mindtorch_v2._backends.cpu.ops.stumbling", "error": error}
        exec("def run(*args):\n    raise error", space)
        monkeypatch.setitem(op.kernels, int(CPU), FnKernel(space["run"]))
        op.forget()

    yield use
    monkeypatch.undo()
    op.forget()


OWN = [
    IndexError("tuple index out of range"),
    AttributeError("'NoneType' object has no attribute 'dim'"),
    TypeError("unsupported operand type(s) for +: 'int' and 'NoneType'"),
    ValueError("not enough values to unpack (expected 2, got 1)"),
    ValueError("operands could not be broadcast together with shapes (2,) (3,)"),
    TypeError("mindtorch_v2._tensor_base.TensorBase object expected; got int"),
    KeyError("float33"),
    ZeroDivisionError("float division by zero"),
    AssertionError(),
]


@pytest.mark.parametrize("error", OWN, ids=lambda e: type(e).__name__)
def test_words_of_python_become_a_refusal_of_the_call(stumbling: Any, error: Exception) -> None:
    stumbling(error)
    wanted = r"sinc\(\): there is no result for these arguments: \w+=float32\[2, 3\]$"
    for call in (torch.ops.aten.sinc.default, torch.ops.aten.sinc, torch.sinc, torch.Tensor.sinc):
        with pytest.raises(RuntimeError, match=wanted) as caught:
            call(torch.ones(2, 3))
        assert caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.parametrize(
    "error",
    [
        IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 2)"),
        ValueError("Expected input batch_size (2) to match target batch_size (0)."),
        TypeError("sinc(): argument 'input' (position 1) must be Tensor, not int"),
        TypeError("max() received an invalid combination of arguments - got (int), but expected (Tensor input)"),
        TypeError("sinc() takes 1 positional argument but 2 were given"),
        TypeError("sinc(): argument 'input' (position 1) must be Tensor, not numpy.ndarray"),
        NotImplementedError("'sinc' has no kernel"),
        MemoryError("tuple index out of range"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_refusals_stay_as_they_are(stumbling: Any, error: Exception) -> None:
    stumbling(error)
    for call in (torch.ops.aten.sinc.default, torch.sinc):
        with pytest.raises(type(error)) as caught:
            call(torch.ones(2))
        assert str(caught.value) == str(error)


def test_the_net_can_be_taken_away(stumbling: Any) -> None:
    from mindtorch_v2._dispatch.unforeseen import NET

    NET.on = False
    stumbling(OWN[0])
    for call in (torch.ops.aten.sinc.default, torch.sinc):
        with pytest.raises(IndexError, match="tuple index"):
            call(torch.ones(2))


def _fail(*args: Any, **kwargs: Any) -> Any:
    return tuple(args[:0])[0]


def test_exceptions_of_handlers_are_theirs() -> None:
    class Handler(torch.Tensor):
        __torch_function__ = classmethod(_fail)

    class Dispatched(torch.Tensor):
        __torch_dispatch__ = classmethod(_fail)

    for kind in (Handler, Dispatched):
        value = torch.ones(2).as_subclass(kind)
        for call in (torch.ops.aten.sinc.default, torch.sinc):
            with pytest.raises(IndexError, match="tuple index"):
                call(value)


def test_exceptions_of_objects_are_theirs() -> None:
    class Index:
        def __index__(self) -> int:
            empty: dict[str, int] = {}
            return empty["missing"]

    for call in (torch.ops.aten.softmax.int, torch.sum):
        with pytest.raises((RuntimeError, TypeError)) as caught:
            call(torch.ones(2), Index())
        assert "there is no result" not in str(caught.value)


def test_exceptions_of_operators_from_outside_are_theirs() -> None:
    name = "unforeseen::fails"

    @torch.library.custom_op(name, mutates_args=())
    def fails(x: torch.Tensor) -> torch.Tensor:
        _fail()
        return x

    for call in (torch.ops.unforeseen.fails.default, torch.ops.unforeseen.fails, fails):
        with pytest.raises(IndexError, match="tuple index"):
            call(torch.ones(2))


def test_exceptions_of_hooks_are_theirs() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(_fail)
    with pytest.raises(IndexError, match="tuple index"):
        torch.autograd.grad(y.sum(), x)


def test_arguments_are_shown_in_few_words() -> None:
    from mindtorch_v2._dispatch.unforeseen import shown

    assert shown(torch.ones(2, 3, dtype=torch.int64)) == "int64[2, 3]"
    assert shown([torch.ones(()), None]) == "[float32[], None]"
    assert shown((1,) * 9) == "[1, 1, 1, 1, 1, 1, 1, 1, ...]"
    assert shown("x" * 100) == "'" + "x" * 36 + "..."
    assert shown(object()) == "object"
