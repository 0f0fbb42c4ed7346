"""Operators and kernels: a call's arguments in schema order go in, the kernel for their key set is found and run.

Invariant: `Op.table` only ever holds what `resolve` answered for a key set since the last registration; registering
anything clears it. Kernels get arguments exactly as the schema orders them.
"""

from __future__ import annotations

from typing import Any, Final, final

from .._core_operators import CORE, HOOKS, OpBase
from .._device import CPU as CPU_DEVICE
from .._device import device
from .._dtype import dtype
from .._mypyc import i64, mypyc_attr
from .._numbers import is_number
from .._tensor_base import INFERENCE_WRITTEN, TensorBase, alias, gained, numel, requires_grad
from .keys import (
    AUTOCASTS,
    AUTOGRAD,
    BACKENDS,
    BATCHED,
    DEVICE_BITS,
    FORWARD,
    FUNCTIONALIZE,
    INFERENCE,
    LAZY,
    PROFILE,
    PYTHON,
    SPARSE,
    TORCH_DISPATCH,
    VIEW,
    WRITES,
    device_of_bit,
)
from .schema import Arg, Schema, parse
from .state import STATE, apply_modes, is_inference_mode


@mypyc_attr(free_list_len=1)
@final
class Spec:
    """What a rule decided about one result. `compute` is the dtype the arithmetic is done in."""

    def __init__(self, shape: tuple[int, ...], stride: tuple[int, ...], dt: dtype, compute: dtype, dev: device) -> None:
        self.shape: Final = shape
        self.stride: Final = stride
        self.dtype: Final = dt
        self.compute: Final = compute
        self.device: Final = dev


class Rule:
    """Decides shape, stride and dtype of an operator's results, for every device."""

    # Whether PyTorch looks at overlaps with `out=` before it looks at shapes: so do its pointwise operators.
    overlap_first: bool = False

    def infer(self, args: tuple[Any, ...]) -> Any:
        """A Spec, or a list of them for an operator with several results."""
        raise NotImplementedError

    def infer_inplace(self, args: tuple[Any, ...]) -> Any:
        """The same for the in-place form, which may refuse its arguments in other words."""
        return self.infer(args)


class Kernel:
    """Serves one operator for one key set."""

    # True when the kernel calls other operators, which must then not record gradients a second time; and whether it
    # sees to that itself, because it calls them rarely.
    calls_ops: bool = False
    guarded: bool = False

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        raise NotImplementedError

    def into(self, op: Op, args: tuple[Any, ...], spec: Spec, out: TensorBase) -> bool:
        """Compute straight into `out`, which may be one of the inputs; False when this kernel cannot."""
        return False

    def parts_into(self, args: tuple[Any, ...], out: TensorBase) -> bool:
        """The same of an operator written in terms of others, which has no rule: False as well where `out` is not as
        the result will be, or may share memory with an input."""
        return False


UNRESOLVED: Final = Kernel()


@final
class FnKernel(Kernel):
    """A plain function of the arguments that makes its own results."""

    def __init__(self, fn: Any) -> None:
        self.fn: Final[Any] = fn
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        fn = self.fn  # compiled code reads it at once, but looks for `self.fn(*args)` by its name
        return fn(*args)


@final
class PartsKernel(Kernel):
    """Python in terms of other operators, once the rule has agreed to the arguments."""

    def __init__(self, fn: Any) -> None:
        self.fn: Final[Any] = fn
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        fn = self.fn
        if op.rule is None:
            return owned(fn(*args))
        spec = op.rule.infer(args)
        result = fn(*args)
        if (
            isinstance(spec, Spec)
            and isinstance(result, TensorBase)
            and result._stride != spec.stride
            and numel(result) > 1
        ):
            # The parts see other operands than the whole; the rule decides the layout.
            return HOOKS.dense_like(result, spec.shape, spec.stride)
        return owned(result)


