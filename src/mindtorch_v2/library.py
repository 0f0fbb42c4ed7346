"""`torch.library`: operators, kernels and derivatives from outside the package.

Invariant: an operator registered here is dispatched as a row is: same keys, same autograd engine, same devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ._device import device
from ._dispatch.op import GivenDerivative, Overrider
from ._library.custom_op import OPDEFS, CustomOpDef, check_no_named_tensors, custom_op
from ._library.derivative import Formula, make
from ._library.infer import infer_schema
from ._library.opcheck import OpCheckError, opcheck
from ._library.registrations import (
    Library,
    fallthrough_kernel,
    find,
    get_kernel,
    install,
    install_device,
    kernel_of,
    new_op,
    split,
)
from ._operators import OpOverload, ops, overload_for

__all__ = [
    "CustomOpDef",
    "Library",
    "OpCheckError",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_kernel",
    "get_ctx",
    "impl",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]


def define(
    qualname: Any, schema: Any = None, alias_analysis: str = "", *, lib: Library | None = None, tags: Any = ()
) -> Any:
    """Define `"namespace::name"` with a schema of arguments and results.

    `define(library, schema, alias_analysis="")` is the older form: a decorator that defines and implements.
    """
    if isinstance(qualname, Library):
        return _define_with(qualname, schema, alias_analysis)
    if alias_analysis:
        raise TypeError("define(): argument 'alias_analysis' belongs to the form that takes a Library")
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    namespace, name = split(qualname)
    if schema is None:
        raise TypeError("define(): argument 'schema' is missing")
    if not str(schema).lstrip().startswith("("):
        raise ValueError(
            'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but '
            f'got "{schema}"'
        )
    if lib is not None:
        lib.define(name + schema, tags=tags)
    else:
        new_op(namespace, name + schema, tags=tags)
    return None


def _define_with(library: Library, schema: str, alias_analysis: str) -> Callable[[Any], Any]:
    def wrap(fn: Any) -> Any:
        library.define(schema, alias_analysis)
        library.impl(schema.partition("(")[0].strip(), fn)
        return fn

    return wrap


def impl(qualname: Any, types: Any = "default", func: Any = None, *, lib: Library | None = None) -> Any:
    """Serve an operator on device types with a function; `"default"` serves all devices.

    `impl(library, name, dispatch_key)` is the older form, a decorator.
    """
    if isinstance(qualname, Library):
        library, key = qualname, func or ""

        def wrap(fn: Any) -> Any:
            library.impl(types, fn, key)
            return fn

        return wrap
    kinds = [types] if isinstance(types, str) else list(types)
    for kind in kinds:
        if kind != "default" and not kind[:1].isupper():
            device(kind)  # complains of a device type that there is not

    def register(fn: Any) -> Any:
        op = find(qualname)
        for kind in kinds:
            # Dispatch keys are written with capitals, device types without.
            if kind == "default":
                undo = install(op, "CompositeExplicitAutograd", fn)
            elif kind[:1].isupper():
                undo = install(op, kind, fn)
            else:
                undo = install_device(op, kind, kernel_of(op, fn))
            if lib is not None:
                lib._undo.append(undo)
        return fn if func is None else None

    return register if func is None else register(func)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Serve an operator on device types with a function."""
    opdef = _opdef(op)
    if opdef is not None:
        return opdef.register_kernel(device_types, func) if func is not None else opdef.register_kernel(device_types)
    return impl(op, "default" if device_types is None else device_types, func, lib=lib)


def register_fake(
    op: Any, func: Any = None, /, *, lib: Library | None = None, _stacklevel: int = 1, allow_override: bool = False
) -> Any:
    """Say what an operator's results look like: serves meta tensors."""

    def register(fn: Any) -> Any:
        opdef = _opdef(op)
        if opdef is not None:
            return opdef.register_fake(fn)
        target = find(op)
        if target.composite is not None:
            raise RuntimeError(
                f"We should not register a meta kernel directly to the operator '{target.qualified()}', because it has "
                "a CompositeImplicitAutograd kernel in core. Instead we should let the operator decompose, and ensure "
                "that we have meta kernels for the base ops that it decomposes into."
            )
        undo = install_device(target, "meta", kernel_of(target, fn))
        if lib is not None:
            lib._undo.append(undo)
        return fn

    return register if func is None else register(func)


