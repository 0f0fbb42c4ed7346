"""`torch.library.Library`: definitions and kernels that belong together, and go together.

Invariant: everything a library registered is taken back when it is destroyed; an operator is defined once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .._device import as_device
from .._dispatch.binding import bind
from .._dispatch.keys import AUTOGRAD, DEVICE_BITS
from .._dispatch.op import FnKernel, GivenDerivative, Kernel, Op, Overrider
from .._dispatch.schema import Arg, Schema, parse
from .._dtype import dtype_or_none
from .._operators import CUSTOM, TAGS, Definitions, OpOverload, OpOverloadPacket, _rows, definitions
from .._ops import table
from .._ops.table import Row
from .._tags import Tag
from .._tensor_base import TensorBase
from .._warn import place, warn
from . import syntax

_RESERVED = frozenset({"prim"})
# Where rows are declared stands for the registration of every operator of the package.
_BUILT_IN = f"{table.__file__}:{table.op.__code__.co_firstlineno}"
# Where a namespace was defined; the package itself defined `aten`.
_SINGLE: dict[str, str] = {"aten": _BUILT_IN}
# Where an operator was defined, by its qualified name.
_PLACES: dict[str, str] = {}
# Dispatch keys that name a device, and its name here.
_DEVICE_KEYS = {
    "CPU": "cpu",
    "Meta": "meta",
    "PrivateUse1": "npu",
    "NPU": "npu",
    "CUDA": "cuda",
    "XPU": "xpu",
    "MPS": "mps",
    "XLA": "xla",
    "HPU": "hpu",
}


def split(qualname: str) -> tuple[str, str]:
    """`"mylib::foo"` in two."""
    parts = qualname.split("::")
    if len(parts) != 2 or not all(parts):
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname '
            "passed to the torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    return parts[0], parts[1]


# -- operators ------------------------------------------------------------------------------------------------------
def _typed(schema: Schema) -> Schema:
    """Defaults that are dtypes or devices are written as words; kernels get the objects."""
    args = [
        a
        if a.kind not in ("ScalarType", "Device") or not isinstance(a.default, str)
        else Arg(
            a.name,
            a.kind,
            a.optional,
            a.is_list,
            a.size,
            a.alias,
            a.mutates,
            a.kwonly,
            True,
            as_device(a.default) if a.kind == "Device" else dtype_or_none(_dtype_named(a.default)),
        )
        for a in schema.args
    ]
    return Schema(schema.text, schema.name, schema.overload, args, schema.returns)


def _dtype_named(name: str) -> Any:
    import mindtorch_v2

    return getattr(mindtorch_v2, name)


def tags_of(tags: Any) -> list[Any]:
    """One tag or several, as a list."""
    given = [tags] if isinstance(tags, Tag) else list(tags)
    for tag in given:
        if not isinstance(tag, Tag):
            raise TypeError(f"define(): argument 'tags' must be torch.Tag or a sequence of them, got {tag!r}")
    return given


def new_op(namespace: str, schema: str, where: str | None = None, tags: Any = ()) -> Op:
    """Define an operator; its row exists only to carry what every device falls back to. `where`: the file and line
    that a second definition is told of."""
    marks = tags_of(tags)
    syntax.check(schema)
    schema = " ".join(schema.split())
    name = schema.split("(", 1)[0].strip()
    if "::" in name:
        given, _, name = name.partition("::")
        if given != namespace:
            raise RuntimeError(
                f"Explicitly provided namespace ({given}) in schema string does not match namespace of enclosing "
                f"TORCH_LIBRARY block ({namespace}).  Move this definition to the (unique) TORCH_LIBRARY block "
                "corresponding to this namespace (and consider deleting the namespace from your schema string.)  "
                f"(Error occurred while processing TORCH_LIBRARY block at {where or place()})"
            )
        schema = schema.partition("::")[2]
    known = definitions(namespace)
    where = where or place()
    qualname = f"{namespace}::{name}"
    base, _, overload = name.partition(".")
    if name in known or (namespace == "aten" and (overload or "default") in _rows(base)):
        first = _PLACES[qualname] if name in known else _BUILT_IN
        raise RuntimeError(
            f"Tried to register an operator ({namespace}::{schema}) with the same name and overload name multiple "
            "times. Each overload's schema should only be registered with a single call to def(). Duplicate "
            f"registration: registered at {where}. Original registration: registered at {first}"
        )
    _PLACES[qualname] = where
    op = Op(qualname, schema)
    op._schema = _typed(parse(schema))
    op.mutates = op.schema.is_mutable
    op.row = Row("custom", op, False, False)
    op.derivative = UNRECORDED
    known[name] = op
    TAGS[qualname] = marks
    return op


def find(name: Any) -> Op:
    """The operator behind a qualified name, an overload or a `CustomOpDef`."""
    overload = getattr(name, "_opoverload", name)
    if isinstance(overload, OpOverloadPacket) and len(overload.overloads()) == 1:
        overload = getattr(overload, overload.overloads()[0])
    if isinstance(overload, OpOverload):
        return overload._op
    if not isinstance(name, str):
        raise ValueError(f"expected the name of an operator, an OpOverload or a CustomOpDef, got {type(name)}")
    namespace, base = split(name)
    found = CUSTOM.get(namespace, Definitions()).get(base.removesuffix(".default"))
    if found is None and namespace == "aten":
        short, _, overload_name = base.partition(".")
        rows = _rows(short)
        found = rows.get(overload_name or "default") or (next(iter(rows.values()), None) if not overload_name else None)
    if found is None:
        raise RuntimeError(f"operator {name} does not exist")
    return found


def kernel_of(op: Op, fn: Callable[..., Any]) -> FnKernel:
    """A function that takes arguments as a user would give them: lists as lists, keyword-only ones by name."""
    args = op.schema.args
    positional = sum(not a.kwonly for a in args)
    lists = [i for i, a in enumerate(args) if a.is_list]
    if positional == len(args) and not lists:
        return FnKernel(_checked(op, fn))
    names = [a.name for a in args[positional:]]

    def adapted(*given: Any) -> Any:
        values = [list(v) if i in lists and isinstance(v, tuple) else v for i, v in enumerate(given)]
        return fn(*values[:positional], **dict(zip(names, values[positional:])))

    return FnKernel(_checked(op, adapted))


def _checked(op: Op, fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, whose results must be of the types that the schema names."""
    returns = op.schema.returns

    def checked(*args: Any) -> Any:
        result = fn(*args)
        if len(returns) == 1:
            return result if isinstance(result, TensorBase) and returns[0].is_tensor else _result(returns[0], result)
        if not returns:
            if result is not None:
                raise RuntimeError(
                    f"Expected PythonKernelHolder for {op.qualified()} to return None but it returned something else "
                    "instead."
                )
            return None
        if not isinstance(result, (tuple, list)):
            raise TypeError(f"Object of type '{type(result).__name__}' is not an instance of 'sequence'")
        for a, value in zip(returns, result):
            _result(a, value)
        return result

    return checked


