"""What counts as a finding: exceptions no user should see, and words of our inside in the others.

Invariant: `INSIDE` is wrong whatever PyTorch says. `PYTHON` are words that Python finds for a mistake in our own code;
PyTorch's Python code raises a few of them too, so they are findings unless PyTorch says the same. `CAUGHT` is what the
last net of operators' calls (`_dispatch/unforeseen.py`) says: no user sees our inside, but a rule lacks a check.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Raised by nobody on purpose.
INSIDE_TYPES = (
    "SystemError",
    "UnboundLocalError",
    "NameError",
    "KeyError",
    "RecursionError",
    "ModuleNotFoundError",
    "ImportError",
    "UnicodeDecodeError",
    "StopIteration",
    "RuntimeWarning",
    "error",
)
PYTHON_TYPES = ("AssertionError", "ZeroDivisionError", "MemoryError", "OverflowError", "AttributeError", "OSError")
# What PyTorch raises. An exception of another type was made for ourselves.
KNOWN_TYPES = (
    *PYTHON_TYPES,
    "RuntimeError",
    "TypeError",
    "ValueError",
    "IndexError",
    "NotImplementedError",
    "BufferError",
    "LinAlgError",
    "_LinAlgError",
    "OutOfMemoryError",
    "DeferredCudaCallError",
    "AcceleratorError",
    # Ours on purpose: a refusal of the vendor's library, with the operator's name.
    "AclError",
)
INSIDE = re.compile(
    r"\bi64\b|\bi32\b|[Nn]um[Pp]y|\bndarray\b|\bufunc\b|[Ss]ci[Pp]y|tuple index out of range|list index out of range"
    r"|has no attribute '_(?!_)|MetaStorage|_native\b|mindtorch_v2\._|nbytes must not be negative"
    r"|ml_dtypes|mypyc|longjmp|object expected; got|std::|bad_alloc|vector::|stoi|cannot create std"
    r"|\bSpec\b|\bstorage object\b|argument list must|array is too big|Unable to allocate"
    r"|could not broadcast|cannot reshape array|LAPACK library|illegal value|<lambda>\(\)|<locals>"
)
PYTHON = re.compile(
    r"'NoneType' object|values to unpack|cannot unpack|required positional argument|positional arguments? but"
    r"|unexpected keyword argument|unhashable|invalid literal|math domain|cannot convert float|object is not callable"
    r"|is not iterable|not subscriptable|not supported between|list indices must|maximum recursion|in range\("
    r"|division by zero|by zero|modulo|has no attribute|has no len|index out of range$|pop from"
    r"|bytes-like|bad operand type|unsupported operand|__index__|can't multiply|sequence item|PyLong|C long|Python int"
    r"|could not convert string|exceeds the limit|ord\(\)|not a valid|too large to convert|too big to convert"
)
CAUGHT = "caught by the last net"
_NET = re.compile(r"\(\): there is no result for these arguments: ")
# PyTorch's own words that contain such a word.
# `is not a valid ...`: an enumeration of Python's refuses a value in Python's words.
EXCUSED = re.compile(
    r"is not a valid [A-Z]\w+$|is not a valid value for (compute_mode|reduction)$|"
    r"^int too big to convert$|^can't convert negative int to unsigned$|"
    r"^Torch not compiled with|would result in a division by zero|of attn_mask are supported$|"
    r"^A callable function is expected, but <class|^Expected enable to be a bool|"  # torch.compile asserts
    r"Unlike NumPy|Can't call numpy\(\)|tensor to numpy|while getting the repr|asked for __\w+__|supported by dlpack"
)
# A program that speaks of such a thing may hear of it.
SPOKEN = re.compile(r"numpy|__array|emptied|resize_|set_\(|dlpack")
AFTER_SPOKEN = re.compile(r"[Nn]um[Pp]y|ndarray|np\.")


class Outcome(NamedTuple):
    """How a program ended: `kind` is "ok", the type of an exception, "crash" or "hang"."""

    kind: str
    text: str = ""
    where: str = ""  # the statement, or the innermost line of ours

    @property
    def refused(self) -> bool:
        return self.kind != "ok"


class Finding(NamedTuple):
    seed: int
    about: str
    reason: str
    outcome: Outcome
    program: str
    certain: bool

    @property
    def key(self) -> tuple[str, str]:
        """Findings of one function in the same words are one finding."""
        words = re.sub(r"-?\d[\d.e+]*", "N", self.outcome.text)[:60]
        # Memory is asked for in one place, whoever asks.
        about = "" if self.outcome.kind == "MemoryError" else plain_name(self.about)
        return about, f"{self.outcome.kind}: {words}"


def plain_name(about: str) -> str:
    """`ops.aten.add_.Tensor`, `Tensor.add` and `add` are all `add`; what is no path stays as it is."""
    if re.fullmatch(r"[\w.]+", about) is None:
        return about
    parts = about.removeprefix("ops.aten.").split(".")
    name = parts[0] if about.startswith("ops.aten.") else parts[-1]
    return name if name.endswith("__") else name.removesuffix("_")


def reason(outcome: Outcome, program: str) -> tuple[str, bool] | None:
    """Why an outcome is a finding, and whether it is one whatever PyTorch says."""
    if outcome.kind == "ok":
        return None
    if outcome.kind in ("crash", "hang"):
        return outcome.kind, True
    if _NET.search(outcome.text):
        return CAUGHT, True
    if EXCUSED.search(outcome.text) or _asked_for(outcome) or _checked_when_compiled(outcome):
        return None
    if outcome.kind in INSIDE_TYPES:
        return f"{outcome.kind} is raised by nobody on purpose", True
    if outcome.kind not in KNOWN_TYPES:
        return f"{outcome.kind} is no type of PyTorch's", True
    found = INSIDE.search(outcome.text)
    if found is not None and not (AFTER_SPOKEN.fullmatch(found.group()) and SPOKEN.search(program)):
        return f"'{found.group()}' is a word of our inside", True
    if outcome.kind in PYTHON_TYPES:
        return f"{outcome.kind}", False
    found = PYTHON.search(outcome.text)
    if found is not None:
        return f"'{found.group()}' is Python's own complaint", False
    return None


def _asked_for(outcome: Outcome) -> bool:
    """Whether the program itself asked an object for something that it has not."""
    missing = re.search(r"has no attribute '(\w+)'$", outcome.text)
    return missing is not None and f".{missing.group(1)}" in outcome.where.partition(" @ ")[0]


def _checked_when_compiled(outcome: Outcome) -> bool:
    """A method of the compiled base class refuses what is no tensor before its first line runs."""
    return " @ _tensor_base.py:" in outcome.where and "object has no attribute '_" in outcome.text


def agrees(mine: Outcome, theirs: Outcome, program: str = "") -> bool:
    """Whether PyTorch's outcome excuses ours: the same exception in the same words, or no answer from it either."""
    if mine.kind == "hang":
        # Reading 2**62 expanded elements takes as long as it takes, where PyTorch would first have copied them.
        return theirs.kind in ("hang", "crash") or ("expand(2**" in program and "can't allocate" in theirs.text)
    if mine.kind == "MemoryError" and theirs.kind in ("hang", "crash"):
        return True  # refused before it is tried
    if mine.kind != theirs.kind:
        # Where PyTorch has refused one of the arguments before it got to the call, it has not answered; nor where it
        # had no memory for one.
        earlier = mine.where.partition(" @ ")[0] != theirs.where.partition(" @ ")[0]
        earlier = earlier or "overflow" in theirs.text or "bad_alloc" in theirs.text
        # Nor where there are too many arguments and it has refused one of them before they were counted.
        earlier = earlier or (theirs.refused and _ARITY.search(mine.text) is not None)
        return (earlier or PYTHON.search(theirs.text) is not None) and PYTHON.search(mine.text) is not None
    # Python words a wrong count of arguments, and what an object has not, by names that are ours or PyTorch's.
    alike = PYTHON.search(mine.text) is not None and PYTHON.search(theirs.text) is not None
    miscounted = _ARITY.search(mine.text) is not None
    return words(mine.text) == words(theirs.text) or alike or miscounted


_ARITY = re.compile(r"positional argument|keyword argument|needs an argument|takes no arguments|invalid combination")


def words(text: str) -> str:
    """A message without what differs from call to call."""
    text = re.sub(r"0x[0-9a-f]+", "0x", text.split("\n")[0].replace("mindtorch_v2", "torch"))
    # Random numbers differ, and PyTorch was asked about its CPU.
    return re.sub(r"\d\.\d+(e[+-]\d+)?|, device='npu:\d'", "", text).strip()[:100]


def difference(mine: Outcome, theirs: Outcome) -> str | None:
    """How the answers to one call differ in kind; None where PyTorch has no such function, or gives no answer."""
    if theirs.kind in ("crash", "hang") or mine.kind in ("crash", "hang"):
        return None
    if theirs.kind == "AttributeError" and re.search("has no (attribute|overload)", theirs.text):
        return None
    if "can't allocate memory" in mine.text + theirs.text or "MemoryError" in (mine.kind, theirs.kind):
        return None
    if mine.refused != theirs.refused:
        return "accepted here, refused there" if theirs.refused else "refused here, accepted there"
    return None if mine.kind == theirs.kind else "another exception"
