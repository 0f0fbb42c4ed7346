"""`torch._inductor.custom_graph_pass`: importable; there are no passes to add to."""

from __future__ import annotations

from .._unserved import offer as _offer
from . import WHY

_offer(__name__, "", "CustomGraphModulePass CustomGraphPass", WHY)
