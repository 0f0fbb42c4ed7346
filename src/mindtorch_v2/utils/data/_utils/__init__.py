"""What data loaders are made of, where PyTorch has it."""

from __future__ import annotations

import atexit
import sys

from ...._utils_names import ExceptionWrapper as ExceptionWrapper

IS_WINDOWS = sys.platform == "win32"
# Seconds after which somebody who waits for another process asks whether it is still there.
MP_STATUS_CHECK_INTERVAL = 5.0
# Set when Python ends: nobody waits for workers from then on.
python_exit_status = False
HAS_NUMPY = True


def _set_python_exit_flag() -> None:
    global python_exit_status
    python_exit_status = True


atexit.register(_set_python_exit_flag)

from . import collate as collate  # noqa: E402 (they read the constants above)
from . import fetch as fetch  # noqa: E402
from . import pin_memory as pin_memory  # noqa: E402
from . import signal_handling as signal_handling  # noqa: E402
from . import worker as worker  # noqa: E402
