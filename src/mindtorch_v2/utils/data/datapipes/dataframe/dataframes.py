"""Remembers what is done to a data frame, to do it to every frame of a datapipe.

`trace = pipe.trace_as_dataframe()` stands for the frame. Arithmetic, calls, items and attributes of it are captures:
they share one context, a list of operations and of variables, and `execute` gives a capture's value once the first
variable has one. Invariant: capturing computes nothing.
"""

from __future__ import annotations

import unittest.mock
from collections.abc import Iterator
from typing import Any, NoReturn

from .._decorator import functional_datapipe
from ..datapipe import DFIterDataPipe, IterDataPipe
from .structures import DataChunkDF

__all__ = [
    "Capture",
    "CaptureA",
    "CaptureAdd",
    "CaptureCall",
    "CaptureControl",
    "CaptureDataFrame",
    "CaptureDataFrameWithDataPipeOps",
    "CaptureF",
    "CaptureGetAttr",
    "CaptureGetItem",
    "CaptureInitial",
    "CaptureLikeMock",
    "CaptureMul",
    "CaptureSetItem",
    "CaptureSub",
    "CaptureVariable",
    "CaptureVariableAssign",
    "DataFrameTracedOps",
    "DataFrameTracer",
    "disable_capture",
    "get_val",
]

# Names that are steps of the datapipe, not attributes of the frame.
DATAPIPES_OPS = """_dataframes_as_tuples groupby _dataframes_filter map to_datapipe shuffle concat batch
    _dataframes_per_row _dataframes_concat _dataframes_shuffle""".split()
UNIMPLEMENTED_ATTR = ["__deepcopy__", "__setstate__", "is_shardable", "apply_sharding"]


def disable_capture() -> None:
    """Refuse to capture from now on."""
    CaptureControl.disabled = True


class CaptureControl:
    disabled = False


class DataFrameTracedOps(DFIterDataPipe):
    """Every frame of a datapipe, after what was captured has been done to it."""

    def __init__(self, source_datapipe: Any, output_var: Any) -> None:
        super().__init__()
        self.source_datapipe = source_datapipe
        self.output_var = output_var

    def __iter__(self) -> Iterator[Any]:
        for item in self.source_datapipe:
            yield self.output_var.apply_ops(item)


def get_val(capture: Any) -> Any:
    """What a capture stands for; a text in quotes; anything else as it is."""
    if isinstance(capture, Capture):
        return capture.execute()
    return f'"{capture}"' if isinstance(capture, str) else capture


class Capture:
    """Something that was done, or will be, to a frame that is not there yet."""

    ctx: dict[str, Any]

    def __init__(self, schema_df: Any = None) -> None:
        self.ctx = {"operations": [], "variables": [], "schema_df": schema_df}

    def _ops_str(self) -> str:
        return "\n".join(map(str, self.ctx["operations"]))

    def __str__(self) -> str:
        return self._ops_str()

    def execute(self) -> Any:
        """The value, now that the first variable has one."""
        # Of a capture of this class alone, as in PyTorch: a call of the frame's attribute of that name.
        return CaptureGetAttr(self, "execute", ctx=self.ctx)()

    def __getstate__(self) -> dict[str, Any]:
        self.ctx["schema_df"] = None
        for variable in self.ctx["variables"]:
            variable.calculated_value = None
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __getattr__(self, attrname: str) -> Any:
        if attrname in ("kwarg", "kwargs"):
            raise RuntimeError("no kwargs!")
        if attrname == "__deepcopy__":
            raise AttributeError
        return CaptureGetAttr(self, attrname, ctx=self.ctx)

    def __getitem__(self, key: Any) -> Any:
        return CaptureGetItem(self, key, ctx=self.ctx)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.ctx["operations"].append(CaptureSetItem(self, key, value, ctx=self.ctx))

    def _assigned(self, value: Any, known: Any) -> Any:
        """A new variable, and the operation that gives it its value."""
        variable = CaptureVariable(known, ctx=self.ctx)
        self.ctx["operations"].append(CaptureVariableAssign(variable=variable, value=value, ctx=self.ctx))
        return variable

    def __add__(self, add_val: Any) -> Any:
        result = CaptureAdd(self, add_val, ctx=self.ctx)
        return self._assigned(result, result)

    def __sub__(self, add_val: Any) -> Any:
        result = CaptureSub(self, add_val, ctx=self.ctx)
        return self._assigned(result, result)

    def __mul__(self, add_val: Any) -> Any:
        result = CaptureMul(self, add_val, ctx=self.ctx)
        return self._assigned(result, result)

    def _is_context_empty(self) -> bool:
        return not self.ctx["operations"] and not self.ctx["variables"]

    def apply_ops_2(self, dataframe: Any) -> None:
        """Do everything to a frame."""
        self.ctx["variables"][0].calculated_value = dataframe
        for operation in self.ctx["operations"]:
            operation.execute()

    @property
    def columns(self) -> Any:
        """The columns that the frame of the schema has after everything was done to it."""
        self.apply_ops_2(self.ctx["schema_df"])
        return self.execute().columns

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._is_context_empty():
            # A function that was captured on its own belongs to its first argument's frame.
            given = [*args, *(x for pair in kwargs.items() for x in pair)]
            self.ctx = next((x.ctx for x in given if isinstance(x, Capture) and not x._is_context_empty()), self.ctx)
        return self._assigned(CaptureCall(self, ctx=self.ctx, args=args, kwargs=kwargs), None)


