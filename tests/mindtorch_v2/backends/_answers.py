"""What a call answers in a library: a value, or a kind of exception and its first line."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any


def answer(call: Callable[[Any], Any], library: Any) -> tuple[str, list[str]]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            text = repr(call(library))
        except Exception as error:
            text = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    text = re.sub(r" at 0x[0-9a-f]+", "", text).replace("mindtorch_v2", "torch")
    return text, [str(w.message).partition(" (Triggered")[0] for w in seen]
