"""transformers: the families of the group "mixed"."""

from _family import families

families("mixed")
