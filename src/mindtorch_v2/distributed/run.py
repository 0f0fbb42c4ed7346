"""`torchrun`: starts the processes of a job on this machine, watches them, and starts them again when one fails.

Invariant: every option becomes a field of a `LaunchConfig`; the agent (`launcher._agent`) does the rest.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import uuid
from collections.abc import Callable
from importlib import metadata
from typing import Any

from .elastic.multiprocessing.api import DefaultLogsSpecs, LogsSpecs, Std
from .elastic.multiprocessing.errors import record
from .launcher.api import LaunchConfig, elastic_launch

__all__ = ["config_from_args", "get_args_parser", "main", "parse_args", "run", "run_script_path"]


def _words(text: str) -> list[str]:
    """Words between commas; two commas are a comma in a word."""
    return [each.replace("\0", ",") for each in text.replace(",,", "\0").split(",") if each]


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
    option("--master-port", type=int, default=None, help="the first node's port: 29500 unless said")
    option("--local-addr", default=None, help="this node's address")
    option("--event-log-handler", default="null", help="where events of the agent go: null")
    option("--local-ranks-filter", default="", help="workers whose output is seen: 0,1; files have that of all")
    filters: dict[str, Any] = {"default": [], "type": _words}
    for name in ("stdout", "stderr"):
        told = f"words of lines of {name} that are kept in a file of their own as well, of workers under --tee"
        option(f"--duplicate-{name}-filters", help=told, **filters)
    option("--logs-specs", default=None, help="an entry point of torchrun.logs_specs: a class that places output")
    option("--numa-binding", default=None, choices=["node", "socket", "exclusive", "core-complex"])
    option("--signals-to-handle", default="SIGTERM,SIGINT,SIGHUP,SIGQUIT", help="signals that end the job")
    option("--shutdown-timeout", type=int, default=None, help="seconds between asking a worker to end and ending it")
    option("--virtual-local-rank", action="store_true", help="each worker sees its own device alone, as the first")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """The arguments; those that are not given may stand in the environment, as PET_NNODES and so on."""
    return parsed(get_args_parser(), args)


def parsed(parser: argparse.ArgumentParser, args: list[str] | None) -> argparse.Namespace:
    """What a parser reads, with the environment below it."""
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


def get_use_env(args: argparse.Namespace) -> bool:
    """Whether workers learn their place from the environment alone; `torch.distributed.launch` tells them otherwise."""
    return bool(getattr(args, "use_env", True))


def get_rdzv_endpoint(args: argparse.Namespace) -> str:
    """Where nodes meet."""
    if args.rdzv_backend == "static" and not args.rdzv_endpoint:
        return f"{args.master_addr}:{29500 if args.master_port is None else args.master_port}"
    return str(args.rdzv_endpoint)


def _settings(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in filter(None, text.strip().split(",")):
        key, *values = each.split("=", 1)
        if not key.strip() or not values or not values[0].strip():
            raise ValueError(
                "The rendezvous configuration string must be in format <key1>=<value1>,...,<keyN>=<valueN>."
            )
        found[key.strip()] = values[0].strip()
    return found


def _shown(text: str) -> set[int] | None:
    if not text:
        return None
    try:
        return {int(each) for each in text.split(",")}
    except ValueError as error:
        raise ValueError(
            "--local_ranks_filter must be a comma-separated list of integers e.g. --local_ranks_filter=0,1,2"
        ) from error


def _logs_specs_class(name: str | None) -> type[LogsSpecs]:
    if name is None:
        return DefaultLogsSpecs
    for each in metadata.entry_points(group="torchrun.logs_specs", name=name):
        found: type[LogsSpecs] = each.load()
        return found
    raise ValueError(f"Could not find entrypoint under 'torchrun.logs_specs[{name}]' key")


def run_script_path(training_script: str, *training_script_args: str) -> None:
    """Run a script in this interpreter, as if it had been started."""
    import runpy

    sys.argv = [training_script, *training_script_args]
    runpy.run_path(training_script, run_name="__main__")


def _command(args: argparse.Namespace) -> tuple[Callable[..., Any] | str, list[str]]:
    place = [] if get_use_env(args) else ["--local-rank=${local_rank}"]
    if args.run_path:
        return run_script_path, [args.training_script, *place, *args.training_script_args]
    if args.no_python:
        if args.module:
            raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at the same time.")
        return args.training_script, [*place, *args.training_script_args]
    module = ["-m"] if args.module else []
    python = os.environ.get("PYTHON_EXEC", sys.executable)
    return python, ["-u", *module, args.training_script, *place, *args.training_script_args]


def config_from_args(args: argparse.Namespace) -> tuple[LaunchConfig, Callable[..., Any] | str, list[str]]:
    """What the command line says, as a program would say it; what is run, and with which arguments."""
    least, most = parse_min_max_nnodes(args.nnodes)
    if not 0 < least <= most:
        raise AssertionError(f"min_nodes must be > 0 and <= max_nodes, got min_nodes={least}, max_nodes={most}")
    if int(args.max_restarts) < 0:
        raise AssertionError("max_restarts must be >= 0")
    if args.numa_binding is not None:
        raise NotImplementedError(
            "--numa-binding is not served; start torchrun under numactl, or set affinities inside"
        )
    settings: dict[str, Any] = _settings(args.rdzv_conf)
    if args.rdzv_backend == "static":
        settings["rank"] = int(args.node_rank)
    logs = _logs_specs_class(args.logs_specs)(
        log_dir=args.log_dir,
        redirects=Std.from_str(args.redirects),
        tee=Std.from_str(args.tee),
        local_ranks_filter=_shown(args.local_ranks_filter),
    )
    config = LaunchConfig(
        min_nodes=least,
        max_nodes=most,
        nproc_per_node=determine_local_world_size(str(args.nproc_per_node)),
        run_id=args.rdzv_id,
        role=args.role,
        rdzv_endpoint=get_rdzv_endpoint(args),
        rdzv_backend=args.rdzv_backend,
        rdzv_configs=settings,
        max_restarts=int(args.max_restarts),
        monitor_interval=float(args.monitor_interval),
        start_method=args.start_method,
        log_line_prefix_template=os.environ.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"),
        local_addr=args.local_addr,
        logs_specs=logs,
        event_log_handler=args.event_log_handler,
        signals_to_handle=args.signals_to_handle,
        duplicate_stdout_filters=args.duplicate_stdout_filters,
        duplicate_stderr_filters=args.duplicate_stderr_filters,
        virtual_local_rank=args.virtual_local_rank,
        shutdown_timeout=args.shutdown_timeout,
    )
    return (config, *_command(args))


def run(args: argparse.Namespace) -> None:
    """Start what the arguments say. Folders that nobody asked for are gone afterwards."""
    if args.standalone:
        if parse_min_max_nnodes(args.nnodes)[1] > 1:
            raise ValueError("--standalone starts the workers of one node; --nnodes asks for more")
        args.rdzv_backend, args.rdzv_endpoint, args.rdzv_id = "c10d", "localhost:0", str(uuid.uuid4())
    config, command, given = config_from_args(args)
    try:
        elastic_launch(config=config, entrypoint=command)(*given)
    finally:
        logs = config.logs_specs
        if args.log_dir is None and args.logs_specs is None and args.redirects == args.tee == "0" and logs is not None:
            shutil.rmtree(logs.root_log_dir, ignore_errors=True)


@record
def main(args: list[str] | None = None) -> None:
    """Start what the command line says."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