def owned(result: Any) -> Any:
    """What parts made may be a view of a temporary; to the caller it is a tensor of its own."""
    if isinstance(result, TensorBase):
        if result._keys & LAZY:
            return CORE.clone.call((result, None))
        if result._base_field is not None:
            return alias(result, result._shape, result._stride, result._offset)
        return result
    if isinstance(result, tuple):
        return tuple([owned(r) for r in result])
    return result


@final
class Overrider(Kernel):
    """`fn(op, args, keys)` decides: overrides written in Python, and autograd of operators from outside."""

    def __init__(self, fn: Any) -> None:
        self.fn: Final[Any] = fn
        self.calls_ops = True

    def run(self, op: Op, args: tuple[Any, ...], keys: i64) -> Any:
        return self.fn(op, args, int(keys))


class Derivative:
    """What autograd does with an operator; the concrete class lives in `_autograd.record`."""

    def kernel(self) -> Kernel:
        raise NotImplementedError


@final
class GivenDerivative(Derivative):
    """Autograd by a kernel that was given from outside."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel: Final = kernel

    def kernel(self) -> Kernel:
        return self._kernel


@final
class Op(OpBase):
    """One operator: a name, what is true of it on every device, and its kernels."""

    def __init__(self, name: str, schema_text: str) -> None:
        self.name: Final = name
        self.schema_text: Final = schema_text
        self.called: str = ""
        self._schema: Schema | None = None
        self.table: dict[int, Kernel] = {}
        # The answer of the last resolution, most often the next one too; -1 matches no key set.
        self.last_keys: i64 = -1
        self.last_kernel: Kernel = UNRESOLVED
        # The same for what was asked from within a kernel.
        self.below_keys: i64 = -1
        self.below_kernel: Kernel = UNRESOLVED
        self.kernels: dict[int, Kernel] = {}
        self.rule: Rule | None = None
        self.composite: Kernel | None = None
        self.functional: Op | None = None
        # The form with `out=`, once it was called with tensors, where that is all there is to look at; how many.
        self.out_form: Op | None = None
        self.out_count: i64 = 0
        self.derivative: Derivative | None = None
        self.mutates: bool = False
        self.is_view: bool = False
        self.is_out: bool = False
        # Its kernels know what conjugate and negative views are; all others are given what those stand for.
        self.reads_lazily: bool = False
        # What serves calls with such views in the place of the operator, where there is a shorter way.
        self.lazily: Kernel | None = None
        # What its `out=` tensors must be, found at the first call: by result, or a function of the arguments.
        self.targets: Any = None
        # Which memory its in-place form may write: a constant of `_backends.common.overlap`.
        self.overlap: i64 = 0
        self.numbers: i64 = 0
        self.required: i64 = 0
        self.slots: list[int] = []
        self.leading: i64 = 0
        self.list_slots: list[int] = []
        self.scattered: bool = False
        self.device_slot: i64 = -1
        self.public: Any = None
        self.row: Any = None
        self.result_type: Any = None
        self.ready: bool = False

    @property
    def schema(self) -> Schema:
        s = self._schema
        if s is None:
            s = parse(self.schema_text)
            self._schema = s
        return s

    def prepare(self) -> None:
        """Read the schema into what `call` needs; done at the first call."""
        s = self.schema
        slots: list[int] = []
        lists: list[int] = []
        for i, a in enumerate(s.args):
            if a.is_tensor:
                slots.append(i)
                if not a.optional:
                    self.required |= 1 << i
            elif a.is_tensor_list:
                lists.append(i)
            elif a.kind == "Device":
                self.device_slot = i
        self.slots = slots
        self.list_slots = lists
        leading = 0
        while leading < len(slots) and slots[leading] == leading:
            leading += 1
        self.leading = leading
        self.scattered = leading < len(slots) or len(lists) > 0
        self.mutates = s.is_mutable
        self.ready = True

    # -- the way of a call ----------------------------------------------------------------------------------------
    def call(self, args: tuple[Any, ...]) -> Any:
        if not self.ready:
            self.prepare()
        keys: i64 = 0
        n = self.leading
        i: i64 = 0
        while i < n:
            a = args[i]
            if isinstance(a, TensorBase):
                keys |= a._keys
            elif a is not None or self.required & (1 << i):
                keys |= self.check_operand(int(i), a)
            i += 1
        if self.scattered:
            keys |= self.other_keys(args)
        if keys & VIEW:
            keys |= self.view_keys(args)
        if STATE.active != 0:
            keys = apply_modes(keys)
        if keys & (INFERENCE | WRITES):
            if self.mutates:
                self.before_write(args, keys)
            elif self.is_view and keys & INFERENCE:
                # A view of what was made in inference mode is such a tensor too, whatever its base is asked for.
                keys &= ~AUTOGRAD
        keys &= ~(VIEW | INFERENCE | WRITES)
        if keys == 0:
            keys = self.device_from_args(args)
        if keys == self.last_keys:
            return self.last_kernel.run(self, args, keys)
        kernel = self.table.get(int(keys))
        if kernel is None:
            kernel = self.resolve(keys, args)
        else:
            self.last_keys = keys
            self.last_kernel = kernel
        return kernel.run(self, args, keys)

    def other_keys(self, args: tuple[Any, ...]) -> i64:
        """Keys of the tensors behind the leading ones, and in lists."""
        keys: i64 = 0
        for i in self.slots:
            if i >= self.leading:
                a = args[i]
                if isinstance(a, TensorBase):
                    keys |= a._keys
                elif a is not None or self.required & (1 << i):
                    keys |= self.check_operand(i, a)
        for i in self.list_slots:
            items = args[i]
            if items is not None:
                for t in items:
                    if isinstance(t, TensorBase):
                        keys |= t._keys
        return keys

    def view_keys(self, args: tuple[Any, ...]) -> i64:
        """AUTOGRAD and FORWARD if a view among the arguments gained them from its base."""
        keys: i64 = 0
        for i in self.slots:
            a = args[i]
            if isinstance(a, TensorBase) and a._keys & VIEW:
                keys |= gained(a)
        for i in self.list_slots:
            items = args[i]
            if items is not None:
                for t in items:
                    if isinstance(t, TensorBase) and t._keys & VIEW:
                        keys |= gained(t)
        return keys

    def before_write(self, args: tuple[Any, ...], keys: i64) -> None:
        if keys & INFERENCE:
            self.check_inference(args, keys)
        if keys & WRITES:
            from .._autograd.saved_hooks import about_to_write

            about_to_write(args, self.schema)

    def check_inference(self, args: tuple[Any, ...], keys: i64) -> None:
        """Outside inference mode nothing made in it is written to. What autograd says of a leaf, or of out= for
        arguments that require grad, comes first."""
        if is_inference_mode():
            return
        if self.is_out and keys & AUTOGRAD:
            for i in self.slots:
                t = args[i]
                if isinstance(t, TensorBase) and not self.schema.args[i].mutates and requires_grad(t):
                    return
        for i, a in enumerate(self.schema.args):
            if a.mutates and i < len(args):
                for t in args[i] if a.is_list else (args[i],):
                    if (
                        isinstance(t, TensorBase)
                        and t._keys & INFERENCE
                        and (self.is_out or (t._keys & keys & AUTOGRAD) == 0)
                    ):
                        raise RuntimeError(INFERENCE_WRITTEN)

    def check_operand(self, i: int, a: object) -> i64:
        """A tensor argument that is no tensor: numbers pass where the row allows them, and what overrides calls."""
        if self.numbers & (1 << i) and is_number(a):
            return 0
        if a is not None and hasattr(type(a), "__torch_function__"):
            return PYTHON
        from .complaint import of_call

        arg = self.schema.args[i]
        raise of_call(
            self.title(),
            TypeError(
                f"{self.title()}(): argument '{shown_name(arg, i)}' (position {i + 1}) must be Tensor, not "
                f"{plain_name(a)}"
            ),
        )

    def title(self) -> str:
        """The name a user called."""
        found = self.called
        if not found:
            found = self.name.split(".", 1)[0]
            self.called = found
        return found

    def qualified(self) -> str:
        """The name with its namespace; rows are PyTorch's own operators."""
        return self.name if "::" in self.name else "aten::" + self.name

    # -- resolution -----------------------------------------------------------------------------------------------
    def resolve(self, keys: i64, args: tuple[Any, ...]) -> Kernel:
        """The kernel for a key set; remembered."""
        kernel = self.find(keys, args)
        if (keys & BACKENDS) != 0:
            self.table[int(keys)] = kernel
            self.last_keys = keys
            self.last_kernel = kernel
        return kernel

    def find(self, keys: i64, args: tuple[Any, ...]) -> Kernel:
        if keys & PYTHON:
            return RESOLVERS.python
        if keys & PROFILE:
            return RESOLVERS.profiler
        if keys & AUTOCASTS:
            cast: Kernel | None = RESOLVERS.autocast(self, int(keys))
            if cast is not None:
                return cast
            keys &= ~AUTOCASTS
        if keys & SPARSE:
            served: Kernel = RESOLVERS.sparse(self, int(keys & ~LAZY))
            return served if keys & LAZY == 0 else RESOLVERS.lazy
        if keys & BATCHED:
            whole: Kernel | None = RESOLVERS.mapped(self)
            if whole is not None:
                return whole if keys & LAZY == 0 else RESOLVERS.lazy
        if self.composite is not None and not (self.mutates and keys & FUNCTIONALIZE and self.functional is not None):
            # A device may serve the whole of it. Without a functional form of its own, the writes of its parts are made
            # functional one by one.
            parts: Kernel = RESOLVERS.refusing(self, self.kernels.get(int(keys)) or self.composite)
            return parts
        if keys & FORWARD:
            return RESOLVERS.forward
        if keys & AUTOGRAD:
            if self.derivative is None:
                return RESOLVERS.no_derivative
            return self.derivative.kernel() if (keys & BATCHED) == 0 else RESOLVERS.batched_autograd
        if keys & LAZY and not (self.is_view or self.reads_lazily):
            return RESOLVERS.lazy if self.lazily is None else self.lazily
        if keys & BATCHED:
            mapped: Kernel = RESOLVERS.batched(self)
            return mapped
        if keys & TORCH_DISPATCH:
            return RESOLVERS.torch_dispatch
        if keys & FUNCTIONALIZE and self.mutates:
            return RESOLVERS.functionalize
        return self.backend(keys & BACKENDS, args)

    def backend(self, bits: i64, args: tuple[Any, ...]) -> Kernel:
        if bits == 0:
            bits = self.device_from_args(args)
        if LOADERS:
            loader = LOADERS.get(int(bits))
            if loader is not None:
                loader()
        kernel = self.kernels.get(int(bits))
        single = (bits & (bits - 1)) == 0
        if kernel is None and single:
            kernel = RESOLVERS.derived(self, bits)
        if kernel is not None:
            if bits == 1:
                kernel = RESOLVERS.refusing(self, kernel)
            return kernel
        if single:
            raise NotImplementedError(
                f"Could not run '{self.qualified()}' with arguments from the '{device_of_bit(bits)}' backend: no "
                f"kernel is "
                f"registered for operator '{self.name}' on device '{device_of_bit(bits)}'. Kernels exist for: "
                f"{', '.join(sorted([device_of_bit(b) for b in self.kernels])) or 'no device'}."
            )
        mixed: Kernel = RESOLVERS.mixed
        return mixed

    def device_from_args(self, args: tuple[Any, ...]) -> i64:
        """A call without tensors goes to the device it names."""
        if self.device_slot >= 0:
            d = args[self.device_slot]
            if d is not CPU_DEVICE and isinstance(d, device):
                bit = DEVICE_BITS.get(d.type)
                if bit is None:
                    raise RuntimeError(f"no backend is registered for device type '{d.type}'")
                return bit
        return 1

    def below(self, keys: i64, args: tuple[Any, ...]) -> Kernel:
        """The kernel that serves the call once the highest concern in `keys` has been dealt with."""
        if keys == self.below_keys:
            return self.below_kernel
        kernel = self.table.get(int(keys))
        if kernel is None:
            kernel = self.resolve(keys, args)
        if (keys & BACKENDS) != 0:
            self.below_keys = keys
            self.below_kernel = kernel
        return kernel

    def forget(self) -> None:
        self.table = {}
        self.last_keys = -1
        self.below_keys = -1

    def infer(self, args: tuple[Any, ...]) -> Any:
        rule = self.rule
        if rule is None:
            raise NotImplementedError(f"operator '{self.name}' has no shape rule (meta kernel)")
        ASKED.op = self
        return rule.infer(args)

    def infer_inplace(self, args: tuple[Any, ...]) -> Any:
        rule = self.rule
        if rule is None:
            raise NotImplementedError(f"operator '{self.name}' has no shape rule (meta kernel)")
        ASKED.op = self
        return rule.infer_inplace(args)

    def __repr__(self) -> str:
        return f"<Op {self.schema_text}>"


