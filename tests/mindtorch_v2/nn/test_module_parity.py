"""What users do with modules beyond calling them, run on both libraries: outcomes, errors and warnings are equal.

Invariant: a case takes a library and returns plain values; it runs on PyTorch unchanged.
"""

from __future__ import annotations

import collections
import copy
import io
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._outcome import outcome, tried
from .._subject import mindtorch_only, subject

Case = Callable[[Any], Any]
CASES: dict[str, Case] = {}


def case(fn: Case) -> Case:
    CASES[fn.__name__] = fn
    return fn


def net(lib: Any) -> Any:
    lib.manual_seed(3)
    nn = lib.nn
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Sequential(nn.ReLU(), nn.Linear(3, 1)))


def same_words(value: Any) -> Any:
    """Texts without the name of the library."""
    if isinstance(value, str):
        return value.replace("mindtorch_v2", "torch").replace("torch._tensor.Tensor", "torch.Tensor")
    if isinstance(value, (list, tuple)):
        return [same_words(v) for v in value]
    if isinstance(value, dict):
        return {same_words(k): same_words(v) for k, v in value.items()}
    return value


# -- names and members ------------------------------------------------------------------------------------------------
@case
def registration_errors(lib: Any) -> Any:
    nn = lib.nn
    m = net(lib)
    late = nn.Module.__new__(nn.Module)
    grown = nn.Parameter(lib.ones(2)) * 2
    grown._is_param = True
    return tried(
        [
            lambda: m.register_buffer(3, None),
            lambda: m.register_buffer("a.b", None),
            lambda: m.register_buffer("", None),
            lambda: m.register_buffer("training", None),
            lambda: m.register_buffer("x", 3),
            lambda: m.register_buffer("x", [1]),
            lambda: m.register_parameter(3, None),
            lambda: m.register_parameter("a.b", None),
            lambda: m.register_parameter("", None),
            lambda: m.register_parameter("forward", None),
            lambda: m.register_parameter("x", 3),
            lambda: m.register_parameter("x", lib.ones(2)),
            lambda: m.register_parameter("x", grown),
            lambda: m.add_module(3, None),
            lambda: m.add_module("a.b", nn.ReLU()),
            lambda: m.add_module("", nn.ReLU()),
            lambda: m.add_module("eval", nn.ReLU()),
            lambda: m.add_module("x", 3),
            lambda: m.add_module("x", lib.ones(1)),
            lambda: setattr(m, "0", 3),
            lambda: setattr(m[0], "weight", lib.ones(3, 2)),
            lambda: setattr(m[0], "weight", 3),
            lambda: setattr(m[1], "running_mean", "x"),
            lambda: setattr(m[1], "running_mean", None),
            lambda: late.register_buffer("x", None),
            lambda: late.register_parameter("x", None),
            lambda: setattr(late, "x", nn.Parameter(lib.ones(1))),
            lambda: setattr(late, "x", nn.ReLU()),
            lambda: setattr(late, "x", nn.Buffer(lib.ones(1))),
            lambda: m.no_such_thing,
            lambda: delattr(m, "no_such_thing"),
            lambda: m(),
            lambda: nn.Module()(1),
            lambda: nn.Module(1),
            lambda: nn.Module(x=1),
        ]
    )


@case
def paths(lib: Any) -> Any:
    nn = lib.nn
    m = net(lib)
    m.plain = 3
    return tried(
        [
            lambda: m.get_submodule("2.1"),
            lambda: m.get_submodule("") is m,
            lambda: m.get_submodule("2.7"),
            lambda: m.get_submodule("plain"),
            lambda: m.get_submodule("2.1.weight"),
            lambda: m.get_parameter("2.1.bias"),
            lambda: m.get_parameter("2.1.nothing"),
            lambda: m.get_parameter("9.bias"),
            lambda: m.get_parameter("1.running_mean"),
            lambda: m.get_parameter("plain"),
            lambda: m.get_buffer("1.running_var"),
            lambda: m.get_buffer("1.weight"),
            lambda: m.get_buffer("1.nothing"),
            lambda: m.get_buffer("plain"),
            lambda: m.set_submodule("", nn.ReLU()),
            lambda: m.set_submodule("2.0", 3),
            lambda: m.set_submodule("2.0", nn.Tanh()),
            lambda: m,
            lambda: m.set_submodule("9.9.0", nn.Tanh()),
            lambda: m.set_submodule("2.9", nn.Tanh(), strict=True),
            lambda: m.set_submodule("2.9", nn.Tanh()),
            lambda: m.set_submodule("plain", nn.Tanh()),
            lambda: m.set_submodule("plain.x", nn.Tanh()),
            lambda: m,
            lambda: m.get_extra_state(),
            lambda: m.set_extra_state(1),
        ]
    )


