"""How large the buckets of `DistributedDataParallel` are.

Invariant: a limit is reached by the gradient that fills the bucket; the last limit holds for all further buckets.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ...distributed._reducer import _DEFAULT_FIRST_BUCKET_BYTES

_DEFAULT_BUCKET_CAP_MB = 25
_MB_TO_BYTES = 1024 * 1024


@dataclass(frozen=True)
class _BucketCapacityConfig:
    """Limits in bytes: of a bucket, of each bucket where the user gave a list, of the first bucket."""

    bucket_bytes_cap: int
    per_bucket_bytes_caps: tuple[int, ...]
    first_bucket_bytes_cap: int

    @classmethod
    def create(
        cls, bucket_cap_mb: float | None, bucket_cap_mb_list: Sequence[float] | None, use_python_reducer: bool
    ) -> _BucketCapacityConfig:
        """The limits that a user's MiB stand for; a small first bucket is the default only."""
        if bucket_cap_mb_list:
            if use_python_reducer:
                raise AssertionError("when using bucket_cap_mb_list, python reducer is not supported")
            caps = tuple(int(each * _MB_TO_BYTES) for each in bucket_cap_mb_list)
            return cls(max(caps), caps, max(caps))
        if bucket_cap_mb is None:
            return cls(_DEFAULT_BUCKET_CAP_MB * _MB_TO_BYTES, (), _DEFAULT_FIRST_BUCKET_BYTES)
        cap = int(bucket_cap_mb * _MB_TO_BYTES)
        return cls(cap, (), cap)

    @property
    def bucket_cap_mb(self) -> int:
        """The limit in whole MiB."""
        return self.bucket_bytes_cap // _MB_TO_BYTES

    @property
    def has_custom_per_bucket_caps(self) -> bool:
        """Whether the user gave a list."""
        return bool(self.per_bucket_bytes_caps)

    def limits(self) -> list[int]:
        """The limits of the buckets, one after the other."""
        if self.per_bucket_bytes_caps:
            return list(self.per_bucket_bytes_caps)
        if self.first_bucket_bytes_cap < self.bucket_bytes_cap:
            return [self.first_bucket_bytes_cap, self.bucket_bytes_cap]
        return [self.bucket_bytes_cap]

    def compute_bucket_size_limits(
        self, static_graph: bool, find_unused_parameters: bool
    ) -> tuple[list[int], list[int]]:
        """What buckets are made by at first, and anew if not by `limits`."""
        if self.per_bucket_bytes_caps:
            return self.limits(), self.limits()
        return ([sys.maxsize] if static_graph or not find_unused_parameters else self.limits()), []
