"""``python -m tests.storm KIND --count N --seed S``: see the package's README."""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

from . import KINDS
from .case import Case, CaseOver
from .child import preload
from .verdict import FAULTS, Fault

#: A small share of a storm has at least so many cases.
_LEAST = 4


def main() -> int:
    """Run one kind of storm, or all; return 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description=__doc__)
    parser.add_argument("kind", choices=[*KINDS, "all"])
    parser.add_argument("--count", type=int, help="cases; by default what 'make storm' runs")
    parser.add_argument("--share", type=float, default=1.0, help="of that number of cases")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="CASE", help="run this one case, and show it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, default=Path("build/storm"), metavar="DIR",
                        help="where the folders of failed cases go (build/storm)")
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"        # its threads would not survive a fork
    preload()
    kinds = list(KINDS) if options.kind == "all" else [options.kind]
    with tempfile.TemporaryDirectory(prefix="storm-", ignore_cleanup_errors=True) as name:
        ground = Path(os.path.realpath(name))
        return max([run(kind, options, ground) for kind in kinds])


def run(kind: str, options: argparse.Namespace, ground: Path) -> int:
    """Run one kind of storm and print its summary; return 1 if anything failed."""
    module = importlib.import_module(f"{__package__}.{kind}")
    count = options.count or max(_LEAST, round(options.share * KINDS[kind]))
    per_case = getattr(module, "PER_CASE", 1)
    numbers = [options.only] if options.only is not None else range(-(-count // per_case))
    begun, cpu, total, n_failed = time.monotonic(), _cpu_seconds(), Counter[str](), 0
    given = module.prepare(ground)
    tasks = [(module, given, kind, options.seed, number, ground / kind / str(number), options.keep)
             for number in numbers]
    with multiprocessing.get_context("fork").Pool(
            min(options.jobs, len(tasks)), _adopt, (tasks,)) as pool:
        for faults, tally, story, command in pool.imap_unordered(_play, range(len(tasks))):
            total.update(tally)
            total.update(fault.kind for fault in faults)
            n_failed += bool(faults)
            for fault in faults[:5]:
                _print(f"  {fault.kind}: {fault.sentence}\n    {command}")
            if options.only is not None:
                _print("\n".join(story))
        pool.close()
        pool.join()
    words = ", ".join(f"{total.pop(fault, 0):,} {fault}" for fault in FAULTS)
    rest = ", ".join(f"{n:,} {word}" for word, n in sorted(total.items()))
    _print(f"storm {kind}: {len(tasks):,} cases, seed {options.seed}: {words}"
           f"{f' ({rest})' if rest else ''} in {time.monotonic() - begun:.0f} s, "
           f"{_cpu_seconds() - cpu:.0f} s of CPU")
    return int(n_failed > 0)


def _print(text: str) -> None:
    print(text.encode(errors="backslashreplace").decode(), flush=True)


def _cpu_seconds() -> float:
    return sum(sum(resource.getrusage(who)[:2])
               for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


_tasks: list[tuple[ModuleType, Any, str, int, int, Path, Path]] = []


def _adopt(tasks: list[Any]) -> None:
    _tasks[:] = tasks


def _play(place: int) -> tuple[list[Fault], Counter[str], list[str], str]:
    """Run one case in a worker, which itself runs none of the program."""
    module, given, kind, seed, number, root, keep = _tasks[place]
    case = Case(kind, seed, number, root)
    try:
        module.play(case, given)
    except CaseOver:
        pass
    except Exception:
        case.blame("tracebacks", f"the storm itself failed: {traceback.format_exc()}")
    case.close(keep.resolve())
    return case.faults, case.tally, case.story, case.command


if __name__ == "__main__":
    sys.exit(main())
