"""Passes as objects."""
