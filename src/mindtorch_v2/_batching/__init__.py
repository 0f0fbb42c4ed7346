"""`vmap` as a dispatch key: tensors that stand for many, and how each kind of operator computes all of them at once."""
