"""`torchrun`: starts the processes of a job on this machine, watches them, and starts them again when one fails.

Invariant: the agent holds the store by which its workers meet, so a new attempt needs no new port; when the agent ends,
by itself or by a signal, no worker is left.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, TextIO

from .elastic.multiprocessing.api import Called, Std, to_map
from .elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record

__all__ = ["get_args_parser", "main", "parse_args", "run"]

_GRACE = 15.0  # seconds between asking a worker to end and ending it


def get_args_parser() -> argparse.ArgumentParser:
    """The arguments of torchrun."""
    parser = argparse.ArgumentParser(description="Torch Distributed Elastic Training Launcher")

    def option(*names: str, **settings: Any) -> None:
        """PyTorch takes its options with dashes and with underscores."""
        spelled = [name for each in names for name in dict.fromkeys((each, each[:2] + each[2:].replace("-", "_")))]
        parser.add_argument(*spelled, **settings)

    option("--nnodes", default="1:1", help="number of nodes, or MIN:MAX")
    option("--nproc-per-node", default="1", help="processes on this node: a number, auto, cpu or gpu")
    option("--rdzv-backend", default="static", help="static or c10d")
    option("--rdzv-endpoint", default="", help="HOST:PORT of the first node")
    option("--rdzv-id", default="none", help="a name of the job")
    option("--rdzv-conf", default="", help="settings of the rendezvous: key=value,...")
    option("--standalone", action="store_true", help="one node, with a free port")
    option("--max-restarts", type=int, default=0, help="how often all workers are started again after a failure")
    option("--monitor-interval", type=float, default=0.1, help="seconds between looks at the workers")
    option("--start-method", default="spawn", choices=["spawn", "fork", "forkserver"])
    option("--role", default="default", help="a name of the workers")
    option("-m", "--module", action="store_true", help="the script is the name of a module")
    option("--no-python", action="store_true", help="the script is run as it is")
    option("--run-path", action="store_true", help="the script is run by runpy, in a process of its own")
    option("--log-dir", default=None, help="where the workers' output is kept")
    option("-r", "--redirects", default="0", help="what goes to files: 0 none, 1 stdout, 2 stderr, 3 both")
    option("-t", "--tee", default="0", help="what goes to files and to the console")
    option("--node-rank", type=int, default=0, help="this node's place")
    option("--master-addr", default="127.0.0.1", help="the first node's address")
    option("--master-port", type=int, default=29500, help="the first node's port")
    option("--local-addr", default=None, help="this node's address")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """The arguments; those that are not given may stand in the environment, as PET_NNODES and so on."""
    parser = get_args_parser()
    for action in parser._actions:
        value = os.environ.get(f"PET_{action.dest.upper()}")
        if value is not None and action.option_strings:
            action.default = value == "1" if isinstance(action.const, bool) else value
    return parser.parse_args(args)


def determine_local_world_size(nproc_per_node: str) -> int:
    """How many workers this node has."""
    from .. import accelerator

    if nproc_per_node.isdigit():
        return int(nproc_per_node)
    devices = accelerator.device_count() if accelerator.is_available() else 0
    if nproc_per_node == "cpu" or (nproc_per_node == "auto" and not devices):
        return os.cpu_count() or 1
    if nproc_per_node in ("gpu", "auto"):
        if not devices:
            raise ValueError("Cuda is not available.")
        return devices
    raise ValueError(f"Unsupported nproc_per_node value: {nproc_per_node}")


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """The least and the greatest number of nodes."""
    parts = nnodes.split(":")
    if len(parts) not in (1, 2):
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return int(parts[0]), int(parts[-1])


class Agent:
    """The workers of this node: commands, or processes that call a function."""

    def __init__(self, args: argparse.Namespace, function: Callable[..., Any] | None = None) -> None:
        least, most = parse_min_max_nnodes(args.nnodes)
        if args.standalone and most > 1:
            raise ValueError("--standalone starts the workers of one node; --nnodes asks for more")
        if least != most:
            raise NotImplementedError(f"--nnodes={args.nnodes}: a number of nodes that changes is not served")
        if args.run_path:
            raise NotImplementedError("--run-path is not served; without it a script runs in a process of its own too")
        self.args, self.nodes = args, most
        self.local = determine_local_world_size(str(args.nproc_per_node))
        self.host, self.port = args.master_addr, int(args.master_port)
        if args.standalone:
            self.host, self.port = "127.0.0.1", 0
        elif args.rdzv_endpoint:
            host, _, port = args.rdzv_endpoint.partition(":")
            self.host, self.port = host, int(port) if port else 29400
        self.node = int(args.node_rank)
        if not 0 <= self.node < self.nodes:
            raise ValueError(f"--node-rank={self.node}: there are {self.nodes} nodes")
        self.id = str(uuid.uuid4()) if args.standalone and args.rdzv_id == "none" else args.rdzv_id
        self.function, self.grace = function, _GRACE
        self.redirects, self.tee = (self._streams_of(each) for each in (args.redirects, args.tee))
        self.workers: list[subprocess.Popen[str] | Called] = []
        self.threads: list[threading.Thread] = []
        self.files: list[TextIO] = []
        self.folder = ""
        self.stopped: int | None = None

    def _streams_of(self, given: Any) -> dict[int, Std]:
        return to_map(Std.from_str(given) if isinstance(given, str) else given, self.local)

    # What a worker is started with.

    def _command(self) -> list[str]:
        args = self.args
        if args.no_python:
            if args.module:
                raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at the same time.")
            return [args.training_script, *args.training_script_args]
        python = [os.environ.get("PYTHON_EXEC", sys.executable), "-u"]
        if args.module:
            python.append("-m")
        return [*python, args.training_script, *args.training_script_args]

    def _environment(self, local: int, attempt: int) -> dict[str, str]:
        rank, world = self.node * self.local + local, self.nodes * self.local
        made = {
            **os.environ,
            "LOCAL_RANK": str(local),
            "RANK": str(rank),
            "GROUP_RANK": str(self.node),
            "ROLE_RANK": str(rank),
            "ROLE_NAME": self.args.role,
            "LOCAL_WORLD_SIZE": str(self.local),
            "WORLD_SIZE": str(world),
            "GROUP_WORLD_SIZE": str(self.nodes),
            "ROLE_WORLD_SIZE": str(world),
            "MASTER_ADDR": self.host,
            "MASTER_PORT": str(self.port),
            "TORCHELASTIC_RESTART_COUNT": str(attempt),
            "TORCHELASTIC_MAX_RESTARTS": str(self.args.max_restarts),
            "TORCHELASTIC_RUN_ID": self.id,
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_ERROR_FILE": self._error_file(local, attempt),
        }
        if self.local > 1:
            made.setdefault("OMP_NUM_THREADS", "1")
        return made

    def _folder_of(self, local: int, attempt: int) -> str:
        path = os.path.join(self.folder, f"attempt_{attempt}", str(local))
        os.makedirs(path, exist_ok=True)
        return path

    def _error_file(self, local: int, attempt: int) -> str:
        return os.path.join(self._folder_of(local, attempt), "error.json")

    # Output.

    def _streams(self, local: int, attempt: int) -> tuple[Any, Any]:
        kept: list[Any] = []
        for bit, name in ((1, "stdout"), (2, "stderr")):
            path = os.path.join(self._folder_of(local, attempt), f"{name}.log")
            if self.tee[local] & bit:
                kept.append(subprocess.PIPE)
            elif self.redirects[local] & bit:
                kept.append(open(path, "w"))
                self.files.append(kept[-1])
            else:
                kept.append(None)
        return kept[0], kept[1]

    def _tee(self, source: TextIO, console: TextIO, local: int, attempt: int, name: str) -> None:
        with open(os.path.join(self._folder_of(local, attempt), f"{name}.log"), "w") as file:
            for line in source:
                file.write(line)
                console.write(f"[{self.args.role}{local}]:{line}")
                console.flush()

    def _worker(self, local: int, attempt: int, out: Any, err: Any) -> subprocess.Popen[str] | Called:
        environment = self._environment(local, attempt)
        if self.function is None:
            return subprocess.Popen(self._command(), env=environment, stdout=out, stderr=err, text=True)
        args = tuple(self.args.training_script_args)
        return Called(self.args.start_method, self.function, args, environment, (out, err))

    def _start(self, attempt: int) -> None:
        for local in range(self.local):
            out, err = self._streams(local, attempt)
            worker = self._worker(local, attempt, out, err)
            self.workers.append(worker)
            for source, console, name in ((worker.stdout, sys.stdout, "stdout"), (worker.stderr, sys.stderr, "stderr")):
                if source is not None:
                    thread = threading.Thread(target=self._tee, args=(source, console, local, attempt, name))
                    thread.start()
                    self.threads.append(thread)

    def _stop(self, number: int = signal.SIGTERM) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(number)
        end = time.monotonic() + self.grace
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

    def _watch(self, attempt: int) -> dict[int, ProcessFailure]:
        """Until all workers have ended; those that failed."""
        while True:
            codes = [worker.poll() for worker in self.workers]
            if self.stopped is not None:
                return {}
            failed = {
                self.node * self.local + local: ProcessFailure(
                    local, self.workers[local].pid, code, self._error_file(local, attempt)
                )
                for local, code in enumerate(codes)
                if code not in (0, None)
            }
            if failed or all(code == 0 for code in codes):
                return failed
            time.sleep(self.args.monitor_interval)

    def run(self) -> dict[int, Any]:
        """Start the workers, as often as is allowed; raises `ChildFailedError` when that was not enough. What functions
        returned comes back by rank; of commands there is nothing."""
        from ._tcp_store import TCPStore

        store = TCPStore(self.host, self.port, None, True, wait_for_workers=False) if self.node == 0 else None
        if store is not None:
            self.port = store.port
        parent = self.args.log_dir
        if parent is not None:
            os.makedirs(parent, exist_ok=True)
        self.folder = tempfile.mkdtemp(prefix=f"{self.id}_".replace(os.sep, "_"), dir=parent)
        before = {each: signal.signal(each, self._note) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            found = self._attempts()
        finally:
            self._stop()
            for each, handler in before.items():
                signal.signal(each, handler)
            if parent is None and not any((*self.redirects.values(), *self.tee.values())):
                import shutil

                shutil.rmtree(self.folder, ignore_errors=True)
        if self.stopped is not None:
            raise SystemExit(128 + self.stopped)
        return found

    def _attempts(self) -> dict[int, Any]:
        for attempt in range(int(self.args.max_restarts) + 1):
            self._start(attempt)
            failed = self._watch(attempt)
            if self.stopped is not None:
                self._stop(self.stopped)
                break
            if not failed:
                return {
                    self.node * self.local + local: worker.result() if isinstance(worker, Called) else None
                    for local, worker in enumerate(self.workers)
                }
            self._stop()
            if attempt == int(self.args.max_restarts):
                raise ChildFailedError(self.args.training_script, failed)
        return {}

    def _note(self, number: int, frame: object) -> None:
        self.stopped = number


def run(args: argparse.Namespace) -> None:
    """Start what the arguments say."""
    Agent(args).run()


@record
def main(args: list[str] | None = None) -> None:
    """Start what the command line says."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
