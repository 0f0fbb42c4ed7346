"""`torch._inductor.compile_fx`: importable; nothing is compiled."""

from __future__ import annotations

from .._unserved import offer as _offer
from . import WHY

_offer(__name__, "compile_fx compile_fx_inner shape_env_from_inputs", "", WHY)
