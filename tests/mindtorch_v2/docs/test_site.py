"""The documentation site, built and used: links hold, pages load without errors, search finds, the matrix filters."""

from __future__ import annotations

import functools
import importlib.util
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from .._subject import mindtorch_only
from ._browser import PROGRAM, Browser

ROOT = Path(__file__).parents[3]
MISSING = [name for name in ("sphinx", "furo", "myst_parser") if importlib.util.find_spec(name) is None]

pytestmark = [
    mindtorch_only,
    pytest.mark.skipif(bool(MISSING), reason=f"the site is built with {', '.join(MISSING)} (make docs installs it)"),
]
in_a_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine (apt install chromium)")

GUIDES = {"from_pytorch", "programs", "training", "checkpoints", "npu", "extending", "performance", "how_it_works"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    run = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "build.py"), "--out", str(out)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return out / "site"


class Page(HTMLParser):
    """What a page links to, and what can be linked to on it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" and value:
                self.ids.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)


def test_every_internal_link_holds(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert GUIDES | {"index", "support", "changelog", "examples"} <= {path.stem for path in pages}
    dead: list[str] = []
    checked = 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            checked += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            fragment = unquote(parts.fragment)
            if not target.is_file() or (target in pages and fragment and fragment not in pages[target].ids):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert dead == [] and checked > 3000


def test_the_reference_describes_rows_and_classes(site: Path) -> None:
    ids = {path.name: Page(path).ids for path in (site / "reference").glob("*.html")}
    assert {"torch.add", "torch.einsum", "torch.save", "torch.Tensor"} <= ids["torch.html"]
    assert {"torch.Tensor.add_", "torch.Tensor.backward"} <= ids["torch.Tensor.html"]
    assert "torch.nn.Linear" in ids["torch.nn.html"] and "torch.optim.AdamW" in ids["torch.optim.html"]
    assert "torch.linalg.svd" in ids["torch.linalg.html"] and "torch.npu.Stream" in ids["torch.npu.html"]


def test_the_picture_of_a_step(site: Path) -> None:
    text = (site / "_images" / "trace.svg").read_text()
    for phase in ("forward", "backward", "Optimizer.step#AdamW.step", "addmm"):
        assert f">{phase}" in text or f"<title>{phase}" in text or f"aten::{phase}" in text, phase
    assert text.count("<rect") > 100
    assert "trace.svg" in (site / "performance.html").read_text()


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


@in_a_browser
def test_pages_load_without_errors(site: Path, served: str, browser: Browser) -> None:
    pages = sorted(site.glob("*.html")) + sorted((site / "reference").glob("*.html"))
    for path in pages:
        browser.errors.clear()
        browser.open(f"{served}/{path.relative_to(site)}")
        assert browser.errors == [], path.name
        assert browser.evaluate("document.querySelector('h1, #search-results') !== null"), path.name
        broken = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
        assert browser.evaluate(broken) == [], path.name
    # The check itself: a page that is not there is noticed.
    browser.open(f"{served}/nowhere.html")
    assert browser.errors != []
    browser.errors.clear()


@in_a_browser
@pytest.mark.parametrize(
    ("word", "where"),
    [("addcmul", "reference/torch.html#torch.addcmul"), ("AdamW", "reference/torch.optim.html#torch.optim.AdamW")],
)
def test_search_finds(word: str, where: str, served: str, browser: Browser) -> None:
    browser.open(f"{served}/search.html?q={word}")
    browser.wait(f"[...document.querySelectorAll('#search-results a')].some(a => a.href.endsWith({where!r}))")
    assert browser.errors == []


@in_a_browser
def test_the_matrix_filters(served: str, browser: Browser) -> None:
    shown = (
        "[...document.querySelectorAll('#matrix tbody tr')].filter(r => r.offsetParent).map(r => r.cells[0].innerText)"
    )
    choose = "(() => {{ const e = document.getElementById('matrix-{0}'); e.value = {1!r};" + (
        " e.dispatchEvent(new Event('input')); }})()"
    )
    browser.open(f"{served}/support.html")
    every = browser.evaluate(shown)
    assert len(every) > 900 and browser.evaluate("document.getElementById('matrix-count').value").startswith(
        str(len(every))
    )

    browser.evaluate(choose.format("search", "addcmul"))
    found = browser.evaluate(shown)
    assert "addcmul" in found and "sub" not in found and all("addcmul" in name for name in found)
    assert browser.evaluate("location.search") == "?search=addcmul"

    browser.evaluate(choose.format("search", "aclnnHardswish"))
    assert "hardswish" in browser.evaluate(shown)

    browser.evaluate(choose.format("search", ""))
    browser.evaluate(choose.format("family", "linalg"))
    family = browser.evaluate(shown)
    assert 5 < len(family) < len(every) and "add" not in family
    browser.evaluate(choose.format("npu", "vendor"))
    served_by_vendor = browser.evaluate(shown)
    assert 0 < len(served_by_vendor) < len(family) and set(served_by_vendor) < set(family)

    # The choice is in the address, and an address is a choice.
    browser.open(f"{served}/support.html?dtype=f64&grad=no")
    some = browser.evaluate(shown)
    assert 0 < len(some) < len(every) and "add" not in some
    assert browser.evaluate("document.getElementById('matrix-dtype').value") == "f64"
    assert browser.errors == []


def test_nothing_is_kept_in_git_that_the_build_makes() -> None:
    assert not (ROOT / "docs" / "support.md").exists()
    assert not list((ROOT / "docs").rglob("*.svg"))
