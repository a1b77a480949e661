"""One case of a storm: a folder of its own, a random generator of its own, and what it found.

Everything a case does follows from (kind, seed, number), so that it can be run again alone.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .child import LIMIT, Child, Outcome, start
from .verdict import (
    ENDS,
    Fault,
    Status,
    differences,
    judge,
    read_status,
    snapshot,
    untruths,
)

#: Options that make a command small and the same everywhere.
QUICK = ("--device", "cpu", "--threads", "1")


class CaseOver(Exception):  # noqa: N818 (it is no error)
    """Nothing more is to be learnt from a case."""


@dataclass
class Case:
    """A case while it runs."""

    kind: str
    seed: int
    number: int
    root: Path
    faults: list[Fault] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)
    children: list[Child] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.kind} {self.seed} {self.number}")
        for name in ("home", "tmp", "shot"):
            (self.root / name).mkdir(parents=True)
        self.shot = self.root / "shot" / "plate.toml"
        self.work = self.root / "work"

    @property
    def command(self) -> str:
        """What runs this case again, alone."""
        return f"python -m tests.storm {self.kind} --seed {self.seed} --only {self.number}"

    def tell(self, sentence: str) -> None:
        """Note what the case does, for whoever looks at its failure."""
        self.story.append(sentence)

    def blame(self, kind: str, sentence: str) -> None:
        """Note a failure."""
        self.faults.append(Fault(kind, sentence))

    def start(self, *words: object, writes: bool = True, **options: Any) -> Child:
        """Start a command in the case's folder; only its work folder may be written."""
        options.setdefault("folder", self.root / "shot")
        options.setdefault("writable", [self.root / "tmp", *([self.work] if writes else [])])
        child = start([os.fspath(word) if isinstance(word, Path) else str(word)
                       for word in words], environment={
            "HOME": str(self.root / "home"), "TMPDIR": str(self.root / "tmp"),
            "OMP_NUM_THREADS": "1", **options.pop("environment", {})}, **options)
        self.children.append(child)
        return child

    def take(self, child: Child, allowed: Collection[int] = ENDS, limit: float = LIMIT) -> Outcome:
        """Wait for a command and judge how it ended."""
        outcome = child.wait(limit)
        self.tell(f"$ {outcome.command}\n{outcome.output}[{outcome.code}, "
                  f"{outcome.seconds:.2f} s]")
        for fault in judge(outcome, allowed):
            self.blame(fault.kind, f"{outcome.command}: {fault.sentence}")
        if outcome.hung:
            raise CaseOver
        return outcome

    def vfx(self, *words: object, allowed: Collection[int] = ENDS, limit: float = LIMIT,
            writes: bool = True, **options: Any) -> Outcome:
        """Run a command to its end, and judge it; nothing beside its work folder may change."""
        before = self._surroundings(writes)
        outcome = self.take(self.start(*words, writes=writes, **options), allowed, limit)
        after = self._surroundings(writes)
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                self.blame("outside", f"{outcome.command}: changed {name}")
        return outcome

    def status(self, reference: Mapping[str, str] | None, *, verify: bool = True,
               **options: Any) -> Status | None:
        """Ask for the status; what it calls done must be as in an undisturbed run."""
        words = ["status", self.shot.name, "--work", self.work]
        outcome = self.vfx(*words, *(["--verify"] if verify and can_verify() else []),
                           allowed={0}, writes=False, **options)
        status = read_status(outcome.output)
        if status is None:
            self.blame("untruthful", "status printed no table")
        elif reference is not None:
            self.faults += untruths(status, self.work, reference)
        return status

    def finish(self, reference: Mapping[str, str], allowed: Collection[int] = (0,)) -> Outcome:
        """Run the shot to its end: it must be as if nothing had happened, or be refused."""
        outcome = self.vfx("run", self.shot.name, "--work", self.work, *QUICK, allowed=allowed)
        if outcome.code == 0:
            self.faults += differences(self.work, reference)
            status = self.status(reference)
            if status is not None and not status.is_done:
                self.blame("untruthful", "all was run, but status does not say done")
        return outcome

    def close(self, keep: Path) -> None:
        """End what still runs; keep the folder of a case that failed, remove any other."""
        for child in self.children:
            child.end()
        if self.faults:
            kept = keep / f"{self.kind}-{self.seed}-{self.number}"
            shutil.rmtree(kept, ignore_errors=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            text = "\n".join([self.command, *(f"{fault.kind}: {fault.sentence}"
                                              for fault in self.faults), "", *self.story])
            shutil.move(self.root, kept)
            (kept / "STORY.txt").write_bytes(text.encode(errors="surrogateescape"))
        else:
            shutil.rmtree(self.root, ignore_errors=True)

    def _surroundings(self, writes: bool) -> dict[str, tuple[int, int]]:
        return snapshot(self.root, ("tmp", "work") if writes else ("tmp",))


_can_verify: list[bool] = []


def can_verify() -> bool:
    """Whether ``vfx status`` can be told to read every file whole."""
    if not _can_verify:
        from vfx.pipeline.cli.commands import status

        _can_verify.append(any("--verify" in option.opts for option in status.params))
    return _can_verify[0]
