"""The workers of this node: started, watched, and started again when one fails.

Invariant: an agent holds the store by which workers meet, or knows who does, so a new attempt needs no new port; when
the agent ends, by itself or by a signal, no worker is left.
"""

from __future__ import annotations

import os
import signal
import string
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TextIO

from ..elastic.multiprocessing.api import Called, LogsDest
from ..elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

if TYPE_CHECKING:
    from .api import LaunchConfig

_LEAVING = 300.0  # seconds that the node with the store waits for the others at the end
_DEVICES = "ASCEND_RT_VISIBLE_DEVICES"


class Agent:
    """Workers that are commands, or processes that call a function."""

    def __init__(
        self, config: LaunchConfig, where: tuple[str, int], entrypoint: Callable[..., Any] | str | None, args: list[Any]
    ) -> None:
        if config.min_nodes != config.max_nodes:
            nodes = f"{config.min_nodes}:{config.max_nodes}"
            raise NotImplementedError(f"--nnodes={nodes}: a number of nodes that changes is not served")
        self.config, self.nodes, self.local = config, config.max_nodes, config.nproc_per_node
        self.host, self.port = where
        self.entrypoint, self.args = entrypoint, args
        self.static = config.rdzv_backend == "static"
        self.node = int(config.rdzv_configs.get("rank", 0)) if self.static else 0
        if not 0 <= self.node < self.nodes:
            raise ValueError(f"--node-rank={self.node}: there are {self.nodes} nodes")
        self.signals = [self._signal(each.strip()) for each in config.signals_to_handle.split(",")]
        self.store: Any = None
        self.hosting = False
        self.dest: LogsDest | None = None
        self.workers: list[subprocess.Popen[str] | Called] = []
        self.threads: list[threading.Thread] = []
        self.files: list[TextIO] = []
        self.filtered: dict[str, TextIO] = {}
        self.stopped: int | None = None

    @staticmethod
    def _signal(name: str) -> signal.Signals:
        found = getattr(signal, name, None)
        if not isinstance(found, signal.Signals):
            raise ValueError(f"signals_to_handle: there is no signal {name}")
        return found

    # Where nodes meet.

    def _meet(self) -> None:
        """Hold the store or find it; with `c10d` nodes are numbered as they come."""
        from .._errors import DistError
        from .._tcp_store import TCPStore

        limit = timedelta(seconds=float(self.config.rdzv_configs.get("timeout", 900)))
        if self.static and self.node:
            return
        alone = self.static or self.nodes == 1
        try:
            self.store = TCPStore(self.host, self.port, None, True, limit, wait_for_workers=False)
            self.hosting = True
        except (DistError, OSError):
            if alone:
                raise
            self.store = TCPStore(self.host, self.port, None, False, limit)
        self.port = self.store.port
        if not alone:
            self.node = self.store.add(f"agents/{self.config.run_id}/came", 1) - 1
            if self.node >= self.nodes:
                raise ValueError(f"--nnodes={self.nodes}: all nodes of job {self.config.run_id} are there already")

    def _leave(self) -> None:
        """The one who holds the store goes last: workers of other nodes may still ask it."""
        if self.store is None or self.static or self.nodes == 1:
            return
        name = f"agents/{self.config.run_id}/left"
        gone = self.store.add(name, 1)
        end = time.monotonic() + _LEAVING
        while self.hosting and gone < self.nodes and time.monotonic() < end:
            time.sleep(self.config.monitor_interval)
            gone = self.store.add(name, 0)

    # What a worker is started with.

    def _rank(self, local: int) -> int:
        return self.node * self.local + local

    def _environment(self, local: int, attempt: int) -> dict[str, str]:
        config, rank, world = self.config, self._rank(local), self.nodes * self.local
        made = {
            "LOCAL_RANK": str(local),
            "RANK": str(rank),
            "GROUP_RANK": str(self.node),
            "ROLE_RANK": str(rank),
            "ROLE_NAME": config.role,
            "LOCAL_WORLD_SIZE": str(self.local),
            "WORLD_SIZE": str(world),
            "GROUP_WORLD_SIZE": str(self.nodes),
            "ROLE_WORLD_SIZE": str(world),
            "MASTER_ADDR": self.host,
            "MASTER_PORT": str(self.port),
            "TORCHELASTIC_RESTART_COUNT": str(attempt),
            "TORCHELASTIC_MAX_RESTARTS": str(config.max_restarts),
            "TORCHELASTIC_RUN_ID": config.run_id,
            "TORCHELASTIC_USE_AGENT_STORE": "True",
        }
        if self.local > 1:
            made["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
        if config.virtual_local_rank:
            made["LOCAL_RANK"] = "0"
            made[_DEVICES] = self._device(local)
        return made

    def _device(self, local: int) -> str:
        """The one device that a worker sees, out of those that this process sees."""
        visible = os.environ.get(_DEVICES)
        if visible is None:
            return str(local)
        devices = visible.split(",")
        if local >= len(devices):
            raise ValueError(f"local_rank {local} exceeds available NPUs in {_DEVICES}={visible}")
        return devices[local].strip()

    # Output.

    def _stream(self, path: str, told: bool) -> Any:
        if told:
            return subprocess.PIPE
        if not path:
            return None
        self.files.append(open(path, "w"))
        return self.files[-1]

    def _prefix(self, local: int) -> str:
        template = self.config.log_line_prefix_template
        if not template:
            return f"[{self.config.role}{local}]:"
        names = {"role_name": self.config.role, "rank": self._rank(local), "local_rank": local}
        return string.Template(template).safe_substitute(names)

    def _tee(self, source: TextIO, console: TextIO, path: str, local: int, name: str) -> None:
        filters = self.config.duplicate_stdout_filters if name == "stdout" else self.config.duplicate_stderr_filters
        prefix, also = self._prefix(local), self.filtered.get(name)
        with open(path, "w") as file:
            for line in source:
                file.write(line)
                console.write(f"{prefix}{line}")
                console.flush()
                if also is not None and any(each in line for each in filters or ()):
                    also.write(f"{prefix}{line}")

    def _worker(self, local: int, environment: dict[str, str], out: Any, err: Any) -> subprocess.Popen[str] | Called:
        if isinstance(self.entrypoint, str):
            command = [self.entrypoint, *(str(each).replace("${local_rank}", str(local)) for each in self.args)]
            return subprocess.Popen(command, env={**os.environ, **environment}, stdout=out, stderr=err, text=True)
        assert self.entrypoint is not None
        return Called(self.config.start_method, self.entrypoint, tuple(self.args), environment, (out, err))

    def _start(self, attempt: int) -> None:
        environments = {local: self._environment(local, attempt) for local in range(self.local)}
        assert self.config.logs_specs is not None
        dest = self.dest = self.config.logs_specs.reify(environments)
        self.filtered = {
            name: open(path, "w", buffering=1)
            for name, path, filters in (
                ("stdout", dest.filtered_stdout, self.config.duplicate_stdout_filters),
                ("stderr", dest.filtered_stderr, self.config.duplicate_stderr_filters),
            )
            if filters
        }
        self.files.extend(self.filtered.values())
        for local in range(self.local):
            told = {"stdout": dest.tee_stdouts.get(local, ""), "stderr": dest.tee_stderrs.get(local, "")}
            out = self._stream(dest.stdouts[local], bool(told["stdout"]))
            err = self._stream(dest.stderrs[local], bool(told["stderr"]))
            worker = self._worker(local, environments[local], out, err)
            self.workers.append(worker)
            for source, console, name in ((worker.stdout, sys.stdout, "stdout"), (worker.stderr, sys.stderr, "stderr")):
                if source is not None:
                    given = (source, console, told[name], local, name)
                    thread = threading.Thread(target=self._tee, args=given)
                    thread.start()
                    self.threads.append(thread)

    def _stop(self, number: int = signal.SIGTERM) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(number)
        end = time.monotonic() + float(self.config.shutdown_timeout or 0)
        for worker in self.workers:
            try:
                worker.wait(max(end - time.monotonic(), 0.01))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        for thread in self.threads:
            thread.join(5.0)
        for file in self.files:
            file.close()
        self.workers, self.threads, self.files = [], [], []

    # Watching.

    def _watch(self) -> dict[int, ProcessFailure]:
        """Until all workers have ended; those that failed."""
        assert self.dest is not None
        while True:
            codes = [worker.poll() for worker in self.workers]
            if self.stopped is not None:
                return {}
            failed = {
                self._rank(local): ProcessFailure(local, self.workers[local].pid, code, self.dest.error_files[local])
                for local, code in enumerate(codes)
                if code not in (0, None)
            }
            if failed or all(code == 0 for code in codes):
                return failed
            time.sleep(self.config.monitor_interval)

    def run(self) -> dict[int, Any]:
        """Start the workers, as often as is allowed; raises `ChildFailedError` when that was not enough. What functions
        returned comes back by rank; of commands there is nothing."""
        self._meet()
        before = {each: signal.signal(each, self._note) for each in self.signals}
        try:
            found = self._attempts()
        finally:
            self._stop()
            for each, handler in before.items():
                signal.signal(each, handler)
        if self.stopped is not None:
            raise SystemExit(128 + self.stopped)
        self._leave()
        return found

    def _attempts(self) -> dict[int, Any]:
        for attempt in range(self.config.max_restarts + 1):
            self._start(attempt)
            failed = self._watch()
            if self.stopped is not None:
                self._stop(self.stopped)
                break
            if not failed:
                return {
                    self._rank(local): worker.result() if isinstance(worker, Called) else None
                    for local, worker in enumerate(self.workers)
                }
            self._stop()
            if attempt == self.config.max_restarts:
                raise ChildFailedError(self._name(), failed)
        return {}

    def _name(self) -> str:
        """What the workers run, as it stands in reports: of a Python command the script."""
        if not isinstance(self.entrypoint, str):
            return getattr(self.entrypoint, "__qualname__", "")
        script = next((str(each) for each in self.args if not str(each).startswith("-")), self.entrypoint)
        return script if os.path.basename(self.entrypoint).startswith("python") else self.entrypoint

    def _note(self, number: int, frame: object) -> None:
        self.stopped = number
