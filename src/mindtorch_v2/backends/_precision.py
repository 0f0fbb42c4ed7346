"""`fp32_precision`: how float32 products may be rounded, by backend and operator.

Invariant: "none" means "as the backend says", and for a backend "as `torch.backends.fp32_precision` says". Kernels here
always compute in float32, which every setting allows.
"""

from __future__ import annotations

from typing import Any

from .._warn import warn

_KNOWN = {"generic": ("ieee", "tf32", "bf16", "none"), "cuda": ("ieee", "tf32", "none")}
_KNOWN["mkldnn"] = _KNOWN["generic"]
_SET: dict[tuple[str, str], str] = {
    **{(backend, op): "none" for backend in ("cuda", "mkldnn") for op in ("all", "conv", "rnn", "matmul")},
    ("generic", "all"): "none",
    ("cuda", "conv"): "tf32",
    ("cuda", "rnn"): "tf32",
}


def get(backend: str, op: str) -> str:
    for key in ((backend, op), (backend, "all"), ("generic", "all")):
        if _SET[key] != "none":
            return _SET[key]
    return "none"


def put(backend: str, op: str, value: Any) -> None:
    if value not in _KNOWN["generic"]:
        raise RuntimeError(f"Unknown precision: {value}")
    if value not in _KNOWN[backend]:
        raise RuntimeError(f"Invalid precision {value} for backend {backend} and op {op}")
    _SET[backend, op] = value


class Precision:
    """`torch.backends.cudnn.conv` and the like: the setting of one operator."""

    def __init__(self, backend: str, op: str) -> None:
        object.__setattr__(self, "_key", (backend, op))

    def __getattr__(self, name: str) -> str:
        if name == "fp32_precision":
            return get(*self._key)
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "fp32_precision":
            raise AttributeError(f"Unknown attribute {name}")
        put(*self._key, value)

    _key: tuple[str, str]


# -- the older way to say it --------------------------------------------------------------------------------------
class _Matmul:
    precision = "highest"


_WORDS = {"highest": ("ieee", "ieee"), "high": ("tf32", "tf32"), "medium": ("tf32", "bf16")}


def get_float32_matmul_precision() -> str:
    """How float32 matrix products may be rounded: "highest", "high" or "medium"."""
    return _Matmul.precision


def set_float32_matmul_precision(precision: str) -> None:
    """Say how float32 matrix products may be rounded; they are never rounded more than "highest" allows here."""
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in _WORDS:
        warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the currentsetFloat32MatmulPrecision call has "
            "no effect."
        )
        return
    _Matmul.precision = precision
    _SET["cuda", "matmul"], _SET["mkldnn", "matmul"] = _WORDS[precision]


def allow_tf32_matmul() -> bool:
    return _Matmul.precision != "highest"


def set_allow_tf32_matmul(value: Any) -> None:
    if not isinstance(value, bool):
        raise RuntimeError(f"set_allow_tf32_cublas expects a bool, but got {type(value).__name__}")
    _Matmul.precision = "high" if value else "highest"
    _SET["cuda", "matmul"] = "tf32" if value else "ieee"
