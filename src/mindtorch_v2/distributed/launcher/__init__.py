"""`torch.distributed.launcher`: importable, and refused by name."""

from __future__ import annotations

from typing import Any

from . import api

LaunchConfig: Any = vars(api)["LaunchConfig"]
elastic_launch: Any = vars(api)["elastic_launch"]
launch_agent: Any = vars(api)["launch_agent"]
