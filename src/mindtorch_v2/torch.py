"""`import mindtorch_v2.torch`: from here on `torch` is this package. `python -m mindtorch_v2.torch script.py` runs a
program that way.

`import mindtorch_v2.torch as torch` gives the package itself.
"""

from __future__ import annotations

import sys

from . import _torch_name

if __name__ == "__main__":
    from ._torch_name.run import main

    sys.exit(main(sys.argv[1:]))
_torch_name.install()
sys.modules[__name__] = sys.modules[_torch_name.PACKAGE]
