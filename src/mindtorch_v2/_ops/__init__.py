"""The operator tables: what is true of an operator on every device. One file per family; importing declares rows."""
