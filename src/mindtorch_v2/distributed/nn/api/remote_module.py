"""`torch.distributed.nn.api.remote_module`: importable, and refused by name."""

from __future__ import annotations

from ...._unserved import offer as _offer

_offer(__name__, "", "RemoteModule _RemoteModule", "{name} is not served; it needs rpc, which is not served")
