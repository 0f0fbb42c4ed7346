"""`torch._custom_op.impl`: operators whose parts are registered one by one.

Invariant: each part (a device's kernel, shapes, what is saved, gradients) is given once; whatever else
`torch.library` registered for the operator is not replaced.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from .. import _operators
from .._dispatch.op import GivenDerivative, Op, Overrider
from .._dispatch.schema import Arg
from .._dispatch_keys import has_kernel
from .._library.infer import infer_schema
from .._library.registrations import Library
from .._tensor_base import TensorBase
from ..library import get_ctx
from .autograd import below_autograd

__all__ = ["CustomOp", "custom_op", "get_ctx", "infer_schema"]

SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}
RESERVED_NS = frozenset(("prim", "prims", "aten", "at", "torch", "pytorch"))
global_registry: dict[str, CustomOp] = {}


class FuncAndLocation(NamedTuple):
    """A registered function, and where it was registered."""

    func: Callable[..., Any]
    location: str


def warn_deprecated() -> None:
    warnings.warn(
        "torch._custom_op is deprecated and will be removed in PyTorch 2.6, please use the equivalent torch.library "
        "API instead.",
        DeprecationWarning,
        stacklevel=2,
    )


def custom_op(qualname: str, manual_schema: str | None = None) -> Callable[[Any], CustomOp]:
    """A decorator that makes an operator named as the function, with the schema of its annotations or a given one."""
    warn_deprecated()

    def inner(func: Any) -> CustomOp:
        ns, name = named_like(func, qualname)
        schema = infer_schema(func, mutates_args=()) if manual_schema is None else manual_schema
        made = _define(ns, name, schema)
        if manual_schema is not None:
            try:
                validate_function_matches_schema(made._schema, func)
            except ValueError:
                made._destroy()
                raise
        # What the decorator registered counts as given by `torch.library`: PyTorch refuses a formula then.
        made._recorded = False
        made.__name__ = func.__name__
        made.__module__ = func.__module__
        made.__doc__ = func.__doc__
        return made

    return inner


def named_like(func: Any, qualname: str) -> tuple[str, str]:
    """Namespace and name of an operator that is to be named as a function."""
    if not inspect.isfunction(func):
        raise ValueError(f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(func)}")
    ns, name = parse_qualname(qualname)
    validate_namespace(ns)
    if func.__name__ != name:
        raise ValueError(
            f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got "
            f"'{func.__name__}'. Please either change the name of `func` or the qualname that is passed to `custom_op`"
        )
    return ns, name


def _define(ns: str, name: str, schema: str) -> CustomOp:
    lib = Library(ns, "FRAGMENT")
    lib.define(f"{name}{schema}")
    overload = get_op(f"{ns}::{name}")
    try:
        validate_schema(overload._op)
    except ValueError:
        lib._destroy()
        raise
    made = CustomOp(lib, ns, overload._op, name, overload, _private_access=True)
    made._op.row.fallback = Overrider(made._without_kernel)
    made._record()
    return made


class CustomOp:
    """An operator whose parts are registered one by one; made by `custom_op`."""

    __name__: str

    def __init__(
        self, lib: Library, cpp_ns: str, schema: Op, operator_name: str, ophandle: Any, *, _private_access: bool = False
    ) -> None:
        warn_deprecated()
        if not _private_access:
            raise RuntimeError(
                "The CustomOp constructor is private and we do not guarantee BC for it. Please use custom_op(...) to "
                "create a CustomOp object"
            )
        self._lib: Library | None = lib
        self._cpp_ns = cpp_ns
        self._op = schema
        self._schema = ophandle._schema
        self._opname = operator_name
        self._qualname = f"{cpp_ns}::{operator_name}"
        self._ophandle = ophandle
        self._impls: dict[str, FuncAndLocation] = {}
        self._output_differentiability: list[bool] | None = None
        self._recorded = False
        global_registry[self._qualname] = self

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ophandle(*args, **kwargs)

    def _record(self) -> None:
        """Let autograd ask for the formula."""
        self._op.derivative = GivenDerivative(Overrider(below_autograd(self)))
        self._op.forget()
        self._recorded = True

    def _destroy(self) -> None:
        if self._lib is not None:
            self._lib._destroy()
            self._lib = None
        namespace = getattr(_operators.ops, self._cpp_ns)
        vars(namespace).pop(self._opname, None)
        global_registry.pop(self._qualname, None)

    def _register_impl(self, kind: str, func: Callable[..., Any], stacklevel: int = 2) -> None:
        if kind in self._impls:
            raise RuntimeError(
                f"Attempting to register a {kind} impl for operator {self._qualname} that already has a {kind} impl "
                f"registered from Python at {self._impls[kind].location}. This is not supported."
            )
        frame = sys._getframe(stacklevel)
        self._impls[kind] = FuncAndLocation(func, f"{frame.f_code.co_filename}:{frame.f_lineno}")

    def _get_impl(self, kind: str) -> FuncAndLocation:
        return self._impls[kind]

    def _has_impl(self, kind: str) -> bool:
        return kind in self._impls

    def _install(self, key: str, f: Callable[..., Any]) -> None:
        if self._lib is None:
            raise RuntimeError(f"{self}: the operator was destroyed")
        self._lib.impl(self._opname, f, key)

    def _without_kernel(self, op: Op, args: tuple[Any, ...], keys: int) -> Any:
        """A call on a device that no kernel was given for."""
        devices = [t.device.type for a in args for t in (a if isinstance(a, (list, tuple)) else (a,)) if _is_tensor(t)]
        if not devices:
            if "factory" in self._impls:
                return self._impls["factory"].func(*args)
            raise NotImplementedError(
                f"{self}: There were no Tensor inputs to this operator (e.g. you passed an empty list of Tensors). If "
                "your operator is a factory function (that is, it takes no Tensors and constructs a new one), then "
                "please use CustomOp.impl_factory to register an implementation for it"
            )
        if "meta" in devices:
            raise NotImplementedError(
                f"{self}: when running with device='Meta' tensors: there is no abstract impl registered for this "
                "CustomOp. Please register one via CustomOp.impl_abstract to get this CustomOp to work with Meta "
                "tensors"
            )
        device = devices[0]
        raise NotImplementedError(
            f"{self}: when running with device='{device}' tensors: there is no {device} impl registered for this "
            f"CustomOp. Please register one via CustomOp.impl(device_type='{device}')"
        )

    # -- parts ----------------------------------------------------------------------------------------------------
    def impl(self, device_types: Any, _stacklevel: int = 2) -> Callable[[Any], Any]:
        """Serve device types with a function."""
        kinds = [device_types] if isinstance(device_types, str) else list(device_types)
        for kind in kinds:
            if kind not in SUPPORTED_DEVICE_TYPE_TO_KEY:
                raise ValueError(
                    f"CustomOp.impl(device_types=[{kind}, ...]): we only support device_type in "
                    f"{SUPPORTED_DEVICE_TYPE_TO_KEY.keys()}."
                )

        def inner(f: Callable[..., Any]) -> Callable[..., Any]:
            for kind in dict.fromkeys(kinds):
                key = SUPPORTED_DEVICE_TYPE_TO_KEY[kind]
                given = any(has_kernel(self._op, k) for k in (key, "CompositeImplicitAutograd"))
                if kind not in self._impls and (given or self._served()):
                    raise RuntimeError(
                        f"impl(..., device_types={kind}): the operator {self._qualname} already has an implementation "
                        "for this device type via a pre-existing torch.library or TORCH_LIBRARY registration."
                    )
                self._register_impl(kind, f, _stacklevel)
                self._install(key, f)
            return f

        return inner

    def _served(self) -> bool:
        """Whether `torch.library` gave a kernel for all devices."""
        fallback = self._op.row.fallback
        return fallback is not None and not isinstance(fallback, Overrider)

    def impl_factory(self) -> Callable[[Any], Any]:
        """Serve calls without tensors with a function."""

        def inner(f: Callable[..., Any]) -> Callable[..., Any]:
            self._register_impl("factory", f)
            return f

        return inner

    def impl_abstract(self, _stacklevel: int = 2) -> Callable[[Any], Any]:
        """Say what the results look like: serves meta tensors."""

        def inner(f: Callable[..., Any]) -> Callable[..., Any]:
            self._check_no_meta()
            self._register_impl("abstract", f, _stacklevel)
            self._install("Meta", f)
            return f

        return inner

    def _check_no_meta(self) -> None:
        meta = has_kernel(self._op, "Meta")
        if "abstract" in self._impls or (self._served() and not meta):
            return
        if has_kernel(self._op, "CompositeImplicitAutograd"):
            raise RuntimeError(
                f"impl_abstract(...): the operator {self._qualname} already has an implementation for this device type "
                "via a pre-existing registration to DispatchKey::CompositeImplicitAutograd.CompositeImplicitAutograd "
                "operators do not need an abstract impl; instead, the operator will decompose into its constituents "
                "and those can have abstract impls defined on them."
            )
        if meta:
            raise RuntimeError(
                f"impl_abstract(...): the operator {self._qualname} already has a DispatchKey::Meta implementation via "
                "a pre-existing torch.library or TORCH_LIBRARY registration. Please either remove that registration or "
                "don't call impl_abstract."
            )

    def impl_save_for_backward(self, _stacklevel: int = 2) -> Callable[[Any], None]:
        """Say what is kept for the gradients, from the arguments by name and the results."""

        def inner(f: Callable[..., Any]) -> None:
            self._check_backward()
            self._register_impl("save_for_backward", f, _stacklevel)

        return inner

    def impl_backward(self, output_differentiability: Any = None, _stacklevel: int = 2) -> Callable[[Any], None]:
        """Give gradients by name of argument, from what was kept and the gradients of the results."""
        given = output_differentiability
        if given is not None and not (
            isinstance(given, list)
            and all(isinstance(d, bool) for d in given)
            and len(given) == len(self._schema.returns)
        ):
            raise RuntimeError(
                "impl_backward(output_differentiability): expected output_differentiability to be a list of bools with "
                f"length equal to the number of outputs of this CustomOp got: {given}"
            )

        def inner(f: Callable[..., Any]) -> None:
            self._check_backward()
            self._register_impl("backward", f, _stacklevel)
            self._output_differentiability = given

        return inner

    def _check_backward(self) -> None:
        """Whether the operator can have a formula; it is asked for from now on."""

        def fail(detail: str) -> NoReturn:
            raise RuntimeError(
                f"Cannot use torch._custom_ops APIs to register backward formula for {detail}. Got operator "
                f"{self._qualname} with schema: {str(self._schema).partition('::')[2]}"
            )

        schema = self._op.schema
        if schema.is_mutable:
            fail("non-functional operator")
        if not schema.returns:
            fail("operator with no returns")
        if any(r.alias and not r.mutates for r in schema.returns):
            fail("operator that returns views")
        for r in schema.returns:
            if not _can_return(r):
                allowed = ["int", "SymInt", "bool", "float", "Tensor", "List[Tensor]"]
                fail(f"operator with return not in {allowed} (got {r.type_text()})")
        if self._recorded:
            return
        if has_kernel(self._op, "CompositeImplicitAutograd"):
            raise RuntimeError(
                f"impl_backward/impl_save_for_backward: the operator {self._qualname} already has an implementation "
                "for this device type via a pre-existing registration to DispatchKey::CompositeImplicitAutograd."
                "CompositeImplicitAutograd operators do not need an autograd formula; instead, the operator will "
                "decompose into its constituents and those can have autograd formulas defined on them."
            )
        if has_kernel(self._op, "Autograd"):
            raise RuntimeError(
                f"impl_backward/impl_save_for_backward: the operator {self._qualname} already has an Autograd kernel "
                "registered to DispatchKey::Autograd vi a pre-existing torch.library or TORCH_LIBRARY registration. "
                "Please either remove those registrations or don't use the torch._custom_ops APIs"
            )
        self._record()


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorBase)


def _can_return(r: Arg) -> bool:
    if r.is_list:
        return r.is_tensor_list and not r.holes
    return not r.optional and r.kind in ("int", "SymInt", "bool", "float", "Tensor")


# -- checks -------------------------------------------------------------------------------------------------------
def validate_namespace(ns: str) -> None:
    if "." in ns:
        raise ValueError(f'custom_op(..., ns="{ns}"): expected ns to not contain any . (and be a valid variable name)')
    if ns in RESERVED_NS:
        raise ValueError(f"custom_op(..., ns='{ns}'): '{ns}' is a reserved namespace, please choose something else. ")


def validate_schema(op: Op) -> None:
    schema = op.schema
    shown = op.schema_text.rpartition("::")[2]
    if schema.is_mutable or not schema.returns or any(r.alias for r in schema.returns):
        raise ValueError(
            "custom_op only supports functional operators (ops that do not mutate any inputs, do not return views of "
            f"the inputs, and has at least one return). Got the following non-functional schema: {shown}"
        )
    if any(a.name == "self" for a in schema.args):
        raise ValueError(
            f"custom_op does not support arguments named 'self'. Please rename your argument. Got: {shown}"
        )


def parse_qualname(qualname: str) -> tuple[str, str]:
    ns, found, name = qualname.partition("::")
    if not found:
        raise ValueError(
            f"Expected there to be a namespace in {qualname}, i.e. The operator name should look something like ns::foo"
        )
    if "." in name:
        raise ValueError(
            "The torch.custom_ops APIs do not handle overloads, i.e. operator names with '.' in them. Please name your "
            f"operator something like ns::foo. Got: {qualname}"
        )
    return ns, name


def validate_function_matches_schema(schema: Any, func: Callable[..., Any]) -> None:
    """Whether a function that was given with a schema has its arguments, and nothing else to say."""
    signature = inspect.signature(func)
    parameters = list(signature.parameters.values())
    start = "custom_op(..., manual_schema)(func): "
    shown = str(schema).partition("::")[2]
    if any(p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters):
        raise ValueError(
            f"{start}positional-only args, varargs, and kwargs are not supported. Please rewrite `func` to not have "
            f"them. Got `func` with signature: {signature}"
        )
    empty = inspect.Signature.empty
    if any(p.annotation is not p.empty for p in parameters) or signature.return_annotation is not empty:
        raise ValueError(
            f"{start}When passing in a manual schema, we expect `func` to have no type annotations to avoid ambiguity. "
            f"Got `func` with signature: {signature}"
        )
    mine = [(p.name, p.kind is p.KEYWORD_ONLY) for p in parameters]
    if mine != [(a.name, a.kwarg_only) for a in schema.arguments]:
        raise ValueError(
            f"{start}When passing in a manual schema, we expect `func`'s signature to match `manual_schema` (aside "
            f"from type annotations). func's signature: {signature}, manual_schema: {shown}"
        )
    if any(p.default is not p.empty for p in parameters) or any(a.has_default_value() for a in schema.arguments):
        raise ValueError(
            f"{start}neither func nor manual_schema should have default arguments. Got func's signature: {signature}, "
            f"manual_schema: {shown}"
        )


# -- operators by name --------------------------------------------------------------------------------------------
def get_op(qualname: str) -> _operators.OpOverload:
    ns, name = parse_qualname(qualname)
    packet = getattr(getattr(_operators.ops, ns), name, None)
    found: _operators.OpOverload | None = getattr(packet, "default", None)
    if found is None:
        raise ValueError(
            f"Could not find the operator {qualname}. Please make sure you have already registered the operator and "
            "(if registered from C++) loaded it via torch.ops.load_library."
        )
    return found


def _find_custom_op(qualname: str, also_check_torch_library: bool = False) -> CustomOp:
    if qualname in global_registry:
        return global_registry[qualname]
    if not also_check_torch_library:
        raise RuntimeError(f'Could not find custom op "{qualname}". Did you register it via the torch._custom_ops API?')
    overload = get_op(qualname)
    name = overload.name().rpartition("::")[2]
    return CustomOp(
        Library(overload.namespace, "FRAGMENT"), overload.namespace, overload._op, name, overload, _private_access=True
    )


def _custom_op_with_schema(qualname: str, schema: str, needs_fixed_stride_order: bool = True) -> _operators.OpOverload:
    """Define an operator by its schema; results have the strides that the kernels give them either way."""
    ns, _, name = qualname.partition("::")
    return _define(ns, name, schema)._ophandle  # type: ignore[no-any-return]


def get_abstract_impl(qualname: str) -> Callable[..., Any] | None:
    found = global_registry.get(qualname)
    return found._impls["abstract"].func if found is not None and "abstract" in found._impls else None
