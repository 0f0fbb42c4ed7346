"""Saved values that were changed before the backward pass, and inputs that lead nowhere.

Invariant: every case gives the same outcome, errors included, in PyTorch and here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .._outcome import outcome
from .._subject import subject as torch

Case = Callable[[Any], Any]
CASES: dict[str, Case] = {}


def case(fn: Case) -> Case:
    CASES[fn.__name__] = fn
    return fn


def computed(lib: Any, *shape: int) -> Any:
    return lib.ones(shape, dtype=lib.float64, requires_grad=True) * 1


def written_then_differentiated(lib: Any, f: Callable[..., Any], *shapes: tuple[int, ...]) -> Any:
    inputs = [computed(lib, *shape) for shape in shapes]
    result = f(*inputs)
    for x in inputs:
        x.add_(1)
    result.sum().backward()


def ordered(name: str, f: Callable[[Any], Callable[..., Any]], *shapes: tuple[int, ...]) -> None:
    """Of several saved inputs that were written to, the error names one."""
    CASES[f"the_first_written_input_of_{name}"] = lambda lib: written_then_differentiated(lib, f(lib), *shapes)


ordered("addmm", lambda lib: lib.addmm, (2, 4), (2, 3), (3, 4))
ordered("mm", lambda lib: lib.mm, (2, 3), (3, 4))
ordered("addcmul", lambda lib: lib.addcmul, (2, 3), (2, 1), (3,))
ordered("addcdiv", lambda lib: lib.addcdiv, (2, 3), (2, 1), (3,))
ordered("atan2", lambda lib: lib.atan2, (2, 1), (3,))
ordered("lerp", lambda lib: lib.lerp, (2, 1), (3,), (4, 1, 1))
ordered("baddbmm", lambda lib: lib.baddbmm, (1, 2, 4), (1, 2, 3), (1, 3, 4))
ordered("pow", lambda lib: lib.pow, (2, 1), (3,))
ordered("hypot", lambda lib: lib.hypot, (2, 1), (3,))


@case
def a_saved_input_detached_in_place(lib: Any) -> Any:
    x = computed(lib, 2)
    y = x * x
    x.detach_()
    y.sum().backward()


@case
def a_written_input_detached_in_place(lib: Any) -> Any:
    x = computed(lib, 2).add_(1)
    y = x * x
    x.detach_()
    y.sum().backward()


@case
def a_result_detached_in_place(lib: Any) -> Any:
    leaf = lib.ones(2, requires_grad=True)
    y = leaf.exp()
    z = y * 1
    y.detach_()
    z.sum().backward()
    return leaf.grad


@case
def saved_after_it_was_detached(lib: Any) -> Any:
    x = computed(lib, 2).detach_().requires_grad_()
    (x * x).sum().backward()
    return x.grad, x.view(2)._is_view()


@case
def a_leaf_detached_in_place(lib: Any) -> Any:
    leaf = lib.ones(2, requires_grad=True)
    y = leaf * leaf
    leaf.detach_()
    y.sum().backward()
    return leaf.grad


@case
def a_leaf_that_became_a_result(lib: Any) -> Any:
    leaf = lib.ones(2, requires_grad=True)
    y = leaf * 2
    leaf.detach_()
    leaf.add_(y)
    y.sum().backward()


@case
def lerp_by_a_number_keeps_nothing(lib: Any) -> Any:
    leaf = lib.ones(2, requires_grad=True)
    y = lib.lerp(lib.zeros(2), leaf, 0.25)
    y.backward(lib.ones(2))
    y.backward(lib.ones(2))
    return leaf.grad


@case
def a_factor_that_leads_nowhere(lib: Any) -> Any:
    """A view made in no_grad mode of a tensor with a history requires grad without having any; the other factor is not
    saved for it."""
    x = computed(lib, 2)
    with lib.no_grad():
        view = x[:]
    other = computed(lib, 2)
    y = view * other
    other.add_(1)
    y.sum().backward()
    return view.requires_grad, view.grad_fn, y.grad_fn.next_functions[0]


@case
def integers_copied_into_a_view_made_in_no_grad_mode(lib: Any) -> Any:
    target = lib.tensor([1, 2, 3])
    with lib.no_grad():
        view = target.narrow(0, 1, 1)
    return view.copy_(computed(lib, 1)), target


@case
def numbers_copied_into_a_view_made_in_no_grad_mode(lib: Any) -> Any:
    target = lib.zeros(3)
    with lib.no_grad():
        view = target.narrow(0, 1, 1)
    view.copy_(computed(lib, 1))


@case
def retain_grad_twice_around_a_lost_history(lib: Any) -> Any:
    x = computed(lib, 2, 2)
    row = x.unbind()[0]
    row.retain_grad()
    x[::2].mul_(2)
    row.retain_grad()
    return row.retains_grad


@case
def nothing_read_leaves_zeros_without_a_history(lib: Any) -> Any:
    leaf = lib.ones(2, 3, requires_grad=True)
    x = leaf * 1
    empty = x.narrow(0, 1, 0)
    x.transpose_(0, 1)
    (empty * empty).sum().backward(create_graph=True)
    return leaf.grad


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name: str, oracle: Any) -> None:
    assert outcome(lambda: CASES[name](torch)) == outcome(lambda: CASES[name](oracle))


DETACHED = r"Trying to use a saved tensor that has been detached in-place, i.e. with .detach_\(\)"


@pytest.mark.parametrize("name", ["a_saved_input_detached_in_place", "a_written_input_detached_in_place"])
def test_what_was_detached_in_place_cannot_be_differentiated(name: str) -> None:
    with pytest.raises(RuntimeError, match=DETACHED):
        CASES[name](torch)


def test_the_alphabet_decides_which_input_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"\[torch.DoubleTensor \[2, 1\]\], which is output 0 of"):
        CASES["the_first_written_input_of_addcmul"](torch)


ALLOWED = """a_result_detached_in_place saved_after_it_was_detached a_leaf_detached_in_place
    lerp_by_a_number_keeps_nothing a_factor_that_leads_nowhere integers_copied_into_a_view_made_in_no_grad_mode
    nothing_read_leaves_zeros_without_a_history retain_grad_twice_around_a_lost_history""".split()


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed(name: str) -> None:
    CASES[name](torch)
