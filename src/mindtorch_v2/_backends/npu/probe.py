"""Questions about NPUs that anybody may ask anywhere.

Invariant: no answer raises and none initialises a device: no aclInit, no aclrtSetDevice.
"""

from __future__ import annotations

import ctypes

from . import installation, runtime
from .acl_loader import Acl, ensure_acl, loaded


class _Failed:
    """The conditions under which no libraries could be loaded: the file system is not searched again under them."""

    conditions: tuple[object, ...] | None = None


def _libraries() -> Acl | None:
    acl = loaded()
    if acl is not None:
        return acl
    conditions = installation.conditions()
    if conditions == _Failed.conditions:
        return None
    try:
        return ensure_acl()
    except Exception:  # whatever is wrong with the installation, the answer is no; doctor tells the reason
        _Failed.conditions = conditions
        return None


def device_count() -> int:
    """How many NPUs the vendor's runtime sees; 0 where it cannot be asked."""
    if runtime.STATE.initialised:
        return runtime.STATE.count
    acl = _libraries()
    if acl is None:
        return 0
    count = ctypes.c_uint32()
    try:
        status = acl.aclrtGetDeviceCount(ctypes.byref(count))
        if status != 0:
            acl.aclGetRecentErrMsg()  # nobody will ask for the text of this failure
            return 0
    except RuntimeError:
        return 0
    return count.value


def aclnn_available() -> bool:
    """Whether the runtime, the object library and an operator library load."""
    acl = _libraries()
    if acl is None:
        return False
    try:
        acl.symbol("aclnnAddGetWorkspaceSize")
    except RuntimeError:
        return False
    return acl.has("aclCreateTensor")


def aclnn_symbols_ok() -> bool:
    """Whether everything the backend calls resolves."""
    return aclnn_available() and not missing_symbols()


def missing_symbols() -> list[str]:
    """The functions of the backend's tables that the libraries do not have; needs loaded libraries."""
    from . import acl_loader, aclnn

    acl = ensure_acl()
    missing = [
        name
        for name in (*acl_loader.RUNTIME, *acl_loader.OBJECTS)
        if name not in acl_loader.OPTIONAL and not acl.has(name)
    ]
    for name in aclnn.TABLE:
        missing += [symbol for symbol in (name, name + "GetWorkspaceSize") if acl.symbol(symbol) is None]
    return missing
