"""A device from outside the package.

The checks are in `toy_device/`; they run in a process of their own, because a device that was registered stays.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .._subject import mindtorch_only

CHECKS = Path(__file__).parents[1] / "toy_device" / "check_device.py"


@mindtorch_only
def test_a_device_from_outside_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CHECKS)],
        capture_output=True,
        text=True,
        env={**os.environ, "MINDTORCH_REQUIRE_ORACLE": "0"},
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
