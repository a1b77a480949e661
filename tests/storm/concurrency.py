"""Concurrency: several commands at once in one work folder.

Each does its part or refuses in a sentence; afterwards the results are those of one undisturbed
run.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from .case import QUICK, Case
from .plate import FIRST, LAST, Reference, make_reference, write_shot

_FRAMES = [str(frame) for frame in range(FIRST, LAST + 1)]


def prepare(ground: Path) -> Reference:
    """Make the run that all are compared with."""
    return make_reference(ground)


def play(case: Case, reference: Reference) -> None:
    """Start two to four commands nearly at once, wait for all, then let one finish."""
    write_shot(case.shot.parent)
    groups = (
        [["run", *QUICK]] * case.random.choice([2, 3]),
        [["run", *QUICK], ["status"], ["status"]],
        [["run", *QUICK], ["clean", "--stage", case.random.choice(
            ["geometry", "sim", "align", "render", "comp"])]],
        [["run", *QUICK], ["stage", "sim", "--wait", *QUICK], ["stage", "sim", *QUICK]],
        [["run", *QUICK], ["review"], ["export", "--to", "obj"]],
        [["stage", "align", "--frames", frame, *QUICK] for frame in _FRAMES],
        [["stage", "render", "--frames", frame, *QUICK] for frame in [*_FRAMES, _FRAMES[0]]],
        [["run", "--force", *QUICK], ["run", *QUICK], ["check"]],
        [["stage", "comp"], ["run", *QUICK], ["stage", "comp"]],
        [["stage", "lineage", *QUICK], ["stage", "align", *QUICK], ["stage", "align", *QUICK]],
    )
    group = groups[case.number % len(groups)]
    if case.random.random() < 0.7:
        shutil.copytree(reference.work, case.work)
        stage = group[0][1] if group[0][0] == "stage" else case.random.choice(
            ["geometry", "sim", "align", "render", "comp"])
        case.vfx("clean", case.shot.name, "--stage", {"lineage": "align"}.get(stage, stage),
                 "--work", case.work, allowed={0})
    children = []
    for words in group:
        children.append(case.start(*words, case.shot.name, "--work", case.work))
        time.sleep(case.random.choice([0.0, 0.0, case.random.random() * reference.seconds / 2]))
    for child in children:
        outcome = case.take(child)
        case.tally[{0: "well", 1: "frame failed", 2: "bad settings", 3: "refused"}.get(
            outcome.code, "otherwise")] += 1
        if outcome.code == 2:
            case.blame("untruthful", f"{outcome.command}: calls the settings bad")
    case.tally["commands"] += len(group)
    case.finish(reference.sums)
