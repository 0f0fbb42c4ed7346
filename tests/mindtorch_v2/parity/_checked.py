"""`gradcheck` of operators on PyTorch's samples: reverse and forward mode, alone and in batches, in its fast mode.

Invariant: a sample counts only if PyTorch's own operator passes the same check.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .. import _oracle
from .._subject import subject as torch
from . import _infos, _own

DTYPES = ("float64", "complex128")
# Larger samples take their time, and show no more.
LIMIT = 60
# Differences of larger numbers have few digits.
LARGE = 1e5


def covered() -> list[_infos.Covered]:
    """Operators that have gradients, and no dice."""
    return [case for case in _infos.covered() if case.info.supports_autograd and case.row not in _own.RANDOM_ROWS]


def _apart(value: Any, library: Any) -> tuple[list[Any], Callable[..., Any]]:
    """Tensors of a call that want gradients, and how others are put in their place."""
    leaves: list[Any] = []

    class Place(int):
        pass

    def take(t: Any) -> Any:
        if not t.requires_grad:
            return t
        leaves.append(t)
        return Place(len(leaves) - 1)

    kept = _oracle.tree_map(take, value, lambda v: isinstance(v, library.Tensor))

    def put(given: Any) -> Any:
        return _oracle.tree_map(lambda i: given[int(i)], kept, lambda v: isinstance(v, Place))

    return leaves, put


def _results(value: Any, library: Any) -> tuple[Any, ...]:
    found: list[Any] = []
    _oracle.tree_map(found.append, [value], lambda v: isinstance(v, library.Tensor))
    return tuple(found)


def _check(case: _infos.Covered, fn: Callable[..., Any], call: Any, process: Any, library: Any) -> str:
    """ "" where the check passes, else why not."""
    info = case.info
    leaves, put = _apart(call, library)
    if not leaves or sum(t.numel() for t in leaves) > LIMIT or any(t.numel() == 0 for t in leaves):
        return ""
    if any(float(t.detach().abs().max()) > LARGE for t in leaves):
        return ""

    def every(given: Any) -> tuple[Any, ...]:
        args, kwargs = put(given)
        library.manual_seed(0)
        return _results(process(wrapper(fn, *args, **kwargs)), library)

    def run(*given: Any) -> tuple[Any, ...]:
        # By place: forward mode is given tensors that are not recorded, whose results require no gradient.
        results = every(given)
        return tuple(results[i] for i in recorded)

    wrapper = info.gradcheck_wrapper
    if library is torch:
        wrapper = _infos.rebound(wrapper) or wrapper
    forward = bool(info.supports_forward_ad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            recorded = [i for i, t in enumerate(every(leaves)) if t.requires_grad]
            if not recorded:
                return ""
            library.autograd.gradcheck(
                run,
                tuple(leaves),
                check_forward_ad=forward,
                check_batched_grad=info.check_batched_grad,
                check_batched_forward_grad=forward and info.check_batched_forward_grad,
                nondet_tol=info.gradcheck_nondet_tol,
                fast_mode=True,
            )
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return ""


def verdicts(case: _infos.Covered, dtype: str, count: int) -> Iterator[str]:
    """For each sample "" or what the check says of it; without samples for which PyTorch's own fails."""
    oracle = _oracle.load()
    info = case.info
    for sample in _infos.samples(info, dtype, requires_grad=True, count=count):
        call = list(_infos.arguments(sample))
        process = sample.output_process_fn_grad
        ours = [_oracle.convert_argument(part) for part in call]
        found = _check(case, _infos.in_subject(info), ours, process, torch)
        if found and not _check(case, _infos.in_oracle(info), _infos.fresh(call), process, oracle):
            yield f"{case.label} {dtype} {_infos.describe(sample)}: {found}"
        else:
            yield ""