class CaptureF(Capture):
    """A capture that keeps what it was given by name."""

    def __init__(self, ctx: Any = None, **kwargs: Any) -> None:
        super().__init__()
        self.ctx = {"operations": [], "variables": []} if ctx is None else ctx
        self.kwargs = kwargs


class CaptureA(CaptureF):
    """A function that is captured instead of being called."""

    def __str__(self) -> str:
        return f"{self.kwargs['name']}"

    def execute(self) -> Any:
        return self.kwargs["real_attribute"]


class CaptureLikeMock:
    """Capture the calls of a function, by its name, in a context."""

    def __init__(self, name: str) -> None:
        find: Any = getattr(unittest.mock, "_get_target")  # noqa: B009 (the stubs have only public names)
        self.get_target, self.attribute = find(name)
        self.name = name

    def __enter__(self) -> None:
        self.save = getattr(self.get_target(), self.attribute)
        setattr(self.get_target(), self.attribute, CaptureA(name=self.name, real_attribute=self.save))

    def __exit__(self, *exc_info: Any) -> None:
        setattr(self.get_target(), self.attribute, self.save)


class CaptureCall(CaptureF):
    def __init__(self, callable: Any, ctx: Any = None, **kwargs: Any) -> None:
        super().__init__(ctx, **kwargs)
        self.callable = callable

    def __str__(self) -> str:
        return f"{self.callable}({self.kwargs['args']},{self.kwargs['kwargs']})"

    def execute(self) -> Any:
        given = [arg.execute() if isinstance(arg, Capture) else arg for arg in self.kwargs["args"]]
        return get_val(self.callable)(*given, **self.kwargs["kwargs"])


class CaptureVariableAssign(CaptureF):
    def __str__(self) -> str:
        return f"{self.kwargs['variable']} = {self.kwargs['value']}"

    def execute(self) -> None:
        self.kwargs["variable"].calculated_value = self.kwargs["value"].execute()


class CaptureVariable(Capture):
    """A name for a value; its value is there after its operation has run."""

    names_idx = 0
    calculated_value: Any

    def __init__(self, value: Any, ctx: Any) -> None:
        super().__init__()
        if CaptureControl.disabled:
            raise RuntimeError("Attempting to create capture variable with capture off")
        self.ctx = ctx
        self.value = value
        self.name = f"var_{CaptureVariable.names_idx}"
        CaptureVariable.names_idx += 1
        self.ctx["variables"].append(self)

    def __str__(self) -> str:
        return self.name

    def execute(self) -> Any:
        return self.calculated_value

    def apply_ops(self, dataframe: Any) -> Any:
        """This variable's value for a frame."""
        self.apply_ops_2(dataframe)
        return self.calculated_value


class CaptureGetItem(Capture):
    def __init__(self, left: Any, key: Any, ctx: Any) -> None:
        super().__init__()
        self.ctx, self.left, self.key = ctx, left, key

    def __str__(self) -> str:
        return f"{self.left}[{get_val(self.key)}]"

    def execute(self) -> Any:
        return self.left.execute()[self.key]


