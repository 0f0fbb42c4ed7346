"""Modules of `torch.utils` that PyTorch's own code is made with: locks of files, bytes that grow, bound arguments,
pickles as text.
"""

from __future__ import annotations

import collections
import datetime
import fractions
import importlib
import inspect
import io
import operator
import pickle
import pprint
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from .. import _oracle
from .._outcome import outcome
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch


@mindtorch_only
def test_a_file_has_one_holder(tmp_path: Path) -> None:
    locks = submodule("utils._filelock")
    path, order = tmp_path / "lock", []
    mine = locks.FileLock(path)

    def other() -> None:
        with locks.FileLock(path):
            order.append("other")

    with mine, mine:  # its holder may enter again
        with pytest.raises(TimeoutError):
            locks.FileLock(path, timeout=0.05).acquire()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.1)
        order.append("mine")
    thread.join(10)
    assert order == ["mine", "other"] and not mine.is_locked
    with locks.FileLock(path, timeout=0) as again:
        assert again.is_locked


@mindtorch_only
def test_bytes_to_which_elements_are_added() -> None:
    made = submodule("utils._appending_byte_serializer")

    def write(writer: Any, value: tuple[int, str, bytes]) -> None:
        writer.write_uint64(value[0])
        writer.write_str(value[1])
        writer.write_bytes(value[2])

    def read(reader: Any) -> tuple[int, str, bytes]:
        return reader.read_uint64(), reader.read_str(), reader.read_bytes()

    s, values = (
        made.AppendingByteSerializer(serialize_fn=write),
        [(1, "a", b""), (2**64 - 1, "\u00e9", bytes(range(9)))],
    )
    s.append(values[0])
    assert made.AppendingByteSerializer.to_list(s.to_bytes(), deserialize_fn=read) == values[:1]
    s.extend(values[1:])
    whole = s.to_bytes()
    assert made.AppendingByteSerializer.to_list(whole, deserialize_fn=read) == values
    for damaged in (b"", whole[:-1], whole[:9] + bytes([whole[9] ^ 1]) + whole[10:]):
        with pytest.raises(RuntimeError, match="Bytes object is corrupted, checksum does not match"):
            made.BytesReader(damaged)
    with pytest.raises(RuntimeError, match="were asked for"):
        short = made.BytesWriter()
        short.write_uint64(100)
        made.BytesReader(short.to_bytes()).read_bytes()


def test_arguments_are_bound_as_signatures_do() -> None:
    def f(a: Any, /, b: Any, c: int = 2, *, d: Any = ()) -> None: ...

    def g(*args: Any, **kwargs: Any) -> None: ...

    bind = submodule("utils._inspect")._fast_bind
    tries: list[tuple[tuple[Any, ...], dict[str, Any]]]
    tries = [((1, 2), {}), ((1, 2, 3), {}), ((1,), {"b": 2}), ((1, 2, 3, 4), {}), ((), {}), ((1, 2), {"x": 1})]
    for function in (f, g, lambda x, y: None):
        signature = inspect.signature(function)
        for args, kwargs in tries:
            try:
                want = signature.bind(*args, **kwargs)
            except TypeError as error:
                with pytest.raises(TypeError, match=str(error)):
                    bind(signature, *args, **kwargs)
                continue
            got = bind(signature, *args, **kwargs)
            assert (got.args, got.kwargs) == (want.args, want.kwargs)


