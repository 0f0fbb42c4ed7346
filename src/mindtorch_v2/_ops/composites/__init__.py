"""Compiled operators made of other operators, and the derivatives and formulas that tables share."""
