"""Modules made of settings: overriding, patching, threads, digests, saving."""

from __future__ import annotations

import importlib
import pickle
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .._subject import subject as torch

SOURCE = """
import sys
from collections.abc import Callable
from {torch}.utils._config_module import Config, install_config_module

flag = True
number: int | None = 1
items = [1]
hidden = True
function: Callable | None = None
# @compile_ignored: only told
told = 1
_save_config_ignore = ["hidden"]
_cache_config_ignore_prefix = ["local_"]
local_path = "a"
by_default: bool = Config(default=False, env_name_default=["OF_THIS_TEST", "OF_NO_TEST"])
forced: bool = Config(default=False, env_name_force="OF_THIS_TEST")
other: bool = Config(alias="settings_of_this_test.flag")
old: bool = Config(default=True, deprecated=True, deprecation_message="does nothing")


class group:
    inner = 2


install_config_module(sys.modules[__name__])
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("OF_THIS_TEST", "1")
    (tmp_path / "settings_of_this_test.py").write_text(SOURCE.format(torch=torch.__name__))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("settings_of_this_test")
    del sys.modules["settings_of_this_test"]


def of(name: str) -> Any:
    return getattr(importlib.import_module(f"{torch.__name__}.utils._config_module"), name)


def test_what_a_setting_is(config: Any) -> None:
    assert (config.flag, config.number, config.group.inner, config.other) == (True, 1, 2, True)
    assert (config.by_default, config.forced) == (True, True)
    config.forced = config.by_default = False
    assert (config.by_default, config.forced) == (False, True)
    config.other = False
    assert not config.flag
    assert config.get_type("number") == int | None and config.get_type("items") is list
    assert config._is_default("items")
    config.items.append(2)
    assert config.items == [1, 2] and not config._is_default("items")
    for name in ("no_such", "group.no_such"):
        with pytest.raises(AttributeError, match="settings_of_this_test.*no_such does not exist"):
            setattr(config, name, 1)


def test_settings_are_of_a_thread(config: Any) -> None:
    seen = []
    patch = config.patch(flag=False)
    with patch, patch:
        thread = threading.Thread(target=lambda: seen.append(config.flag))
        thread.start()
        thread.join()
        assert not config.flag
    assert seen == [True] and config.flag


def test_patches(config: Any) -> None:
    with config.patch("number", 2), config.patch({"flag": False}):
        config.number = 5
        assert (config.number, config.flag) == (5, False)
    assert (config.number, config.flag) == (1, True)
    back = config._make_closure_patcher(number=7)()
    assert config.number == 7
    back()
    assert config.number == 1
    with pytest.raises(AssertionError, match="first argument must be a dict when passing a single positional arg"):
        config.patch("number")
    with pytest.raises(AssertionError, match="cannot pass both positional and keyword arguments to patch"):
        config.patch("number", 1, flag=False)


@pytest.mark.filterwarnings("ignore:.*old is deprecated:FutureWarning")
def test_settings_are_saved(config: Any) -> None:
    saved = config.save_config()
    assert "hidden" not in pickle.loads(saved) and "other" not in pickle.loads(saved)
    config.number = 9
    config.hidden = False
    config.load_config(saved)
    with pytest.warns(UserWarning, match="key no_such with value 1 is not understood by this config"):
        config.load_config({"no_such": 1})
    assert (config.number, config.hidden) == (1, False)
    assert set(config.save_config_portable()) == {
        *("flag", "number", "items", "hidden", "function", "told", "by_default", "forced", "old", "group.inner")
    }


@pytest.mark.filterwarnings("ignore:.*old is deprecated:FutureWarning")
def test_settings_as_code(config: Any) -> None:
    config.number, config.flag, config.function, config.items = 1, False, pickle.dumps, [print, pickle.dumps]
    assert config.codegen_config().split("\n") == [
        "import _pickle",
        "settings_of_this_test.flag = False",
        "settings_of_this_test.number = 1",
        "settings_of_this_test.items = ['print', '_pickle.dumps']",
        "settings_of_this_test.function = _pickle.dumps",
        "settings_of_this_test.by_default = True",
        "settings_of_this_test.forced = True",
    ]


@pytest.mark.filterwarnings("ignore:.*old is deprecated:FutureWarning")
def test_the_digest(config: Any) -> None:
    before = config.get_hash()
    config.told = 2
    assert config.get_hash() == before
    assert before.hex() == "de96a72ba6101c2ac8eea589b7d25395"
    config.flag = False
    assert config.get_hash() != before


def test_a_deprecated_setting_says_so_once(config: Any) -> None:
    with pytest.warns(FutureWarning) as told:
        assert config.old and config.old
    assert [str(w.message) for w in told] == [
        "settings_of_this_test.old is deprecated and does nothing. It will be removed in a future version of PyTorch."
    ]


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ({"default": "bad", "justknob": "a"}, "justknobs only support booleans, bad is not a boolean"),
        (
            {"default": 2, "env_name_default": "A"},
            "only support .optional. booleans or strings, <class 'int'> is neither",
        ),
        ({"default": [1], "env_name_force": "A"}, "booleans or strings, <class 'list'> is neither"),
        ({"default": 1, "alias": "a"}, "if alias is set, none of {default, justknob"),
    ],
)
def test_settings_that_cannot_be(known: dict[str, Any], text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        of("_ConfigEntry")(of("Config")(**known), "a")
