"""`torch.distributed.launcher.api`: torchrun's agent from a program, for functions as well as commands."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..elastic.multiprocessing.api import DefaultLogsSpecs, LogsSpecs
from ._agent import Agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """How many workers are started, how they meet, and how often they are started again."""

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: LogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self) -> None:
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        else:
            self.rdzv_configs.setdefault("timeout", 900)
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()
        if self.shutdown_timeout is None:
            self.shutdown_timeout = int(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
        elif self.shutdown_timeout < 0:
            raise ValueError(f"shutdown_timeout must be non-negative, got {self.shutdown_timeout}")


class elastic_launch:
    """Starts workers when it is called; a function's values come back by rank."""

    def __init__(
        self, config: LaunchConfig, entrypoint: Callable[..., Any] | str | None, health_check_server: Any = None
    ) -> None:
        self._config, self._entrypoint, self._health_check_server = config, entrypoint, health_check_server

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args), self._health_check_server)


def _endpoint(config: LaunchConfig) -> tuple[str, int]:
    """Where the workers meet."""
    endpoint = config.rdzv_endpoint.strip()
    host, _, port = endpoint.rpartition(":") if ":" in endpoint else (endpoint, "", "")
    if config.rdzv_backend == "static":
        if not endpoint:
            raise ValueError("Endpoint is missing in endpoint. Try to add --master-addr and --master-port")
        if not port:
            raise ValueError(f"port is missing in endpoint: {endpoint}. Try to specify --master-port")
        return host, int(port)
    if config.rdzv_backend != "c10d":
        raise ValueError(
            f"The rendezvous backend '{config.rdzv_backend}' is not registered. Did you forget to call `register`?"
        )
    return host or "127.0.0.1", int(port) if port else 0 if not endpoint else 29400


def _refuse_unserved(config: LaunchConfig, health_check_server: Any) -> None:
    for name, usual in (("event_log_handler", "null"), ("numa_options", None), ("metrics_cfg", {})):
        if getattr(config, name) != usual and getattr(config, name) not in ([], {}):
            raise NotImplementedError(f"LaunchConfig(): argument '{name}' must be {usual!r}")
    if health_check_server is not None:
        raise NotImplementedError("launch_agent(): argument 'health_check_server' must be None")


def launch_agent(
    config: LaunchConfig, entrypoint: Callable[..., Any] | str | None, args: list[Any], health_check_server: Any = None
) -> dict[int, Any]:
    """Start workers and wait for them; raises `ChildFailedError` when they failed more often than is allowed."""
    _refuse_unserved(config, health_check_server)
    if not config.run_id:
        config.run_id = str(uuid.uuid4().int)
    return Agent(config, _endpoint(config), entrypoint, args).run()
