"""CPU lines of batch and group norm."""

from __future__ import annotations

from ..kernels.channel_norm import batch_backward, batch_norm, group_backward, group_norm
from ..lines import cpu, into

cpu("native_batch_norm", into(batch_norm))
cpu("native_batch_norm_backward", into(batch_backward))
cpu("native_group_norm", into(group_norm))
cpu("native_group_norm_backward", into(group_backward))
