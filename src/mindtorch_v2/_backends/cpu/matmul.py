"""CPU lines of matrix products."""
from __future__ import annotations

from .lines import cpu
from .matmul_glue import Addmm, Bmm, Dot, Mm, Mv

cpu("mm", Mm())
cpu("addmm", Addmm())
cpu("bmm", Bmm("bmm", False))
cpu("baddbmm", Bmm("baddbmm", True))
cpu("mv", Mv(False))
cpu("addmv", Mv(True))
cpu("dot", Dot())
