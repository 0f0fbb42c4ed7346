"""`torch.distributed.elastic.multiprocessing`: what workers write and leave for their agent."""

from .api import DefaultLogsSpecs as DefaultLogsSpecs
from .api import LogsSpecs as LogsSpecs
from .api import SignalException as SignalException
from .api import Std as Std
from .api import to_map as to_map