@final
class Asked:
    """The operator whose rule was asked last: what memory is wanted for, should there be none."""

    def __init__(self) -> None:
        self.op: Op | None = None


ASKED: Final = Asked()

# By backend bit: registers the kernels of a device that nobody has used yet, and takes itself out of here.
LOADERS: Final[dict[int, Any]] = {}


@final
class Resolvers:
    """Kernels that serve every operator for one concern; filled by the modules that implement the concern."""

    python: Kernel
    profiler: Kernel
    batched: Any
    batched_autograd: Kernel
    mapped: Any
    torch_dispatch: Kernel
    forward: Kernel
    autocast: Any
    sparse: Any
    lazy: Kernel
    no_derivative: Kernel
    functionalize: Kernel
    mixed: Any
    derived: Any
    # The kernel of the CPU, or one that refuses some dtypes before it.
    refusing: Any


RESOLVERS: Final = Resolvers()


def shown_name(arg: Arg, position: int) -> str:
    """PyTorch's functions call their first tensor `input`, its schemas `self`."""
    return "input" if arg.name == "self" and position == 0 else arg.name


def plain_name(x: object) -> str:
    """A type's name where only one was expected: a list is a list, whatever is in it."""
    return c_type_name(type(x)) if isinstance(x, (list, tuple)) else type_name(x)


