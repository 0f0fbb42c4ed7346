"""`torch._inductor.codecache`: importable; there is no generated code to keep."""

from __future__ import annotations

from typing import Any, NoReturn

from .._unserved import offer as _offer
from . import WHY
from .exc import InvalidCxxCompiler

_offer(__name__, "", "FxGraphCache PyCodeCache", WHY)


class CppCodeCache:
    """PyTorch's compiled C++. Asked to load some, it answers as where there is no compiler: there is none for it."""

    @classmethod
    def load(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise InvalidCxxCompiler()
