"""`torch.futures`: values that are set later, from this or another thread."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest

from .._subject import submodule

futures: Any = submodule("futures")


def test_a_value_is_waited_for() -> None:
    future = futures.Future()
    assert not future.done()
    threading.Timer(0.02, lambda: future.set_result(3)).start()
    assert (future.wait(), future.value(), future.done()) == (3, 3, True)
    with pytest.raises(RuntimeError, match="Attempting to mark a completed Future as complete again"):
        future.set_result(4)


def test_an_exception_reaches_who_waits() -> None:
    future = futures.Future()
    with pytest.raises(AssertionError, match="3 is of type <class 'int'>, not an Exception."):
        future.set_exception(3)
    future.set_exception(ValueError("x"))
    for ask in (future.wait, future.value):
        with pytest.raises(ValueError, match="x"):
            ask()


def test_callbacks_run_in_a_chain() -> None:
    future = futures.Future()
    seen: list[int] = []
    twice = future.then(lambda f: f.wait() + 1).then(lambda f: f.value() * 2)
    future.add_done_callback(lambda f: seen.append(f.value()))
    future.set_result(1)
    future.add_done_callback(lambda f: seen.append(-f.value()))
    assert (twice.wait(), seen) == (4, [1, -1])


def test_a_callback_that_raises_fails_its_future() -> None:
    future = futures.Future()
    child = future.then(lambda f: 1 / 0)
    future.set_result(1)
    with pytest.raises(RuntimeError, match="Got the following error when running the callback: ZeroDivisionError"):
        child.wait()


def test_all_of_several() -> None:
    a, b = futures.Future(), futures.Future()
    whole = futures.collect_all([a, b])
    a.set_result(1)
    assert not whole.done()
    b.set_result(2)
    assert [f.wait() for f in whole.wait()] == [1, 2] == futures.wait_all([a, b])
    assert futures.wait_all([]) == []
    c = futures.Future()
    c.set_exception(ValueError("q"))
    with pytest.raises(ValueError, match="q"):
        futures.wait_all([a, c])


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="Expected devices to have indices, got cpu"):
        futures.Future(devices=["cpu"])
    with pytest.raises(RuntimeError, match="Can not pickle torch.futures.Future"):
        pickle.dumps(futures.Future())
    with pytest.raises(TypeError):
        futures.Future().then(3)
