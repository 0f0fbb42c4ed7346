"""`torch.distributed.elastic.utils`: small things that launchers and their workers need."""

from .api import get_env_variable_or_raise as get_env_variable_or_raise
from .api import get_socket_with_port as get_socket_with_port
from .api import macros as macros
