"""Compatibility shim: the NPU backend under its former name."""

from __future__ import annotations

from .npu import is_available as is_available
