"""The emulator's linear algebra and distances against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from ._cases import FLOATS, Built, Case, Maker, each, run  # noqa: E402
from ._kernels import Out, Refused, call, refused  # noqa: E402

pytestmark = pytest.mark.oracle
WIDE = ("float32", "float64", "complex64", "complex128")
TOLERANCE = 16  # of factors of small matrices, in units of the dtype's own


def wide(x: Any) -> Any:
    return x.to(torch.complex128 if x.is_complex() else torch.float64)


def positive(t: Maker, *shape: int) -> Any:
    x = wide(t(*shape))
    return (x @ x.mH + torch.eye(shape[-1])).to(getattr(torch, t.dtype))


def cholesky(upper: bool) -> Case:
    def build(t: Maker) -> Built:
        x = positive(t, 2, 3, 3)
        return {"self": x, "upper": upper}, {"out": torch.linalg.cholesky(wide(x), upper=upper).to(x.dtype)}

    return Case("aclnnLinalgCholesky", ("float32", "bfloat16"), build, TOLERANCE, ("dense",))


def triangular(upper: bool, transpose: bool, unit: bool) -> Case:
    def build(t: Maker) -> Built:
        b, a = t(2, 3, 4), t(2, 3, 3) + 3 * torch.eye(3)
        m = wide(a).mT if transpose else wide(a)
        x = torch.linalg.solve_triangular(m, wide(b), upper=upper != transpose, unitriangular=unit)
        return (
            {"self": b, "A": a, "upper": upper, "transpose": transpose, "unitriangular": unit},
            {"xOut": x.to(b.dtype), "mOut": a.contiguous()},
        )

    return Case("aclnnTriangularSolve", WIDE, build, TOLERANCE)


def slogdet(t: Maker) -> Built:
    x = t(2, 3, 3)
    sign, log = torch.linalg.slogdet(wide(x))
    return {"self": x}, {"signOut": sign.to(x.dtype), "logOut": log.to(x.dtype)}


def logdet(t: Maker) -> Built:
    x = positive(t, 2, 3, 3)
    return {"self": x}, {"out": torch.logdet(wide(x)).to(x.dtype)}


def distances(p: float) -> list[Case]:
    def forward(t: Maker) -> Built:
        a, b = t(2, 3, 4), t(2, 5, 4)
        return {"x1": a, "x2": b, "p": p, "compute_mode": 0}, {"out": torch.cdist(wide(a), wide(b), p).to(a.dtype)}

    def backward(t: Maker) -> Built:
        a, b, g = t(2, 3, 4), t(2, 5, 4), t(2, 3, 5)
        # The greatest difference is recognised by being equal to the distance: rounded, none would be.
        d = torch.cdist(wide(a), wide(b), p)
        want = torch.ops.aten._cdist_backward(wide(g), wide(a), wide(b), p, d)
        return {"grad": g, "x1": a, "x2": b, "cdist": d.to(a.dtype), "p": p}, {"out": want.to(a.dtype)}

    return [
        Case("aclnnCdist", FLOATS, forward),
        Case("aclnnCdistBackward", FLOATS, backward, 2),
        Case(
            "aclnnPdist",
            FLOATS[:2],
            lambda t: ({"self": (x := t(5, 3)), "p": p}, {"out": torch.pdist(wide(x).contiguous(), p).to(x.dtype)}),
        ),
    ]


CASES = [
    cholesky(False),
    cholesky(True),
    *(triangular(u, t, n) for u in (False, True) for t in (False, True) for n in (False, True)),
    Case("aclnnSlogdet", WIDE, slogdet, TOLERANCE),
    Case("aclnnLogdet", WIDE, logdet, TOLERANCE),
    Case(
        "aclnnInverse",
        ("float32", "float16"),
        lambda t: ({"self": (x := positive(t, 2, 3, 3))}, {"out": torch.linalg.inv(wide(x)).to(x.dtype)}),
        TOLERANCE,
    ),
    *(case for p in (0.0, 1.0, 1.5, 2.0, 3.0, float("inf")) for case in distances(p)),
    Case(
        "aclnnLinalgCross",
        (*FLOATS, "int32", "int64", "uint8", "complex64"),
        lambda t: (
            {"self": (x := t(2, 3, 4)), "other": (y := t(1, 3, 4)), "dim": 1},
            {"out": torch.linalg.cross(x, y, dim=1)},
        ),
        4,
    ),
]


@each(CASES)
def test_values(case: Case, dtype: str, layout: str) -> None:
    run(case, dtype, layout)


def close(a: Any, b: Any, dtype: str) -> None:
    limit = 1e-5 if dtype in ("float32", "complex64") else 1e-12
    assert (a - b).abs().max() <= limit * max(1, b.abs().max())


def orthonormal(q: Any, dtype: str) -> None:
    close(q.mH @ q, torch.eye(q.shape[-1]).to(q).expand(*q.shape[:-2], -1, -1), dtype)


def random(dtype: str, *shape: int) -> Any:
    return torch.randn(*shape, dtype=getattr(torch, dtype), generator=torch.Generator().manual_seed(7))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [(2, 4, 3), (3, 5), (3, 3)])
@pytest.mark.parametrize(
    ("name", "argument", "mode"),
    [
        ("aclnnLinalgQr", {"mode": 0}, "reduced"),
        ("aclnnLinalgQr", {"mode": 1}, "complete"),
        ("aclnnLinalgQr", {"mode": 2}, "r"),
        ("aclnnQr", {"some": True}, "reduced"),
        ("aclnnQr", {"some": False}, "complete"),
    ],
)
def test_qr(dtype: str, shape: tuple[int, ...], name: str, argument: dict[str, Any], mode: str) -> None:
    x = random(dtype, *shape).mT.contiguous().mT  # strided
    q, r = torch.linalg.qr(wide(x), mode="reduced" if mode == "r" else mode)
    got = call(
        name, self=x, **argument, Q=Out((0,) if mode == "r" else tuple(q.shape), dtype), R=Out(tuple(r.shape), dtype)
    )
    upper = wide(torch.from_numpy(got[1]))
    close(upper.abs(), r.abs(), dtype)  # up to signs, the factor is unique
    close(upper, upper.triu(), dtype)
    if mode != "r":
        basis = wide(torch.from_numpy(got[0]))
        orthonormal(basis, dtype)
        close(basis @ upper, wide(x), dtype)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(2, 4, 3), (3, 5), (3, 3)])
def test_svd(dtype: str, full: bool, shape: tuple[int, ...]) -> None:
    x = random(dtype, *shape)
    if shape == (3, 3):
        x[2] = x[1]  # of lower rank
    u, s, vh = torch.linalg.svd(wide(x), full_matrices=full)
    v = vh.mH
    sigma, left, right = (
        wide(torch.from_numpy(a))
        for a in call(
            "aclnnSvd",
            input=x,
            fullMatrices=full,
            computeUV=True,
            sigma=Out(tuple(s.shape), dtype),
            u=Out(tuple(u.shape), dtype),
            v=Out(tuple(v.shape), dtype),
        )
    )
    close(sigma.real, s, dtype)
    orthonormal(left, dtype)
    orthonormal(right, dtype)
    k = s.shape[-1]
    close(left[..., :k] * sigma.unsqueeze(-2) @ right[..., :k].mH, wide(x), dtype)


def test_singular_values_alone() -> None:
    x = random("float32", 3, 4)
    sigma = call(
        "aclnnSvd", input=x, fullMatrices=False, computeUV=False, sigma=Out((3,)), u=Out((1, 1)), v=Out((1, 1))
    )[0]
    close(torch.from_numpy(sigma), torch.linalg.svdvals(x), "float32")


def test_a_singular_matrix() -> None:
    sign, log = call("aclnnSlogdet", self=torch.ones(2, 2), signOut=Out(()), logOut=Out(()))
    assert (float(sign), float(log)) == (0, -float("inf"))
    with pytest.raises(Refused, match="cannot be inverted") as caught:
        call("aclnnInverse", self=torch.zeros(2, 2), out=Out((2, 2)))
    assert caught.value.code == 507015
    with pytest.raises(Refused, match="positive definite"):
        call("aclnnLinalgCholesky", self=-torch.eye(2), upper=False, out=Out((2, 2)))


X = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("aclnnInverse", {"self": X, "out": Out((2, 3))}, 161002),
        ("aclnnInverse", {"self": None, "out": Out((2, 3))}, 161001),
        ("aclnnLinalgQr", {"self": X, "mode": 3, "Q": Out((2, 2)), "R": Out((2, 3))}, 161002),
        ("aclnnCdist", {"x1": X, "x2": torch.ones(4, 2), "p": 2.0, "compute_mode": 0, "out": Out((2, 4))}, 161002),
        ("aclnnCdist", {"x1": X, "x2": X, "p": -1.0, "compute_mode": 0, "out": Out((2, 2))}, 161002),
        ("aclnnLinalgCross", {"self": X, "other": X, "dim": 0, "out": Out((2, 3))}, 161002),
    ],
)
def test_refusals(name: str, arguments: dict[str, Any], code: int) -> None:
    assert refused(name, **arguments) == code
