"""What surrounds a save or a load on this thread: `skip_data`, and the `map_location` of the running load."""

from __future__ import annotations

import threading
from typing import Any


class _Surroundings(threading.local):
    skip_data = False
    materialize_fake_tensors = False
    map_location: Any = None
    # Of a load whose storages are filled after the objects exist: what is to be done then.
    deferred: list[Any] | None = None


SURROUNDINGS = _Surroundings()