_NO_NUMBER = (str, bytes, list, tuple, dict, set, type(None))


def _result(a: Arg, value: Any) -> Any:
    """A result that is no plain tensor; what is certainly of another type is refused."""
    if a.is_tensor:
        if value is None or isinstance(value, TensorBase):
            return value
        raise RuntimeError(f"Unable to cast {value} to Tensor")
    if value is None and a.optional:
        return None
    wrong = False
    if a.is_list:
        wrong = not isinstance(value, (list, tuple)) or (
            a.is_tensor_list and not all(isinstance(v, TensorBase) or (v is None and a.holes) for v in value)
        )
    elif a.kind == "int":
        wrong = isinstance(value, (*_NO_NUMBER, float, complex, TensorBase))
        wrong = wrong or (isinstance(value, int) and not -(2**63) <= value < 2**63)
    elif a.kind in ("float", "Scalar", "number", "bool"):
        wrong = isinstance(value, _NO_NUMBER)
    elif a.kind == "str":
        wrong = not isinstance(value, str)
    if wrong:
        raise RuntimeError(f"Unable to cast Python instance of type {type(value)} to {a.type_text()}")
    return value


def _unrecorded(op: Op, args: tuple[Any, ...], keys: int) -> Any:
    """An operator that nobody gave a derivative: what its kernel is made of is recorded, if anything is."""
    below = keys & ~int(AUTOGRAD)
    return op.below(below, args).run(op, args, below)


UNRECORDED = GivenDerivative(Overrider(_unrecorded))


