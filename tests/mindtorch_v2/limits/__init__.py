"""Hostile calls: sizes that overflow, ints beyond 64 bits, work nobody can do, data that contains itself."""
