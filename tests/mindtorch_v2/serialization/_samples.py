"""Objects worth saving, made the same way in either library, and how two of them are compared.

Invariant: `same` compares everything that a file carries: kinds, values, dtypes, shapes, strides, offsets, sharing of
memory, flags and Python attributes.
"""

from __future__ import annotations

import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from .._oracle import dtype_name

DTYPES = """float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128 uint16 uint32 uint64
float8_e4m3fn float8_e5m2""".split()
# PyTorch's stream of pickles cannot name these.
NOT_IN_STREAMS = {"uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"}


def dtypes(torch: Any) -> Any:
    return {name: torch.arange(6, dtype=torch.float32).to(getattr(torch, name)) for name in DTYPES}


def old_dtypes(torch: Any) -> Any:
    return {name: t for name, t in dtypes(torch).items() if name not in NOT_IN_STREAMS}


def views(torch: Any) -> Any:
    base = torch.arange(24.0).reshape(2, 3, 4)
    return {
        "base": base,
        "transposed": base.transpose(0, 2),
        "part": base[1:, ::2, 1:3],
        "one": base[1, 2, 3],
        "row": base[0, 1],
        "expanded": base[:1, :1].expand(5, 3, 4),
        "empty": base[:0],
        "nothing": torch.empty(0),
        "scalar": torch.tensor(7),
    }


def shared(torch: Any) -> Any:
    t = torch.ones(4)
    one = [t, t]
    return {"same list": one, "again": one, "detached": t.detach(), "half": t[2:]}


def nested(torch: Any) -> Any:
    t = torch.arange(3)
    return {
        "list": [1, -1, 2**40, 2**200, -(2**80), 1.5, float("inf"), None, True, False, "text", "ünï", ""],
        "tuple": (1, (2, (3, (4, (5, 6)))), (), (t,)),
        "dict": OrderedDict([("b", t), ("a", {"x": [t, {"y": (t,)}]})]),
        3: {(1, 2): "key"},
        "set": {1, 2, 3},
        "bytes": b"\x00\xff raw",
        "bytearray": bytearray(b"abc"),
        "complex": 1 - 2j,
        "counter": Counter("abca"),
        "many": list(range(2000)),
    }


def small_types(torch: Any) -> Any:
    return {
        "dtype": [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.uint16],
        "device": [torch.device("cpu"), torch.device("cuda", 1), torch.device("meta")],
        "size": torch.Size([2, 3]),
        "layout": torch.strided,
    }


def parameters(torch: Any) -> Any:
    plain = torch.nn.Parameter(torch.arange(4.0))
    marked = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    marked.name_of_mine = "head"
    leaf = torch.arange(3.0).requires_grad_(True)
    attributes = torch.zeros(2)
    attributes.note = {"a": 1}
    return {
        "plain": plain,
        "marked": marked,
        "leaf": leaf,
        "result": (leaf * 2).detach(),
        "attributes": attributes,
        "tied": [plain, plain],
        "data": plain.data,
    }


def meta(torch: Any) -> Any:
    return [torch.empty(2, 3, device="meta"), torch.empty(3, 2, dtype=torch.int8, device="meta").t()]


def model_state(torch: Any) -> Any:
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.LSTM(4, 2))
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.arange(float(p.numel())).reshape(p.shape))
    return net.state_dict()


