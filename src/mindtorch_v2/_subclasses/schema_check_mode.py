"""`SchemaCheckMode`: operators are watched, and told of if they write or share memory that their schemas do not name.

Invariant: what runs is the operator itself; arguments are compared with copies made before.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import mindtorch_v2 as torch

from .._schema_info import _overlaps, _SchemaArgType, _SchemaArgument, _SchemaInfo
from .._tensor_base import TensorBase
from ..fx.operator_schemas import normalize_function
from ..utils import _pytree as pytree
from ..utils._python_dispatch import TorchDispatchMode

__all__ = ["Aliasing", "Mutation", "SchemaCheckMode", "clone_inputs", "is_iterable_of_tensors"]

# Their schemas leave out the sharing on purpose.
_UNSAFE = frozenset(("aten::_unsafe_view", "aten::unsafe_split"))
# They return their argument on purpose.
_LIFTS = frozenset(("aten::lift", "aten::lift_fresh"))


class Mutation(NamedTuple):
    """An argument that an operator wrote."""

    op_name: str
    arg_name: str


class Aliasing(NamedTuple):
    """An argument that a result shares memory with."""

    op_name: str
    arg_name: str
    output_number: str


def is_iterable_of_tensors(iterable: Any) -> bool:
    """Whether a value is a sequence of tensors, and not empty."""
    if isinstance(iterable, TensorBase):
        return False
    try:
        return len(iterable) > 0 and all(isinstance(t, TensorBase) for t in iterable)
    except TypeError:
        return False


def _copy(t: Any) -> Any:
    return t.detach().clone()


def clone_inputs(args: Any) -> list[Any]:
    """The values with tensors copied."""
    return [
        _copy(a) if isinstance(a, TensorBase) else [_copy(t) for t in a] if is_iterable_of_tensors(a) else a
        for a in args
    ]


def _inner(value: Any) -> Any:
    """What a wrapper of a tensor holds as `elem`."""
    wrapped = isinstance(value, TensorBase) and type(value) is not torch.Tensor
    return getattr(value, "elem", value) if wrapped else value


def _place(value: Any) -> tuple[tuple[int, ...], int] | None:
    """Strides and storage of a tensor that has them."""
    inner = _inner(value)
    if type(inner) is not torch.Tensor or inner.layout is not torch.strided:
        return None
    return inner.stride(), inner.untyped_storage()._cdata


def _changed(before: Any, after: Any, place: tuple[tuple[int, ...], int] | None) -> bool:
    plain = type(before) is torch.Tensor and type(after) is torch.Tensor
    if not plain or place is None or torch.sparse_csr in (before.layout, after.layout):
        return False
    return (
        before.size() != after.size()
        or not torch.allclose(before, after, equal_nan=True)
        or place != (after.stride(), after.untyped_storage()._cdata)
    )


class SchemaCheckMode(TorchDispatchMode):
    """Inside, operators that break their schemas raise; `ops`, `mutated` and `aliasing` keep what was seen."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[str] = []
        self.mutated: list[Mutation] = []
        self.aliasing: list[Aliasing] = []

    def reset_cache(self) -> None:
        """Forget what was seen."""
        for seen in (self.ops, self.mutated, self.aliasing):
            seen.clear()

    def display_ops(self) -> None:
        """Print the names of the operators."""
        print(*self.ops, sep=",")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        self.ops.append(name)
        normal = normalize_function(func, args, kwargs, normalize_to_only_use_kwargs=True)
        if normal is None:
            raise RuntimeError(f"Tried to execute {name} with arguments that fit none of its signatures")
        given: dict[str, Any] = normal.kwargs
        before = {k: pytree.tree_map(_inner, v) for k, v in zip(given, clone_inputs(given.values()))}
        places = {k: [_place(leaf) for leaf in pytree.tree_leaves(v)] for k, v in given.items()}
        out = func(*args, **(kwargs or {}))
        after = {k: pytree.tree_map(_inner, v) for k, v in given.items()}
        results = pytree.tree_map(_inner, out if isinstance(out, tuple) else (out,))
        info = _SchemaInfo(func._schema)
        info.add_argument_values(given)
        for i, argument in enumerate(func._schema.arguments):
            label = "input" if argument.name == "self" else argument.name
            if after.get(label) is None:
                continue
            self._check_aliases(info, name, i, label, after[label], results)
            leaves = zip(pytree.tree_leaves(before[label]), pytree.tree_leaves(after[label]), places[label])
            if any(_changed(*leaf) for leaf in leaves):
                if not info.is_mutable(_SchemaArgument(_SchemaArgType.input, i)):
                    raise RuntimeError(f"Argument {label} is not defined as mutable but was mutated")
                self.mutated.append(Mutation(name, label))
        for i, j in combinations(range(len(func._schema.returns)), 2):
            one, other = (_SchemaArgument(_SchemaArgType.output, k) for k in (i, j))
            if _overlaps(results[i], results[j]) and not info.may_contain_alias(one, other):
                raise RuntimeError(f"Outputs {i} and {j} alias unexpectedly")
        return out

    def _check_aliases(self, info: _SchemaInfo, op: str, i: int, label: str, after: Any, results: Any) -> None:
        """Whether the results may share memory with argument `i`, where they do."""
        argument = _SchemaArgument(_SchemaArgType.input, i)
        for j, result in enumerate(results):
            if op not in _UNSAFE and _overlaps(result, after):
                if not info.may_contain_alias(_SchemaArgument(_SchemaArgType.output, j), argument):
                    raise RuntimeError(f"Argument {label} is not defined to alias output but was aliasing")
                self.aliasing.append(Aliasing(op, label, f"output_{j}"))
            if result is after and isinstance(after, TensorBase) and op not in _LIFTS and not info.is_mutable(argument):
                raise RuntimeError(
                    "Dispatcher operators below autograd are not allowed to directly return inputs.\n"
                    f"However, we found that `outputs[{j}] is {label}"
                )
