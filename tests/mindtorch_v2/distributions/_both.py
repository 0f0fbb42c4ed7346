"""The same question to both libraries, and the comparison of the answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import _oracle
from .._subject import subject
from ._table import Numbers, Row

# Samples are the same numbers of the generator, through functions whose last bits may differ.
TOLERANCES = {"float32": (3e-5, 3e-6), "float64": (1e-8, 1e-10)}
# Gradients pass through series whose terms cancel.
GRADIENT_TOLERANCES = {"float32": (2e-3, 1e-3), "float64": (1e-6, 1e-8)}


class Pair:
    """A distribution in the library under test and in the oracle, with the leaves it was made of."""

    def __init__(self, row: Row, dtype: str = "float64", grad: bool = False) -> None:
        self.dtype = dtype
        self.sides: list[tuple[Any, Numbers, Any]] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for torch in (subject, _oracle.load()):
                numbers = Numbers(torch, dtype, grad)
                self.sides.append((torch, numbers, row.make(torch.distributions, numbers)))

    def ask(self, question: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
        """Both answers, after the same seed; an exception is an answer too."""
        found = []
        for torch, _, distribution in self.sides:
            torch.manual_seed(5)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found.append(question(torch, distribution))
                except (RuntimeError, ValueError, TypeError) as error:
                    found.append((type(error).__name__, str(error).replace("mindtorch_v2", "torch")))
        return found[0], found[1]

    def same(self, what: str, question: Callable[[Any, Any], Any], stride: bool = False) -> Any:
        """Equal answers; the oracle's is returned."""
        mine, theirs = self.ask(question)
        rtol, atol = TOLERANCES[self.dtype]
        if isinstance(theirs, _oracle.load().Tensor):
            assert isinstance(mine, subject.Tensor), f"{what}: {mine}"
            assert mine.requires_grad == theirs.requires_grad, what
            if not theirs.dtype.is_floating_point:
                rtol = atol = 0.0
            _oracle.assert_same(mine.detach(), theirs.detach(), rtol, atol, what, stride=stride)
            if theirs.requires_grad:
                self._same_gradients(what, mine, theirs)
        else:
            assert mine == theirs, what
        return theirs

    def _same_gradients(self, what: str, *answers: Any) -> None:
        found = []
        for (torch, numbers, _), answer in zip(self.sides, answers):
            weights = torch.arange(answer.numel(), dtype=answer.dtype).reshape(tuple(answer.shape)).sin()
            try:
                # Lazy parameters share their graph with later answers.
                loss = (answer * weights).sum()
                grads = torch.autograd.grad(loss, numbers.leaves, allow_unused=True, retain_graph=True)
            except NotImplementedError as error:
                grads = (str(error),)
            found.append(grads)
        rtol, atol = GRADIENT_TOLERANCES[self.dtype]
        for i, (mine, theirs) in enumerate(zip(*found)):
            if theirs is None or isinstance(theirs, str):
                assert mine == theirs, f"{what}: gradient {i}"
            else:
                _oracle.assert_same(mine, theirs, rtol, atol, f"{what}: gradient {i}", stride=False)

    def value(self, theirs: Any) -> dict[Any, Any]:
        """The oracle's tensor in both libraries."""
        return {subject: _oracle.from_oracle(theirs.contiguous(), requires_grad=False), _oracle.load(): theirs}
