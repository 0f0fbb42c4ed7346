"""transformers: the families of the group "encoders"."""

from _family import families

families("encoders")
