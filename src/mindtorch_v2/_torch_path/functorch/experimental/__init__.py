"""Transforms that were tried here first."""

from mindtorch_v2._functorch.apis import chunk_vmap
from mindtorch_v2.func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_

__all__ = ["chunk_vmap", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]
