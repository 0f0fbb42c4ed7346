"""`torch._inductor`: PyTorch's code generator is not here; its modes and options are known, and checked."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["compile", "cudagraph_mark_step_begin", "list_mode_options", "list_options", "standalone_compile"]

WHY = "{name}: no code is generated here; torch.compile runs programs eagerly"

_MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "lite": {
        "fallback_by_default": True,
        "selective_decompose": True,
        **dict.fromkeys(
            (
                *("reorder_for_peak_memory", "reorder_for_compute_comm_overlap"),
                *("triton.reorder_for_reducing_graph_partitions", "use_pre_grad_passes", "use_joint_graph_passes"),
                *("use_post_grad_passes", "use_dce", "allow_buffer_reuse"),
            ),
            False,
        ),
    },
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {"max_autotune": True, "coordinate_descent_tuning": True},
    "max-autotune": {"max_autotune": True, "triton.cudagraphs": True, "coordinate_descent_tuning": True},
}


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """What a mode of `torch.compile` stands for; without one, all of them."""
    if mode is None:
        return {name: dict(options) for name, options in _MODES.items()}
    if mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    return dict(_MODES[mode])


def list_options() -> list[str]:
    """The names that `torch.compile(options=...)` takes."""
    from . import config

    values: dict[str, Any] = vars(config)["_config"]
    return list(values)


def check_options(mode: str | None, options: dict[str, Any] | None) -> None:
    """Raise what PyTorch raises of a mode or options that it does not know."""
    from . import config

    settings: Any = config
    if mode:
        list_mode_options(mode)
    for key, value in (options or {}).items():
        name = key.replace("-", "_")
        if name not in settings._config:
            raise RuntimeError(f"Unexpected optimization option {key}, known options are {list_options()}")
        kind = settings.get_type(name)
        if kind is not type(None) and not isinstance(value, kind):
            raise RuntimeError(f"Unexpected type of attr {key}, got {type(value).__name__} should be {kind.__name__}")


def cudagraph_mark_step_begin() -> None:
    """There are no graphs of CUDA."""


def compile(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError("torch._inductor.compile: no code is generated here; torch.compile runs programs eagerly")


def standalone_compile(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        "torch._inductor.standalone_compile: no code is generated here; torch.compile runs programs eagerly"
    )


def __getattr__(name: str) -> Any:
    if name in ("config", "exc", "utils"):
        from importlib import import_module

        return import_module("." + name, __package__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
