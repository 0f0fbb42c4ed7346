"""Calls that are planned by shapes alone: Fourier transforms by length and dimension, sums of Einstein by equation, and
one small matrix that LAPACK is asked about."""

from __future__ import annotations

from typing import Any

import pytest

from .. import _oracle
from .._subject import subject as torch

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
# Powers of two, lengths of small factors, odd ones, and primes.
LENGTHS = (1, 2, 4, 6, 7, 9, 11, 12, 15, 16, 30)
SIZES = {"i": 2, "j": 3, "k": 4, "l": 5, "b": 2}
EQUATIONS = (
    *("ij,jk,kl->il", "i,ij,j->", "ij,jk,kl,li->", "i,j,k->kji", "ij,kl,jk->li", "ij,ij,ij->ij", "ij,jk,ki->i"),
    *("...ij,...jk->...ik", "...ij,...jk", "...i,...i,...i", "b...i,b...i->b...", "...ij->ij", "i...->...i"),
    *("ij,j,k->ik", "ij,kl->", "ii->i", "ii,i->i", "ii", "iij->j", "jii->ij", "iii->i", "ibi->bi", "b...ii->b..."),
)


def same(mine: Any, theirs: Any, dtype: str = "float32") -> None:
    close = 1e-5 if dtype == "float32" else 1e-12
    _oracle.assert_same(mine, theirs, rtol=close, atol=close)


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ONE)
def test_transforms_of_every_kind_of_length_along_every_dimension(name: str, dtype: str) -> None:
    oracle = _oracle.load()
    for n in LENGTHS:
        for shape, dim in (((n,), 0), ((n, 3), 0), ((2, n), 1), ((2, n, 3), 1)):
            if name in ("irfft", "hfft") and n == 1:
                continue
            x = oracle.rand(shape, dtype=getattr(oracle, dtype))
            for norm in (None, "ortho"):
                found = getattr(torch.fft, name)(_oracle.from_oracle(x), dim=dim, norm=norm).resolve_conj()
                same(found, getattr(oracle.fft, name)(x, dim=dim, norm=norm).resolve_conj(), dtype)


@pytest.mark.oracle
@pytest.mark.parametrize("dims", [(1, 2), (0, 3), (2, 0), (3, 1), (0, 1, 2)])
def test_transforms_of_several_dimensions_in_any_order(dims: tuple[int, ...]) -> None:
    oracle = _oracle.load()
    x, z = oracle.rand(3, 6, 10, 4), oracle.rand(3, 6, 10, 4, dtype=oracle.complex64)
    for name, given in (("fftn", z), ("ifftn", z.transpose(1, 2)), ("irfftn", z), ("rfftn", x), ("hfftn", z)):
        found = getattr(torch.fft, name)(_oracle.from_oracle(given), dim=dims)
        theirs = getattr(oracle.fft, name)(given, dim=dims)
        _oracle.assert_same(found, theirs, rtol=1e-5, atol=1e-6 * float(theirs.abs().max()))


@pytest.mark.oracle
@pytest.mark.parametrize("equation", EQUATIONS)
@pytest.mark.parametrize("under", [(), (2,), (2, 3)])
def test_sums_of_any_number_of_operands(equation: str, under: tuple[int, ...]) -> None:
    oracle = _oracle.load()
    parts = equation.partition("->")[0].replace("...", ".").split(",")
    shapes = [[n for c in part for n in (under if c == "." else (SIZES[c],))] for part in parts]
    given = [oracle.rand(tuple(shape)) for shape in shapes]
    same(torch.einsum(equation, *map(_oracle.from_oracle, given)), oracle.einsum(equation, *given))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (1, 1), (2, 4, 4)])
def test_factors_give_the_matrix_again(shape: tuple[int, ...], dtype: str) -> None:
    torch.manual_seed(0)
    x = torch.rand(shape, dtype=getattr(torch, dtype))
    U, S, Vh = torch.linalg.svd(x, full_matrices=False)
    assert torch.allclose(U @ (S.unsqueeze(-1) * Vh), x, atol=1e-5)
    full, _, last = torch.linalg.svd(x)
    assert torch.allclose(full.mH @ full, torch.eye(shape[-2], dtype=x.dtype), atol=1e-5)
    assert torch.allclose(last @ last.mH, torch.eye(shape[-1], dtype=x.dtype), atol=1e-5)
    solved = torch.linalg.lstsq(x, x[..., :2])
    assert torch.allclose(x @ solved.solution, x[..., :2], atol=1e-4)
    if shape[-1] != shape[-2]:
        return
    for half in "LU":
        values, vectors = torch.linalg.eigh(x + x.mH, half)
        assert torch.allclose((x + x.mH) @ vectors, vectors * values.unsqueeze(-2), atol=1e-4)
    turned = x - x.mT  # its eigenvalues are conjugate pairs
    values, vectors = torch.linalg.eig(turned)
    assert torch.allclose(turned.to(values.dtype) @ vectors, vectors * values.unsqueeze(-2), atol=1e-4)


@pytest.mark.oracle
@pytest.mark.parametrize("bad", [[1.0, -1.0], [1.0, float("inf")], [1.0, float("nan")], [0.0, 0.0]])
def test_weights_that_are_no_distribution(bad: list[float]) -> None:
    oracle = _oracle.load()
    words = []
    for library in (oracle, torch):
        with pytest.raises(RuntimeError) as told:
            library.multinomial(library.tensor(bad), 3, True)
        words.append(str(told.value))
    assert words[0] == words[1]


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize("value", [0, 1.5, 300, -1, float("nan"), 1e30, 2**70])
def test_numbers_assigned_by_a_mask_of_rows(dtype: str, value: float) -> None:
    oracle = _oracle.load()
    for rows in ((2,), (2, 3), (2, 3, 4)):
        given = oracle.arange(24).reshape(2, 3, 4).to(getattr(oracle, dtype))
        mask = (oracle.arange(24) % 2 == 0).reshape(2, 3, 4)[(slice(None),) * len(rows) + (0,) * (3 - len(rows))]
        told = []
        for t, key in ((given.clone(), mask), (_oracle.from_oracle(given), _oracle.from_oracle(mask))):
            try:
                t[key] = value
                told.append(str(t.tolist()))
            except Exception as error:
                told.append(f"{type(error).__name__}: {error}")
        assert told[0] == told[1]
