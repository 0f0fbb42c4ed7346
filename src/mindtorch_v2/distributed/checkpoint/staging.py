"""Copies for saving in the background: `async_save` makes its own."""

from __future__ import annotations

from ..._unserved import offer as _offer

_offer(
    __name__,
    "",
    "AsyncStager BlockingAsyncStager DefaultStager StagingOptions",
    "{name} is not served; async_save copies the state dict in the call",
)
