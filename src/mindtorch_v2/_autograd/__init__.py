"""Reverse-mode differentiation: nodes, saved values, the engine, and the rules for views and in-place writes."""