def fallthrough_kernel() -> Any:
    """Stands for no kernel at a key; there is no key here where one could be left out."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


# -- libraries ------------------------------------------------------------------------------------------------------
class Library:
    """Defines operators in a namespace (`DEF`, `FRAGMENT`) or gives kernels to existing ones (`IMPL`)."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if not isinstance(ns, str):
            raise TypeError(f"Library(): argument 'ns' must be str, not {type(ns).__name__}")
        if ns in _RESERVED and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        self._where = place()
        if kind == "DEF":
            if ns in _SINGLE:
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your "
                    "definitions in a single TORCH_LIBRARY block.  If you were trying to specify implementations, "
                    "consider using TORCH_LIBRARY_IMPL (which can be duplicated).  If you really intended to define "
                    "operators for a single namespace in a distributed way, you can use TORCH_LIBRARY_FRAGMENT to "
                    "explicitly indicate this.  Previous registration of TORCH_LIBRARY was registered at "
                    f"{_SINGLE[ns]}; latest registration was registered at "
                    f"{self._where}"
                )
            _SINGLE[ns] = self._where
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._defined: list[str] = []
        self._undo: list[Callable[[], None]] = []
        # What a library did ends with it.
        self._end = weakref.finalize(self, _take_back, ns, kind == "DEF", self._undo, self._defined)
        self._end.atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Add an operator with this schema; gives its name without the overload's."""
        if not isinstance(schema, str):
            raise TypeError(f"Library.define(): argument 'schema' must be str, not {type(schema).__name__}")
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if self.kind == "IMPL":
            name = schema.partition("(")[0]
            raise RuntimeError(
                f'def("{name}"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block.  All def()s should be '
                "placed in the (unique) TORCH_LIBRARY block for their namespace."
            )
        op = new_op(self.ns, schema, self._where, tags)
        name = op.name.partition("::")[2]
        self._defined.append(name)
        return name.partition(".")[0]

    def impl(
        self, op_name: Any, fn: Any, dispatch_key: str = "", *, with_keyset: bool = False, allow_override: bool = False
    ) -> None:
        """Serve an operator with `fn` for a dispatch key: a device's, `Autograd`, or one of the composite ones.

        A second kernel for the same key takes the place of the first, as in PyTorch, whether `allow_override` is
        given or not.
        """
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if fn is fallthrough_kernel:
            raise NotImplementedError(
                "Library.impl(): fallthrough_kernel is not supported: a key without a kernel is passed over anyway"
            )
        name = op_name if isinstance(op_name, str) else find(op_name).name.partition("::")[2]
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        check_key(key)
        op = find(name if "::" in name else f"{self.ns}::{name}")
        _warn_of_override(op, key, self._where)
        self._undo.append(install(op, key, _with_keys(key, fn) if with_keyset else fn))
        if (op.name, key) not in _SERVED:
            _SERVED.add((op.name, key))
            self._undo.append(lambda: _SERVED.discard((op.name, key)))

    def _register_torch_dispatch_rule(self, op_name: str, torch_dispatch_class: Any, fn: Callable[..., Any]) -> None:
        """Serve a subclass or a mode below autograd, in the place of its own handler, until this ends."""
        from .._torch_dispatch import RULES

        key = (find(f"{self.ns}::{op_name}").name, torch_dispatch_class)
        RULES[key] = fn

        def undo() -> None:
            RULES.pop(key, None)

        self._undo.append(undo)

    def _destroy(self) -> None:
        """Take everything back."""
        self._end()


