"""`torch._functorch.python_key`: operators of a program by tracing."""

from __future__ import annotations

from .._unserved import offer as _offer
from ..fx.experimental.proxy_tensor import dispatch_trace as dispatch_trace
from ..fx.experimental.proxy_tensor import make_fx as make_fx

_offer(
    __name__,
    "pythonkey_decompose",
    "",
    "{name}: a table of decompositions is given to make_fx(f, decomposition_table) here",
)