@case
def walking(lib: Any) -> Any:
    nn = lib.nn
    m = nn.Module()
    shared = nn.Linear(1, 1)
    m.a, m.b, m.none = shared, shared, None
    m.add_module("empty", None)
    m.tied = shared.weight
    m.register_buffer("one", lib.ones(1))
    m.register_buffer("same", m.one)
    m.register_buffer("late", lib.zeros(1), persistent=False)
    m.register_parameter("nothing", None)
    out: list[Any] = []
    for duplicate in (True, False):
        out.append([name for name, _ in m.named_modules(remove_duplicate=duplicate)])
        out.append([name for name, _ in m.named_parameters(remove_duplicate=duplicate)])
        out.append([name for name, _ in m.named_buffers(remove_duplicate=duplicate)])
        out.append(len(list(m.modules(remove_duplicate=duplicate))))
    out.append([name for name, _ in m.named_parameters(prefix="p", recurse=False)])
    out.append([name for name, _ in m.named_buffers("q")])
    out.append([name for name, _ in m.named_modules(prefix="r")])
    out.append([name for name, _ in m.named_children()])
    out.append([len(list(m.parameters(recurse=False))), len(list(m.buffers())), len(list(m.children()))])
    out.append([name for name in dir(m) if name in ("a", "b", "tied", "one", "same", "empty", "nothing")])
    out.append([*m.state_dict()])
    del m.tied
    del m.one
    del m.a
    out.append([*m.state_dict()])
    return out


@case
def texts(lib: Any) -> Any:
    nn = lib.nn

    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Linear(1, 2), nn.Linear(1, 2)])

        def extra_repr(self) -> str:
            return "first\nsecond"

    return [
        repr(Odd()),
        str(nn.Sequential()),
        repr(nn.ModuleList()),
        repr(nn.ModuleDict({"a": nn.ReLU(), "b": nn.Sequential(nn.Tanh())})),
        repr(nn.Module()),
        repr(nn.ParameterList([lib.ones(2), nn.Parameter(lib.ones(1, 2)), "x", lib.ones(())])),
        repr(nn.ParameterDict({"b": lib.ones(2), "a": nn.Parameter(lib.ones(1, 2)), "c": 3})),
    ]


# -- modes, gradients, conversion --------------------------------------------------------------------------------------
@case
def modes(lib: Any) -> Any:
    m = net(lib)
    m.eval()
    out = [[x.training for x in m.modules()]]
    m[2].train()
    out.append([x.training for x in m.modules()])
    m.requires_grad_(False)
    m[0].requires_grad_()
    out.append([p.requires_grad for p in m.parameters()])
    return [out, tried([lambda: m.train("yes"), lambda: m.train(1), lambda: m.requires_grad_("x")])]


