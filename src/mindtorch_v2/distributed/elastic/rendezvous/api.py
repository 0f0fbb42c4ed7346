"""`torch.distributed.elastic.rendezvous.api`."""

from . import *  # noqa: F403
from . import __all__ as __all__
