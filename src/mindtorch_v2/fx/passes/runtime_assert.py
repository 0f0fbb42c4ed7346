"""`torch.fx.passes.runtime_assert`: checks of symbolic sizes in a graph; sizes are numbers here."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(__name__, "insert_deferred_runtime_asserts", "", "{name}: there are no symbolic sizes here")
