"""Names by which PyTorch's own functions say to its script compiler what they take.

Invariant: there is no such compiler here; a call means the same without them.
"""

from __future__ import annotations

from typing import Any

from ..._jit_internal import BroadcastingList1 as BroadcastingList1
from ..._jit_internal import BroadcastingList2 as BroadcastingList2
from ..._jit_internal import BroadcastingList3 as BroadcastingList3
from ..._jit_internal import boolean_dispatch as boolean_dispatch


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Complain of what is neither one integer nor two."""
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))
