"""Private modules that PyTorch's own test tools and other libraries import: they answer as PyTorch's do."""

from __future__ import annotations

import importlib
import warnings
from typing import Any
from unittest import mock

import pytest

from .._subject import subject


def _of(library: Any, name: str) -> Any:
    return importlib.import_module(f"{library.__name__}.{name}")


def _function_states(library: Any) -> list[str]:
    """What is said of `__torch_function__` in contexts, modes and after it was set."""
    of = library._C
    said: list[str] = []

    class Seeing(library.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            said.append(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    def note() -> None:
        said.append(of._get_torch_function_state().name)
        said.append(str(of._len_torch_function_stack()))

    note()
    with of.DisableTorchFunctionSubclass():
        note()
    with Seeing():
        with of.DisableTorchFunctionSubclass():
            note()
            library.ones(2)
        with of.DisableTorchFunction():
            note()
            library.ones(2)
        said.append(type(of._get_function_stack_at(0)).__name__)
        taken = of._pop_torch_function_stack()
        library.ones(2)
        note()
        of._push_on_torch_function_stack(taken)
        before = of._get_torch_function_state()
        of._set_torch_function_state(of._TorchFunctionState.ALL_DISABLED)
        note()
        library.ones(2)
        of._set_torch_function_state(before)
        library.ones(2)
    for call in (of._pop_torch_function_stack, lambda: of._get_function_stack_at(0)):
        try:
            call()
        except RuntimeError as error:
            said.append(type(error).__name__)
    return said


@pytest.mark.oracle
def test_the_state_of_torch_function(oracle: Any) -> None:
    assert _function_states(subject) == _function_states(oracle)


@pytest.mark.oracle
def test_warnings_about_typed_storages_can_be_had_each_time(oracle: Any) -> None:
    def warned(library: Any) -> tuple[bool, int]:
        storage = _of(library, "storage")
        before = storage._get_always_warn_typed_storage_removal()
        storage._set_always_warn_typed_storage_removal(True)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for _ in range(2):
                    library.ones(1).storage()
        finally:
            storage._set_always_warn_typed_storage_removal(before)
        return before, sum("TypedStorage is deprecated" in str(w.message) for w in caught)

    assert warned(subject) == warned(oracle)


def test_settings_can_be_patched_by_mock() -> None:
    config = _of(subject, "_dynamo").config
    with mock.patch.object(config, "suppress_errors", True):
        assert config.suppress_errors is True
    assert config.suppress_errors is False
    del config.suppress_errors
    with pytest.raises(AttributeError, match="suppress_errors does not exist"):
        assert config.suppress_errors
    config.suppress_errors = False
    with pytest.raises(KeyError, match="no_such_setting"):
        del config.no_such_setting


def test_what_is_absent_says_so() -> None:
    assert _of(subject, "utils._triton").has_triton() is False
    assert _of(subject, "backends.xnnpack").enabled is False
    with pytest.raises(RuntimeError, match="Assignment not supported"):
        _of(subject, "backends.xnnpack").enabled = True
    assert _of(subject, "utils._import_utils")._check_module_exists("json")
    assert not _of(subject, "utils._import_utils")._check_module_exists("no.such.module")
    with pytest.raises(RuntimeError, match="not scripted here"):
        subject._C.ScriptModule()


def test_lists_are_grouped_by_device_and_dtype() -> None:
    module = _of(subject, "utils._foreach_utils")
    a, b = subject.ones(1), subject.ones(1, dtype=subject.float64)
    groups = module._group_tensors_by_device_and_dtype([[a, b, a]], with_indices=True)
    assert {key[1]: found[1] for key, found in groups.items()} == {subject.float32: [0, 2], subject.float64: [1]}
    assert module._has_foreach_support([a], a.device)


def test_a_path_that_can_be_written_to(tmp_path: Any) -> None:
    module = _of(subject, "_utils_internal")
    assert module.get_writable_path(str(tmp_path)) == str(tmp_path)