def type_name(x: object) -> str:
    """A type as PyTorch's argument parser prints it."""
    if isinstance(x, TensorBase):
        return "Tensor"
    if isinstance(x, (list, tuple)) and type(x).__name__ in ("list", "tuple"):
        kind = type(x).__name__
        if kind == "tuple":
            return f"tuple of ({', '.join([plain_name(i) for i in x])}{',' if len(x) == 1 else ''})"
        return f"list of [{', '.join([plain_name(i) for i in x])}]"
    return c_type_name(type(x))


# Types of ours that are written in C in PyTorch, and their names there.
_C_TYPES: Final[dict[str, str]] = {
    **{name: f"torch.{name}" for name in ("Size", "device", "dtype", "finfo", "iinfo", "layout", "memory_format")},
    "Generator": "torch._C.Generator",
    "UntypedStorage": "torch.storage.UntypedStorage",
}
_HEAP_TYPE: Final = 1 << 9


def c_type_name(kind: Any) -> str:
    """A type's name as C knows it: with its module if it is written in C and not built in."""
    module = str(getattr(kind, "__module__", "builtins"))  # a class made by hand may have none
    name: str = kind.__name__
    if module == "mindtorch_v2" or module.startswith("mindtorch_v2._"):
        return _C_TYPES.get(name, name)
    if _C_TYPES.get(name) == f"{module}.{name}":  # where `torch` is this package
        return _C_TYPES[name]
    return name if module == "builtins" or kind.__flags__ & _HEAP_TYPE else f"{module}.{name}"
