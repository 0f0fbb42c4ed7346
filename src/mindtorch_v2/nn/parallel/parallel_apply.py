"""Calling several modules at once, each in a thread of its own and on its own device.

Invariant: a thread computes with the caller's gradient mode and autocast, and on the caller's stream of its device.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Sequence
from typing import Any

import mindtorch_v2 as torch

from ..._tensor import Tensor
from ..modules import Module
from . import comm

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """The first tensor in nested arguments."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, dict):
        obj = list(obj.items())
    if isinstance(obj, (list, tuple)):
        for item in obj:
            found = get_a_var(item)
            if found is not None:
                return found
    return None


class _Failure:
    """An exception of a thread, to be raised in the thread that waits."""

    def __init__(self, error: Exception, where: str) -> None:
        self.kind = type(error)
        lines = "".join(traceback.format_exception(error))
        self.text = f"Caught {self.kind.__name__} {where}.\nOriginal {lines}"

    def raise_again(self) -> None:
        try:
            error = self.kind(self.text)
        except Exception:
            # Exceptions whose arguments nobody here knows.
            raise RuntimeError(self.text) from None
        raise error


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """The results of all modules, each called with its input; an error in one is raised again here."""
    count = len(modules)
    for name, given in (("inputs", inputs), ("kwargs_tup", kwargs_tup), ("devices", devices)):
        if given is not None and len(given) != count:
            raise AssertionError(f"The number of modules {count} is not equal to the number of {name} {len(given)}")
    if not torch.accelerator.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    options: Sequence[dict[str, Any]] = [{}] * count if kwargs_tup is None else kwargs_tup
    indices = [comm.device_index(device, True) for device in devices or [None] * count]
    streams = [torch.npu.current_stream(index) for index in indices]
    results: list[Any] = [None] * count
    grad_enabled = torch.is_grad_enabled()
    cast = dict(enabled=torch.is_autocast_enabled("npu"), dtype=torch.get_autocast_dtype("npu"))

    def work(i: int) -> None:
        args = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
        try:
            with (
                torch.npu.device(indices[i]),
                torch.npu.stream(streams[i]),
                torch.set_grad_enabled(grad_enabled),
                torch.autocast("npu", **cast),
            ):
                results[i] = modules[i](*args, **options[i])
        except Exception as error:
            results[i] = _Failure(error, f"in replica {i} on device {indices[i]}")

    if count > 1:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    elif count:
        work(0)
    for result in results:
        if isinstance(result, _Failure):
            result.raise_again()
    return results
