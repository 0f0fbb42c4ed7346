"""How Sphinx makes the site. docs/build.py calls it with the pages it has put together."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

project = "mindtorch_v2"
author = "the mindtorch_v2 developers"
_found = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
release = version = _found[1] if _found else ""

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"mindtorch_v2 {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "friendly"
# Annotations are linked where they can be; of several classes named Stream, say, Sphinx takes one and warns.
suppress_warnings = ["ref.python"]
# Names of the reference are PyTorch's; the page they stand on says the module.
add_module_names = False
toc_object_entries = False
