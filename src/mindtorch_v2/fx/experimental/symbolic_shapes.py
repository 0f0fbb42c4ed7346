"""Questions about sizes which could be symbols. Sizes are numbers here, so that each has its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._unserved import offer as _offer


def guard_or_true(a: Any) -> bool:
    """The truth of a condition; what is not known would count as true."""
    return bool(a)


def guard_or_false(a: Any) -> bool:
    """The truth of a condition; what is not known would count as false."""
    return bool(a)


guard_size_oblivious = statically_known_true = definitely_true = guard_bool = guard_or_false


def statically_known_false(a: Any) -> bool:
    """Whether a condition is known to be false."""
    return not a


definitely_false = statically_known_false


def guard_int(a: Any) -> int:
    """The number."""
    return int(a)


def guard_float(a: Any) -> float:
    """The number."""
    return float(a)


def guard_scalar(a: Any) -> Any:
    """The number."""
    return a


def hint_int(a: Any, fallback: int | None = None) -> int:
    """The number."""
    return int(a)


def size_hint(a: Any, *, allow_none: bool = False) -> int:
    """The number."""
    return int(a)


def has_hint(a: Any) -> bool:
    """Whether a number is known."""
    return True


def is_concrete_int(a: Any) -> bool:
    """Whether a number is known."""
    return isinstance(a, int)


is_concrete_bool = is_concrete_float = is_concrete_int


def is_symbolic(val: Any) -> bool:
    """Whether a number is a symbol: none is."""
    return False


def is_nested_int(s: Any) -> bool:
    """Whether a size is that of a ragged dimension: none is."""
    return False


def free_symbols(val: Any) -> set[Any]:
    """The symbols in a value: none."""
    return set()


def free_unbacked_symbols(x: Any) -> set[Any]:
    """The symbols of unknown value in a value: none."""
    return set()


def has_free_symbols(val: Any) -> bool:
    """Whether there are symbols in a value."""
    return False


def has_free_unbacked_symbols(x: Any) -> bool:
    """Whether there are symbols of unknown value in a value."""
    return False


def sym_eq(x: Any, y: Any) -> bool:
    """Whether sizes, or tuples of sizes, are equal."""
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return len(x) == len(y) and all(sym_eq(a, b) for a, b in zip(x, y))
    return bool(x == y)


def sym_and(x: Any, *others: Any) -> bool:
    """Whether all are true."""
    return bool(x) and all(others)


def sym_or(x: Any, *others: Any) -> bool:
    """Whether one is true."""
    return bool(x) or any(others)


def expect_true(a: Any, skip: int = 0) -> bool:
    """The truth of a condition."""
    return bool(a)


def guarding_hint_or_throw(a: Any) -> Any:
    """The number."""
    return a


def fx_placeholder_vals(gm: Any) -> list[Any]:
    """What the placeholders of a graph stand for."""
    return [n.meta["val"] for n in gm.graph.nodes if n.op == "placeholder"]


def fx_placeholder_targets(gm: Any) -> list[str]:
    """The names of a graph's placeholders."""
    return [n.target for n in gm.graph.nodes if n.op == "placeholder"]


class GuardOnDataDependentSymNode(RuntimeError):
    """Raised by PyTorch where a program depends on an unknown size."""


class PendingUnbackedSymbolNotFound(RuntimeError):
    """Raised by PyTorch where a symbol is lost."""


class ConstraintViolationError(RuntimeError):
    """Raised by PyTorch where sizes break a promise."""


@dataclass(frozen=True)
class ShapeEnvSettings:
    """How symbols are made and guarded."""

    allow_scalar_outputs: bool
    allow_dynamic_output_shape_ops: bool
    assume_static_by_default: bool
    specialize_zero_one: bool
    duck_shape: bool
    prefer_deferred_runtime_asserts_over_guards: bool
    trace_asserts: bool


class ShapeEnv:
    """What programs set about symbols of sizes. Sizes are numbers here: asking for a symbol is refused."""

    def __init__(
        self,
        *,
        should_record_events: bool | None = None,
        tracked_fakes: list[Any] | None = None,
        allow_scalar_outputs: bool = True,
        allow_dynamic_output_shape_ops: bool = True,
        assume_static_by_default: bool = False,
        specialize_zero_one: bool = True,
        duck_shape: bool | None = None,
        co_fields: dict[str, str] | None = None,
        prefer_deferred_runtime_asserts_over_guards: bool = False,
        trace_asserts: bool = False,
    ) -> None:
        self.settings = ShapeEnvSettings(
            allow_scalar_outputs,
            allow_dynamic_output_shape_ops,
            assume_static_by_default,
            specialize_zero_one,
            True if duck_shape is None else duck_shape,
            prefer_deferred_runtime_asserts_over_guards,
            trace_asserts,
        )
        self.should_record_events = bool(should_record_events)
        self.tracked_fakes = tracked_fakes
        self.co_fields = co_fields or {}

    def __getattr__(self, name: str) -> Any:
        if name != "settings" and name in ShapeEnvSettings.__dataclass_fields__:
            return getattr(self.settings, name)
        if name in _OF_SYMBOLS:
            raise NotImplementedError(f"{__name__}.ShapeEnv.{name}: there are no symbolic sizes here")
        raise AttributeError(f"'ShapeEnv' object has no attribute '{name}'")


# What PyTorch's has for symbols and guards.
_OF_SYMBOLS = frozenset(
    """add_backed_var_to_val add_var_to_val axioms backed_var_to_val bind_symbols bound_sympy check_equal
    constrain_symbol_range
    create_symbol create_symbolic_sizes_strides_storage_offset create_symboolnode create_symfloatnode create_symintnode
    create_unbacked_symbool create_unbacked_symfloat create_unbacked_symint create_unspecified_symbol
    create_unspecified_symint_and_symbol deferred_runtime_asserts deserialize_symexpr evaluate_expr
    evaluate_guards_expression evaluate_guards_for_args evaluate_sym_node evaluate_symexpr format_guards freeze
    freeze_runtime_asserts get_axioms get_implications get_nontrivial_guards get_pruned_guards guards
    guard_or_defer_runtime_assert produce_guards produce_guards_expression produce_guards_verbose replace replacements
    simplify size_hint suppress_guards var_to_range var_to_val""".split()
)


_offer(
    __name__,
    "bind_symbols eval_guards eval_is_non_overlapping_and_dense lru_cache canonicalize_bool_expr constrain_range "
    "constrain_unify _constrain_range_for_size rebind_unbacked resolve_unbacked_bindings compute_unbacked_bindings",
    "CallMethodKey ConvertIntKey DimConstraints DimDynamic DivideByKey DynamicDimConstraintPrinter InnerTensorKey "
    "PropagateUnbackedSymInts RelaxedUnspecConstraint StatefulSymbolicContext "
    "StatelessSymbolicContext StrictMinMaxConstraint SubclassSymbolicContext SymbolicContext SYMPY_INTERP",
    "{name}: there are no symbolic sizes here",
)
