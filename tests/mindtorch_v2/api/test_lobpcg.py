"""`torch.lobpcg`: PyTorch's eigenpairs, in as many steps, and their derivatives.

Invariant: the same start leads both libraries through the same steps; eigenvectors are compared up to their sign.
"""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

CASES = [
    dict(m=20, k=2),
    dict(m=30, k=3, n=5, largest=False),
    dict(m=30, k=2, method="basic", B=True),
    dict(m=40, k=3, largest=False, method="ortho", B=True, iK=True),
    dict(m=21, k=2, ortho_bparams={"ortho_use_drop": True}),
    dict(m=15, k=2, niter=3, batch=(2, 2)),
]


def positive(t: Any, m: int, batch: tuple[int, ...], seed: int) -> Any:
    t.manual_seed(seed)
    a = t.randn(*batch, m, m, dtype=t.float64)
    return a @ a.mT + t.eye(m, dtype=t.float64)


def run(t: Any, m: int, k: int, B: bool = False, iK: bool = False, batch: tuple[int, ...] = (), **options: Any) -> Any:
    a = positive(t, m, batch, m)
    b = positive(t, m, batch, 1) + m * t.eye(m, dtype=t.float64) if B else None
    t.manual_seed(3)
    steps: list[int] = []
    E, X = t.lobpcg(
        a,
        k,
        b,
        iK=t.linalg.inv(a) if iK else None,
        tracker=lambda worker: steps.append(worker.ivars["istep"]),
        **options,
    )
    return a, b, E, X, steps


@pytest.mark.parametrize("case", CASES)
def test_pairs_are_eigenpairs(case: dict[str, Any]) -> None:
    a, b, E, X, _ = run(torch, **case)
    left, right = a @ X, (X if b is None else b @ X) * E.unsqueeze(-2)
    if "niter" not in case:
        assert torch.allclose(left, right, rtol=1e-4, atol=1e-4 * float(a.abs().max()))
    assert tuple(E.shape) == (*a.shape[:-2], case["k"])


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_steps_are_pytorchs(case: dict[str, Any]) -> None:
    (*_, E, X, steps), (*_, E2, X2, steps2) = run(torch, **case), run(_oracle.load(), **case)
    assert steps == steps2
    assert E.tolist() == pytest.approx(E2.tolist(), rel=1e-9) if not case.get("batch") else True
    flat, flat2 = X.abs().flatten().tolist(), X2.abs().flatten().tolist()
    assert flat == pytest.approx(flat2, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("largest", [True, False])
def test_gradients(largest: bool) -> None:
    a = positive(torch, 9, (), 5).requires_grad_()

    def pairs(a: Any) -> Any:
        torch.manual_seed(1)
        E, X = torch.lobpcg(a, 2, largest=largest, tol=1e-13, niter=200)
        return E, X.abs()

    assert torch.autograd.gradcheck(pairs, a)
    assert torch.autograd.gradgradcheck(pairs, a, atol=1e-4)


def wrong(t: Any) -> list[str]:
    found = []
    for call in (
        lambda: t.lobpcg(t.ones(2, 3)),
        lambda: t.lobpcg(t.ones(3, 3), 1, t.ones(4, 4)),
        lambda: t.lobpcg(t.ones(5, 5), 2),
        lambda: t.lobpcg(t.ones(9, 9), X=t.ones(8, 2)),
        lambda: t.lobpcg(t.eye(9, requires_grad=True), 1, t.eye(9), niter=2)[0].sum().backward(),
    ):
        try:
            call()
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


@pytest.mark.oracle
def test_refusals_are_pytorchs() -> None:
    assert wrong(torch) == wrong(_oracle.load())
