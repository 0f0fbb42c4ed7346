"""Values nobody should pass to a tensor library, as text that is Python.

Invariant: a text means the same in either library: `torch` is the one under test, everything else is in `scope()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Text = str

INTS: tuple[Text, ...] = (
    "-1",
    "0",
    "1",
    "2",
    "-2",
    "3",
    "-3",
    "7",
    "63",
    "64",
    "65",
    "1000",
    "2**31",
    "2**31 - 1",
    "-2**31",
    "2**32",
    "2**32 + 1",
    "2**33",
    "2**40",
    "2**61 + 1",
    "2**62",
    "2**63 - 1",
    "-2**63",
    "2**63",
    "2**64",
    "2**64 - 1",
    "2**100",
    "-2**100",
)
FLOATS: tuple[Text, ...] = (
    "0.0",
    "-0.0",
    "0.5",
    "1.0",
    "-1.5",
    "1e-45",
    "1e30",
    "1e300",
    "-1e300",
    "1e308 * 10",
    "nan",
    "inf",
    "-inf",
    "3.0",
    "2.0**62",
    "2.0**63",
    "2.0**64",
)
OTHERS: tuple[Text, ...] = (
    "None",
    "True",
    "False",
    "''",
    "'mean'",
    "'sum'",
    "'nonsense'",
    "'cpu'",
    "'npu'",
    "'cuda'",
    "'float32'",
    "b'bytes'",
    "1j",
    "complex(nan, inf)",
    "()",
    "[]",
    "{}",
    "{'a': 1}",
    "set()",
    "...",
    "NotImplemented",
    "object()",
    "int",
    "float",
    "slice(None)",
    "range(3)",
    "range(2**62)",
    "loop()",
    "nest(2000)",
    "Index(1)",
    "Index(2**62)",
    "Index(2**100)",
    "Index('x')",
    "Index(None)",
    "Float(1.0)",
    "Float(nan)",
    "Float('x')",
    "Sized(3)",
    "Sized(-1)",
    "Sized(2**62)",
    "Sized(3, 'x')",
    "Liar()",
    "Fails()",
    "lambda x: x",
    "iter([1, 2])",
    "numpy.ones(3)",
    "numpy.float64(1.5)",
    "numpy.int64(2)",
    "numpy.bool_(True)",
    "numpy.zeros((0, 3))",
    "numpy.array('x')",
    "numpy.array(None)",
    "memoryview(b'abcd')",
    "torch",
    "torch.nn",
    "torch.Tensor",
    "torch.Size([2, 3])",
    "torch.Size([-1])",
    "torch.device('cpu')",
    "torch.device('meta')",
    "torch.float32",
    "torch.float8_e5m2",
    "torch.channels_last",
    "torch.channels_last_3d",
    "torch.contiguous_format",
    "torch.preserve_format",
    "torch.strided",
    "torch.sparse_coo",
    "torch.Generator()",
    "torch.finfo(torch.float32)",
    "torch.ones(3).untyped_storage()",
    "torch.ones(3, device='meta').untyped_storage()",
    "torch.nn.Linear(2, 3)",
    "torch.ops.aten.add",
    "'a' * 1000",
    "[None]",
    "[[]]",
    "[[1, 2], [3]]",
    "[1, 'x']",
    "[1.5, 2.5]",
    "[True, False]",
    "[2**62, 4]",
    "[2**62, 2**62, 2**62]",
    "[-1, -1]",
    "[0] * 70",
    "[1] * 65",
    "(1, None)",
    "('x',)",
    "[torch.ones(2)]",
    "[torch.ones(2), torch.ones(3)]",
    "[torch.ones(2), None]",
    "[torch.ones(2), torch.ones(2, device='meta')]",
)
DTYPES: tuple[str, ...] = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e5m2",
)
SHAPES: tuple[Text, ...] = (
    "()",
    "(1,)",
    "(3,)",
    "(2, 3)",
    "(3, 3)",
    "(0,)",
    "(0, 3)",
    "(3, 0)",
    "(2, 3, 4)",
    "(1, 2, 4, 4)",
    "(2, 2, 3, 3, 3)",
    "(1, 1)",
    "(2, 1, 3)",
    "(17,)",
    "(1,) * 8",
    "(64, 3)",
)
# Tensors whose metadata, memory or autograd history is unusual; `{0}` is a shape that fits, `{1}` a dtype.
TENSORS: tuple[Text, ...] = (
    "torch.zeros(1).expand(2**62)",
    "torch.zeros(1, dtype=torch.{1}).expand(2**62)",
    "torch.zeros(1, 1).expand(2**31, 2**31)",
    "torch.zeros((), dtype=torch.{1}).expand(2**31, 2**20)",
    "torch.zeros(1, 1).expand(2**61 + 1, 8)",
    "torch.zeros(1, 3).expand(2**62, 3)",
    "torch.zeros(1, dtype=torch.int64).expand(2**62)",
    "torch.zeros(1, dtype=torch.bool).expand(2**50)",
    "torch.empty(0, 2**62)",
    "torch.empty(2**40, 0, dtype=torch.{1})",
    "torch.empty(2**40, device='meta')",
    "torch.empty(2**31, 2**31, device='meta', dtype=torch.{1})",
    "torch.empty({0}, device='meta', dtype=torch.{1})",
    "torch.ones(4).as_strided((3, 3), (1, 1))",
    "torch.ones(4, dtype=torch.{1}).as_strided((2, 2), (0, 0), 3)",
    "torch.ones([1] * 65)",
    "torch.ones([1] * 64, dtype=torch.{1})",
    "torch.ones({0}, dtype=torch.{1}).T",
    "torch.ones({0}, requires_grad=True)",
    "torch.ones({0}, requires_grad=True) * 2",
    "torch.ones({0}, requires_grad=True)[...]",
    "torch.nn.Parameter(torch.ones({0}))",
    "emptied(torch.ones({0}, dtype=torch.{1}))",
    "exported(torch.ones({0}, dtype=torch.{1}))",
    "exported(torch.ones({0}, dtype=torch.{1}), 'dlpack')",
    "torch.full({0}, nan)",
    "torch.full({0}, inf)",
    "torch.full({0}, -1e30)",
    "torch.tensor([2**63 - 1, -2**63, 0, -1])",
    "torch.tensor([2**40, -2**40])",
    "torch.full({0}, -1, dtype=torch.int64)",
    "torch.full({0}, 2**62, dtype=torch.int64)",
    "torch.full({0}, 1, dtype=torch.{1})",
    "torch.ones({0}, dtype=torch.{1}, device='npu')",
    "torch.ones({0}, device='npu:1')",
    "torch.tensor([])",
    "torch.tensor(nan)",
    "torch.tensor(2**62)",
    "torch.tensor(True)",
    "torch.tensor(1j)",
    "torch.tensor(5, dtype=torch.{1})",
    "torch.ones({0}, dtype=torch.{1})",
    "torch.arange(12.).reshape(3, 4).t()",
    "torch.ones(2, 3, dtype=torch.complex64).conj()",
    "torch.ones(1, 2, 4, 4).to(memory_format=torch.channels_last)",
    "torch.ones(9)[1::2]",
    "torch.ones(9)[9:]",
    "torch.eye(3)",
    "torch.eye(3) * nan",
    "torch.Tensor()",
    "Sub(torch.ones({0}))",
)
KEYS: tuple[Text, ...] = (
    "None",
    "...",
    "True",
    "False",
    "0",
    "-1",
    "3",
    "2**62",
    "-2**63",
    "2**64",
    "1.5",
    "'x'",
    "()",
    "[]",
    "[[]]",
    "[0, 1]",
    "[True, False]",
    "[0, None]",
    "[2**40]",
    "slice(None)",
    "slice(1, None)",
    "slice(None, None, 2)",
    "slice(None, None, -1)",
    "slice(None, None, 0)",
    "slice(2**62, -2**62)",
    "slice(-2**100, 2**100, 2**100)",
    "slice('x', 1)",
    "slice(1.5)",
    "slice(torch.tensor(1), torch.tensor(2))",
    "slice(Index(0), Index(2**100))",
    "range(2)",
    "torch.tensor(0)",
    "torch.tensor(True)",
    "torch.tensor([0, 1])",
    "torch.tensor([[0, 1], [1, 0]])",
    "torch.tensor([-2**63])",
    "torch.tensor([2**63 - 1])",
    "torch.tensor([0.5])",
    "torch.tensor([], dtype=torch.int64)",
    "torch.zeros({0}, dtype=torch.bool)",
    "torch.ones({0}, dtype=torch.bool)",
    "torch.ones({0}, dtype=torch.uint8)",
    "torch.zeros(1, dtype=torch.int64).expand(2**62)",
    "torch.ones(1, dtype=torch.bool).expand(3)",
    "torch.zeros(2, dtype=torch.int64, device='meta')",
    "torch.zeros(2, dtype=torch.int64, device='npu')",
    "torch.zeros(2, dtype=torch.int16)",
    "numpy.array([0, 1])",
    "numpy.array([True, False])",
    "Index(1)",
    "Index(2**64)",
    "Index('x')",
    "Sized(2)",
    "a",
    "a.long()",
    "a.bool()",
    "a > 0",
    "object()",
    "1j",
    "{}",
    "loop()",
)


class Index:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __index__(self) -> Any:
        return self.value


class Float:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __float__(self) -> Any:
        return self.value


class Sized:
    """A sequence that says what it likes about its length."""

    def __init__(self, length: int, item: Any = 0) -> None:
        self.length, self.item = length, item

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, int) or index >= 5:
            raise IndexError(index)
        return self.item


class Liar:
    """Answers to every attribute, and with nothing useful."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class Fails:
    """Every question raises; a library hands such an exception on."""

    def __index__(self) -> int:
        raise ValueError("asked for __index__")

    def __float__(self) -> float:
        raise ValueError("asked for __float__")

    def __len__(self) -> int:
        raise ValueError("asked for __len__")

    def __bool__(self) -> bool:
        raise ValueError("asked for __bool__")

    def __eq__(self, other: object) -> bool:
        raise ValueError("asked for __eq__")

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Any]:
        raise ValueError("asked for __iter__")

    def __repr__(self) -> str:
        return "Fails()"


def loop() -> list[Any]:
    """A list that contains itself."""
    value: list[Any] = []
    value.append(value)
    return value


def nest(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def emptied(tensor: Any) -> Any:
    """Whose storage has lost its bytes."""
    tensor.untyped_storage().resize_(0)
    return tensor


def exported(tensor: Any, way: str = "numpy") -> Any:
    """Whose bytes somebody else looks at."""
    _EXPORTS.append(tensor.numpy() if way == "numpy" else tensor.__dlpack__())
    del _EXPORTS[:-20]
    return tensor


_EXPORTS: list[Any] = []


def scope(torch: Any) -> dict[str, Any]:
    """The names a program may use."""
    import numpy

    class Sub(torch.Tensor):
        def __new__(cls, tensor: Any) -> Any:
            return tensor.as_subclass(cls)

    names: dict[str, Any] = {"torch": torch, "numpy": numpy, "nan": float("nan"), "inf": float("inf"), "Sub": Sub}
    for item in (Index, Float, Sized, Liar, Fails, loop, nest, emptied, exported):
        names[item.__name__] = item
    return names
