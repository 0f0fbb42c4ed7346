"""`torch.jit.mobile`: scripts for phones are not served."""

from __future__ import annotations

from .._unserved import offer as _offer

_offer(__name__, "_load_for_lite_interpreter", "LiteScriptModule", "{name}: programs are not scripted here")
