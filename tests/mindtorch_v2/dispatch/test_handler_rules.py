"""What classes and modes with handlers are asked, and what becomes of their instances: one program, both libraries."""

from __future__ import annotations

import copy
import operator
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only
from .._subject import subject as torch

pytestmark = [mindtorch_only, pytest.mark.oracle]


def _classes(library: Any) -> dict[str, Any]:
    """Subclasses of every kind."""
    tensor = library.Tensor

    class Plain(tensor):
        pass

    class Below(tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_dispatch__(func, types, args, kwargs)

    class Inherits(Below):
        pass

    class Both(Below):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(func, types, args, kwargs)

    class Later(Plain):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_dispatch__(func, types, args, kwargs)

    class Above(tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(func, types, args, kwargs)

    class Wrapper(tensor):
        @staticmethod
        def __new__(cls: Any, inner: Any) -> Any:
            r = tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype, device=inner.device)
            r.inner = inner
            return r

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            def unwrap(a: Any) -> Any:
                return [unwrap(each) for each in a] if isinstance(a, list) else getattr(a, "inner", a)

            result = func(*[unwrap(a) for a in args], **(kwargs or {}))
            return Wrapper(result) if isinstance(result, tensor) else result

    class Copies(tensor):
        def new_empty(self, shape: Any) -> Any:
            return type(self)(shape)

    found = (Plain, Below, Inherits, Both, Later, Above, Wrapper, Copies)
    return {cls.__name__: cls for cls in found}


def _tried(call: Callable[..., Any], *args: Any) -> str:
    try:
        found = call(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return type(found).__name__


def _handlers(library: Any) -> list[Any]:
    """A class with a handler for operators alone has none for functions."""
    told: list[Any] = []
    for name, cls in _classes(library).items():
        disabled = cls.__torch_function__ is library._C._disabled_torch_function_impl
        made = cls(library.ones(2))
        told.append((name, disabled, _tried(lambda t: t + 1, made), _tried(lambda t: t.sum(), made)))
    return told


def _retyped(library: Any) -> list[Any]:
    """What a handler made keeps its class."""
    told: list[Any] = []
    classes = _classes(library)
    plain, wrapper = classes["Plain"], classes["Wrapper"]
    ways: dict[str, Callable[[Any], Any]] = {
        "make": lambda x: library.Tensor._make_subclass(plain, x),
        "same": lambda x: library.Tensor._make_subclass(type(x), x),
        "as": lambda x: x.as_subclass(plain),
        "as tensor": lambda x: x.as_subclass(library.Tensor),
        "call": plain,
        "tensor": library.Tensor,
        "wrapper": lambda x: x.as_subclass(wrapper),
        "copy": copy.deepcopy,
    }
    for name, cls in classes.items():
        told.extend((name, way, _tried(call, cls(library.ones(2)))) for way, call in ways.items())
    return told


def _versions(library: Any) -> list[Any]:
    """`detach` of a wrapper shares its counter, `data` does not."""
    x = _classes(library)["Wrapper"](library.ones(2))
    before = x._version
    x.detach().add_(2)
    first = x._version - before
    x.data.add_(2)
    return [first, x._version - before]


def _plain_method(library: Any) -> list[Any]:
    """A handler that is no classmethod is asked through the instance, after a warning."""

    class Asked(library.Tensor):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return type(self).__name__, func.__name__, len(args)

    x = Asked([1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [library.add(x, 1), x + 1, x.sum(), library.stack([x, x])]


def _positional(library: Any) -> list[Any]:
    wrapper = _classes(library)["Wrapper"]
    options = (library.contiguous_format, library.float64, library.strided, library.device("cpu"), False, False)
    t = library.Tensor._make_wrapper_subclass(wrapper, (2, 3), (3, 1), 0, *options)
    return [tuple(t.shape), t.stride(), str(t.dtype)]


def _declined(library: Any) -> list[Any]:
    class Declines(library.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    x = Declines([1.0])
    return [_tried(lambda: x.clone()).partition(";")[0], _tried(lambda: library.clone(x)).partition(";")[0]]


CALLS = """empty([])|empty(2)|empty(2, dtype=torch.float64, device="cpu")|zeros(2)|ones(2)|full((2,), 3)|rand(2)
randn(2)|randint(3, (2,))|randint(1, 3, (2,))|randint(3, (2,), generator=torch.Generator())|randperm(3)|arange(3)
arange(1, 3)|arange(1, 3, 2)|linspace(0, 1, 3)|logspace(0, 1, 3)|eye(2)|eye(2, 3)|empty_strided((2,), (1,))
tril_indices(2, 2)|zeros_like(torch.ones(2))
scalar_tensor(1)|zeros(2, device="meta")|rand(2, generator=torch.Generator())|ones(2).to(torch.float64)|ones(2).double()
ones(2).to("cpu", torch.float64)|ones(2).to(dtype=torch.float64, copy=True)|ones(2).bool()|ones(2).data
ops.aten.zeros([2])|ops.aten.empty.memory_format([2])|ops.aten.eye.m(2, 3)
ops.aten._foobar(torch.ones(1), False, arg3=False)
"""


def _factories(library: Any) -> list[Any]:
    """Factories by overload, with the device that public functions give."""
    base = library.utils._python_dispatch.TorchDispatchMode
    seen: list[Any] = []

    class Mode(base):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            shown = {k: "..." if k == "generator" else str(v) for k, v in (kwargs or {}).items()}
            seen.append((str(func), str([a for a in args if not isinstance(a, library.Tensor)]), list(shown.items())))
            return func(*args, **(kwargs or {}))

    with Mode():
        for call in CALLS.replace("\n", "|").strip("|").split("|"):
            eval(f"torch.{call}", {"torch": library})
    return seen


def _in_order(library: Any) -> list[Any]:
    """Formulas run by the names of their arguments, and gradients are added from the first edge on."""
    wrapper = _classes(library)["Wrapper"]
    told: list[Any] = []

    class Told(wrapper):
        numbers: list[Any] = []

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*[a.inner if isinstance(a, Told) else a for a in args], **(kwargs or {}))
            made = Told(result)
            told.append((str(func), [a.number for a in args if isinstance(a, Told)], len(told) + 10))
            made.number = len(told) + 9
            return made

    x, g = Told(library.tensor([3.0])), Told(library.tensor([1.0]))
    x.number, g.number = 0, 1
    x.requires_grad_()
    library.autograd.grad((x * x,), (x,), (g,))
    return told


def _key_sets(library: Any) -> list[Any]:
    c = library._C
    x = library.ones(2)
    tensors = (
        x,
        library.ones(2, device="meta"),
        x.to_sparse(),
        library.ones(2, dtype=library.complex64).conj(),
        library._neg_view(x),
        library.nn.Parameter(x),
    )
    told: list[Any] = [(c._dispatch_key_set(t), c._dispatch_isTensorSubclassLike(t)) for t in tensors]
    for name in ("CPU", "Meta", "CUDA", "Conjugate", "AutogradCUDA", "SparseCPU", "Python", "AutocastCPU"):
        keys = c.DispatchKeySet(name)
        told += [str(keys), keys.raw_repr(), str(keys.highestPriorityTypeId())]
    told.append(c._dispatch_call_boxed(c._dispatch_find_schema_or_throw("aten::sin", ""), library.zeros(2)).tolist())
    told.append(_tried(lambda: c._dispatch_find_schema_or_throw("aten::no_such", "")))
    return told


GETTERS = """shape dtype device ndim layout requires_grad grad grad_fn data is_leaf is_cpu is_meta is_sparse itemsize
nbytes output_nr retains_grad _base _version mT real grad_dtype""".split()
METHODS = """dim numel size stride tolist item is_complex is_floating_point double bool to_dense data_ptr element_size
storage_offset is_contiguous __len__ __repr__ untyped_storage is_inference""".split()


def _through_the_class(library: Any) -> list[Any]:
    """What is read through the class asks the handlers of what it is called with, and is what they are given."""
    seen: list[Any] = []

    class Sees(library.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    told: list[Any] = []
    for name in [*GETTERS, *METHODS]:
        x = Sees([[1.0]])
        func = getattr(library.Tensor, name)
        func = func.__get__ if name in GETTERS else func
        seen.clear()
        told.append((name, type(func(x)).__name__, len(seen) > 0 and seen[0] == func))
        seen.clear()
        found = getattr(x, name) if name in GETTERS else getattr(x, name)()
        # Read of a tensor this one is not shown here: the package reads it itself.
        told.append((name, type(found).__name__, name == "grad_dtype" or (len(seen) > 0 and seen[0] == func)))
        told.append((name, getattr(Sees, name) == getattr(library.Tensor, name)))
    return told


def _once(library: Any) -> list[Any]:
    """A function that is let run as it is asks nobody a second time."""
    count = [0]

    class Lets(library.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            count[0] += 1
            return library.overrides.redispatch_function(func, types, args, kwargs)

        def new_empty(self, shape: Any) -> Any:
            return type(self)(shape)

    told: list[Any] = []
    for name in [*GETTERS, *METHODS, "nelement", "ndimension"]:
        x = Lets([[1.0]])
        count[0] = 0
        got = getattr(x, name)
        kind = type(got if name in GETTERS else got()).__name__
        told.append((name, kind, 0 < count[0] < 200 or name == "grad_dtype"))
    return [*told, type(copy.deepcopy(Lets([1.0]))).__name__]


OPERATORS = (
    "floordiv and_ or_ xor lshift rshift iand ior ixor ilshift irshift add sub mul mod pow eq lt iadd imul".split()
)


def _syntax(library: Any) -> list[Any]:
    """Which function of Python's syntax a handler is shown."""
    seen: list[str] = []

    class Sees(library.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    for name in OPERATORS:
        getattr(operator, name)(library.tensor([5, 2]).as_subclass(Sees), 2)
    for name in ("neg", "pos", "invert", "abs"):
        getattr(operator, name)(library.tensor([5, 2]).as_subclass(Sees))
    return seen


def _replaced(library: Any) -> list[Any]:
    """What a user puts into the class is what is found there."""
    before = library.Tensor.__dict__.get("numel")
    kept = library.Tensor.numel
    library.Tensor.numel = lambda self: 7
    try:
        told = [library.Tensor.numel(library.ones(2)), library.ones(2).numel()]
    finally:
        if before is None:
            del library.Tensor.numel
        else:
            library.Tensor.numel = before
    return [*told, library.ones(2).numel(), library.Tensor.numel(library.ones(2)), kept(library.ones(2))]


def _batched_gradients(library: Any) -> list[Any]:
    """Gradients of a wrapper for many vectors at once."""
    wrapper = _classes(library)["Wrapper"]
    x = wrapper(library.tensor([1.0, 2.0, 3.0])).requires_grad_()
    y = x * x
    (g,) = library.autograd.grad(y, x, wrapper(library.eye(3)), is_grads_batched=True)
    basis = library.autograd.functional._construct_standard_basis_for(
        (library.ones(2), library.ones((), dtype=library.float64)), (2, 1)
    )
    return [type(g).__name__, g.inner.tolist(), [(b.tolist(), str(b.dtype)) for b in basis]]


PROGRAMS = [
    _batched_gradients,
    _handlers,
    _retyped,
    _versions,
    _plain_method,
    _positional,
    _declined,
    _factories,
    _in_order,
    _key_sets,
    _through_the_class,
    _once,
    _syntax,
    _replaced,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_both_libraries_tell_the_same(program: Callable[[Any], list[Any]]) -> None:
    assert program(torch) == program(_oracle.load())