def _with_keys(key: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose first argument is the set of keys of the call: those of its tensors, and the kernel's own."""
    from .._dispatch_keys import DispatchKeySet, _dispatch_keys

    own = "AutogradFunctionality" if key == "Autograd" else key

    def given(*args: Any, **kwargs: Any) -> Any:
        keys = DispatchKeySet(own)
        for value in (*args, *kwargs.values()):
            for t in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(t, TensorBase):
                    keys = keys | _dispatch_keys(t)
        return fn(keys, *args, **kwargs)

    return given


class _SafeKernelFunction:
    """A kernel as it was registered for a key when it was asked for; it does not outlive its registration."""

    def __init__(self, op: Op, bit: int, kernel: Kernel) -> None:
        self._op = op
        self._bit = bit
        self._kernel = kernel

    def __repr__(self) -> str:
        return f"SafeKernelFunction(debug='registered at {_PLACES.get(self._op.name, _BUILT_IN)}')"

    @property
    def op_handle(self) -> Op:
        return self._op

    def call_boxed(self, keyset: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel with these arguments."""
        if self._op.kernels.get(self._bit) is not self._kernel:
            raise RuntimeError(
                f"The kernel of {self._op.qualified()} has been invalidated: what registered it was taken back"
            )
        bound = bind(self._op, args, kwargs, False)
        if bound is None:
            raise RuntimeError(f"{self._op.qualified()}(): the arguments do not fit {self._op.schema_text}")
        return self._kernel.run(self._op, bound, self._bit)


def get_kernel(op: Any, dispatch_key: Any) -> _SafeKernelFunction:
    """The kernel that an operator has for a device's key now; others that take its place later do not change it."""
    if not isinstance(op, str) and not isinstance(getattr(op, "_opoverload", op), OpOverload):
        raise ValueError(f"get_kernel({op}): got unexpected type for op: {type(op)}")
    if isinstance(op, str) and "::" not in op:
        raise RuntimeError(f"operator {op} does not exist")
    key = dispatch_key if isinstance(dispatch_key, str) else dispatch_key.name
    from .._dispatch_keys import DispatchKey

    if key not in DispatchKey.__members__ and key not in _DEVICE_KEYS:
        raise ValueError(f"Invalid dispatch key: {key}")
    found = find(op)
    bit = DEVICE_BITS.get(_DEVICE_KEYS.get(key, ""), 0)
    kernel = found.kernels.get(bit)
    if kernel is None:
        raise RuntimeError(f"no kernel for {key} for {found.qualified()}")
    return _SafeKernelFunction(found, bit, kernel)


def _take_back(ns: str, single: bool, done: list[Callable[[], None]], defined: list[str]) -> None:
    for undo in reversed(done):
        undo()
    done.clear()
    for name in defined:
        definitions(ns).remove(name)
        TAGS.pop(f"{ns}::{name}", None)
    defined.clear()
    if single:
        _SINGLE.pop(ns, None)


# Operators and dispatch keys that a library gave a kernel; whether an override was warned of.
_SERVED: set[tuple[str, str]] = set()
_WARNED: list[str] = []


def _warn_of_override(op: Op, key: str, where: str) -> None:
    """PyTorch warns of the first kernel that takes another's place, and of no later one."""
    if _WARNED:
        return
    if (op.name, key) in _SERVED:
        previous = "no debug info"
    elif key in _DEVICE_KEYS and op.kernels.get(DEVICE_BITS.get(_DEVICE_KEYS[key], 0)) is not None:
        previous = f"registered at {_BUILT_IN}"
    else:
        return
    custom = "::" in op.name
    _WARNED.append(op.name)
    warn(
        "Warning only once for all operators,  other operators may also be overridden.\n  Overriding a previously "
        "registered kernel for the same operator and the same dispatch key\n  operator: "
        f"{op.name.partition('::')[0] if custom else 'aten'}::{op.schema_text}\n    registered at "
        f"{_PLACES.get(op.name, _BUILT_IN)}\n  dispatch key: {key}\n  previous kernel: {previous}\n       new kernel: "
        f"registered at {where}"
    )


def check_key(key: str) -> None:
    """Whether there is such a dispatch key."""
    if (
        key not in ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "Autograd")
        and key.removeprefix("Autograd") not in _DEVICE_KEYS
    ):
        raise RuntimeError(f"could not parse dispatch key: {key}")


def install(op: Op, key: str, fn: Any) -> Callable[[], None]:
    """Register for a dispatch key; gives a function that takes it back."""
    check_key(key)
    row: Row = op.row
    if key == "CompositeImplicitAutograd":
        was = op.composite
        op.composite = kernel_of(op, fn)
        return _after(op, lambda: setattr(op, "composite", was))
    if key == "CompositeExplicitAutograd":
        before = row.fallback
        row.fallback = kernel_of(op, fn)
        return _after(op, lambda: setattr(row, "fallback", before))
    if key == "Autograd" or (key.startswith("Autograd") and key[8:] in _DEVICE_KEYS):
        return _autograd(op, row, kernel_of(op, fn))
    return install_device(op, _DEVICE_KEYS[key], kernel_of(op, fn))


def install_device(op: Op, kind: str, kernel: Kernel) -> Callable[[], None]:
    """A kernel for a device type. One that nobody registered has no tensors, so nothing is to be done for it."""
    bit = DEVICE_BITS.get(kind)
    if bit is None:
        return lambda: None
    was = op.kernels.get(bit)
    op.kernels[bit] = kernel

    def back() -> None:
        if was is None:
            op.kernels.pop(bit, None)
        else:
            op.kernels[bit] = was

    return _after(op, back)


def _autograd(op: Op, row: Row, kernel: FnKernel) -> Callable[[], None]:
    was, fallback = op.derivative, row.fallback
    op.derivative = GivenDerivative(kernel)
    if fallback is None and op.name.count("::"):
        # PyTorch asks the Autograd kernel also where nothing requires grad.
        row.fallback = kernel

    def back() -> None:
        op.derivative = was
        row.fallback = fallback

    return _after(op, back)


def _after(op: Op, back: Callable[[], None]) -> Callable[[], None]:
    op.forget()

    def undo() -> None:
        back()
        op.forget()

    return undo
