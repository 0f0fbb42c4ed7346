"""The parent: starts children, watches them, and puts findings together.

Invariant: a child that died or was killed costs one program; the rest of its batch goes on in a new one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from ._alone import singled_out
from ._judge import CAUGHT, Finding, Outcome, agrees, difference, plain_name, reason, words
from ._worker import read_running

START_SECONDS = 600.0  # a loaded machine takes its time to import everything

IDLE = 8  # so many times the limit by the clock, for a program that waits and does not work


class Settings(NamedTuple):
    room: Path
    devices: str
    memory: int
    seconds: float
    batch: int
    jobs: int
    out: Path | None = None
    skipped: tuple[int, ...] = ()  # seeds


Item = tuple[int, str, str]


class Child:
    """A process with its journal, and when its program last changed."""

    count = 0

    def __init__(self, settings: Settings, work: str, oracle: bool, feed: list[Item] | None = None) -> None:
        Child.count += 1
        self.settings = settings
        self.directory = settings.room / f"child{Child.count}"
        self.directory.mkdir()
        command = [
            sys.executable,
            "-m",
            __package__,
            "--work",
            work.replace("{}", str(self.directory)),
            "--memory",
            str(settings.memory),
            "--devices",
            settings.devices,
            *(["--oracle"] if oracle else []),
        ]
        lines = "".join(json.dumps(item) + "\n" for item in feed or [])
        (self.directory / "input").write_text(lines)
        self.errors = open(self.directory / "errors", "wb")
        self.process = subprocess.Popen(
            command, stdin=open(self.directory / "input", "rb"), stdout=self.errors, stderr=self.errors
        )
        self.last: Item | None = None
        self.since, self.worked = time.monotonic(), 0.0
        self.ended: Outcome | None = None

    def poll(self) -> bool:
        """Whether it is over; a program that takes too long ends it."""
        code = self.process.poll()
        now = read_running(self.directory)
        if code is not None:
            if code != 0:
                self.ended = Outcome("crash", self.said(code), "")
            self.last = now
            return True
        if now != self.last:
            self.last, self.since, self.worked = now, time.monotonic(), self.processor_time()
        elif self.is_late():
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(0.3)
            self.process.kill()
            self.process.wait()
            self.ended = Outcome("hang", self.said(0), "")
            return True
        return False

    def is_late(self) -> bool:
        """By the time that it has worked: on a loaded machine a quick program takes long. One that waits is late."""
        waited, limit = time.monotonic() - self.since, self.settings.seconds
        if self.last is None:
            return waited > START_SECONDS
        return waited > limit and (self.processor_time() - self.worked > limit or waited > IDLE * limit)

    def processor_time(self) -> float:
        """The seconds that its processors have worked for it."""
        try:
            text = Path(f"/proc/{self.process.pid}/stat").read_text()
        except OSError:
            return 0.0
        user, system = text.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def said(self, code: int) -> str:
        """How it ended, and the innermost lines of the stack that faulthandler printed."""
        text = (self.directory / "errors").read_text(errors="replace")
        frames = [line.strip() for line in text.splitlines() if "File" in line and "/fuzz/_worker" not in line]
        ending = f"exit {code} " if code else ""
        return ending + " < ".join(frames[:4]) if frames else ending + text[-300:]

    def outcomes(self) -> list[tuple[Item, Outcome]]:
        path = self.directory / "outcomes"
        if not path.exists():
            return []
        found = []
        for line in path.read_text().splitlines():
            seed, about, text, *rest = json.loads(line)
            found.append(((seed, about, text), Outcome(*rest)))
        return found

    def close(self) -> None:
        self.errors.close()
        for path in self.directory.iterdir():
            path.unlink()
        self.directory.rmdir()


def ask(settings: Settings, items: list[Item], oracle: bool) -> list[Outcome]:
    """The outcome of each program in a library, each process going on where the last one ended."""
    answers: dict[int, Outcome] = {}
    position = 0
    while position < len(items):
        feed = [(index, about, text) for index, (_, about, text) in enumerate(items)][position:]
        child = Child(settings, "answer|{}|0|0|", oracle, feed)
        while not child.poll():
            time.sleep(0.02)
        answers.update({item[0]: outcome for item, outcome in child.outcomes()})
        if child.ended is not None:
            at = child.last[0] if child.last is not None else position
            answers[at] = child.ended
            position = at + 1
        else:
            position = len(items)
        child.close()
    return [answers[index] for index in range(len(items))]


class Fuzzer:
    """A run: seeds in batches, findings by what they say."""

    def __init__(self, settings: Settings, present: bool, compare: bool) -> None:
        self.settings, self.present, self.compare = settings, present, compare
        self.findings: dict[tuple[str, str], list[Finding]] = {}
        self.caught: dict[tuple[str, str], list[Finding]] = {}
        self.excused: set[tuple[str, str]] = set()
        self.differences: dict[tuple[str, str], list[str]] = {}
        self.hung: dict[str, int] = {}
        self.programs = 0
        recorded = settings.room / "samples.json"
        self.samples: dict[str, list[tuple[list[str], dict[str, str]]]] = {}  # accepted calls by function
        for name, args, named in json.loads(recorded.read_text()) if recorded.exists() else []:
            self.samples.setdefault(name, []).append((args, dict(named)))

    def run(self, seed: int, count: int | None, deadline: float) -> None:
        end = None if count is None else seed + count
        active: list[tuple[Child, int]] = []
        waiting: list[tuple[int, int]] = []
        begun, shown = time.monotonic(), time.monotonic()
        while True:
            fresh = (end is None and time.monotonic() < deadline) or (end is not None and seed < end)
            while len(active) < self.settings.jobs and (waiting or fresh):
                if not waiting:
                    last = seed + self.settings.batch if end is None else min(seed + self.settings.batch, end)
                    waiting.append((seed, last))
                    seed, fresh = last, end is None or last < end
                first, last = waiting.pop()
                active.append((self.start(first, last), last))
                self.programs += last - first
            if not active:
                break
            for child, last in list(active):
                if child.poll():
                    active.remove((child, last))
                    rest = self.collect(child, last)
                    if rest is not None:
                        self.programs -= rest[1] - rest[0]
                        waiting.append(rest)
            time.sleep(0.05)
            if time.monotonic() - shown > 60:
                shown = time.monotonic()
                counts = f"{len(self.findings)} findings, {len(self.caught)} caught"
                print(f"{self.programs} programs, {counts}, {shown - begun:.0f} s", flush=True)
                self.save()

    def start(self, first: int, last: int) -> Child:
        # A function that gave no answer twice is known; waiting for it again would be most of a run.
        known = [about for about, times in self.hung.items() if times >= 2 and not {"|", ";"} & set(about)]
        skipped = ";".join([*known, *(f"#{seed}" for seed in self.settings.skipped)])
        return Child(self.settings, f"work|{{}}|{first}|{last}|{skipped}", self.compare)

    def collect(self, child: Child, last: int) -> tuple[int, int] | None:
        """Take what a child found; the seeds it did not get to."""
        found = child.outcomes()
        rest = None
        if child.ended is not None:
            if child.last is None:
                raise RuntimeError(f"a child did not start: {child.ended.text}")
            found.append((child.last, child.ended))
            if child.ended.kind == "hang":
                self.hung[child.last[1]] = self.hung.get(child.last[1], 0) + 1
            rest = (child.last[0] + 1, last) if child.last[0] + 1 < last else None
        child.close()
        self.judge(found)
        return rest

    def judge(self, found: list[tuple[Item, Outcome]]) -> None:
        doubtful: list[tuple[Finding, Item]] = []
        for item, outcome in found:
            verdict = reason(outcome, item[2])
            if verdict is None:
                continue
            finding = Finding(item[0], item[1], verdict[0], outcome, item[2], verdict[1])
            if verdict[0] == CAUGHT:
                self.caught.setdefault((plain_name(item[1]), outcome.where.rpartition(" @ ")[2]), []).append(finding)
            elif finding.key in self.findings:
                self.findings[finding.key].append(finding)
            elif finding.key not in self.excused and finding.key not in [pair[0].key for pair in doubtful]:
                doubtful.append((finding, item))
        self.settle(doubtful)
        if self.compare:
            self.compare_all(found)

    def settle(self, doubtful: list[tuple[Finding, Item]]) -> None:
        """Crashes are tried again alone. PyTorch is asked whether it says the same; without it there is no telling."""
        crashed = [pair for pair in doubtful if pair[0].outcome.kind == "crash"]
        for finding, item in crashed:
            again = ask(self.settings, [item], oracle=False)[0]
            alone = "also alone" if again.kind == "crash" else "not alone: something before it is to blame"
            outcome = Outcome("crash", f"{alone}; {finding.outcome.text}")
            self.findings.setdefault(finding.key, []).append(finding._replace(outcome=outcome))
        open_ones = [pair for pair in doubtful if pair[0].outcome.kind != "crash"]
        asked = open_ones if self.present else []
        answers = ask(self.settings, [_for_oracle(item) for _, item in asked], oracle=True)
        theirs = {id(finding): answer for (finding, _), answer in zip(asked, answers)}
        for finding, item in open_ones:
            answer = theirs.get(id(finding))
            if answer is None and not finding.certain:
                continue
            if answer is not None and (
                agrees(finding.outcome, answer, finding.program) or self.said_alone(finding.outcome, item)
            ):
                self.excused.add(finding.key)
                continue
            note = f"   PyTorch: {answer.kind} {answer.text[:150]}" if answer is not None else ""
            outcome = finding.outcome._replace(where=finding.outcome.where + note)
            self.findings.setdefault(finding.key, []).append(finding._replace(outcome=outcome))

    def said_alone(self, mine: Outcome, item: Item) -> bool:
        """Whether PyTorch says the same of one of the arguments; of the whole call it had refused another one first."""
        if mine.kind == "hang":
            return False
        seed, about, text = _for_oracle(item)
        questions = [(seed, about, each) for each in singled_out(text, self.samples.get(about, []))]
        return any(_same(mine, theirs) for theirs in ask(self.settings, questions, oracle=True))

    def compare_all(self, found: list[tuple[Item, Outcome]]) -> None:
        compared = [pair for pair in found if "npu" not in pair[0][2]]
        theirs = ask(self.settings, [item for item, _ in compared], oracle=True)
        for (item, mine), answer in zip(compared, theirs):
            how = difference(mine, answer)
            if how is not None:
                text = f"  seed {item[0]}: {item[2]!r}\n    here:    {_said(mine)}\n    PyTorch: {_said(answer)}"
                self.differences.setdefault((how, plain_name(item[1])), []).append(text)

    def save(self) -> None:
        """What was found so far, where the run was asked to write it: a long run may be stopped at any time."""
        if self.settings.out is not None:
            self.settings.out.write_text(self.report() + "\n")

    def report(self) -> str:
        lines: list[str] = []
        # What was caught stands last: no user sees our inside there, but a rule lacks a check.
        listed = sorted(self.findings.items(), key=lambda pair: pair[1][0].reason)
        for (about, _), found in [*listed, *sorted(self.caught.items())]:
            first = found[0]  # of which PyTorch was asked
            lines.append(f"{about}: {first.reason} ({len(found)} times; seed {first.seed})")
            lines += [f"    {line}" for line in first.program.split("\n")]
            lines.append(f"  {first.outcome.kind}: {first.outcome.text}")
            lines += [f"  at {first.outcome.where}"] if first.outcome.where else []
        for (how, about), texts in sorted(self.differences.items()):
            lines += [f"{how}: {about} ({len(texts)} times)", min(texts, key=len)]
        return "\n".join([*lines, *self.closing()])

    @property
    def clean(self) -> bool:
        return not self.findings and not self.caught

    def closing(self) -> list[str]:
        """The figures: what a user would see, by kind, and apart from it what only the last net caught."""
        kinds = {"crash": 0, "hang": 0, "words": 0}
        for found in self.findings.values():
            kinds[found[0].reason if found[0].reason in kinds else "words"] += 1
        seen = sum(kinds.values())
        lines = [
            f"{self.programs} programs",
            f"findings that a user sees: {seen} "
            f"(crashes {kinds['crash']}, hangs {kinds['hang']}, words of the inside {kinds['words']})",
            f"rules that lack a check, caught by the last net: {len(self.caught)}",
        ]
        if self.compare:
            lines.append(f"differences from PyTorch: {len(self.differences)}")
        return [*lines, "clean" if self.clean else "not clean"]


def _for_oracle(item: Item) -> Item:
    """What PyTorch says of an NPU's tensors is what it says of its CPU's."""
    return item[0], item[1], item[2].replace("npu:1", "cpu").replace("npu", "cpu")


def _same(mine: Outcome, theirs: Outcome) -> bool:
    return mine.kind == theirs.kind and words(mine.text) == words(theirs.text)


def _said(outcome: Outcome) -> str:
    return outcome.kind if outcome.kind == "ok" else f"{outcome.kind}: {outcome.text[:200]}"
