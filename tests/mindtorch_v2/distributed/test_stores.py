"""Stores: what they hold, how long they wait, and what they say then."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from .._subject import subject as torch
from .._subject import submodule

dist: Any = submodule("distributed")


def make(kind: str, folder: Path, library: Any = dist) -> Any:
    short = timedelta(milliseconds=200)
    if kind == "tcp":
        return library.TCPStore("127.0.0.1", 0, 1, True, timeout=short)
    if kind == "file":
        store = library.FileStore(str(folder / f"store{time.monotonic_ns()}"), 1)
    elif kind == "prefix":
        store = library.PrefixStore("some", library.HashStore())
    else:
        store = library.HashStore()
    store.set_timeout(short)
    return store


KINDS = ["hash", "tcp", "file", "prefix"]
LINES = [
    "s.set('a', 'b')",
    "s.get('a')",
    "s.set('bytes', b'\\x00\\xff')",
    "s.get('bytes')",
    "s.get('nowhere')",
    "s.wait(['a'])",
    "s.wait(['nowhere', 'a'], timedelta(milliseconds=120))",
    "s.add('n', 3)",
    "s.add('n', -1)",
    "s.get('n')",
    "s.compare_set('a', 'b', 'c')",
    "s.compare_set('a', 'x', 'd')",
    "s.compare_set('new', '', 'first')",
    "s.compare_set('other', 'expected', 'first')",
    "s.check(['a', 'n'])",
    "s.check(['a', 'nowhere'])",
    "s.num_keys()",
    "s.delete_key('a')",
    "s.delete_key('a')",
    "s.num_keys()",
    "s.multi_set(['x', 'y'], ['1', '2'])",
    "s.multi_get(['x', 'y'])",
    "s.append('x', 'more')",
    "s.get('x')",
    "s.append('fresh', 'text')",
    "s.get('fresh')",
    "s.has_extended_api()",
    "s.queue_push('q', '1')",
    "s.queue_len('q')",
    "s.queue_pop('q')",
    "s.queue_pop('q', False)",
    "s.barrier('door', 1)",
]


def told(store: Any, line: str) -> Any:
    try:
        return eval(line, {"s": store, "timedelta": timedelta})
    except Exception as error:
        return type(error).__name__, str(error).split("\nException raised")[0]


@pytest.mark.parametrize("kind", KINDS)
def test_as_pytorchs(oracle: Any, tmp_path: Path, kind: str) -> None:
    import torch.distributed as theirs

    mine, other = make(kind, tmp_path), make(kind, tmp_path, theirs)
    for line in LINES:
        assert told(mine, line) == told(other, line), line


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_comes_later_is_waited_for(tmp_path: Path, kind: str) -> None:
    store = make(kind, tmp_path)
    store.set_timeout(timedelta(seconds=10))
    other = store if kind == "prefix" else store.clone()
    thread = threading.Thread(target=lambda: (time.sleep(0.05), other.set("late", "here")))
    thread.start()
    assert store.get("late") == b"here"
    thread.join()


@pytest.mark.parametrize("kind", KINDS)
def test_many_add_at_once(tmp_path: Path, kind: str) -> None:
    store = make(kind, tmp_path)
    clones = [store if kind == "prefix" else store.clone() for _ in range(4)]

    def count(mine: Any) -> None:
        for _ in range(25):
            mine.add("count", 1)

    threads = [threading.Thread(target=count, args=(each,)) for each in clones]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.add("count", 0) == 100


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(dist.DistNetworkError, match="timed out after 300ms while trying to connect to"):
        dist.TCPStore("127.0.0.1", 1, 2, False, timeout=timedelta(milliseconds=300))


def test_a_port_that_is_taken() -> None:
    store = dist.TCPStore("127.0.0.1", 0, 1, True)
    with pytest.raises(dist.DistNetworkError, match="EADDRINUSE"):
        dist.TCPStore("127.0.0.1", store.port, 1, True)


def test_workers_that_do_not_come() -> None:
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, timeout=timedelta(milliseconds=300))


def test_a_server_ends_with_its_store() -> None:
    store = dist.TCPStore("127.0.0.1", 0, 1, True)
    port = store.port
    del store
    again = dist.TCPStore("127.0.0.1", port, 1, True, timeout=timedelta(seconds=5))
    assert again.port == port


def test_a_file_is_removed_by_the_last_store(tmp_path: Path) -> None:
    path = tmp_path / "store"
    one, two = dist.FileStore(str(path), 2), dist.FileStore(str(path), 2)
    one.set("key", "value")
    assert two.get("key") == b"value" and two.path == str(path)
    del one
    assert path.exists()
    del two
    assert not path.exists()


def test_prefixes_in_prefixes() -> None:
    below = dist.HashStore()
    inner = dist.PrefixStore("in", below)
    store = dist.PrefixStore("out", inner)
    store.set("key", "value")
    assert below.get("in/out/key") == b"value"
    assert store.underlying_store is inner and store._underlying_non_prefix_store is below


URLS = [
    ("nosuch://here", RuntimeError, "No rendezvous handler for nosuch://"),
    ("tcp://127.0.0.1?rank=0&world_size=1", ValueError, "tcp:// rendezvous: port number missing"),
    ("tcp://127.0.0.1:29500", ValueError, "tcp:// rendezvous: rank parameter missing"),
    ("tcp://127.0.0.1:29500?rank=0", ValueError, "tcp:// rendezvous: world size parameter missing"),
    ("file:?rank=0&world_size=1", ValueError, "file:// rendezvous: path missing"),
    ("env://", ValueError, "env:// rendezvous: environment variable RANK expected, but not set"),
]


@pytest.mark.parametrize(("url", "kind", "text"), URLS)
def test_addresses_that_lead_nowhere(monkeypatch: Any, url: str, kind: type[Exception], text: str) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(kind, match=text):
        next(dist.rendezvous(url))


@pytest.mark.parametrize("how", ["env", "tcp", "file", "store"])
def test_a_group_of_one_by_every_way(monkeypatch: Any, tmp_path: Path, how: str) -> None:
    if how == "env":
        for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}.items():
            monkeypatch.setenv(name, value)
        dist.init_process_group("gloo")
    elif how == "tcp":
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:0", rank=0, world_size=1)
    elif how == "file":
        dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        t = torch.ones(3)
        dist.all_reduce(t)
        assert t.tolist() == [1.0] * 3 and dist.get_world_size() == 1 and dist.get_rank() == 0
        assert dist.group.WORLD.group_desc == "default_pg" and dist.get_pg_count() == 1
        dist.barrier()
        nothing = torch.ones(3, device="meta")
        assert dist.all_reduce(nothing) is None and nothing.is_meta
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()
