"""Dispatch: which kernel serves a call. Keys are bits; the answer for a set of bits is worked out once per operator."""
