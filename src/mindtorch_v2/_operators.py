"""`torch.ops`: operators by namespace, name and overload, as objects that can be called, compared and asked.

Invariant: an operator has one `OpOverload` per overload name, so that handlers may compare with `is`; calling one goes
through the dispatcher from the top.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from . import _native
from ._api import alias_forms, out_forms
from ._api import overloads as _names
from ._api.bound import MOST_ARGUMENTS, by_schema, has_options, own_defaults
from ._dispatch import registry
from ._dispatch.binding import Unpack, bind
from ._dispatch.op import Op
from ._dispatch.schema import Arg, Schema, parse
from ._dispatch.state import STATE
from ._operator_arguments import cast, cast_all, takes_numbers
from ._overrides import ask, given_values, has_torch_function
from ._tensor import Tensor
from ._tensor_base import TensorBase


class Changes:
    """How often operators were defined or taken back."""

    count = 0


class Definitions(dict[str, Op]):
    """The operators of a namespace that users defined, by name with overload."""

    def __setitem__(self, name: str, op: Op) -> None:
        Changes.count += 1
        super().__setitem__(name, op)

    def remove(self, name: str) -> None:
        Changes.count += 1
        self.pop(name, None)


CUSTOM: dict[str, Definitions] = {}


def definitions(namespace: str) -> Definitions:
    """Those of one namespace, to add to."""
    return CUSTOM.setdefault(namespace, Definitions())


# The tags they were defined with, by qualified name with overload.
TAGS: dict[str, list[Any]] = {}


# -- schemas as users see them --------------------------------------------------------------------------------------
class AliasInfo:
    """What a schema says about the memory of an argument or result."""

    def __init__(self, arg: Arg) -> None:
        self.is_write = arg.mutates
        # `a -> *`: what was memory `a` may be part of anything afterwards.
        before, _, after = arg.alias.partition("->")
        # PyTorch notes the memory of a list's elements with the elements.
        self.elements = {before.strip()} if arg.is_list else set()
        self.before_set = set() if arg.is_list else {before.strip()}
        self.after_set = set() if arg.is_list else {(after or before).strip()}


_Text = str  # the class below has a method of that name


class SchemaType(str):
    """A type of a schema in Python's words, which also knows those of schemas."""

    __slots__ = ("_kind", "_written")

    _written: _Text
    _kind: _Text

    def str(self) -> _Text:
        """As schemas write it."""
        return self._written

    def kind(self) -> _Text:
        """PyTorch's name of its class."""
        return self._kind

    @property
    def annotation_str(self) -> _Text:
        return "".join(self)


class Argument:
    """One argument or result of a schema, with the attributes of PyTorch's."""

    def __init__(self, arg: Arg, shown: bool) -> None:
        self.name = arg.name if shown else ""
        self.default_value = _default(arg)
        self.kwarg_only = arg.kwonly
        self.alias_info = AliasInfo(arg) if arg.alias else None
        self.is_write = arg.mutates
        self.is_out = arg.mutates and arg.kwonly
        self.type = _schema_type(arg, False)
        self.real_type = _schema_type(arg, True)
        self.N = arg.size or None if arg.is_list and not arg.optional else None
        self._has_default = arg.has_default

    def has_default_value(self) -> bool:
        return self._has_default


def _default(arg: Arg) -> Any:
    """One number stands for a list of as many as the type says."""
    if not isinstance(arg.default, tuple):
        return arg.default
    return list(arg.default) * (arg.size if len(arg.default) == 1 and arg.size else 1)


# What PyTorch's schemas call types that are numbers for its scripts.
_AS_INT = frozenset(("ScalarType", "Layout", "MemoryFormat"))
_CLASSES = {
    "Device": "DeviceObjType",
    "Generator": "GeneratorType",
    "Layout": "LayoutType",
    "MemoryFormat": "MemoryFormatType",
    "Scalar": "NumberType",
    "ScalarType": "ScalarTypeType",
    "Tensor": "TensorType",
    "bool": "BoolType",
    "float": "FloatType",
    "int": "IntType",
    "str": "StringType",
}


