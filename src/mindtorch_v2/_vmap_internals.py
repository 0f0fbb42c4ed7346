"""`torch._vmap_internals`: the older home of `vmap`."""

from .func import vmap as vmap
