"""`Timer`: `timeit` for tensors, which warms up, sets the number of threads and waits for devices."""

from __future__ import annotations

import enum
import textwrap
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

import mindtorch_v2 as torch

from . import common

__all__ = ["Timer", "timer", "Language"]


def timer() -> float:
    """The time, once the current device has done what it was given."""
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """What a statement is written in."""

    PYTHON = 0
    CPP = 1


def _plain(code: str) -> str:
    """Code without the indentation and empty lines of a string over several lines."""
    code = textwrap.dedent(code)
    return (code[1:] if code[:1] == "\n" else code).rstrip()


class Timer:
    """Times a statement. `globals` are its variables, `torch` among them; `label`, `sub_label`, `description` and `env`
    say where its results stand in a table of `Compare`."""

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("Timer(): argument 'language' must be Python: C++ is not compiled here")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        self._globals = {"torch": torch, **(globals or {})}
        self._language = Language.PYTHON
        stmt, setup = _plain(stmt), _plain(setup)
        self._timer = timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = common.TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        # A clock may stand still for a moment.
        return max(self._timer.timeit(number), 1e-9)

    def _measurement(self, number: int, times: list[float]) -> common.Measurement:
        return common.Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)

    def timeit(self, number: int = 1000000) -> common.Measurement:
        """One measurement of `number` runs, after a hundredth as many to warm up."""
        with common.set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(int(number // 100), 2))
            return self._measurement(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> NoReturn:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _estimate_block_size(self, min_run_time: float) -> int:
        """How many runs take so long that calling the timer does not matter."""
        with common.set_torch_threads(self._task_spec.num_threads):
            overhead = sorted(self._timeit(0) for _ in range(5))[2]
            number = 1
            while True:
                spent = self._timeit(number)
                if overhead / spent <= 1e-4 and spent >= min_run_time / 1000:
                    return number
                if spent > min_run_time or number * 10 > 2147483647:
                    return number
                number *= 10

    def _measure(
        self,
        number: int,
        enough: Callable[[list[float]], bool],
        min_run_time: float,
        max_run_time: float | None,
        callback: Callable[[int, float], Any] | None,
    ) -> common.Measurement:
        """Blocks of `number` runs, for at least `min_run_time` and until there are enough."""
        times: list[float] = []
        total = 0.0
        done = False
        with common.set_torch_threads(self._task_spec.num_threads):
            while total < min_run_time or not done:
                times.append(self._timeit(number))
                total += times[-1]
                if callback:
                    callback(number, times[-1])
                done = enough(times)
                if max_run_time and total > max_run_time:
                    break
        return self._measurement(number, times)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> common.Measurement:
        """Measurements of equal blocks of runs, until `min_run_time` seconds have passed."""
        number = self._estimate_block_size(min_run_time)
        return self._measure(number, lambda times: True, min_run_time, None, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> common.Measurement:
        """The same until the middle half of the times is within `threshold` of the median."""
        number = self._estimate_block_size(min_run_time=0.05)

        def steady(times: list[float]) -> bool:
            return len(times) > 3 and self._measurement(number, times).meets_confidence(threshold)

        return self._measure(number, steady, min_run_time, max_run_time, callback)

    def collect_callgrind(
        self,
        number: int = 100,
        *,
        repeats: int | None = None,
        collect_baseline: bool = True,
        retain_out_file: bool = False,
    ) -> NoReturn:
        """Refused: PyTorch counts instructions with marks that its library has compiled in."""
        if repeats is not None and repeats < 1:
            raise ValueError("If specified, `repeats` must be >= 1")
        raise NotImplementedError(
            "Timer.collect_callgrind: instructions are not counted here; run the program under "
            "`valgrind --tool=callgrind`"
        )