@mindtorch_only
@pytest.mark.parametrize("kind", ["Adagrad", "Adam", "AdamW", "SGD", "Adadelta", "RMSprop", "Rprop", "Adamax"])
def test_optimisers_that_are_given_gradients(kind: str) -> None:
    utils = submodule("distributed.optim.utils")
    made = utils.as_functional_optim(getattr(torch.optim, kind), 0.1)
    params, twins = ([torch.arange(3.0) + i for i in range(2)] for _ in range(2))
    plain = getattr(torch.optim, kind)(twins, 0.1)
    for step in range(3):
        for p, twin in zip(params, twins):
            made.step_param(p, p.sin() + step)
            twin.grad = twin.sin() + step
        plain.step()
    assert [p.tolist() for p in params] == [p.tolist() for p in twins]
    assert all(p.grad is None for p in params) and len(made.state) == len(plain.state)
    whole = utils.functional_optim_map[getattr(torch.optim, kind)](params, 0.1)
    with pytest.raises(ValueError, match="the gradients passed in does not equal to the size of the parameters"):
        whole.step([None])
    before = [p.tolist() for p in params]
    whole.step([torch.ones(3), None])
    assert params[0].tolist() != before[0] and params[1].tolist() == before[1]
    with pytest.raises(ValueError, match="does not have a functional counterpart"):
        utils.as_functional_optim(torch.optim.LBFGS)
    with pytest.raises(ValueError, match="empty parameter list"):
        utils.functional_optim_map[torch.optim.SGD]([])


class _Kept:
    def __init__(self, state: Any) -> None:
        self.state = state

    def __reduce__(self) -> Any:
        return (operator.itemgetter, (1, "two")) if self.state is None else (_Kept, (), self.state)


class _Held(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        return ("storage", 7) if obj is Ellipsis else None


def _pickled(value: Any, protocol: int) -> bytes:
    file = io.BytesIO()
    _Held(file, protocol).dump(value)
    return file.getvalue()


PICKLED: list[Any] = [
    {"a": [1, 2.5, None, "é"], "b": (b"x", {3}), "c": ...},
    _Kept(None),
    [_Kept({"weight": ...}), _Kept([1] * 40)],
    collections.OrderedDict(a=1),
    fractions.Fraction(1, 3),
    datetime.timedelta(1),
]
# A text of one byte that is no UTF-8.
BROKEN = b"\x80\x02X\x01\x00\x00\x00\xff."


def _shown(library: Any, folder: Path) -> Any:
    tool = importlib.import_module(f"{library.__name__}.utils.show_pickle")

    def printed(*argv: Any) -> str:
        stream = io.StringIO()
        tool.main(["", *map(str, argv)], stream)
        return stream.getvalue()

    def whole() -> str:
        # Only the program itself teaches `pprint` its objects.
        printer = pprint.PrettyPrinter(width=40)
        state = tool.FakeObject("m", "Name", ())
        state.state = {"weight": list(range(30)), "bias": "b" * 60}
        made = tool.FakeObject("m", "name", (list(range(30)), "c" * 60))
        stream = io.StringIO()
        for one in (state, made, tool.FakeObject("m", "empty", ())):
            tool.FakeObject.pp_format(printer, one, stream, 2, 1, {}, 1)
        return stream.getvalue()

    return [
        *(outcome(lambda f=f: printed(f)) for f in sorted(folder.glob("*.pkl"))),
        outcome(lambda: printed(f"{folder}/a.zip@in/0.pkl")),
        outcome(lambda: printed(f"{folder}/a.zip@*/1.p*")),
        outcome(lambda: printed(f"{folder}/a.zip@*/none")),
        outcome(lambda: printed(f"{folder}/a.zip@none")),
        outcome(lambda: printed()),
        outcome(lambda: tool.main(["", "a", "b"])),
        outcome(lambda: tool.DumpUnpickler(io.BytesIO(BROKEN)).load()),
        outcome(lambda: tool.DumpUnpickler(io.BytesIO(BROKEN), catch_invalid_utf8=True).load()),
        outcome(lambda: repr(tool.FakeClass("a", "b"))),
        outcome(whole),
    ]


def test_pickles_are_shown_without_what_they_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for i, value in enumerate(PICKLED):
            for protocol in (0, 2, 4):
                (tmp_path / f"{i}-{protocol}.pkl").write_bytes(_pickled(value, protocol))
            archive.writestr(f"in/{i}.pkl", _pickled(value, 2))
    assert _shown(torch, tmp_path) == _shown(_oracle.load(), tmp_path)
