"""The CPU's lines, one file per family of operators."""
