"""NPU lines of indexing operators that are loaded when first used."""
from __future__ import annotations

from ..lines import npu

npu("put", "aclnnInplacePut(out, index, source, accumulate)", starts="self")
