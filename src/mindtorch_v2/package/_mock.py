"""What stands in archives for modules that were left out. This file is written into archives as it is."""

_magic_methods = [
    *("__abs__", "__add__", "__and__", "__bool__", "__bytes__", "__call__", "__ceil__", "__complex__"),
    *("__contains__", "__copy__", "__deepcopy__", "__delattr__", "__delitem__", "__dir__", "__divmod__", "__enter__"),
    *("__eq__", "__exit__", "__float__", "__floor__", "__floordiv__", "__ge__", "__getattr__", "__getitem__"),
    *("__getstate__", "__gt__", "__hash__", "__iadd__", "__iand__", "__ifloordiv__", "__ilshift__", "__imod__"),
    *("__imul__", "__index__", "__instancecheck__", "__int__", "__invert__", "__ior__", "__ipow__", "__irshift__"),
    *("__isub__", "__iter__", "__itruediv__", "__ixor__", "__le__", "__len__", "__lshift__", "__lt__", "__mod__"),
    *("__mul__", "__ne__", "__neg__", "__or__", "__pos__", "__pow__", "__rand__", "__rdivmod__", "__reduce__"),
    *("__reversed__", "__rmul__", "__round__", "__rrshift__", "__rshift__", "__setattr__", "__setitem__"),
    *("__sizeof__", "__sub__", "__subclasscheck__", "__truediv__", "__trunc__", "__xor__"),
]


class MockedObject:
    """An object that was left out: it can be had, and every use of it is refused."""

    _name: str

    def __new__(cls, *args: object, **kwargs: object) -> "MockedObject":
        if not kwargs.get("_suppress_err"):
            raise NotImplementedError(
                f"Object '{cls._name}' was mocked out during packaging but it is being used in {cls.__name__}.__new__."
                if hasattr(cls, "_name")
                else f"Object of {cls.__name__} was mocked out during packaging but it is being made"
            )
        return super().__new__(cls)

    def __init__(self, name: str, _suppress_err: bool) -> None:
        self.__dict__["_name"] = name

    def __repr__(self) -> str:
        return f"MockedObject({self._name})"


def install_method(method_name: str) -> None:
    """Refuse a use of mocked objects."""

    def _not_implemented(self: MockedObject, *args: object, **kwargs: object) -> object:
        raise NotImplementedError(
            f"Object '{self._name}' was mocked out during packaging but it is being used in {method_name}"
        )

    setattr(MockedObject, method_name, _not_implemented)


for _method_name in _magic_methods:
    install_method(_method_name)
