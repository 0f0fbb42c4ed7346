"""transformers: the families of the group "pairs"."""

from _family import families

families("pairs")
