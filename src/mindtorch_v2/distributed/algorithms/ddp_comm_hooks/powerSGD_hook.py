"""PowerSGD: gradients that are matrices are sent as products of two thin ones.

Invariant: what a product leaves out is kept and added to the next gradient (error feedback); vectors, and matrices that
would not become smaller, are sent as they are.
"""

from __future__ import annotations

import math
from typing import Any

from .... import _dtype as _t
from ....futures import Future
from ... import distributed_c10d as dist
from . import default_hooks as default

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """What PowerSGD remembers from one iteration to the next."""

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                "can only be applied after the first two iterations in DDP."
            )
        if batch_tensors_with_same_shape:
            raise NotImplementedError("PowerSGDState: batch_tensors_with_same_shape=True is not served")
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.random_seed = random_seed
        self.compression_stats_logging_frequency = compression_stats_logging_frequency
        self.batch_tensors_with_same_shape = False
        self.error_dict: dict[int, Any] = {}
        self.p_memory_dict: dict[tuple[int, int], Any] = {}
        self.q_memory_dict: dict[tuple[int, int], Any] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """An iteration ends with its last bucket."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """How much smaller it was, and elements before and after."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0), before, after


def _orthogonalize(matrix: Any, epsilon: float) -> None:
    """Columns at right angles and of length 1, in place."""
    from .... import linalg

    if matrix.dtype in (_t.float16, _t.bfloat16) or epsilon:
        for column in range(matrix.shape[1]):
            each = matrix[:, column : column + 1]
            each.div_(each.norm() + (epsilon or 1e-8))
            if column + 1 < matrix.shape[1]:
                rest = matrix[:, column + 1 :]
                rest.sub_((each * rest).sum(0, keepdim=True) * each)
        return
    matrix.copy_(linalg.qr(matrix)[0])


def _compressed(state: PowerSGDState, shape: Any) -> bool:
    rows, columns = shape[0], math.prod(shape[1:])
    rank = min(state.matrix_approximation_rank, rows, columns)
    small = (rows + columns) * rank
    return len(shape) > 1 and small * state.min_compression_rate < rows * columns


def _factors(state: PowerSGDState, key: tuple[int, int], matrix: Any) -> tuple[Any, Any]:
    from .... import Generator, randn

    rank = min(state.matrix_approximation_rank, *matrix.shape)
    if state.warm_start and key in state.q_memory_dict:
        return state.p_memory_dict[key], state.q_memory_dict[key]
    # All ranks draw the same numbers: from a seed and the place of the matrix.
    generator = Generator().manual_seed(state.random_seed + 7919 * state.iter + 31 * key[0] + key[1])
    right = randn(matrix.shape[1], rank, generator=generator, device="cpu").to(matrix.device, matrix.dtype)
    _orthogonalize(right, state.orthogonalization_epsilon)
    left = matrix.new_empty((matrix.shape[0], rank))
    state.p_memory_dict[key], state.q_memory_dict[key] = left, right
    return left, right


def _approximate(state: PowerSGDState, group: Any, key: tuple[int, int], matrix: Any) -> None:
    """Put the mean of all ranks' matrices, as a product of two thin ones, in the place of this rank's."""
    left, right = _factors(state, key, matrix)
    state.total_numel_after_compression += left.numel() + right.numel()
    left.copy_(matrix @ right)
    dist.all_reduce(left, group=group)
    _orthogonalize(left, state.orthogonalization_epsilon)
    right.copy_(matrix.t() @ left)
    dist.all_reduce(right.div_(group.size()), group=group)
    matrix.copy_(left @ right.t())


def _hook(state: PowerSGDState, bucket: Any, reduce: Any) -> Future[Any]:
    """What both hooks share: the first iterations, and what the one before has left out."""
    group = state.process_group if state.process_group is not None else dist.group.WORLD
    assert group is not None
    flat = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return default._allreduce_fut(group, flat)
    if bucket.index() in state.error_dict:
        flat.add_(state.error_dict[bucket.index()])
    wanted = flat.clone() if state.use_error_feedback else None
    state.total_numel_before_compression += flat.numel()
    reduce(state, group, bucket)
    if wanted is not None:
        state.error_dict[bucket.index()] = wanted - flat
    state.maybe_increase_iter(bucket)
    future: Future[Any] = Future()
    future.set_result(flat)
    return future


def _by_gradient(state: PowerSGDState, group: Any, bucket: Any) -> None:
    for place, gradient in enumerate(bucket.gradients()):
        if _compressed(state, gradient.shape):
            _approximate(state, group, (bucket.index(), place), gradient.view(gradient.shape[0], -1))
        else:
            state.total_numel_after_compression += gradient.numel()
            dist.all_reduce(gradient.div_(group.size()), group=group)


def _by_bucket(state: PowerSGDState, group: Any, bucket: Any) -> None:
    flat = bucket.buffer()
    side = math.isqrt(max(flat.numel() - 1, 0)) + 1
    square = flat.new_zeros(side * side)
    square[: flat.numel()].copy_(flat)
    _approximate(state, group, (bucket.index(), -1), square.view(side, side))
    flat.copy_(square[: flat.numel()])


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future[Any]:
    """Reduce a bucket by PowerSGD, each gradient as a matrix, once its first iterations are over."""
    return _hook(state, bucket, _by_gradient)


def batched_powerSGD_hook(state: PowerSGDState, bucket: Any) -> Future[Any]:
    """Reduce a bucket by PowerSGD, the whole of it as one square matrix."""
    return _hook(state, bucket, _by_bucket)
