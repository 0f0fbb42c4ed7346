"""`torch.library.custom_op`: an operator from one Python function.

Invariant: a result never shares memory with an argument or another result; what the schema says is written has a new
version afterwards.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _operators
from .._dispatch.op import FnKernel, GivenDerivative, Op, Overrider
from .._tags import Tag
from .._tensor_base import TensorBase, bump
from .derivative import Formula, make
from .infer import infer_schema
from .registrations import install_device, kernel_of, new_op, split, tags_of

OPDEFS: dict[str, CustomOpDef] = {}
# PyTorch's name of the logger, which users set the level of.
_LOG = logging.getLogger("torch._library.custom_ops")

_SHARED = (
    "{name} (with implementation in {module}): The output of this custom operator (1) must not also be an input to "
    "this custom operator and (2) may not alias any inputs to this custom operator or other returns. The most common "
    "way to trigger this error is if we have y = custom_op(x) and y and x are the same Tensor. Please instead return a "
    "clone of the offending output tensor(s) (e.g. return x.clone()) or refactor the custom operator to not return y."
)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any,
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator from `fn`, or decorate one.

    mutates_args: names of the arguments it writes to, or "unknown". device_types: devices it serves (default: all).
    schema: written out where annotations do not say it. tags: what else is known of it, kept for who asks.
    """

    def wrapped(function: Callable[..., Any]) -> CustomOpDef:
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        namespace, base = split(name)
        made = CustomOpDef(namespace, base, text, function, tags)
        if schema is not None:
            written = {a.name for a in made._op.schema.args if a.mutates}
            if mutates_args != "unknown" and set(mutates_args) != written:
                raise ValueError(
                    f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
                    f"`schema={schema}. The schema suggests that the op mutates {written}which is "
                    "different from what was provided to us in `mutates_args`. Please make these "
                    "consistent."
                )
        made.register_kernel(device_types)(function)
        return made

    return wrapped if fn is None else wrapped(fn)


def named_tensors(op: Op) -> bool:
    """Whether a tensor is among the arguments that are given by name only."""
    return any(a.kwonly and (a.is_tensor or a.is_tensor_list) for a in op.schema.args)


def _check_no_named_tensors(op: Op) -> None:
    if named_tensors(op):
        text = op.schema_text
        raise NotImplementedError(
            f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {text}"
        )


def check_no_named_tensors(what: str, op: Op) -> None:
    """Refuse a formula for an operator that takes tensors by name only, as PyTorch does."""
    if "::" in op.name and named_tensors(op):
        overload = _operators.overload_for(op, ())
        raise NotImplementedError(
            f"{what} with kwarg-only Tensor args. In the original definition of the op, please make your tensors not "
            f"kwarg-only. Got: {overload._schema}"
        )


def _tensors(values: Any) -> Iterator[TensorBase]:
    for v in values:
        if isinstance(v, TensorBase):
            yield v
        elif isinstance(v, (tuple, list)):
            yield from _tensors(v)


