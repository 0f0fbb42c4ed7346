"""From a seed to a short program: tensors, a call of something with a hostile argument or two, a second call on top.

Invariant: the seed decides every word, and a new function changes few of the others' programs. A program is text: what
crashed can be read and pasted.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from ._targets import Param, Target
from ._values import DTYPES, FLOATS, INTS, KEYS, OTHERS, SHAPES, TENSORS


class Sample(NamedTuple):
    """A call that PyTorch accepts: texts of its arguments."""

    path: str
    args: tuple[str, ...]
    kwargs: tuple[tuple[str, str], ...]


class Program(NamedTuple):
    """`lines` are statements; `about` is the function that this is about."""

    seed: int
    about: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


_STRINGS = {
    "reduction": ("mean", "sum", "none"),
    "mode": ("constant", "reflect", "nearest", "bilinear", "reduced", "linear"),
    "reduce": ("sum", "prod", "mean", "amax", "add", "multiply"),
    "rounding_mode": ("floor", "trunc"),
    "padding": ("same", "valid"),
    "padding_mode": ("zeros", "border", "circular", "reflect"),
    "side": ("left", "right"),
    "equation": ("ij,jk->ik", "...i,...i", "ii", "i" * 60, "ij->" + "j" * 50),
    "norm": ("ortho", "forward"),
    "indexing": ("ij", "xy"),
    "nonlinearity": ("relu", "tanh"),
    "driver": ("gels", "gelsd"),
    "interpolation": ("linear", "lower"),
    "approximate": ("none", "tanh"),
    "UPLO": ("L", "U"),
}
_INTEGER_NAMES = ("index", "indices", "pivots", "offsets", "lengths", "repeats", "LU_pivots", "crow", "col")
_BOOL_NAMES = ("mask", "condition", "key_padding_mask")
_ALIASES = (
    "a.t()",
    "a[0]",
    "a[1:]",
    "a.expand_as(a)",
    "a.view(-1)",
    "a.flip(0)",
    "a.unsqueeze(0)",
    "a.detach()",
    "a",
    "a.reshape(-1)[::2]",
    "a.as_strided((2, 2), (1, 1))",
    "a.as_strided((2,), (0,))",
    "a.view(torch.int32)",
    "a.view(torch.int64)",
    "a.real",
    "a.data",
    "a.diagonal()",
    "a.unfold(0, 2, 1)",
)
_MEMORY = (
    "a.untyped_storage().resize_({i})",
    "a.storage().resize_({i})",
    "a.set_(b)",
    "a.set_(b.untyped_storage())",
    "a.set_(b.untyped_storage(), {i}, ({i},), ({i},))",
    "a.set_(a.untyped_storage(), {i}, (2, 2), ({i}, {i}))",
    "a.as_strided(({i}, {i}), ({i}, {i}), {i})",
    "torch.as_strided(a, ({i},), ({i},), {i})",
    "a.resize_({i})",
    "a.resize_({i}, {i})",
    "a.resize_as_(b)",
    "(a.numpy(), a.resize_(1000))",
    "(a.__dlpack__(), a.resize_(1000))",
    "torch.from_dlpack(a).resize_(100)",
    "torch.from_numpy(a.numpy()).resize_(100)",
    "torch.frombuffer(bytearray({i}), dtype=torch.{d}, count={i}, offset={i})",
    "torch.from_numpy(numpy.ones((3, 2))[::-1])",
    "a.untyped_storage()[{i}]",
    "a.untyped_storage().__setitem__({i}, {i})",
    "a.storage()[{i}]",
    "a.untyped_storage().fill_({i})",
    "a.untyped_storage().copy_(b.untyped_storage())",
    "a.untyped_storage().tolist()",
    "bytes(a.untyped_storage())",
    "torch.UntypedStorage({i})",
    "torch.empty_strided(({i}, {i}), ({i}, {i}))",
    "torch.empty({i}, {i}, dtype=torch.{d})",
    "torch.zeros(({i}, {i}, {i}), device='{v}')",
    "torch.asarray(a, copy={o})",
    "torch.tensor({o})",
    "torch.as_tensor({o})",
    "torch.tensor([{o}, {o}])",
    "torch.tensor([{i}, {i}], dtype=torch.{d})",
    "torch.full(({i},), {o}, dtype=torch.{d})",
    "a.view(torch.{d})",
    "a.view({i}, {i})",
    "a.type(torch.{d})",
    "a.to({o})",
    "a.new({i})",
    "a.new({o})",
    "torch.Tensor({i})",
    "torch.Tensor({o})",
    "a.new_zeros({i}, {i})",
    "a.new_tensor({o})",
    "a.item()",
    "a.tolist()",
    "list(a)",
    "len(a)",
    "float(a)",
    "int(a)",
    "bool(a)",
    "a.__array__()",
    "numpy.asarray(a)",
    "a in a",
    "a.data_ptr()",
    "a.stride({i})",
    "a.size({i})",
    "a.untyped_storage().nbytes()",
    "setattr(a, 'data', b)",
    "setattr(a, 'grad', b)",
    "setattr(a, 'requires_grad', {o})",
    "setattr(a, 'data', {o})",
    "setattr(a, 'grad', {o})",
    "a.backward({o})",
    "torch.autograd.grad({o}, a)",
    "torch.autograd.grad(a.sum(), {o})",
    "torch.autograd.backward({o}, {o})",
    "a.float().requires_grad_().sum().backward({o})",
    "torch.randn({i}, {i})",
    "torch.randperm({i})",
    "torch.randint({i}, {i}, ({i},))",
    "torch.arange({i}, {i}, {i})",
    "torch.linspace({i}, {i}, {i})",
    "torch.arange({f}, {f}, {f})",
    "torch.Generator(device={o})",
    "torch.Generator().manual_seed({i})",
    "torch.nn.Parameter({o})",
    "torch.Size({o})",
    "torch.device({o})",
    "torch.device('npu', {i})",
    "a + {o}",
    "{o} - a",
    "a * {o}",
    "a / {i}",
    "a // {i}",
    "a % {i}",
    "a ** {i}",
    "{i} ** a",
    "a @ {o}",
    "a << {i}",
    "a & {o}",
    "a == {o}",
    "a < {o}",
    "a.__iadd__({o})",
    "torch.optim.SGD({o}, lr={f})",
    "torch.stack([a] * 3, {i})",
    "torch.cat([a, b], {i})",
    "torch.result_type({o}, {o})",
    "torch.promote_types({o}, {o})",
    "torch.can_cast({o}, {o})",
    "torch.iinfo({o})",
    "torch.finfo({o})",
    "torch.broadcast_shapes({o}, {o})",
    "torch.broadcast_shapes(({i}, 2), ({i},))",
)


class Maker:
    """Writes the program of one seed."""

    def __init__(self, seed: int, targets: Sequence[Target], samples: Sequence[Sample], devices: Sequence[str]) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.targets, self.samples, self.devices = targets, samples, devices
        self.device = self.random.choices(devices, [8, 2, 3][: len(devices)])[0]
        self.dtype = "float32" if self.random.random() < 0.5 else self.random.choice(DTYPES)
        self.shape = self.random.choice(SHAPES) if self.random.random() < 0.5 else "(2, 3)"

    def pick(self, choices: Sequence[str]) -> str:
        return self.random.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def program(self) -> Program:
        lines = [f"a = {self.tensor('a') if self.chance(0.7) else self.hostile_tensor()}"]
        lines.append(f"b = {self.pick(_ALIASES) if self.chance(0.4) else self.tensor('b')}")
        kind = self.random.random()
        if kind < 0.1:
            about, calls = self.indexing()
        elif kind < 0.2:
            about, calls = self.memory()
        elif kind < 0.45 and self.samples:
            about, calls = self.sample()
        else:
            about, calls = self.call()
        lines += calls
        if self.chance(0.15):
            lines += self.second()
        return Program(self.seed, about, tuple(lines))

    # -- tensors ------------------------------------------------------------------------------------------------------
    def tensor(self, name: str) -> str:
        """One that fits: the program's shape, dtype and device."""
        place = "" if self.device == "cpu" else f", device='{self.device}'"
        if name in _INTEGER_NAMES or (name == "target" and self.chance(0.5)):
            return f"torch.zeros({self.shape}, dtype=torch.int64{place})"
        if name in _BOOL_NAMES:
            return f"torch.ones({self.shape}, dtype=torch.bool{place})"
        dtype = "" if self.dtype == "float32" else f", dtype=torch.{self.dtype}"
        grad = ", requires_grad=True" if self.dtype == "float32" and self.chance(0.15) else ""
        if not dtype and self.chance(0.5):
            return f"torch.rand({self.shape}{place}{grad})"
        return f"torch.ones({self.shape}{dtype}{place}{grad})"

    def hostile_tensor(self) -> str:
        return self.fill(self.pick(TENSORS))

    def fill(self, text: str) -> str:
        return text.replace("{0}", self.shape).replace("{1}", self.pick(DTYPES))

    # -- values -------------------------------------------------------------------------------------------------------
    def value(self, param: Param) -> str:
        """One that fits its kind."""
        if param.optional and self.chance(0.3):
            return "None"
        if param.is_list:
            length = param.size or self.random.choice([1, 1, 2, 2, 3])
            parts = [self.single(param) for _ in range(length)]
            return f"[{', '.join(parts)}]" if self.chance(0.5) else f"({', '.join(parts)},)"
        return self.single(param)

    def single(self, param: Param) -> str:
        name, kind = param.name, param.kind
        if kind == "Tensor":
            return self.pick(("a", "a", "b")) if self.chance(0.5) else self.tensor(name)
        if kind == "int":
            return self.pick(("0", "1", "-1")) if "dim" in name else self.pick(("0", "1", "1", "2", "2", "3"))
        if kind == "str":
            return repr(self.pick(_STRINGS.get(name, ("mean", "sum", "none", "constant"))))
        if kind == "Generator":
            return "None" if self.chance(0.8) else "torch.Generator()"
        fixed = {
            "Scalar": ("1", "2", "0.5", "0"),
            "number": ("1", "0.5"),
            "float": ("0.5", "1.0", "0.0", "1e-5"),
            "bool": ("True", "False"),
            "ScalarType": tuple(f"torch.{dtype}" for dtype in DTYPES),
            "Device": tuple(f"'{device}'" for device in self.devices),
            "Layout": ("torch.strided",),
            "MemoryFormat": ("torch.contiguous_format", "torch.preserve_format", "torch.channels_last"),
            "Storage": ("a.untyped_storage()", "b.untyped_storage()"),
        }
        return self.pick(fixed[kind]) if kind in fixed else self.anything()

    def anything(self) -> str:
        """Of any kind, hostile or not."""
        kind = self.random.random()
        if kind < 0.3:
            return self.pick(("a", "b"))
        if kind < 0.5:
            return self.hostile_tensor()
        if kind < 0.65:
            return self.pick(INTS)
        if kind < 0.75:
            return self.pick(FLOATS)
        if kind < 0.85:
            length = self.random.choice([1, 2, 3, 4])
            return f"({', '.join(self.pick(INTS) for _ in range(length))},)"
        return self.pick(OTHERS)

    def hostile(self, param: Param) -> str:
        """One of its kind that nobody expects, mostly."""
        if self.chance(0.3):
            return self.anything()
        if param.kind == "Tensor":
            one = self.hostile_tensor()
            return f"[a, {one}]" if param.is_list else one
        numbers = INTS if param.kind in ("int", "bool") else FLOATS + INTS
        if param.kind in ("int", "float", "Scalar", "number"):
            if not param.is_list:
                return self.pick(numbers)
            length = param.size if param.size and self.chance(0.7) else self.random.choice([0, 1, 2, 3, 4, 6])
            good = Param(param.name, param.kind)
            parts = [self.pick(numbers) if self.chance(0.5) else self.single(good) for _ in range(length)]
            return f"[{', '.join(parts)}]"
        return self.anything()

    # -- calls --------------------------------------------------------------------------------------------------------
    def call(self) -> tuple[str, list[str]]:
        target = chosen(self.seed, self.targets)
        if self.chance(0.1):
            params: tuple[Param, ...] = (Param("x", "Any"),) * self.random.randrange(5)
        else:
            params = self.random.choice(target.signatures)
        positional: list[str] = []
        named: dict[str, str] = {}
        spoiled = self.spoiled(len(params))
        for position, param in enumerate(params):
            if param.default and position not in spoiled and self.chance(0.6):
                if positional and not param.kwonly:
                    positional.append("")
                continue
            text = self.hostile(param) if position in spoiled else self.value(param)
            if param.kwonly or "" in positional:
                named[param.name] = text
            else:
                positional.append(text)
        positional = [text for text in positional if text]
        if target.out and self.chance(0.2):
            named["out"] = self.pick(("a", "b", "a", "(a, b)", self.hostile_tensor()))
        return target.path, self.written(target, positional, named)

    def spoiled(self, count: int) -> set[int]:
        """Which arguments are hostile: none, one, two, or all."""
        if count == 0:
            return set()
        how_many = self.random.choices([0, 1, 2, count], [15, 60, 22, 3])[0]
        return set(self.random.sample(range(count), min(how_many, count)))

    def written(self, target: Target, positional: list[str], named: dict[str, str]) -> list[str]:
        inside = ", ".join([*positional, *(f"{name}={text}" for name, text in named.items())])
        if target.is_module:
            return [f"m = torch.{target.path}({inside})", f"r = m({self.pick(('a', 'a, b', 'a, a, a', 'b'))})"]
        if target.is_method and positional and self.chance(0.9):
            rest = ", ".join([*positional[1:], *(f"{name}={text}" for name, text in named.items())])
            receiver = positional[0] if re.match(r"(torch\.\w+\(|[ab]$)", positional[0]) else "a"
            return [f"r = ({receiver}).{target.path[7:]}({rest})"]
        return [f"r = torch.{target.path}({inside})"]

    def sample(self) -> tuple[str, list[str]]:
        """A call that PyTorch accepts, with an argument or two replaced."""
        sample = self.random.choice(self.samples)
        args, kwargs = list(sample.args), dict(sample.kwargs)
        for position in self.spoiled(len(args) + len(kwargs)):
            if position < len(args):
                args[position] = self.instead(args[position])
            else:
                name = list(kwargs)[position - len(args)]
                kwargs[name] = self.instead(kwargs[name])
        inside = ", ".join([*args, *(f"{name}={text}" for name, text in kwargs.items())])
        return sample.path, [f"r = torch.{sample.path}({inside})"]

    def instead(self, text: str) -> str:
        """Something hostile of the kind that `text` is."""
        if text.startswith("torch.") and "(" in text:
            changed = re.sub(r"dtype=torch\.\w+", f"dtype=torch.{self.pick(DTYPES)}", text)
            return self.pick((changed, self.hostile_tensor(), f"{text}.to('meta')", f"({text}).T", "a"))
        if re.fullmatch(r"-?\d+", text):
            return self.hostile(Param("", "int"))
        if re.fullmatch(r"[(\[][-\d, ]*[)\]]", text):
            return re.sub(r"-?\d+", lambda m: self.pick(INTS) if self.chance(0.5) else m.group(), text)
        return self.hostile(Param("", "float" if "." in text else "Any"))

    def indexing(self) -> tuple[str, list[str]]:
        keys = [self.fill(self.pick(KEYS)) for _ in range(self.random.choices([1, 2, 3, 70], [60, 30, 9, 1])[0])]
        key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
        if self.chance(0.5):
            return "__getitem__", [f"r = a[{key}]"]
        value = self.pick(("b", "a", "1", "1.5", "a[0]", self.anything()))
        return "__setitem__", [f"a[{key}] = {value}", "r = a"]

    def memory(self) -> tuple[str, list[str]]:
        """Storages, creation, conversions, operators of Python: what no schema describes."""
        text = self.pick(_MEMORY)
        about = text
        text = re.sub(r"\{([ifdvo])\}", self.blank, text)
        return about, [f"r = {text}"]

    def blank(self, match: re.Match[str]) -> str:
        kind = match.group(1)
        if kind == "o":
            return self.anything()
        made = self.pick({"i": INTS, "f": FLOATS, "d": DTYPES, "v": tuple(self.devices)}[kind])
        return f"({made})" if made.startswith("-") else made

    def second(self) -> list[str]:
        """What one does with a result."""
        return [
            self.pick(
                (
                    "r = r.sum()",
                    "r = r.reshape(-1)",
                    "r = r + a",
                    "r = r[..., :1]",
                    "r = r.to('cpu')",
                    "r = r.double()",
                    "r = r.clone().resize_(3)",
                    "r.add_(1)",
                    "r.copy_(a)",
                    "r = a.copy_(r)",
                    "r.requires_grad_()",
                    "r = torch.cat([r, r])",
                    "r = r.contiguous()",
                    "r = a[r]",
                    "r = r.numpy()",
                    "r = r.t() @ r",
                    "r = r.to(torch.int8)",
                    "r = r.expand(4, *r.shape)",
                    "r = r.sum().backward()",
                    "r.zero_()",
                )
            )
        ]


def chosen(seed: int, targets: Sequence[Target]) -> Target:
    """A target by the highest of weights that each has of itself: a new one changes only the programs that it gets."""
    return max(targets, key=lambda target: hash((seed, target.mark)))


def write(seed: int, targets: Sequence[Target], samples: Sequence[Sample], devices: Sequence[str]) -> Program:
    return Maker(seed, targets, samples, devices).program()