@case
def zeroing(lib: Any) -> Any:
    m = net(lib)
    m(lib.ones(4, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    out = [p.grad for p in m.parameters()]
    m.zero_grad()
    return [out, [p.grad for p in m.parameters()]]


@case
def conversions(lib: Any) -> Any:
    nn = lib.nn

    def kinds(m: Any) -> Any:
        return [str(t.dtype) for t in (*m.parameters(), *m.buffers())]

    out: list[Any] = []
    for change in (
        lambda m: m.double(),
        lambda m: m.half(),
        lambda m: m.bfloat16(),
        lambda m: m.double().float(),
        lambda m: m.to(lib.float64),
        lambda m: m.to("cpu", lib.float64),
        lambda m: m.to(dtype=lib.bfloat16),
        lambda m: m.to(lib.ones(1, dtype=lib.float64)),
        lambda m: m.to(device="meta"),
        lambda m: m.to("cpu", non_blocking=True),
        lambda m: m.type(lib.float64),
        lambda m: m.to_empty(device="meta"),
        lambda m: m.cpu(),
    ):
        m = net(lib)
        first = m[0].weight
        m(lib.ones(4, 2)).sum().backward()
        changed = change(m)
        out.append([changed is m, m[0].weight is first, kinds(m), m[0].weight.device.type])
        out.append([str(m[0].weight.grad.dtype) if m[0].weight.grad is not None else None])
    m = nn.Conv2d(2, 2, 3)
    out.append(m.to(memory_format=lib.channels_last).weight.stride())
    m = net(lib)
    meta = net(lib).to("meta")
    return [
        out,
        tried(
            [
                lambda: m.to(lib.int64),
                lambda: m.to(lib.float32, 1, 2, 3, 4),
                lambda: m.to(device="cpu", copy=True),
                lambda: meta.to("cpu"),
                lambda: meta.to_empty(device="cpu")[0].weight.shape,
                lambda: m.to_empty("cpu"),
                lambda: m.type("nothing"),
            ]
        ),
    ]


@case
def future_overwrite(lib: Any) -> Any:
    future = lib.__future__
    out = [future.get_overwrite_module_params_on_conversion(), future.get_swap_module_params_on_conversion()]
    future.set_overwrite_module_params_on_conversion(True)
    try:
        m = lib.nn.Linear(2, 1)
        first = m.weight
        m(lib.ones(1, 2)).sum().backward()
        grad = m.weight.grad
        m.double()
        out += [m.weight is first, m.weight.grad is grad, str(m.weight.grad.dtype), str(first.dtype)]
    finally:
        future.set_overwrite_module_params_on_conversion(False)
    return out


@case
def future_swap(lib: Any) -> Any:
    future = lib.__future__
    future.set_swap_module_params_on_conversion(True)
    try:
        m = lib.nn.Linear(2, 1)
        first = m.weight
        m(lib.ones(1, 2)).sum().backward()
        m.double()
        out: list[Any] = [m.weight is first, str(first.dtype), str(first.grad.dtype), type(first).__name__]
        loss = m(lib.ones(1, 2, dtype=lib.float64)).sum()
        state = {"weight": lib.ones(1, 2), "bias": lib.zeros(1)}
        m.load_state_dict(state)
        out += [m.weight is first, m.weight.detach().tolist(), str(m.weight.dtype), m.weight.requires_grad]
        m.load_state_dict(state, assign=True)
        out += [m.weight is first, str(m.weight.dtype), isinstance(m.weight, lib.nn.Parameter)]
        m.to("meta")
        out += [m.weight is first, m.weight.device.type]
        out.append(outcome(lambda: loss.backward())[0][:40])
    finally:
        future.set_swap_module_params_on_conversion(False)
    return out


@case
def swapping(lib: Any) -> Any:
    class Slotted(lib.Tensor):
        __slots__ = ("extra",)

    a, b = lib.ones(2), lib.nn.Parameter(lib.zeros(3))
    a.note = "a"
    b.grad = lib.full((3,), 2.0)
    lib.utils.swap_tensors(a, b)
    out = [type(a).__name__, type(b).__name__, a, b, a.grad, b.grad, b.note, hasattr(a, "note"), a.requires_grad]
    (a * 3).sum().backward()
    out.append(a.grad)
    watched = lib.ones(1)
    kept = weakref.ref(watched)
    slotted = lib.ones(1).as_subclass(Slotted)
    return [
        out,
        tried(
            [
                lambda: lib.utils.swap_tensors(watched, lib.ones(1)),
                lambda: lib.utils.swap_tensors(lib.ones(1), watched),
                lambda: lib.utils.swap_tensors(slotted, lib.ones(1)),
                lambda: kept() is watched,
            ]
        ),
    ]


@case
def loading_by_the_tensor(lib: Any) -> Any:
    a, b = lib.zeros(2), lib.ones(2)
    taken = a.module_load(b, assign=True)
    copied = a.module_load(b)
    return [taken, taken is b, copied, copied is a, a]


# -- state ------------------------------------------------------------------------------------------------------------
@case
def state_forms(lib: Any) -> Any:
    m = net(lib)
    held: Any = collections.OrderedDict()
    out: list[Any] = [[*m.state_dict(prefix="x.")], [*m.state_dict(destination=held)], hasattr(held, "_metadata")]
    out.append({k: dict(v) for k, v in m.state_dict()._metadata.items()})
    out.append([type(v).__name__ for v in m.state_dict(keep_vars=True).values()])
    out.append(outcome(lambda: [*m.state_dict(held, "y.", True)]))
    return out


@case
def loading_errors(lib: Any) -> Any:
    m = net(lib)
    good = m.state_dict()

    def load(changes: dict[str, Any], drop: tuple[str, ...] = (), **options: Any) -> Callable[[], Any]:
        state = {k: v for k, v in good.items() if k not in drop}
        state.update(changes)
        return lambda: repr(net(lib).load_state_dict(state, **options))

    return tried(
        [
            load({}),
            load({"x": lib.ones(1)}),
            load({}, ("0.weight", "1.running_mean")),
            load({"x": lib.ones(1), "2.y.z": lib.ones(1)}, ("0.weight",)),
            load({"x": lib.ones(1)}, ("0.weight",), strict=False),
            load({"0.weight": lib.ones(3, 3), "0.bias": lib.ones(())}),
            load({"0.weight": lib.ones(3, 3)}, strict=False),
            load({"0.weight": 3}),
            load({"0.weight": [1, 2]}, assign=True),
            load({"0.weight": lib.ones(3, 2, dtype=lib.int64)}, assign=True),
            load({"1.num_batches_tracked": lib.tensor([5])}),
            load({"0.weight": lib.ones(3, 2, device="meta")}),
            lambda: net(lib).load_state_dict([1]),
            lambda: net(lib).load_state_dict(None),
            lambda: net(lib).load_state_dict(good, strict=False).missing_keys,
            lambda: repr(net(lib).to("meta").load_state_dict(good, assign=True)),
            lambda: type(net(lib).load_state_dict(good)).__name__,
            lambda: str(net(lib).load_state_dict({}, strict=False)),
        ]
    )


@case
def loading_by_overrides(lib: Any) -> Any:
    class Renamed(lib.nn.Linear):
        _version = 3

        def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
            destination[prefix + "w"] = self.weight.detach()

        def _load_from_state_dict(self, state: Any, prefix: str, meta: Any, *rest: Any) -> None:
            state[prefix + "weight"] = state.pop(prefix + "w")
            state[prefix + "bias"] = lib.zeros(1)
            seen.append((prefix, dict(meta)))
            super()._load_from_state_dict(state, prefix, meta, *rest)

        def get_extra_state(self) -> Any:
            return {"k": 1}

        def set_extra_state(self, state: Any) -> None:
            seen.append(state)

    seen: list[Any] = []
    m = lib.nn.Sequential(Renamed(2, 1))
    state = m.state_dict()
    return [[*state], tried([lambda: repr(m.load_state_dict(state))]), seen, [*state]]


@case
def state_hooks(lib: Any) -> Any:
    m = net(lib)
    log: list[Any] = []
    handles = [
        m.register_state_dict_pre_hook(lambda mod, prefix, keep: log.append(("pre", prefix, keep))),
        m.register_state_dict_post_hook(lambda mod, state, prefix, meta: log.append(("post", len(state), dict(meta)))),
        m[2].register_load_state_dict_pre_hook(lambda mod, state, prefix, *r: log.append(("load", prefix, len(state)))),
        m.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear()),
    ]
    state = m.state_dict()
    del state["0.weight"]
    log.append(repr(m.load_state_dict(state)))
    for handle in handles:
        handle.remove()
    old = m._register_state_dict_hook(lambda mod, state, prefix, meta: {"only": 1})
    log.append(m.state_dict())
    old.remove()
    m.register_load_state_dict_post_hook(lambda mod, keys: 3)

    def named(mod: Any, state: Any, prefix: str, meta: Any) -> Any:
        return {}

    m.register_state_dict_post_hook(named)
    return [
        log,
        tried(
            [
                lambda: m.load_state_dict(state, strict=False),
                lambda: m.state_dict(),
                lambda: m._register_state_dict_hook(named),
            ]
        ),
    ]


@case
def pickles(lib: Any) -> Any:
    m = net(lib)
    m[0].register_forward_hook(_double)
    other = pickle.loads(pickle.dumps(m))
    out = [repr(other), bool((other(lib.ones(3, 2)) == m(lib.ones(3, 2))).all()), list(other.state_dict())]
    old = lib.nn.Linear(2, 1)
    state = old.__getstate__()
    # Saved before there were such hooks.
    for name in (
        "_forward_pre_hooks",
        "_state_dict_hooks",
        "_state_dict_pre_hooks",
        "_load_state_dict_pre_hooks",
        "_load_state_dict_post_hooks",
        "_non_persistent_buffers_set",
        "_is_full_backward_hook",
        "_backward_pre_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_hooks_always_called",
        "_forward_pre_hooks_with_kwargs",
        "_forward_hook_flags",
        "_hooked",
    ):
        state.pop(name, None)
    plain = old(lib.ones(1, 2))
    revived = lib.nn.Linear.__new__(lib.nn.Linear)
    revived.__setstate__(state)
    out += [repr(revived), [*revived.state_dict()], revived(lib.ones(1, 2)).shape]
    revived.register_forward_hook(_double)
    revived.register_full_backward_hook(lambda *a: None)
    out.append(bool((revived(lib.ones(1, 2)) == 2 * plain).all()))
    copied = copy.deepcopy(m)
    return [*out, copied[0].weight is m[0].weight, bool((copied[0].weight == m[0].weight).all())]


def _double(m: Any, args: Any, result: Any) -> Any:
    return result * 2


# -- containers -------------------------------------------------------------------------------------------------------
@case
def sequential(lib: Any) -> Any:
    nn = lib.nn
    s = nn.Sequential(collections.OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    t = nn.Sequential(nn.Sigmoid())

    def grow() -> Any:
        u = nn.Sequential(nn.ReLU())
        u += nn.Sequential(nn.Tanh())
        u *= 2
        return repr(u)

    return tried(
        [
            lambda: repr(s + t),
            grow,
            lambda: repr(t * 2),
            lambda: repr(2 * t),
            lambda: repr(s[1:]),
            lambda: repr(s[-1]),
            lambda: s[2],
            lambda: s["a"],
            lambda: s + [1],
            lambda: s * 0,
            lambda: s * "x",
            lambda: s.append(3),
            lambda: repr(s.append(nn.Softmax(0))),
            lambda: nn.Sequential(collections.OrderedDict(a=nn.ReLU(), b=nn.Tanh())).insert(1, nn.ELU()),
            lambda: s.insert(9, nn.ELU()),
            lambda: s.insert(0, 3),
            lambda: repr((t * 3).insert(-1, nn.CELU())),
            lambda: repr((t * 3).insert(1, nn.CELU())),
            lambda: repr(s.extend(t)),
            lambda: s.extend([4]),
            lambda: repr(s.pop(0)),
            lambda: repr(s.pop(slice(0, 2))),
            lambda: s.pop(7),
            lambda: len(s),
            lambda: repr(s),
            lambda: s.__delitem__(0),
            lambda: repr(s),
            lambda: s.__delitem__(slice(0, 1)),
            lambda: repr(s),
            lambda: s.__setitem__(0, nn.GELU()),
            lambda: s.__setitem__(9, nn.GELU()),
            lambda: s.__setitem__(0, 3),
            lambda: repr(s),
            lambda: [repr(x) for x in s],
            lambda: nn.Sequential([nn.ReLU()]),
            lambda: nn.Sequential(3),
            lambda: nn.Sequential({"a": nn.ReLU()}),
            lambda: s.extend(3),
            lambda: s.__iadd__([nn.ReLU()]),
            lambda: nn.ReLU() in s,
            lambda: list(reversed(list(s)))[0],
            lambda: [*dir(s)][:3] == [*dir(s)][:3],
        ]
    )


@case
def module_list(lib: Any) -> Any:
    nn = lib.nn
    m = nn.ModuleList([nn.ReLU(), nn.Tanh()])

    def added() -> Any:
        k = nn.ModuleList([nn.ReLU()])
        k += [nn.Tanh()]
        return repr(k)

    return tried(
        [
            lambda: repr(m + [nn.ELU()]),
            added,
            lambda: repr(m[0:1]),
            lambda: m[5],
            lambda: m["0"],
            lambda: repr(m[-1]),
            lambda: m.extend(3),
            lambda: m.append(3),
            lambda: m.insert(0, nn.GELU()),
            lambda: repr(m),
            lambda: nn.ModuleList([nn.ReLU()]).insert(-1, nn.ELU()),
            lambda: m.insert(len(m), nn.CELU()),
            lambda: repr(m),
            lambda: repr(m.pop(0)),
            lambda: repr(m.pop(-1)),
            lambda: m.__delitem__(slice(0, 1)),
            lambda: repr(m),
            lambda: len(m),
            lambda: m(1),
            lambda: m.__setitem__(0, nn.SELU()),
            lambda: m.__setitem__(4, nn.SELU()),
            lambda: repr(m),
            lambda: nn.ModuleList(3),
            lambda: nn.ModuleList([1]),
            lambda: m.insert(0, 3),
            lambda: list(m.state_dict()),
            lambda: m.extend([3]),
            lambda: "0" in dir(m),
            lambda: m + 3,
        ]
    )


@case
def module_dict(lib: Any) -> Any:
    nn = lib.nn
    m = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
    return tried(
        [
            lambda: repr(m),
            lambda: [*m],
            lambda: [*m.keys()],
            lambda: "a" in m,
            lambda: len(m),
            lambda: m["c"],
            lambda: m.__setitem__("c", 3),
            lambda: m.__setitem__("c", nn.ELU()),
            lambda: m.update({"z": nn.GELU(), "y": nn.ELU()}),
            lambda: [*m],
            lambda: m.update(3),
            lambda: m.update([("k", nn.ELU())]),
            lambda: m.update([("k",)]),
            lambda: m.update([3]),
            lambda: m.update(nn.ModuleDict({"w": nn.ELU()})),
            lambda: [*m.items()],
            lambda: repr(m.pop("a")),
            lambda: m.pop("a"),
            lambda: m.__delitem__("b"),
            lambda: m.__delitem__("b"),
            lambda: repr(m),
            lambda: m.clear(),
            lambda: repr(m),
            lambda: m(1),
            lambda: nn.ModuleDict([("a", 3)]),
            lambda: m.update({"a.b": nn.ELU()}),
            lambda: m.update({1: nn.ELU()}),
            lambda: m.__setitem__("pop", nn.ELU()),
            lambda: [*m.values()],
        ]
    )


@case
def parameter_list(lib: Any) -> Any:
    nn = lib.nn
    m = nn.ParameterList([lib.ones(1), nn.Parameter(lib.zeros(2))])
    return tried(
        [
            lambda: [type(x).__name__ for x in m],
            lambda: m[0],
            lambda: m[-1],
            lambda: m[7],
            lambda: m["a"],
            lambda: len(m),
            lambda: repr(m.append(lib.ones(3))),
            lambda: repr(m.extend([3, "x"])),
            lambda: m.extend(3),
            lambda: m.extend(lib.ones(2)),
            lambda: repr(m[1:3]),
            lambda: m.__setitem__(0, lib.full((2,), 4.0)),
            lambda: m[0],
            lambda: m.__setitem__(9, 3),
            lambda: [*m.state_dict()],
            lambda: m(1),
            lambda: repr(nn.ParameterList(m)),
            lambda: nn.ParameterList(3),
            lambda: m.pop(0),
            lambda: m.__iadd__([lib.ones(1)]) is m,
            lambda: len(m),
            lambda: m[0:2:1],
            lambda: [*m.parameters()],
            lambda: "0" in dir(m),
            lambda: m.__delitem__(0),
            lambda: m.insert(0, lib.ones(1)),
            lambda: m + [lib.ones(1)],
        ]
    )


@case
def parameter_dict(lib: Any) -> Any:
    nn = lib.nn
    m = nn.ParameterDict({"b": lib.ones(1), "a": nn.Parameter(lib.zeros(2))})
    return tried(
        [
            lambda: [*m],
            lambda: [type(x).__name__ for x in m.values()],
            lambda: m["a"],
            lambda: m["q"],
            lambda: m[3],
            lambda: m.update({"z": lib.ones(1), "y": 3}),
            lambda: [*m],
            lambda: m.update(3),
            lambda: m.update([("k", lib.ones(1))]),
            lambda: m.update([3]),
            lambda: m.update([(1, 2, 3)]),
            lambda: repr(m),
            lambda: m.setdefault("b", 3),
            lambda: m.setdefault("new", lib.ones(1)),
            lambda: m.setdefault("none"),
            lambda: m.get("q"),
            lambda: m.get("q", 4),
            lambda: m.get("a"),
            lambda: [*reversed(m)],
            lambda: m.pop("b"),
            lambda: m.pop("b"),
            lambda: m.popitem(),
            lambda: repr(m.copy()),
            lambda: repr(m.fromkeys(["u", "v"], lib.ones(1))),
            lambda: repr(m | {"x": lib.ones(1)}),
            lambda: repr(m | nn.ParameterDict({"x": lib.ones(1)})),
            lambda: repr({"x": lib.ones(1)} | m),
            lambda: m.__ior__({"h": 1}) is m,
            lambda: [*m.state_dict()],
            lambda: m(1),
            lambda: "a" in m,
            lambda: len(m),
            lambda: m.__delitem__("zz"),
            lambda: m.clear(),
            lambda: repr(m),
            lambda: [*m.keys()],
            lambda: [*m.items()],
            lambda: m.popitem(),
            lambda: nn.ParameterDict(3),
        ]
    )


# -- calls ------------------------------------------------------------------------------------------------------------
@case
def calls_by_private_names(lib: Any) -> Any:
    m = net(lib).eval()
    x = lib.ones(1, 2)
    hook = m.register_full_backward_hook(lambda *a: None)
    full, older = m._get_backward_hooks()
    out = [len(full), len(older), len(m._get_backward_pre_hooks())]
    hook.remove()
    return [*out, bool((m._call_impl(x) == m(x)).all()), bool((m._wrapped_call_impl(x) == m(x)).all())]


@case
def prefixes(lib: Any) -> Any:
    import importlib

    utils = importlib.import_module(lib.__name__ + ".nn.modules.utils")
    state = lib.nn.Sequential(lib.nn.Sequential(lib.nn.Linear(1, 1))).state_dict(prefix="module.")
    before = [*state]
    utils.consume_prefix_in_state_dict_if_present(state, "module.")
    return [
        before,
        [*state],
        [*state._metadata],
        utils._pair(3),
        utils._ntuple(5)(1),
        utils._reverse_repeat_tuple((1, 2), 2),
        outcome(lambda: utils._list_with_default([None, 2], [7, 8])),
        outcome(lambda: utils._list_with_default([1], [2])),
    ]


@case
def factory_options(lib: Any) -> Any:
    make = lib.nn.factory_kwargs
    return tried(
        [
            lambda: make(None),
            lambda: make({}),
            lambda: make({"device": "cpu"}),
            lambda: make({"x": 1}),
            lambda: sorted(make({"dtype": 1, "factory_kwargs": {"device": 2}}).items()),
            lambda: make({"dtype": 1, "factory_kwargs": {"dtype": 2}}),
        ]
    )


@case
def saved_files(lib: Any) -> Any:
    """Parameters and buffers go through pickle with what they are."""
    p = lib.nn.Parameter(lib.ones(2), requires_grad=False)
    q = pickle.loads(pickle.dumps(p))
    buffer = lib.nn.Buffer(lib.ones(1), persistent=False)
    stream = io.BytesIO()
    pickle.dump(buffer, stream)
    return [type(q).__name__, q.requires_grad, q, isinstance(buffer, lib.nn.Buffer), stream.tell() > 0]


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name: str) -> None:
    fn = CASES[name]
    actual, expected = outcome(lambda: fn(subject)), outcome(lambda: fn(_oracle.load()))
    assert same_words(actual) == same_words(expected)


@pytest.mark.parametrize("name", CASES)
def test_cases_run_without_an_oracle(name: str) -> None:
    result, _ = outcome(lambda: CASES[name](subject))
    assert not isinstance(result, str) or "Error" not in result, result


@mindtorch_only
def test_swapping_knows_all_fields() -> None:
    """A field that `swap_tensors` does not know would stay behind."""
    from mindtorch_v2._tensor_base import TensorBase
    from mindtorch_v2.utils._swap import FIELDS

    native = getattr(TensorBase, "__mypyc_attrs__", None) or TensorBase.__annotations__
    assert {name for name in native if name != "__dict__"} == {*FIELDS, "_accumulator"}