def optimizer_states(torch: Any) -> Any:
    out = {}
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad"):
        p = torch.nn.Parameter(torch.ones(3))
        options = {"momentum": 0.9} if name == "SGD" else {}
        optimizer = getattr(torch.optim, name)([p], lr=0.125, **options)
        for _ in range(2):
            optimizer.zero_grad()
            (p * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
            optimizer.step()
        out[name] = {"p": p, "state": optimizer.state_dict()}
    return out


# Loadable with `weights_only=True`.
WEIGHTS: dict[str, Callable[[Any], Any]] = {
    f.__name__: f for f in (dtypes, views, shared, nested, small_types, parameters, meta, model_state, optimizer_states)
}


# -- more than weights ------------------------------------------------------------------------------------------------
class Plain:
    """A class of the user's."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


def user_objects(torch: Any) -> Any:
    t = torch.arange(4.0)
    plain = Plain(t=t, again=[t], name="x")
    vars(plain)["me"] = plain
    return [plain, Slotted(t, 3), Plain, len]


def modules(torch: Any) -> Any:
    nn = torch.nn
    net = nn.Sequential(
        OrderedDict(
            linear=nn.Linear(3, 4),
            norm=nn.BatchNorm1d(4),
            act=nn.GELU(),
            drop=nn.Dropout(0.25),
            lists=nn.ModuleList([nn.Conv2d(1, 2, 3, padding=1), nn.LayerNorm(3)]),
            dicts=nn.ModuleDict({"e": nn.Embedding(5, 2)}),
            rnn=nn.GRU(2, 3),
            attention=nn.MultiheadAttention(4, 2),
            layer=nn.TransformerEncoderLayer(4, 2, 8),
        )
    )
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.arange(float(p.numel())).reshape(p.shape))
    return net


def optimizers(torch: Any) -> Any:
    p = torch.nn.Parameter(torch.ones(3))
    return torch.optim.AdamW([p], lr=0.5)


def generators(torch: Any) -> Any:
    generator = torch.Generator()
    generator.manual_seed(17)
    torch.rand(5, generator=generator)
    return generator


def named_results(torch: Any) -> Any:
    return torch.max(torch.arange(6.0).reshape(2, 3), 1)


EVERYTHING: dict[str, Callable[[Any], Any]] = {
    f.__name__: f for f in (user_objects, modules, optimizers, generators, named_results)
}


# -- comparing --------------------------------------------------------------------------------------------------------
def same(left: Any, right: Any, libraries: tuple[Any, Any], where: str = "") -> None:
    """`left` of the first library is `right` of the second."""
    _Comparison(*libraries).compare(left, right, where)


class _Comparison:
    def __init__(self, one: Any, two: Any) -> None:
        self.one, self.two = one, two
        self.storages: dict[int, int] = {}
        self.objects: dict[int, int] = {}
        # Held, so that no identity is used twice.
        self.held: list[Any] = []

    def compare(self, a: Any, b: Any, at: str) -> None:
        if callable(a) and callable(b) and hasattr(a, "__qualname__") and not isinstance(a, type):
            # Functions are written in C in one and in Python in the other; files hold their names.
            assert a.__qualname__ == b.__qualname__, (at, a, b)
            return
        assert type(a).__name__ == type(b).__name__, (at, type(a), type(b))
        if isinstance(a, (list, dict, set)) or hasattr(a, "__dict__"):
            known = self.objects.get(id(a))
            assert known is None or known == id(b), f"{at}: shared in one and not in the other"
            if known is not None:
                return
            self.objects[id(a)] = id(b)
            self.held += [a, b]
        if isinstance(a, self.one.Tensor):
            self.tensors(a, b, at)
        elif isinstance(a, self.one.UntypedStorage):
            assert bytes(a.tolist()) == bytes(b.tolist()), at
            self.sharing(a, b, at)
        elif isinstance(a, self.one.Generator):
            assert a.get_state().tolist() == b.get_state().tolist(), at
        elif isinstance(a, dict):
            assert list(a) == list(b), at
            for key in a:
                self.compare(a[key], b[key], f"{at}[{key!r}]")
            self.attributes(a, b, at)
        elif isinstance(a, (list, tuple)):
            assert len(a) == len(b), at
            for i, (x, y) in enumerate(zip(a, b)):
                self.compare(x, y, f"{at}[{i}]")
        elif isinstance(a, (self.one.dtype, self.one.device, self.one.layout)):
            assert str(a) == str(b), at
        elif isinstance(a, weakref.ref):
            self.compare(a(), b(), at)
        elif isinstance(a, Slotted):
            self.compare((a.a, a.b), (b.a, b.b), at)
        elif isinstance(a, (type, type(len), type(same))):
            assert a.__name__ == b.__name__, at
        elif hasattr(a, "__dict__"):
            self.attributes(a, b, at)
        else:
            assert a == b or (a != a and b != b), (at, a, b)

    def attributes(self, a: Any, b: Any, at: str) -> None:
        if not hasattr(a, "__dict__"):
            return
        left, right = dict(vars(a)), dict(vars(b))
        if isinstance(a, (self.one.nn.Module, self.one.optim.Optimizer)):
            left, right = _public(left), _public(right)
        assert sorted(left) == sorted(right), at
        for key in left:
            self.compare(left[key], right[key], f"{at}.{key}")

    def tensors(self, a: Any, b: Any, at: str) -> None:
        assert dtype_name(a.dtype) == dtype_name(b.dtype), at
        assert tuple(a.shape) == tuple(b.shape) and a.stride() == b.stride(), at
        assert a.storage_offset() == b.storage_offset(), at
        assert a.requires_grad == b.requires_grad and a.is_leaf == b.is_leaf, at
        assert a.device.type == b.device.type, at
        assert _attributes(a) == _attributes(b), at
        if a.device.type == "meta":
            return
        left, right = a.detach().untyped_storage(), b.detach().untyped_storage()
        assert left.nbytes() == right.nbytes(), at
        assert bytes(left.tolist()) == bytes(right.tolist()), at
        if left.nbytes():
            self.sharing(left, right, at)

    def sharing(self, a: Any, b: Any, at: str) -> None:
        self.held += [a, b]
        known = self.storages.setdefault(a.data_ptr(), b.data_ptr())
        assert known == b.data_ptr(), f"{at}: memory is shared in one and not in the other"


def _public(fields: dict[str, Any]) -> dict[str, Any]:
    """What both libraries' modules and optimizers are made of; how they keep hooks, what they have warned of and what
    their profilers look at is their own affair."""
    private = ("hook", "_warned", "profile", "_patch", "_known")
    return {k: v for k, v in fields.items() if not any(word in k for word in private)}


def _attributes(t: Any) -> dict[str, Any]:
    from mindtorch_v2._tensor_base import TensorBase

    fields = getattr(TensorBase, "__annotations__", {})
    return {k: v for k, v in t.__dict__.items() if k not in fields}