class CaptureSetItem(Capture):
    def __init__(self, left: Any, key: Any, value: Any, ctx: Any) -> None:
        super().__init__()
        self.ctx, self.left, self.key, self.value = ctx, left, key, value

    def __str__(self) -> str:
        return f"{self.left}[{get_val(self.key)}] = {self.value}"

    def execute(self) -> None:
        target = self.left.execute()
        target[self.key] = self.value.execute()


class _Binary(Capture):
    def __init__(self, left: Any, right: Any, ctx: Any) -> None:
        super().__init__()
        self.ctx, self.left, self.right = ctx, left, right


class CaptureAdd(_Binary):
    def __str__(self) -> str:
        return f"{self.left} + {self.right}"

    def execute(self) -> Any:
        return get_val(self.left) + get_val(self.right)


class CaptureMul(_Binary):
    def __str__(self) -> str:
        return f"{self.left} * {self.right}"

    def execute(self) -> Any:
        return get_val(self.left) * get_val(self.right)


class CaptureSub(_Binary):
    def __str__(self) -> str:
        return f"{self.left} - {self.right}"

    def execute(self) -> Any:
        return get_val(self.left) - get_val(self.right)


class CaptureGetAttr(Capture):
    def __init__(self, src: Any, name: str, ctx: Any) -> None:
        super().__init__()
        self.ctx, self.src, self.name = ctx, src, name

    def __str__(self) -> str:
        return f"{self.src}.{self.name}"

    def execute(self) -> Any:
        return getattr(get_val(self.src), self.name)


class CaptureInitial(CaptureVariable):
    """The variable that stands for the frame itself, with a context of its own."""

    def __init__(self, schema_df: Any = None) -> None:
        super().__init__(None, {"operations": [], "variables": [], "schema_df": schema_df})
        self.name = f"input_{self.name}"


class CaptureDataFrame(CaptureInitial):
    pass


class CaptureDataFrameWithDataPipeOps(CaptureDataFrame):
    """A frame's capture that is a datapipe too: what is a step of datapipes is one, the rest is captured."""

    def as_datapipe(self) -> Any:
        """The frames, with everything done to them."""
        return DataFrameTracedOps(self.ctx["variables"][0].source_datapipe, self)

    def raw_iterator(self) -> Iterator[Any]:
        return iter(self.as_datapipe())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dataframes_as_tuples())

    def batch(self, batch_size: int = 10, drop_last: bool = False, wrapper_class: Any = DataChunkDF) -> Any:
        """Batches that hold one frame of `batch_size` rows each."""
        rows = self._dataframes_per_row()._dataframes_concat(batch_size)
        made = rows.as_datapipe().batch(1, drop_last=drop_last, wrapper_class=wrapper_class)
        made._dp_contains_dataframe = True
        return made

    def groupby(
        self,
        group_key_fn: Any,
        *,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> Any:
        """Rows, as frames, grouped by a key."""
        return (
            self._dataframes_per_row()
            .as_datapipe()
            .groupby(
                group_key_fn,
                buffer_size=buffer_size,
                group_size=group_size,
                guaranteed_group_size=guaranteed_group_size,
                drop_remaining=drop_remaining,
            )
        )

    def shuffle(self, *args: Any, **kwargs: Any) -> Any:
        return self._dataframes_shuffle(*args, **kwargs)

    def filter(self, *args: Any, **kwargs: Any) -> Any:
        return self._dataframes_filter(*args, **kwargs)

    def collate(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("Can't collate unbatched DataFrames stream")

    def __getattr__(self, attrname: str) -> Any:
        if attrname in UNIMPLEMENTED_ATTR:
            raise AttributeError("Attempting to get ", attrname)
        if attrname in DATAPIPES_OPS:
            return getattr(self.as_datapipe(), attrname)
        return super().__getattr__(attrname)


@functional_datapipe("trace_as_dataframe")
class DataFrameTracer(CaptureDataFrameWithDataPipeOps, IterDataPipe[Any]):
    """The frames of a datapipe, as one frame to which things are done."""

    source_datapipe: Any = None

    def __init__(self, source_datapipe: Any, schema_df: Any = None) -> None:
        self.source_datapipe = source_datapipe
        if schema_df is None:
            schema_df = next(iter(source_datapipe))
        super().__init__(schema_df=schema_df)

    def set_shuffle_settings(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to be set: rows are shuffled by Python's generator."""

    def is_shardable(self) -> bool:
        return False
