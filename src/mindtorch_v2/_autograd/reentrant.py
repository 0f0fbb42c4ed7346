"""Backward passes inside backward passes, however deep.

Invariant: a thread has at most `engine.DEPTH` passes on its stack; what a deeper one runs of the user's goes on in a
thread of its own, with the modes of the pass, while the thread before it waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .._dispatch.state import modes, set_modes


def elsewhere(fn: Callable[..., Any], *args: Any) -> Any:
    """What `fn(*args)` returns or raises, in a new thread."""
    found: list[Any] = []
    failed: list[BaseException] = []
    on = modes()

    def work() -> None:
        set_modes(on)
        try:
            found.append(fn(*args))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
