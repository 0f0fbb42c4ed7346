"""Hooks that send a bucket as bytes: each rank's own scale and zero point, and what they make of its gradients.

Invariant: every rank computes the mean from the same bytes in the same order, so all end with the same bits.
"""

from __future__ import annotations

from typing import Any

from .... import _dtype as _t
from ....futures import Future
from ... import distributed_c10d as dist

_HIGHEST = 255


def _quantized(values: Any, scale: Any, zero_point: Any) -> Any:
    """Numbers as bytes."""
    return ((values / scale).round() + zero_point).clamp(0, _HIGHEST).to(_t.uint8)


def _scales(rows: Any) -> tuple[Any, Any]:
    """Scale and zero point of each row, such that 0 is a byte of its own."""
    from .... import finfo, zeros_like

    low, high = rows.amin(1), rows.amax(1)
    low, high = low.minimum(zeros_like(low)), high.maximum(zeros_like(high))
    scale = ((high - low) / float(_HIGHEST)).clamp(min=finfo(_t.float32).eps)
    return scale, (-(low / scale).round()).clamp(0, _HIGHEST)


def _mean_of_bytes(group: Any, rows: Any, finish: Any) -> Future[Any]:
    """The mean over a group of what each rank's rows are as bytes.

    Scales travel before the bytes in one message: a second collective, begun when the first has ended, would come in
    another order on each rank.
    """
    from .... import cat, empty_like, stack, zeros_like

    group = dist.group.WORLD if group is None else group
    scales = stack(_scales(rows)).to(_t.float32)
    head = scales.view(_t.uint8).reshape(-1)
    small = _quantized(rows, scales[0, :, None], scales[1, :, None])
    message = cat([head, small.reshape(-1)])
    messages = [empty_like(message) for _ in range(dist.get_world_size(group))]
    sent = dist.all_gather(messages, message, group=group, async_op=True).get_future()

    def mean(done: Future[Any]) -> Any:
        done.value()
        total = zeros_like(rows, dtype=_t.float32)
        for each in messages:
            scale, zero_point = each[: head.numel()].clone().view(_t.float32).view(scales.shape)
            part = each[head.numel() :].view(rows.shape).to(_t.float32)
            total += scale[:, None] * (part - zero_point[:, None])
        return finish(total / len(messages))

    later: Future[Any] = sent.then(mean)
    return later


def quantization_pertensor_hook(process_group: Any, bucket: Any) -> Future[Any]:
    """Send a bucket as bytes with one scale."""
    buffer = bucket.buffer()
    return _mean_of_bytes(process_group, buffer.reshape(1, -1), lambda mean: mean.reshape(-1))


def quantization_perchannel_hook(process_group: Any, bucket: Any, bucket_size: int = 512) -> Future[Any]:
    """Send a bucket as bytes with a scale for each `bucket_size` numbers."""
    from ....nn.functional import pad

    buffer = bucket.buffer()
    count = buffer.numel()
    rows = pad(buffer, (0, bucket_size - count % bucket_size)).view(-1, bucket_size)
    return _mean_of_bytes(process_group, rows, lambda mean: mean.reshape(-1)[:count])