impl_abstract = register_fake


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """Give an operator its derivative: see `CustomOpDef.register_autograd`."""
    opdef = _opdef(op)
    if opdef is not None:
        opdef.register_autograd(backward, setup_context=setup_context)
        return
    if isinstance(op, str) and "::" in op:
        namespace, name = op.split("::")
        getattr(getattr(ops, namespace), name.partition(".")[0])  # complains of operators that do not exist
    target = find(op)
    overload = overload_for(target, ())
    if target.schema.is_mutable:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {overload.name()} with schema "
            f"{overload._schema}. Please create a functional operator and register an autograd formula for that."
        )
    check_no_named_tensors("register_autograd", target)
    if "::" not in target.name:
        raise NotImplementedError(
            f"register_autograd(): {overload.name()} is an operator of the package; its row has its derivative"
        )
    formula = Formula()
    formula.backward, formula.setup_context = backward, setup_context
    was = target.derivative
    target.derivative = GivenDerivative(Overrider(make(overload, formula)))
    target.forget()
    if lib is not None:

        def undo() -> None:
            target.derivative = was
            target.forget()

        lib._undo.append(undo)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Library | None = None
) -> Any:
    """Serve a subclass or a mode below autograd, in the place of its own handler."""
    from ._torch_dispatch import RULES

    def register(fn: Any) -> Any:
        key = (find(op).name, torch_dispatch_class)
        RULES[key] = fn
        if lib is not None:
            lib._undo.append(lambda: RULES.pop(key, None))
        return fn

    return register if func is None else register(func)


def register_vmap(op: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """Serve an operator in `vmap` with `func(info, in_dims, *args)`, which returns results and their out_dims."""
    from ._batching.users import register as serve

    found = find(op)
    check_no_named_tensors("register_vmap", found)
    if "::" not in found.name:
        raise NotImplementedError(f"register_vmap({op}): the package's own operators keep their rules for vmap")

    def register(fn: Any) -> Any:
        undo = serve(found, fn)
        if lib is not None:
            lib._undo.append(undo)
        return None if func is not None else fn

    return register if func is None else register(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> Any:
    """Say to which dtype autocast of a device type casts an operator's floating point arguments."""
    from . import _autocast

    if not isinstance(op, (str, CustomOpDef, OpOverload)):
        raise ValueError(f"register_autocast({op}): got unexpected type for op: {type(op)}")
    if not _autocast.is_autocast_available(device_type):
        raise ValueError(f"Device type '{device_type}' does not support autocast.")
    undo = _autocast.register(find(op), device_type, cast_inputs)
    if lib is not None:
        lib._undo.append(undo)


def get_ctx() -> Any:
    """Sizes that are only known from data do not exist on the meta device here."""
    raise NotImplementedError("get_ctx(): a fake implementation cannot make sizes that depend on data here")


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: str | None = None) -> Any:
    raise NotImplementedError(f"triton_op({name!r}): Triton kernels are not supported; use custom_op")


def wrap_triton(triton_kernel: Any, /) -> Any:
    raise NotImplementedError("wrap_triton(): Triton kernels are not supported")


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A library whose registrations end with the block."""
    lib = Library(*args, **kwargs)
    try:
        yield lib
    finally:
        lib._destroy()


def _opdef(op: Any) -> CustomOpDef | None:
    if isinstance(op, CustomOpDef):
        return op
    name = op.name() if isinstance(op, OpOverload) else op
    return OPDEFS.get(name) if isinstance(name, str) else None
