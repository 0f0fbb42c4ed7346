"""`torch.utils.benchmark`: timing of statements, tables of the results, and random inputs."""

from __future__ import annotations

from .utils.common import Measurement as Measurement
from .utils.common import TaskSpec as TaskSpec
from .utils.common import ordered_unique as ordered_unique
from .utils.common import select_unit as select_unit
from .utils.common import set_torch_threads as set_torch_threads
from .utils.common import trim_sigfig as trim_sigfig
from .utils.common import unit_to_english as unit_to_english
from .utils.compare import Colorize as Colorize
from .utils.compare import Compare as Compare
from .utils.fuzzer import FuzzedParameter as FuzzedParameter
from .utils.fuzzer import FuzzedTensor as FuzzedTensor
from .utils.fuzzer import Fuzzer as Fuzzer
from .utils.fuzzer import ParameterAlias as ParameterAlias
from .utils.sparse_fuzzer import FuzzedSparseTensor as FuzzedSparseTensor
from .utils.timer import Language as Language
from .utils.timer import Timer as Timer
from .utils.timer import timer as timer
from .utils.valgrind_wrapper.timer_interface import CallgrindStats as CallgrindStats
from .utils.valgrind_wrapper.timer_interface import CopyIfCallgrind as CopyIfCallgrind
from .utils.valgrind_wrapper.timer_interface import FunctionCount as FunctionCount
from .utils.valgrind_wrapper.timer_interface import FunctionCounts as FunctionCounts
