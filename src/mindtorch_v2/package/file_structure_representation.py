"""The files of an archive as a tree."""

from __future__ import annotations

from .glob_group import GlobGroup, GlobPattern


class Directory:
    """A file, or a directory with what is in it."""

    def __init__(self, name: str, is_dir: bool) -> None:
        self.name = name
        self.is_dir = is_dir
        self.children: dict[str, Directory] = {}

    def _get_dir(self, dirs: list[str]) -> Directory:
        if not dirs:
            return self
        child = self.children.setdefault(dirs[0], Directory(dirs[0], True))
        return child._get_dir(dirs[1:])

    def _add_file(self, file_path: str) -> None:
        *dirs, file = file_path.split("/")
        self._get_dir(dirs).children[file] = Directory(file, False)

    def has_file(self, filename: str) -> bool:
        """Whether there is a file of this path."""
        head, _, tail = filename.partition("/")
        child = self.children.get(head)
        return child is not None and (child.has_file(tail) if tail else not child.is_dir)

    def __str__(self) -> str:
        lines: list[str] = []
        self._stringify_tree(lines)
        return "".join(lines)

    def _stringify_tree(self, str_list: list[str], preamble: str = "", dir_ptr: str = "─── ") -> None:
        str_list.append(f"{preamble}{dir_ptr}{self.name}\n")
        preamble += "│   " if dir_ptr == "├── " else "    "
        ordered = sorted(self.children.values(), key=lambda child: (not child.is_dir, child.name))
        for child in ordered:
            child._stringify_tree(str_list, preamble, "└── " if child is ordered[-1] else "├── ")


def _create_directory_from_file_list(
    filename: str, file_list: list[str], include: GlobPattern = "**", exclude: GlobPattern = ()
) -> Directory:
    glob = GlobGroup(include, exclude=exclude, separator="/")
    top = Directory(filename, True)
    for file in file_list:
        if glob.matches(file):
            top._add_file(file)
    return top
