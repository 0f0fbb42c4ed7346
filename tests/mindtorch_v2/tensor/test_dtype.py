"""Element types, numerical limits, sizes, layouts and the version string."""

from __future__ import annotations

import copy
import operator
import pickle
import subprocess
import sys
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import _dtype, _finfo, _layout, _size, _version

from .._subject import mindtorch_only

pytestmark = mindtorch_only
NAMES = [item.name for item in _dtype.ALL]


@pytest.fixture
def oracle() -> Any:
    return pytest.importorskip("torch")


def outcome(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The text of the result, or the type and text of the error."""
    try:
        return str(function(*args, **kwargs))
    except Exception as error:
        return type(error), str(error)


def test_codes_are_those_of_the_native_module() -> None:
    expected = {
        "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7,
        "complex64": 9, "complex128": 10, "bool": 11, "bfloat16": 12, "float8_e5m2": 13, "float8_e4m3fn": 14,
        "uint16": 15, "uint32": 16, "uint64": 17, "float8_e5m2fnuz": 18, "float8_e4m3fnuz": 19, "float8_e8m0fnu": 20,
        "complex32": 21,
    }  # fmt: skip
    assert {item.name: item.code for item in _dtype.ALL} == expected
    for item in _dtype.ALL:
        assert _dtype.by_code(item.code) is item
    for code in (-1, 8, 63, 100):
        with pytest.raises(ValueError):
            _dtype.by_code(code)


@pytest.mark.parametrize("name", NAMES)
def test_identity_survives_pickle_and_copy(name: str) -> None:
    item = getattr(_dtype, name)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(item, protocol)) is item
    assert copy.copy(item) is item
    assert copy.deepcopy([item])[0] is item
    assert repr(item) == str(item) == f"torch.{name}"
    assert {item: 1}[item] == 1


def test_no_other_instances() -> None:
    for args in ((), ("float128", "Quad", 20, 16, 2, True)):
        with pytest.raises(TypeError, match="cannot create 'torch.dtype' instances"):
            _dtype.dtype(*args)


def test_aliases() -> None:
    pairs = {
        "half": "float16", "float": "float32", "double": "float64", "short": "int16", "int": "int32", "long": "int64",
        "cfloat": "complex64", "cdouble": "complex128",
    }  # fmt: skip
    for alias, name in pairs.items():
        assert getattr(_dtype, alias) is getattr(_dtype, name)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "complex32"])
def test_numpy_round_trip(name: str) -> None:
    item = getattr(_dtype, name)
    assert item.np.name == name
    assert item.np.itemsize == item.itemsize
    assert item.np is item.np
    assert _dtype.from_np(item.np) is item


def test_numpy_type_without_counterpart() -> None:
    import numpy

    with pytest.raises(TypeError, match=r"can't convert np.ndarray of type numpy.str_. The only supported types are: "):
        _dtype.from_np(numpy.dtype("U3"))
    with pytest.raises(ValueError, match="byte order"):
        _dtype.from_np(numpy.dtype(numpy.float32).newbyteorder())


def test_import_is_light() -> None:
    code = (
        "import importlib.util, sys, types\n"
        "package = types.ModuleType('mindtorch_v2')\n"
        "package.__path__ = list(importlib.util.find_spec('mindtorch_v2').submodule_search_locations)\n"
        "sys.modules['mindtorch_v2'] = package\n"
        "import mindtorch_v2._promotion, mindtorch_v2._device, mindtorch_v2._printing, mindtorch_v2._finfo\n"
        "import mindtorch_v2._version, mindtorch_v2._size, mindtorch_v2._layout\n"
        "print(sorted({'numpy', 'ml_dtypes', 'scipy'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_python_number_types_name_dtypes() -> None:
    assert _dtype.dtype_or_none(float) is _dtype.float64
    assert _dtype.dtype_or_none(int) is _dtype.int64
    assert _dtype.dtype_or_none(bool) is _dtype.bool
    assert _dtype.dtype_or_none(complex) is _dtype.complex128
    assert _dtype.dtype_or_none(_dtype.int8) is _dtype.int8
    assert _dtype.dtype_or_none("float32") is None


def test_default_dtype() -> None:
    assert _dtype.get_default_dtype() is _dtype.float32
    _dtype.set_default_dtype(_dtype.float64)
    assert _dtype.get_default_dtype() is _dtype.DEFAULTS.dtype is _dtype.float64
    assert _dtype.DEFAULTS.complex_dtype() is _dtype.complex128
    for wrong in (_dtype.int32, _dtype.complex64, _dtype.float8_e5m2, "float32", float, None):
        with pytest.raises(TypeError):
            _dtype.set_default_dtype(wrong)
    assert _dtype.get_default_dtype() is _dtype.float64


def test_numpy_has_no_half_complex_numbers() -> None:
    assert _dtype.float16.to_complex() is _dtype.complex32 and _dtype.complex32.to_real() is _dtype.float16
    with pytest.raises(TypeError, match="Got unsupported ScalarType ComplexHalf"):
        _ = _dtype.complex32.np


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_attributes_equal_the_oracles(name: str, oracle: Any) -> None:
    ours, theirs = getattr(_dtype, name), getattr(oracle, name)
    for attribute in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    assert outcome(ours.to_real) == outcome(theirs.to_real)
    if name != "float16":
        assert outcome(ours.to_complex) == outcome(theirs.to_complex)


@pytest.mark.oracle
@pytest.mark.parametrize("name", [*NAMES, None])
def test_default_dtype_errors_equal_the_oracles(name: str | None, oracle: Any) -> None:
    ours, theirs = (getattr(_dtype, name), getattr(oracle, name)) if name else (None, None)
    try:
        assert outcome(_dtype.set_default_dtype, ours) == outcome(oracle.set_default_dtype, theirs)
    finally:
        oracle.set_default_dtype(oracle.float32)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["U3", "O", "M8[D]", "m8[s]", "S2", "longdouble", "clongdouble", "V4", ">f4", ">i8"])
def test_numpy_errors_equal_the_oracles(kind: str, oracle: Any) -> None:
    import numpy

    npdtype = numpy.dtype(kind)
    assert outcome(_dtype.from_np, npdtype) == outcome(oracle.from_numpy, numpy.zeros(2, npdtype))


# Numerical limits


def test_limits_are_read_only_values() -> None:
    limits = _finfo.finfo(_dtype.float32)
    assert limits == _finfo.finfo(_dtype.complex64) != _finfo.finfo(_dtype.float64)
    assert _finfo.iinfo(_dtype.int8) == _finfo.iinfo(_dtype.int8) != limits
    assert pickle.loads(pickle.dumps(limits)) == limits
    with pytest.raises(AttributeError):
        limits.eps = 1.0
    with pytest.raises(AttributeError):
        limits.extra = 1.0
    with pytest.raises(TypeError):
        hash(limits)


def test_limits_hold_the_extremes() -> None:
    assert (_finfo.iinfo(_dtype.uint64).min, _finfo.iinfo(_dtype.uint64).max) == (0, 2**64 - 1)
    assert (_finfo.iinfo(_dtype.int64).min, _finfo.iinfo(_dtype.int64).max) == (-(2**63), 2**63 - 1)
    assert _finfo.finfo().dtype == "float32"
    _dtype.set_default_dtype(_dtype.float64)
    assert _finfo.finfo().eps == sys.float_info.epsilon
    assert _finfo.finfo().max == sys.float_info.max
    assert _finfo.finfo().tiny == sys.float_info.min


def describe(limits: Any) -> list[Any]:
    names = [name for name in dir(limits) if not name.startswith("_")]
    return [repr(limits), str(limits), [(name, getattr(limits, name)) for name in names]]


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["finfo", "iinfo"])
@pytest.mark.parametrize("name", NAMES)
def test_limits_equal_the_oracles(kind: str, name: str, oracle: Any) -> None:
    def ours() -> Any:
        return describe(getattr(_finfo, kind)(getattr(_dtype, name)))

    def theirs() -> Any:
        return describe(getattr(oracle, kind)(getattr(oracle, name)))

    assert outcome(ours) == outcome(theirs)


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["finfo", "iinfo"])
@pytest.mark.parametrize("value", [(), (3,), ("float32",), (None,), (float,), (int,), (bool,), (complex,)])
def test_limits_arguments_equal_the_oracles(kind: str, value: tuple[Any, ...], oracle: Any) -> None:
    assert outcome(getattr(_finfo, kind), *value) == outcome(getattr(oracle, kind), *value)


# Sizes


def test_size_stays_a_size() -> None:
    size: Any = _size.Size((2, 3))
    assert size == (2, 3) and hash(size) == hash((2, 3)) and isinstance(size, tuple)
    for made in (size[:1], size + (1,), (1,) + size, size * 2, 2 * size, copy.copy(size), _size.size_of((2,))):
        assert type(made) is _size.Size
    assert type(pickle.loads(pickle.dumps(size))) is _size.Size
    assert pickle.loads(pickle.dumps(size)) == size
    assert type(size[0]) is int and size[-1] == 3
    assert _size.Size((2, 3)).numel() == 6 and _size.Size().numel() == 1
    assert str(size) == repr(size) == f"{size}" == "torch.Size([2, 3])"


SIZE_CALLS = [
    "Size()", "Size([1, True])", "Size([1.5])", "Size(['a'])", "Size(5)", "Size([None])", "Size('ab')", "Size([[1]])",
    "Size({1: 2})", "Size((2, 3)) + (4,)", "Size((2, 3)) + [4]", "Size((2, 3)) + ('a',)", "(1,) + Size((2, 3))",
    "Size((2, 3)) + (1.5,)", "Size((2, 3)) * 2", "2 * Size((2, 3))", "Size((2, 3))[::-1]", "Size((2, 3))[5]",
    "Size((2, 3))['a']", "Size((2, 3)).numel()", "Size((0, 3)).numel()", "Size((2, 3)).index(3)", "Size((2, 3)) * 1.5",
    "Size((2, 3)) + Size((4,))", "Size((2, 3)) == (2, 3)", "Size((2, 3)).count(2)", "list(Size((2, 3)))",
    "Size([1], [2])", "Size(sizes=[1])", "Size((2, 3))[:]", "() + Size((2, 3))", "(True,) + Size((2,))",
    "Size(range(3))", "Size((2, 3)) + 5", "Size(x for x in (1, 2))", "Size((1, 2, 3))[True]", "Size((2 ** 70,))[0]",
    "Size((1, 2))[-3]",
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("call", SIZE_CALLS)
def test_size_equals_the_oracles(call: str, oracle: Any) -> None:
    assert outcome(eval, call, {"Size": _size.Size}) == outcome(eval, call, {"Size": oracle.Size})


# Layouts and memory formats

LAYOUTS = ["strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"]
FORMATS = ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d"]


@pytest.mark.parametrize("name", LAYOUTS + FORMATS)
def test_layout_constants(name: str) -> None:
    item = getattr(_layout, name)
    assert repr(item) == str(item) == f"torch.{name}"
    assert isinstance(item, _layout.layout if name in LAYOUTS else _layout.memory_format)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(item, protocol)) is item
    assert copy.copy(item) is item and copy.deepcopy(item) is item
    with pytest.raises(AttributeError):
        item.name = "other"
    with pytest.raises(TypeError, match="cannot create 'torch."):
        type(item)()


@pytest.mark.oracle
@pytest.mark.parametrize("name", LAYOUTS + FORMATS)
def test_layout_constants_are_the_oracles(name: str, oracle: Any) -> None:
    assert repr(getattr(_layout, name)) == repr(getattr(oracle, name))
    assert outcome(type(getattr(_layout, name))) == outcome(type(getattr(oracle, name)))


# Version

VERSIONS: list[Any] = [
    "2.13.0", "2.13", "2.2", "3", "2.13.0a1", "2.13.0.dev20250101", "2.13.0rc1", "2.13.0+cpu", "2.13.0+cu121",
    "2.13.0.post1", "1!1.0", "parrot", "2.13.0b2.dev3", "2.13.0+1.2", "v2.13", "2.13.0-1", "2.13.0alpha", (2, 13),
    (2, 13, 1), ("2", "x"), (2, 13, "0a"), 5, None,
]  # fmt: skip


def test_version_is_an_ordered_string() -> None:
    version = _version.__version__
    assert isinstance(version, str) and version == "2.13.0" and hash(version) == hash("2.13.0")
    assert version > "2.9" and version >= (2, 13) and version < (3,) and version == (2, 13) and version != "2.12"
    assert version.split(".") == ["2", "13", "0"]


@pytest.mark.oracle
@pytest.mark.parametrize("text", [item for item in VERSIONS if isinstance(item, str)])
def test_version_order_equals_the_oracles(text: str, oracle: Any) -> None:
    ours, theirs = _version.TorchVersion(text), oracle.torch_version.TorchVersion(text)
    for other in VERSIONS:
        for compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq):
            assert outcome(compare, ours, other) == outcome(compare, theirs, other), (other, compare)


def test_each_spelling_of_a_dtype() -> None:
    from mindtorch_v2._dtype_names import c_name, cpp_name, tensor_type, type_string

    cpu, meta = torch.device("cpu"), torch.device("meta")
    assert (cpp_name(torch.int64), c_name(torch.int64), c_name(torch.float16)) == ("long int", "int64_t", "c10::Half")
    assert (
        type_string(torch.bool, cpu) == "torch.BoolTensor" and type_string(torch.int8, meta) == "torch.meta.CharTensor"
    )
    assert tensor_type(torch.int32, cpu) == "torch.IntTensor" and tensor_type(torch.bool, cpu) == "CPUBoolType"
    for dt in _dtype.ALL:
        assert cpp_name(dt) and c_name(dt)


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [(torch.float32, "torch.FloatTensor"), (torch.bool, "CPUBoolType"), (torch.bfloat16, "CPUBFloat16Type")],
)
def test_errors_show_the_type_of_a_tensor_as_pytorch_does(dtype: torch.dtype, kind: str) -> None:
    with pytest.raises(RuntimeError, match=rf"^expand\({kind}\{{\[2, 3\]\}}, size=\[3\]\)"):
        torch.zeros(2, 3, dtype=dtype).expand(3)
