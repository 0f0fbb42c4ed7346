"""transformers: the families of the group "images"."""

from _family import families

families("images")
