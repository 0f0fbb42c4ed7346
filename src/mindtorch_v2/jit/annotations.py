"""`torch.jit.annotations`: types that scripts are annotated with."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035 (public)

from .. import _jit_internal as _internal
from ..futures import Future as Future

BroadcastingList1: Any = _internal.BroadcastingList1
BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = BroadcastingList1
