"""`torch.distributed.elastic.multiprocessing`: what workers write and leave for their agent."""

from ...._unserved import offer as _offer
from ...._unserved import offer_module as _offer_module
from .api import DefaultLogsSpecs as DefaultLogsSpecs
from .api import LogsDest as LogsDest
from .api import LogsSpecs as LogsSpecs
from .api import SignalException as SignalException
from .api import Std as Std
from .api import to_map as to_map
from .errors import ProcessFailure as ProcessFailure

_WHY = "{name} is not served; distributed.launcher.elastic_launch starts functions and commands, and keeps their output"
_offer(__name__, "start_processes", "MultiprocessContext PContext RunProcsResult SubprocessContext", _WHY)
for _name, _functions, _classes in (
    ("redirects", "get_libc redirect redirect_stderr redirect_stdout", ""),
    ("subprocess_handler", "get_subprocess_handler", "SubprocessHandler"),
    ("tail_log", "tail_logfile", "TailLog"),
):
    _offer_module(__name__, _name, _functions, _classes, _WHY)
