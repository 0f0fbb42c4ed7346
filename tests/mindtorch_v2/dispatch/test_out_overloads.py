"""The `out=` overloads of `torch.ops.aten`: PyTorch's names, and PyTorch's results for the calls that its own samples
make of the functional overloads.

Invariant: a form that no sample reaches is compared by its schema all the same.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from typing import Any

import pytest

from .. import _oracle
from .._subject import mindtorch_only, submodule
from .._subject import subject as torch

pytestmark = [mindtorch_only, pytest.mark.oracle]
# What samples reach, random numbers excepted: enough that the test is known to compare something.
LEAST = 150
# Results that are random, or memory that nobody wrote.
RANDOM = frozenset(
    "bernoulli multinomial normal_functional native_dropout uniform exponential geometric log_normal cauchy poisson "
    "binomial _sample_dirichlet _standard_gamma rrelu_with_noise new_empty empty_like random".split()
)
# What the functional overload answers otherwise already, and where PyTorch's form fails.
KNOWN = {
    "_ctc_loss": "the second result is for PyTorch's derivative; ours works it out again",
    "_embedding_bag": "PyTorch's second result is empty where its kernel did not need it",
    "_unique2": "positions and counts that nobody asked for have no elements in PyTorch, and no dimensions here",
    "binary_cross_entropy": "PyTorch averages over what `out` held before",
    "binary_cross_entropy_backward": "PyTorch does not resize",
}
# Matrices that PyTorch leaves in the order of the library that computed them.
ANY_ORDER = frozenset({"_linalg_eigh", "_linalg_solve_ex"})

# Columns that are known up to their sign, which libraries of linear algebra choose in ways of their own.
UP_TO_SIGN = {"_linalg_eigh": 1}


def _signed(columns: Any) -> Any:
    """Columns whose largest element is positive."""
    largest = columns.gather(-2, columns.abs().argmax(-2, keepdim=True))
    return columns * largest.sign()


def _outs() -> dict[str, tuple[str, tuple[str, ...]]]:
    found: dict[str, tuple[str, tuple[str, ...]]] = submodule("_api.out_names").OUTS
    return found


def _overloads(name: str) -> tuple[Any, Any]:
    """The form with `out=` of both libraries, by the functional overload."""
    base, overload = name.partition(".")[0], _outs()[name][0]
    return getattr(getattr(_oracle.load().ops.aten, base), overload), getattr(getattr(torch.ops.aten, base), overload)


def _arguments(overload: Any) -> list[tuple[str, bool, bool]]:
    return [(a.name, a.kwarg_only, a.is_out) for a in overload._schema.arguments]


def test_schemas_name_what_pytorchs_do() -> None:
    wrong = [name for name in sorted(_outs()) if len({str(_arguments(form)) for form in _overloads(name)}) > 1]
    assert not wrong


@functools.cache
def _calls() -> dict[str, tuple[Any, Any]]:
    """One call of each functional overload that PyTorch's samples make, forward or backward."""
    oracle = _oracle.load()
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_map

    calls: dict[str, tuple[Any, Any]] = {}

    def kept(value: Any) -> Any:
        return value.detach().clone() if isinstance(value, oracle.Tensor) else value

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func._opname if func._overloadname == "default" else f"{func._opname}.{func._overloadname}"
            if func.namespace == "aten" and name in _outs() and name not in calls:
                calls[name] = tree_map(kept, (args, kwargs or {}))
            return func(*args, **(kwargs or {}))

    for info in _oracle.load_op_db():
        dtype = oracle.float32 if oracle.float32 in info.dtypes else oracle.int64
        if dtype not in info.dtypes:
            continue
        differentiable = info.supports_autograd and dtype.is_floating_point
        try:
            for sample in itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=differentiable), 1):
                with Recorder():
                    result = info(sample.input, *sample.args, **sample.kwargs)
                    first = result[0] if isinstance(result, (tuple, list)) and result else result
                    if isinstance(first, oracle.Tensor) and first.requires_grad and not first.is_complex():
                        first.sum().backward()
        except (RuntimeError, NotImplementedError, TypeError, ValueError, AssertionError):
            continue  # a sample that a recorder cannot see through: others reach the same overloads
    return calls


def _given(library: Any, form: Any, args: Any, kwargs: Any, dtypes: list[Any]) -> Any:
    """Call a form with new tensors for its results; those are the answer."""
    outs = [[library.empty(0, dtype=d) for d in one] if isinstance(one, list) else library.empty(0, dtype=one)
            for one in dtypes]  # fmt: skip
    names = [a.name for a in form._schema.arguments if a.is_out]
    form(*args, **kwargs, **dict(zip(names, outs, strict=True)))
    return outs


@pytest.mark.filterwarnings("ignore")
def test_results_are_pytorchs() -> None:
    oracle = _oracle.load()
    compared = 0
    wrong: list[str] = []
    for name, (args, kwargs) in sorted(_calls().items()):
        if (
            name in KNOWN
            or name.partition(".")[0] in RANDOM
            or any(t.layout is not oracle.strided for t in (*args, *kwargs.values()) if isinstance(t, oracle.Tensor))
        ):
            continue
        theirs, ours = _overloads(name)
        packet = getattr(oracle.ops.aten, name.partition(".")[0])
        results = getattr(packet, name.partition(".")[2] or "default")(*args, **kwargs)
        single = not isinstance(results, tuple)
        shown = [[t.dtype for t in r] if isinstance(r, list) else r.dtype for r in ((results,) if single else results)]
        mine = _oracle.tree_map(lambda d: _oracle.dtype_in(torch, d), shown, lambda d: isinstance(d, oracle.dtype))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                want = _given(oracle, theirs, args, kwargs, shown)
            except (RuntimeError, NotImplementedError):
                continue  # PyTorch's form refuses what its functional overload takes
        compared += 1
        try:
            got = _given(torch, ours, *_oracle.convert_argument((list(args), dict(kwargs))), mine)
            if name in UP_TO_SIGN:
                for found in (got, want):
                    found[UP_TO_SIGN[name]] = _signed(found[UP_TO_SIGN[name]])
            _oracle.assert_same(got, want, rtol=1e-4, atol=1e-5, stride=name not in ANY_ORDER)
        except (AssertionError, RuntimeError, NotImplementedError, TypeError, ValueError) as error:
            wrong.append(f"{name}: {str(error)[:200]}")
    assert not wrong, "\n".join(wrong)
    assert compared >= LEAST


def test_results_of_several_are_named_as_pytorchs() -> None:
    """`torch.ops.aten.linalg_qr.out(a, Q=q, R=r)`."""
    oracle = _oracle.load()
    names = "frexp.Tensor_out histogram.bin_ct_out linalg_eig.out linalg_lu.out linalg_lu_factor.out linalg_qr.out"
    names += " linalg_lstsq.out linalg_slogdet.out linalg_solve_ex.out"
    for name in names.split():
        base, overload = name.split(".")
        ours, theirs = (getattr(getattr(lib.ops.aten, base), overload) for lib in (torch, oracle))
        assert _arguments(ours) == _arguments(theirs), name
