"""Small things of launchers, as PyTorch's; and modules whose names are refused when they are used."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import pytest

from .. import _oracle
from .._subject import SUBJECT_NAME, mindtorch_only
from .._subject import subject as torch


def room(name: str) -> Any:
    return importlib.import_module(f"{SUBJECT_NAME}.distributed.{name}")


def test_a_sampler_that_goes_on_in_the_middle() -> None:
    data = list(range(23))
    theirs: Any = importlib.import_module("torch.distributed.elastic.utils.data") if _oracle.available() else None
    for rank in range(3):
        made = room("elastic.utils.data").ElasticDistributedSampler(data, 3, rank, start_index=4)
        made.set_epoch(2)
        assert len(made) == 7 == len(list(made)) and all(4 <= each < 23 for each in made)
        if theirs is not None:
            other = theirs.ElasticDistributedSampler(data, 3, rank, start_index=4)
            other.set_epoch(2)
            assert list(made) == list(other)
    with pytest.raises(ValueError, match="Start index 23 should be less than dataset size 23"):
        room("elastic.utils.data").ElasticDistributedSampler(data, 3, 0, start_index=23)


def test_epochs_after_each_other() -> None:
    cycling = room("elastic.utils.data").CyclingIterator
    assert list(cycling(3, lambda epoch: iter([epoch] * epoch), 1)) == [1, 2, 2]


def test_agents_exchange_notes() -> None:
    store, utils = torch.distributed.HashStore(), room("elastic.utils.store")
    found: dict[int, Any] = {}

    def agent(rank: int) -> None:
        found[rank] = utils.synchronize(store, f"note {rank}".encode(), rank, 3, "notes", 20)

    threads = [threading.Thread(target=agent, args=(rank,)) for rank in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {rank: [b"note 0", b"note 1", b"note 2"] for rank in range(3)}


def test_a_barrier_says_who_is_missing() -> None:
    store = torch.distributed.HashStore()
    with pytest.raises(torch.distributed.DistStoreError, match=r"missing_ranks=\[1, 2\]"):
        room("elastic.utils.store").barrier(store, 3, "place", barrier_timeout=0.2, rank=0, trace_timeout=0.1)


def test_environment_ports_and_places(monkeypatch: pytest.MonkeyPatch) -> None:
    utils = room("elastic.utils")
    monkeypatch.setenv("A_NAME", "a value")
    assert utils.get_env_variable_or_raise("A_NAME") == "a value"
    with pytest.raises(ValueError, match="Environment variable NO_NAME expected, but not set"):
        utils.get_env_variable_or_raise("NO_NAME")
    assert utils.macros.substitute(["--rank", "${local_rank}"], "3") == ["--rank", "3"]
    port = room("elastic.utils.distributed").get_free_port()
    store = room("elastic.utils.distributed").create_c10d_store(True, "localhost", port, timeout=5)
    store.set("a", "b")
    assert store.get("a") == b"b" and store.port == port
    logger = room("elastic.utils.logging").get_logger()
    assert logger.name == __name__ and room("elastic.utils.log_level").get_log_level() == "WARNING"


REFUSED = {
    "algorithms.ddp_comm_hooks.ddp_zero_hook": "hook_with_zero_step",
    "algorithms.ddp_comm_hooks.optimizer_overlap_hooks": "_hook_then_optimizer",
    "autograd": "backward",
    "checkpoint.quantized_hf_storage": "QuantizedHuggingFaceStorageReader",
    "debug": "start_debug_server",
    "elastic.agent.server.api": "WorkerSpec",
    "elastic.agent.server.health_check_server": "HealthCheckServer",
    "elastic.agent.server.local_elastic_agent": "LocalElasticAgent",
    "elastic.control_plane": "worker_main",
    "elastic.events.api": "Event",
    "elastic.metrics.api": "put_metric",
    "elastic.rendezvous.c10d_rendezvous_backend": "C10dRendezvousBackend",
    "elastic.rendezvous.dynamic_rendezvous": "DynamicRendezvousHandler",
    "elastic.multiprocessing": "start_processes",
    "elastic.multiprocessing.tail_log": "TailLog",
    "elastic.rendezvous.etcd_rendezvous": "EtcdRendezvousHandler",
    "elastic.rendezvous.etcd_store": "EtcdStore",
    "elastic.rendezvous.etcd_server": "EtcdServer",
    "elastic.rendezvous.registry": "get_rendezvous_handler",
    "elastic.timer.api": "expires",
    "elastic.timer.local_timer": "LocalTimerClient",
    "flight_recorder.components.types": "Database",
    "flight_recorder.fr_trace": "main",
    "nn.api.remote_module": "RemoteModule",
    "optim.named_optimizer": "_NamedOptimizer",
    "optim.optimizer": "DistributedOptimizer",
    "rpc": "rpc_sync",
    "tensor.parallel.input_reshard": "input_reshard",
}


@mindtorch_only
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_served_says_so_when_it_is_used(name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"torch.distributed.{name}.{REFUSED[name]} is not served[;:] "):
        getattr(room(name), REFUSED[name])()
    assert not torch.distributed.autograd.is_available() and not torch.distributed.rpc.is_available()