def _schema_type(arg: Arg, real: bool) -> SchemaType:
    """The type of an argument as scripts know it, or as the schema has it."""
    inner = "int" if arg.kind in _AS_INT and not real else arg.kind
    written = "SymInt" if real and arg.symbolic and inner == "int" else inner
    words = "number" if inner == "Scalar" else inner
    kind = _CLASSES.get(inner, inner)
    if arg.is_list:
        words, written = (
            (f"List[Optional[{words}]]", f"{written}?[]") if arg.holes else (f"List[{words}]", f"{written}[]")
        )
        kind = "ListType"
    if arg.optional:
        words, written, kind = f"Optional[{words}]", written + "?", "OptionalType"
    made = SchemaType(words)
    made._written, made._kind = written, kind
    return made


class FunctionSchema:
    """A schema with the attributes of PyTorch's `torch._C.FunctionSchema`."""

    def __init__(
        self, qualified: str, overload: str, schema: Schema, is_vararg: bool = False, is_varret: bool = False
    ) -> None:
        if not isinstance(schema, Schema):
            raise TypeError("torch._C.FunctionSchema is made by torch._C.parse_schema, not from its parts")
        self.name = qualified
        self.overload_name = "" if overload == "default" else overload
        self.arguments = [Argument(a, True) for a in schema.args]
        self.returns = [Argument(a, a.name != "result") for a in schema.returns]
        self.is_mutable = schema.is_mutable
        self._is_vararg, self._is_varret = is_vararg, is_varret
        body = schema.text[schema.text.index("(") :]
        if is_varret:
            body = body.removesuffix("()") + "..."
        if is_vararg:
            head, _, tail = body.rpartition(") -> ")
            body = f"{head}{', ' if self.arguments else ''}...) -> {tail}"
        self._text = qualified + (f".{self.overload_name}" if self.overload_name else "") + body

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def is_backward_compatible_with(self, old_schema: FunctionSchema) -> bool:
        """Whether calls written for an older schema work with this one."""
        from . import _schema_compat

        return _schema_compat.backward(self, old_schema)

    def check_forward_compatible_with(self, old_schema: FunctionSchema) -> tuple[bool, str]:
        """Whether calls written for this schema work with an older one, and why not."""
        from . import _schema_compat

        return _schema_compat.forward(self, old_schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


# -- operators ------------------------------------------------------------------------------------------------------
# Types of arguments that have no handler.
_PLAIN = frozenset((Tensor, int, float, bool, str, type(None)))
# Operators whose kernels take positions; by `t[key]` they get them, masks turned into positions, from `_indexing`.
_INDEXED = frozenset(("index", "index_put", "index_put_", "_unsafe_index", "_unsafe_index_put", "_index_put_impl_"))


def _with_positions(bound: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments as the kernels take them."""
    from ._indexing import positions

    values = bound[2] if len(bound) > 2 else None
    return (bound[0], positions(bound[0], list(bound[1]), values), *bound[2:])


def _overridden(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether handlers are to be asked, who see the operator itself."""
    if STATE.active == 0 and not kwargs and _PLAIN.issuperset(map(type, args)):
        return False
    return has_torch_function(given_values(args, kwargs))


def _run(op: Op, bound: tuple[Any, ...]) -> Any:
    try:
        result = op.call(bound if op.title() not in _INDEXED else _with_positions(bound))
        if type(result) is not tuple:
            return result
        return list(result) if _gives_list(op) else _wanted(op, bound, result)
    except Exception as error:
        from ._dispatch.unforeseen import told_again

        told = told_again(error, op.qualified(), [a.name for a in op.schema.args], bound)
        if told is None:
            raise
    raise told


def _wanted(op: Op, bound: tuple[Any, ...], result: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results with None in the place of those that the call did not ask for."""
    last = op.schema.args[-1]
    if last.name != "output_mask" or len(bound) != len(op.schema.args):
        return result
    return tuple([r if wanted else None for r, wanted in zip(result, bound[-1])])


def _gives_list(op: Op) -> bool:
    """Whether its result is a list of tensors, however many."""
    return len(op.schema.returns) == 1 and op.schema.returns[0].is_list


def _quick(overload: OpOverload, fn: Any, asking: Any) -> Any:
    """What calls come to: natively where the types of all arguments are the schema's, else `fn`, or `asking` where
    there may be handlers."""
    op = overload._op
    usual = op.title() not in _INDEXED and not has_options(op) and not _gives_list(op)
    plain = usual and len(op.schema.args) <= MOST_ARGUMENTS
    quick: Any = _native.Overridable(
        fn, asking, 0, lambda: by_schema(op, overload._shown, overload._numbers) if plain else None
    )
    quick.__name__, quick.__arguments__ = op.qualified(), tuple([a.name for a in op.schema.args])
    return quick


class OpOverload:
    """One overload of an operator: `torch.ops.aten.add.Tensor`."""

    def __init__(self, packet: OpOverloadPacket, op: Op, overload: str) -> None:
        self._op = op
        self._overloadpacket = packet
        self._overloadname = overload
        self._opname = packet.__name__
        self.namespace = packet._namespace
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__qualname__ = self.__name__
        self.__module__ = packet.__module__

    @functools.cached_property
    def _schema(self) -> FunctionSchema:
        return FunctionSchema(self._overloadpacket._qualified_op_name, self._overloadname, self._shown)

    @functools.cached_property
    def _shown(self) -> Schema:
        """What PyTorch shows of the overload; the row that serves it may take more."""
        shown = None
        if self.namespace == "aten":
            from ._api.shown_schemas import SHOWN

            shown = SHOWN.get(self._opname if self._overloadname == "default" else self.__name__)
        return self._op.schema if shown is None else parse(shown)

    @functools.cached_property
    def _numbers(self) -> bool:
        """Whether numbers may stand for its tensors."""
        return takes_numbers(self._opname)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._quick(*args, **kwargs)

    @functools.cached_property
    def _quick(self) -> Any:
        return _quick(self, self._called, self._asking)

    def _asking(self, /, *args: Any, **kwargs: Any) -> Any:
        return ask(self, args, kwargs) if _overridden(args, kwargs) else self._called(*args, **kwargs)

    def _called(self, /, *args: Any, **kwargs: Any) -> Any:
        bound = self._fitted(args, kwargs)
        if bound is None:
            raise refusal(self, args, kwargs)
        return _run(self._op, bound)

    def _fitted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        """The arguments as the row takes them, or None where they do not fit the schema."""
        given = cast_all(self._shown, args, kwargs, self._numbers)
        if given is None:
            return None
        for i, name, default in self._own_defaults:
            if i >= len(args) and name not in kwargs:
                given[1][name] = default
        if self._op.is_out and self._row_names:
            return _bound(self._op, given[0], {self._row_names.get(k, k): v for k, v in given[1].items()})
        return _bound(self._op, *given)

    @functools.cached_property
    def _row_names(self) -> dict[str, str]:
        """What the row calls the tensors that are written, where PyTorch has other names."""
        shown = [a.name for a in self._shown.args if a.mutates]
        return {a: b.name for a, b in zip(shown, [b for b in self._op.schema.args if b.mutates]) if a != b.name}

    @functools.cached_property
    def _own_defaults(self) -> tuple[tuple[int, str, int], ...]:
        """The ints that are others when they are left out here than in a call of the public function, by place."""
        return tuple((self._op.schema.index(name), name, n) for name, n in own_defaults(self._op, self._shown).items())

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        return self._overloadpacket

    @property
    def op(self) -> OpOverloadPacket:
        return self._overloadpacket

    @property
    def is_view(self) -> bool:
        return self._op.is_view

    @property
    def _defined_in_python(self) -> bool:
        """Whether a library defined the operator."""
        return "::" in self._op.name

    @property
    def tags(self) -> list[Any]:
        """What is known of the operator beside its schema; of operators from outside what they were defined with."""
        if self._op.name in TAGS:
            return [*TAGS[self._op.name]]
        if self.namespace != "aten":
            return []
        from ._operator_tags import tags_of

        arguments = self._schema.arguments
        out = any(a.is_out for a in arguments)
        return [*tags_of(self._opname, self._overloadname, out, bool(arguments) and arguments[0].is_write)]

    def name(self) -> str:
        """`aten::add.Tensor`; the default overload has no suffix."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return self._overloadpacket._qualified_op_name + suffix

    def has_kernel_for_dispatch_key(self, k: Any) -> bool:
        """Whether a kernel was given for one key: a device's, `Autograd` or one of the composite ones."""
        from ._dispatch_keys import has_kernel

        return has_kernel(self._op, k)

    def has_kernel_for_any_dispatch_key(self, ks: Any) -> bool:
        """Whether a kernel was given for one of the keys."""
        return any(self.has_kernel_for_dispatch_key(k) for k in ks)

    def _can_decompose(self) -> bool:
        """Whether `decompose` has something to run."""
        return self._op.composite is not None

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """Run what the operator is written in terms of; NotImplemented where it is none of those."""
        composite = self._op.composite
        bound = self._fitted(args, kwargs) if composite is not None else None
        if composite is None or bound is None:
            return NotImplemented
        return composite.run(self._op, bound, 0)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __hash__(self) -> int:
        return id(self)

    def __deepcopy__(self, memo: Any = None) -> OpOverload:
        return self


class OpOverloadPacket:
    """All overloads of an operator; calling it takes the first that fits: `torch.ops.aten.add`."""

    def __init__(self, namespace: str, name: str, ops: dict[str, Op]) -> None:
        self._namespace = namespace
        self._qualified_op_name = f"{namespace}::{name}"
        self.__name__ = name
        # PyTorch's name where this package bears it.
        home = "torch" if sys.modules.get("torch") is sys.modules[__package__] else __package__
        self.__module__ = f"{home}._ops.{namespace}"
        self._ops = ops
        self._made: dict[str, OpOverload] = {}

    def __getattr__(self, key: str) -> Any:
        if key.startswith("__"):
            raise AttributeError(key)
        made = self._made.get(key)
        if made is None:
            op = self._ops.get(key)
            if op is None:
                raise AttributeError(
                    f"The underlying op of '{self._namespace}.{self.__name__}' has no overload name '{key}'"
                )
            made = self._made.setdefault(key, OpOverload(self, op, key))
            if key not in _PACKET_NAMES:
                self.__dict__[key] = made  # found without asking the next time
        return made

    def _forget(self, key: str) -> None:
        del self._made[key]
        self.__dict__.pop(key, None)

    def overloads(self) -> list[str]:
        return list(self._ops)

    @property
    def op(self) -> OpOverloadPacket:
        """The function that chooses among the overloads: here the packet itself."""
        return self

    _op = op

    @property
    def _overload_names(self) -> list[str]:
        return ["" if name == "default" else name for name in self._ops]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._quick(*args, **kwargs)

    @functools.cached_property
    def _quick(self) -> Any:
        # What fits the first overload is not asked for the others.
        first = next((name for name, op in self._ops.items() if not op.is_out), None)
        return self._asking if first is None else _quick(getattr(self, first), self._called, self._asking)

    def _asking(self, /, *args: Any, **kwargs: Any) -> Any:
        return ask(self, args, kwargs) if _overridden(args, kwargs) else self._called(*args, **kwargs)

    def _called(self, /, *args: Any, **kwargs: Any) -> Any:
        for name, op in self._ops.items():
            if not op.is_out or "out" in kwargs:
                bound = getattr(self, name)._fitted(args, kwargs)
                if bound is not None:
                    return _run(op, bound)
        if len(self._ops) == 1:
            raise refusal(getattr(self, next(iter(self._ops))), args, kwargs)
        shown = "\n".join(f"  {getattr(self, name)._schema}" for name in self._ops)
        raise RuntimeError(f"{self._qualified_op_name}(): no overload takes the given arguments; there are\n{shown}")

    def __iter__(self) -> Any:
        return iter(self._ops)

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self._ops]

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __hash__(self) -> int:
        return id(self)

    def __deepcopy__(self, memo: Any = None) -> OpOverloadPacket:
        return self


# Attributes of packets that overloads of the same name do not hide.
_PACKET_NAMES = frozenset((*dir(OpOverloadPacket), "_namespace", "_qualified_op_name", "_ops", "_made"))


class HigherOrderOperator:
    """An operator that takes functions; what it does is registered by dispatch key, and by class of mode. Those of
    `torch` are plain functions here."""

    def __init__(self, name: str, *, cacheable: bool = False, supports_training_input_mutation: bool = False) -> None:
        self._name = self.__name__ = name
        self._cacheable = cacheable
        self._supports_training_input_mutation = supports_training_input_mutation
        self._ns = self.namespace = "higher_order"
        self.py_kernels: dict[Any, Any] = {}

    def py_impl(self, k: Any) -> Any:
        """Say what is done for a key, a class of modes or a kind of transform."""

        def register(fn: Any) -> Any:
            if k in self.py_kernels:
                raise RuntimeError(f"Trying to override a python impl for {k} on operator {self._name}")
            self.py_kernels[k] = fn
            return fn

        return register

    def has_kernel_for_dispatch_key(self, k: Any) -> bool:
        """Whether something is registered for a key."""
        return k in self.py_kernels

    def name(self) -> str:
        return self.__name__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if has_torch_function(given_values(args, kwargs)):
            return ask(self, args, kwargs)
        from ._higher_order_ops.dispatching import served

        return served(self, args, kwargs)

    def __str__(self) -> str:
        return self._name


# What conversion says of numbers that 64 bits do not hold: to an operator called by its schema, another type.
_TOO_LARGE = (Unpack, OverflowError, ValueError)


def _bound(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """The arguments in schema order, or None where they do not fit."""
    if len(args) == 3 and len(op.schema.args) > 2 and op.schema.args[2].name == "alpha" and "alpha" not in kwargs:
        # PyTorch's overloads for numbers take `alpha` by position; the row serves those for tensors too, which do not.
        if not isinstance(args[1], TensorBase):
            self_, other, alpha = args
            args, kwargs = (self_, other), {**kwargs, "alpha": alpha}
    try:
        return bind(op, args, kwargs, False)
    except _TOO_LARGE:
        return None


def refusal(overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> RuntimeError:
    """PyTorch's account of arguments that do not fit a schema."""
    from ._dispatch.binding import BAD, convert

    shown = {a.name: a for a in overload._shown.args}
    op, schema = overload._op, overload._schema
    head, tail = f"{schema.name}()", f"Declaration: {schema}"
    positional = [a for a in op.schema.args if not a.kwonly]
    count, most = len(args) + len(kwargs), len(op.schema.args)
    if count > most:
        return RuntimeError(f"{head} expected at most {most} argument(s) but received {count} argument(s). {tail}")
    if len(args) > len(positional):
        return RuntimeError(
            f"{head} takes {len(positional)} positional argument(s) but {len(args)} was/were given.  {tail}"
        )
    for i, a in enumerate(op.schema.args):
        if i < len(args) and not a.kwonly:
            value = args[i]
        elif a.name in kwargs:
            value = kwargs[a.name]
        elif a.has_default:
            continue
        else:
            return RuntimeError(f"{head} is missing value for argument '{a.name}'. {tail}")
        wants = shown.get(a.name, a)
        if value is None and wants.kind == "Tensor" and not wants.is_list and not wants.optional:
            return RuntimeError(
                f"Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #{i} '{a.name}'"
            )
        given = cast(wants, value, overload._numbers)
        try:
            fits = given is not BAD and convert(a, given) is not BAD
        except _TOO_LARGE:
            fits = False
        if not fits or (
            a.is_tensor and value is not None and not isinstance(value, TensorBase) and not op.numbers >> i & 1
        ):
            wanted = next((str(s.type) for s in schema.arguments if s.name == a.name), str(_schema_type(a, False)))
            return RuntimeError(
                f"{head} Expected a value of type '{wanted}' for argument '{a.name}' but instead "
                f"found type '{type(value).__name__}'.\nPosition: {i}\nValue: {value!r}\n{tail}\n"
                f"Cast error details: Unable to cast {value} to {wanted}"
            )
    unknown = [k for k in kwargs if op.schema.index(k) < 0]
    return RuntimeError(
        f"Unknown keyword argument '{unknown[0] if unknown else ''}' for operator '{schema.name}'. Schema: {schema}"
    )


# Libraries of PyTorch's distribution that hold TorchScript's classes for its tests.
_BESIDE = frozenset(("libtorchbind_test.so", "libjitbackend_test.so", "libbackend_with_compiler.so"))
# Operators that are called as Python's methods are.
_SYNTAX = frozenset("lshift rshift ilshift irshift and or xor iand ior ixor".split())


# -- namespaces -----------------------------------------------------------------------------------------------------
class OpNamespace:
    """`torch.ops.<name>`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = f"{__package__}.ops.{name}"
        self.__file__ = f"{__package__}.ops"
        self._packets: dict[str, OpOverloadPacket] = {}
        # Those that were looked at since operators were last declared or taken back.
        self._current: dict[str, OpOverloadPacket] = {}
        self._stamp = -1

    def __getattr__(self, key: str) -> Any:
        if self._stamp == len(registry.OPS) + Changes.count:
            current = self._current.get(key)
            if current is not None:
                return current
        if self.name == "profiler" and key.startswith("_record_function_"):
            from ._profiler import names

            own: Any = names.OPERATORS.get(key)
            if own is not None:
                return own
        found: dict[str, Op] = {}
        if not key.startswith("__") or key.strip("_") in _SYNTAX:
            found = _rows(key) if self.name == "aten" else {}
            if not found and self.name == "aten":
                # Layouts bring operators of their own when the first such tensor is made.
                from ._sparse import rows  # noqa: F401

                found = _rows(key)
            found.update(_defined(self.name, key))
        if not found:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{key}'")
        packet = self._packets.get(key)
        if packet is None:
            packet = self._packets[key] = OpOverloadPacket(self.name, key, found)
        elif packet._ops != found:
            packet._ops.clear()
            packet._ops.update(found)
            packet.__dict__.pop("_quick", None)
            for gone in [n for n, made in packet._made.items() if found.get(n) is not made._op]:
                packet._forget(gone)
        stamp = len(registry.OPS) + Changes.count
        if stamp != self._stamp:
            self._stamp, self._current = stamp, {}
        self._current[key] = packet
        return packet

    def __iter__(self) -> Any:
        return iter(sorted({n.partition(".")[0] for n in CUSTOM.get(self.name, ())}))

    def __dir__(self) -> list[str]:
        names = {n.partition(".")[0] for n in CUSTOM.get(self.name, ())}
        if self.name == "aten":
            names |= {_names.base_of(n) for n in registry.OPS} | alias_forms.NAMES
        return sorted(names)

    def __repr__(self) -> str:
        return f"<module '{self.__name__}' from '{self.__file__}'>"


def _rows(key: str) -> dict[str, Op]:
    """The overloads of PyTorch's operator `key` that rows serve, the one for tensors first."""
    own = _names.row_base(key)
    registry.find(own)
    found: dict[str, Op] = {}
    for title in (own,) if own == key else (own, key):
        for op in registry.TITLES.get(title, ()):
            if op.row is not None and _names.base_of(op.name) == key:
                for name in _names.names_of(op):
                    found.setdefault(name, op)
    out_forms.add(key, found)
    alias_forms.add(key, found)
    return found


def _defined(namespace: str, key: str) -> dict[str, Op]:
    if namespace == "aten" and key == "_local_scalar_dense":
        from ._torch_dispatch import local_scalar

        local_scalar()  # is declared by its first use
    return {
        n.partition(".")[2] or "default": op
        for n, op in CUSTOM.get(namespace, {}).items()
        if n.partition(".")[0] == key
    }


class Operators:
    """`torch.ops`."""

    def __init__(self) -> None:
        self.__name__ = f"{__package__}.ops"
        self.__file__ = "_operators.py"
        self._namespaces: dict[str, OpNamespace] = {}
        self.loaded_libraries: set[str] = set()

    def __delattr__(self, name: str) -> None:
        """Forget a namespace's packets; those of operators that still exist are made again."""
        if name not in self._namespaces:
            raise AttributeError(name)
        del self._namespaces[name]
        self.__dict__.pop(name, None)

    def load_library(self, path: Any) -> None:
        """Load a shared library, which registers what it has. One that needs PyTorch's own libraries cannot be.

        The libraries that PyTorch's own tests load from its distribution are not here. They hold TorchScript's classes
        alone, and `torch.classes` refuses each by its name; a warning says so, and a program that uses none goes on.
        """
        import ctypes
        import warnings

        path = str(path)
        if not os.path.exists(path) and os.path.basename(path) in _BESIDE:
            warnings.warn(
                f"{os.path.basename(path)} is a part of PyTorch's distribution and was not loaded: classes of "
                "TorchScript are refused when they are used",
                stacklevel=2,
            )
            self.loaded_libraries.add(path)
            return
        try:
            ctypes.CDLL(path)
        except Exception as error:
            raise OSError(f"Could not load this library: {path}") from error
        self.loaded_libraries.add(path)

    def __getattr__(self, name: str) -> OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._namespaces.get(name)
        if found is None:
            found = self._namespaces.setdefault(name, OpNamespace(name))
        if name not in _OPERATORS_NAMES:
            self.__dict__[name] = found  # found without asking the next time
        return found

    def __iter__(self) -> Any:
        return iter(self._namespaces)

    def __repr__(self) -> str:
        return f"<module '{self.__name__}' from '{self.__file__}'>"


# Names of its own, which namespaces do not hide.
_OPERATORS_NAMES = frozenset((*dir(Operators), "loaded_libraries"))
ops = Operators()


def overload_for(op: Op, args: tuple[Any, ...]) -> OpOverload:
    """The object that stands for a call of `op` with these arguments."""
    namespace, _, name = op.name.rpartition("::")
    if namespace:
        packet = getattr(getattr(ops, namespace), name.partition(".")[0])
        found: OpOverload = getattr(packet, name.partition(".")[2] or "default")
        return found
    packet = getattr(ops.aten, _names.base_of(op.name))
    found = getattr(packet, out_forms.name_for(op, args) or _names.name_for(op, args))
    return found