class CustomOpDef:
    """An operator made by `custom_op`; calling it calls the operator."""

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable[..., Any], tags: Any = None) -> None:
        qualname = f"{namespace}::{name}"
        known = OPDEFS.pop(qualname, None)
        if known is not None:
            # Defined again, as in a notebook: the new one takes the old one's place.
            _operators.CUSTOM[namespace].remove(name)
        self._namespace = namespace
        self._name = name
        self._schema = schema
        self._init_fn = fn
        self._backend_fns: dict[str | None, Callable[..., Any]] = {}
        self._abstract_fn: Callable[..., Any] | None = None
        self._formula = Formula()
        self._disabled: set[str] = set()
        marks = [Tag.pt2_compliant_tag, *tags_of(() if tags is None else tags)]
        self._op: Op = new_op(namespace, name + schema, tags=marks)
        try:
            _check_no_named_tensors(self._op)
        except NotImplementedError:
            _operators.CUSTOM[namespace].remove(name)
            raise
        self._op.derivative = GivenDerivative(Overrider(make(self._opoverload, self._formula)))
        install_device(self._op, "meta", kernel_of(self._op, self._fake))
        OPDEFS[qualname] = self

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    @property
    def _opoverload(self) -> _operators.OpOverload:
        base, _, overload = self._name.partition(".")
        packet = getattr(getattr(_operators.ops, self._namespace), base)
        found: _operators.OpOverload = getattr(packet, overload or "default")
        return found

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    # -- kernels --------------------------------------------------------------------------------------------------
    def register_kernel(self, device_types: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Serve devices (one name, several, or None for all) with a function."""
        kinds: list[str | None] = (
            [None]
            if device_types is None or device_types == "default"
            else ([device_types] if isinstance(device_types, str) else list(device_types))
        )

        def inner(function: Callable[..., Any]) -> Callable[..., Any]:
            for kind in kinds:
                self._backend_fns[kind] = function
                kernel = FnKernel(self._checked(kind, function))
                if kind is None:
                    self._op.row.fallback = kernel
                else:
                    install_device(self._op, kind, kernel)
            self._op.forget()
            return function

        return inner if fn is None else inner(fn)

    def _checked(self, kind: str | None, function: Callable[..., Any]) -> Callable[..., Any]:
        """Run a kernel and see to what the schema promises."""
        call = kernel_of(self._op, function).fn
        original = kernel_of(self._op, self._init_fn).fn
        writes = [i for i, a in enumerate(self._op.schema.args) if a.mutates]

        def run(*args: Any) -> Any:
            result = (original if kind in self._disabled else call)(*args)
            seen = {id(t._storage) for t in _tensors(args)}
            for t in _tensors(result if isinstance(result, tuple) else (result,)):
                if id(t._storage) in seen:
                    raise RuntimeError(_SHARED.format(name=self._name, module=inspect.getmodule(function)))
                seen.add(id(t._storage))
            for t in _tensors([args[i] for i in writes]):
                bump(t)
            return result

        return run

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Inside, the kernel registered for a device is used, or the function given to `custom_op` instead."""
        was = set(self._disabled)
        if device_type not in self._backend_fns:
            _LOG.warning(
                "Attempted to %s kernel for %s but no kernel was registered for this device type.",
                "enable" if enabled else "disable",
                device_type,
            )
        elif enabled == (device_type not in was):
            _LOG.warning(
                "Attempted to %s kernel for %s but it is already %s.",
                "enable" if enabled else "disable",
                device_type,
                "enabled" if enabled else "disabled",
            )
        elif enabled:
            self._disabled.discard(device_type)
        else:
            self._disabled.add(device_type)
        try:
            yield
        finally:
            self._disabled.clear()
            self._disabled.update(was)

    # -- shapes and gradients -------------------------------------------------------------------------------------
    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Say what the results look like: serves meta tensors."""
        self._abstract_fn = fn
        return fn

    def _fake(self, *args: Any, **kwargs: Any) -> Any:
        if self._abstract_fn is not None:
            return self._abstract_fn(*args, **kwargs)
        if not self._op.schema.returns:
            return None
        raise RuntimeError(
            f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing to "
            f"work. Please use `{self._init_fn.__name__}.register_fake` to add an fake impl."
        )

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """`backward(ctx, *grads)` gives a gradient or None for each argument; `setup_context(ctx, inputs, output)`
        keeps what it needs."""
        if self._op.schema.is_mutable:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema "
                f"{self._opoverload._schema}. Please create a functional operator and register an autograd formula "
                "for that."
            )
        self._formula.backward = backward
        self._formula.setup_context = setup_context

    def register_vmap(self, func: Any = None) -> Any:
        """Serve `vmap` with `func(info, in_dims, *args)`, which returns results and their out_dims."""
        if func is None:
            return self.register_vmap
        from .._batching.users import register

        register(self._op, func)
        return func

    def register_autocast(self, device_type: str, cast_inputs: Any) -> Any:
        """Under autocast of a device type, floating point arguments are cast to a dtype, and autocast is off inside.
        What was registered first stays."""
        from .. import _autocast

        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not _autocast.is_autocast_available(device_type):
            raise ValueError(f"Device type '{device_type}' does not support autocast.")
        _autocast.register(self._op, device_type, cast_inputs)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Callable[..., Any] | None = None, /) -> Any:
        """Serve a subclass or a mode below autograd, in the place of its own handler."""
        from .._torch_dispatch import RULES

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            RULES[self._op.name, torch_dispatch_class] = function
            return function

        return register if fn is None else register(fn)
