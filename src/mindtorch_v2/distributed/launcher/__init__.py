"""`torch.distributed.launcher`: torchrun's agent from a program."""

from .api import LaunchConfig as LaunchConfig
from .api import elastic_launch as elastic_launch
from .api import launch_agent as launch_agent
