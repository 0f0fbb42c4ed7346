"""`torch.utils.serialization`: how files are written and read when nobody says."""

from __future__ import annotations

from . import config as config
