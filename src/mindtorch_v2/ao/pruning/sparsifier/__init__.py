"""Sparsifiers: which elements of a model's tensors stay."""
