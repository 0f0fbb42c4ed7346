"""CPU lines of matrix products."""
from __future__ import annotations

from ..kernels.matmul import Addmm, Bmm, Dot, Mm, Mv
from ..lines import cpu

cpu("mm", Mm())
cpu("addmm", Addmm())
cpu("bmm", Bmm("bmm", False))
cpu("baddbmm", Bmm("baddbmm", True))
cpu("mv", Mv(False))
cpu("addmv", Mv(True))
cpu("dot", Dot())
