"""All kernels for calls with sparse tensors; importing this registers them."""

from . import arithmetic, basic, broadcast, indexing, products, reduced, reductions, solve, unary

__all__ = ["arithmetic", "basic", "broadcast", "indexing", "products", "reduced", "reductions", "solve", "unary"]
