"""Counting instructions with Valgrind."""
