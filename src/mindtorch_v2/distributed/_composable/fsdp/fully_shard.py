"""The former home of `fully_shard`."""

from __future__ import annotations

from ...fsdp import FSDPModule as FSDPModule
from ...fsdp import UnshardHandle as UnshardHandle
from ...fsdp import fully_shard as fully_shard
from ...fsdp import register_fsdp_forward_method as register_fsdp_forward_method
