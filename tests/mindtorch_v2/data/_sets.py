"""Datasets for the tests, in terms of either library; at the top of a module, so that they can be pickled."""

from __future__ import annotations

import collections
import os
import random
import signal
import sys
import time
from typing import Any

import numpy

from .._subject import subject as torch
from .._subject import submodule

data: Any = submodule("utils.data")
Point = collections.namedtuple("Point", "x y")


class Numbers:
    """The indices themselves, as tensors of a library."""

    def __init__(self, library: Any, size: int = 20, shape: tuple[int, ...] = ()) -> None:
        self.library, self.size, self.shape = library, size, shape

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int) -> Any:
        return self.library.full(self.shape, float(i))


class Everything(Numbers):
    """Samples with all that can be collated."""

    def __getitem__(self, i: int) -> Any:
        t = self.library
        return {
            "tensor": t.arange(3) + i,
            "list": [i, float(i), str(i)],
            "pair": (numpy.full((2,), i, dtype=numpy.float32), numpy.float64(i)),
            "named": Point(bool(i % 2), t.tensor(i, dtype=t.float16)),
            "bytes": b"x" * (i % 3),
        }


class Draws(Numbers):
    """What the generators of a worker give."""

    def __getitem__(self, i: int) -> Any:
        t = self.library
        info = t.utils.data.get_worker_info()
        numbers = (-1, 0, 0) if info is None else (info.id, info.num_workers, info.seed)
        return [t.rand(1).item(), random.random(), float(numpy.random.rand()), *[float(n % 1000003) for n in numbers]]


class Counting(data.IterableDataset):
    """Numbers shared out to the workers, or, if not split, given by each."""

    def __init__(self, size: int, split: bool = True, claims: int | None = None) -> None:
        self.size, self.split, self.claims = size, split, claims

    def __iter__(self) -> Any:
        info = data.get_worker_info()
        if info is None or not self.split:
            return iter(range(self.size))
        return iter(range(info.id, self.size, info.num_workers))

    def __len__(self) -> int:
        return self.size if self.claims is None else self.claims


def checks_its_number(worker_id: int) -> None:
    assert data.get_worker_info().id == worker_id


class Odd(Exception):
    """Cannot be made from a text alone."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(one, two)


class WithMessage(Exception):
    message = "class attribute"

    def __init__(self, message: str) -> None:
        super().__init__(message)


class Unpicklable:
    def __reduce__(self) -> Any:
        raise TypeError("this cannot be pickled")


class Unloadable:
    def __reduce__(self) -> Any:
        return _explode, ()


def _explode() -> Any:
    raise ValueError("this cannot be unpickled")


class Failing(Numbers):
    """Does something bad at one index."""

    def __init__(self, how: str, at: int = 5, size: int = 20) -> None:
        super().__init__(torch, size)
        self.how, self.at = how, at

    def __getitem__(self, i: int) -> Any:
        if i == self.at:
            return self.act()
        return torch.full((3,), float(i))

    def act(self) -> Any:
        how = self.how
        if how == "hang":
            time.sleep(60)
        elif how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif how == "_exit":
            os._exit(7)
        elif how == "exit":
            sys.exit(3)
        elif how == "interrupt":
            raise KeyboardInterrupt
        elif how == "value":
            raise ValueError("bad value")
        elif how == "key":
            raise KeyError("a key\nof two lines")
        elif how == "odd":
            raise Odd(1, 2)
        elif how == "message":
            raise WithMessage("told")
        elif how == "local":

            class Local(Exception):
                pass

            raise Local("of this function only")
        elif how == "stop":
            raise StopIteration("of an indexed dataset")
        elif how == "unicode":
            b"\xff".decode()
        elif how == "os":
            open("/nonexistent")
        elif how == "group":
            raise RecursionError("deep")
        elif how == "unpicklable":
            return Unpicklable()
        elif how == "unloadable":
            return Unloadable()
        elif how == "graph":
            return torch.ones(3, requires_grad=True) * 2
        raise AssertionError(how)
