"""`torch._inductor.codegen.wrapper`: importable; no code is generated."""

from __future__ import annotations

from ..._unserved import offer as _offer
from .. import WHY

_offer(__name__, "", "PythonWrapperCodegen", WHY)
