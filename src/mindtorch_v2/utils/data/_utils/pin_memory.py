"""Moving batches into page-locked memory, from which an NPU copies without waiting."""

from __future__ import annotations

import copy
import queue
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import mindtorch_v2 as torch

from ...._utils_names import ExceptionWrapper


def _pin_memory_loop(in_queue: Any, out_queue: Any, device_id: int, done_event: Any, device: Any) -> None:
    """The thread between workers and loader: whatever arrives goes on in page-locked memory."""
    from . import MP_STATUS_CHECK_INTERVAL

    torch.multiprocessing._set_thread_name("pt_data_pin")
    torch.accelerator.set_device_index(device_id)
    while not done_event.is_set():
        try:
            item = in_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
        except queue.Empty:
            continue
        except Exception as error:
            # The loader raises it, where somebody waits.
            out_queue.put(error)
            continue
        index, data = item
        if not done_event.is_set() and not isinstance(data, ExceptionWrapper):
            try:
                data = pin_memory(data, device)
            except Exception:
                data = ExceptionWrapper(where=f"in pin memory thread for device {device_id}")
        out_queue.put((index, data))
        del item, data


def pin_memory(data: Any, device: Any = None) -> Any:
    """Every tensor in `data`, and everything that has a method `pin_memory`, in page-locked memory."""
    if isinstance(data, torch.Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        values = {key: pin_memory(value, device) for key, value in data.items()}
        try:
            if not isinstance(data, MutableMapping):
                return type(data)(values)  # type: ignore[call-arg]
            clone = copy.copy(data)
            clone.update(values)
            return clone
        except TypeError:
            return values
    if isinstance(data, tuple):
        parts = [pin_memory(value, device) for value in data]
        return type(data)(*parts) if hasattr(data, "_fields") else type(data)(parts)
    if isinstance(data, Sequence):
        parts = [pin_memory(value, device) for value in data]
        try:
            if not isinstance(data, MutableSequence):
                return type(data)(parts)  # type: ignore[call-arg]
            copied = copy.copy(data)
            for i, part in enumerate(parts):
                copied[i] = part
            return copied
        except TypeError:
            return parts
    return data
