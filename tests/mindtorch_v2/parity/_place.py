"""Where calls run in tests that hold on several devices: how the oracle's arguments get there, and tensors come back.

Invariant: what comes back has the strides it had there.
"""

from __future__ import annotations

from typing import Any

from .. import _oracle
from .._subject import subject as torch
from . import _calls, _infos


class Place:
    """The CPU."""

    def convert(self, value: Any) -> Any:
        return _oracle.convert_argument(value)

    def arguments(self, case: _infos.Covered, args: Any) -> Any:
        return self.convert(args)

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def run(self, function: Any, args: Any, kwargs: Any) -> Any:
        """The call's result, or a Failure."""
        return _infos.attempt(self.call, (function, args, kwargs), {})

    def copied(self, t: Any) -> Any:
        """The tensor as it is, in memory that nobody else holds."""
        return _oracle.transfer(t, torch, requires_grad=False)

    def fetch(self, t: Any) -> Any:
        """The tensor on the CPU."""
        return t

    def first_dtype(self, case: _infos.Covered) -> str | None:
        return _calls.first_dtype(case)

    def refused(self, outcome: Any) -> bool:
        """Whether a failure is a limit of the device, which is accounted for elsewhere."""
        return False


CPU = Place()
