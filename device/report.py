"""Compile every kernel for CUDA and print what it takes: ``python -m vfx.device.report``.

Registers, spills, stack and shared memory are ptxas's; occupancy is theoretical, from the
limits of a multiprocessor and blocks of ``THREADS_A_BLOCK`` threads: it says how many warps
fit, not how many ran. Every file is also compiled with NVRTC, which CuPy uses. Exit code 1
on an error or a spill in a hot kernel, 3 where the compilers are missing.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from vfx.device.cuda import NVRTC_OPTIONS, THREADS_A_BLOCK
from vfx.device.nvrtc import Nvrtc
from vfx.device.source import flatten, kernel_files, layout_checks, signatures


@dataclass(frozen=True)
class Multiprocessor:
    """Limits of one multiprocessor (CUDA programming guide, compute capabilities)."""

    warps: int
    blocks: int
    shared: int             # [bytes]
    shared_reserved: int    # [bytes a block]
    registers: int = 65536


ARCHITECTURES = {
    "sm_75": Multiprocessor(32, 16, 64 * 1024, 0),
    "sm_80": Multiprocessor(64, 32, 164 * 1024, 1024),
    "sm_86": Multiprocessor(48, 16, 100 * 1024, 1024),
    "sm_89": Multiprocessor(48, 24, 100 * 1024, 1024),
    "sm_90": Multiprocessor(64, 32, 228 * 1024, 1024),
    "sm_120": Multiprocessor(48, 24, 100 * 1024, 1024),
}
WARP = 32
REGISTER_UNIT = 256     # registers are handed out to a warp in this unit,
WARP_UNIT = 4           # to as many warps at once,
SHARED_UNIT = 256       # and shared memory to a block in this one [bytes]


@dataclass
class Usage:
    """What one kernel takes on one architecture; memory in bytes, registers a thread."""

    kernel: str
    architecture: str
    registers: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    stack: int = 0
    shared: int = 0

    @property
    def spills(self) -> int:
        """Bytes stored and loaded because registers ran out."""
        return self.spill_stores + self.spill_loads

    @property
    def occupancy(self) -> float:
        """Share of a multiprocessor's warps that fit at once."""
        return occupancy(ARCHITECTURES[self.architecture], self.registers, self.shared)


def occupancy(limits: Multiprocessor, registers: int, shared: int,
              threads: int = THREADS_A_BLOCK) -> float:
    """Return the theoretical occupancy of a kernel, 0..1."""
    warps = -(-threads // WARP)
    blocks = min(limits.blocks, limits.warps // warps)
    if registers:
        a_warp = -(-registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
        fitting = limits.registers // a_warp // WARP_UNIT * WARP_UNIT
        blocks = min(blocks, fitting // warps)
    a_block = -(-(shared + limits.shared_reserved) // SHARED_UNIT) * SHARED_UNIT
    if a_block:
        blocks = min(blocks, limits.shared // a_block)
    return blocks * warps / limits.warps


def parse_ptxas(text: str) -> list[Usage]:
    """Read what ``ptxas -v`` says of each kernel, in its order."""
    found: list[Usage] = []
    for line in text.splitlines():
        entry = re.search(r"Compiling entry function '(\w+)' for '(sm_\d+)\w*'", line)
        if entry:
            found.append(Usage(entry.group(1), entry.group(2)))
        if not found:
            continue
        current = found[-1]
        for pattern, field in (
                (r"(\d+) bytes stack frame", "stack"),
                (r"(\d+) bytes spill stores", "spill_stores"),
                (r"(\d+) bytes spill loads", "spill_loads"),
                (r"(\d+) bytes smem", "shared")):
            amount = re.search(pattern, line)
            if amount:  # of the kernel and of functions it calls
                setattr(current, field, getattr(current, field) + int(amount.group(1)))
        used = re.search(r"Used (\d+) registers", line)
        if used:
            current.registers = max(current.registers, int(used.group(1)))
    return found


def checked_text(name: str) -> str:
    """Return a kernel file's flat text, which compiles only if its structs lie as on the host."""
    text = flatten(name)
    return text + layout_checks(signatures(text).values())


def compile_kernels(nvcc: str, nvrtc: Nvrtc, name: str) -> list[Usage]:
    """Compile a kernel file for all architectures; raises RuntimeError with the complaints."""
    usages = compile_nvcc(nvcc, name)
    oldest, *_, newest = ARCHITECTURES
    for architecture in (oldest, newest):
        complaint = nvrtc.compile(
            name, checked_text(name), [*NVRTC_OPTIONS, f"--gpu-architecture={architecture}"])
        if complaint:
            raise RuntimeError(f"{name}: NVRTC failed for {architecture}\n{complaint}")
    return usages


def compile_nvcc(nvcc: str, name: str) -> list[Usage]:
    """Compile with nvcc and return what ptxas says of the kernels."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_text(checked_text(name), encoding="utf-8")
        targets = [word for architecture in ARCHITECTURES for word in (
            "-gencode", f"arch={architecture.replace('sm', 'compute')},code={architecture}")]
        run = subprocess.run(
            [nvcc, *NVRTC_OPTIONS, "-Xptxas", "-v", "-fatbin", *targets, str(path),
             "-o", str(path.with_suffix(".fatbin"))], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{name}: nvcc failed\n{run.stdout}{run.stderr}")
    return parse_ptxas(run.stdout + run.stderr)


def table(name: str, usages: Sequence[Usage]) -> str:
    """Return a Markdown table: a row a kernel; registers and occupancy by architecture."""
    rows = [["kernel", *ARCHITECTURES, "spills", "stack", "shared"]]
    rows.append(["---"] + ["---:"] * (len(rows[0]) - 1))
    for kernel in dict.fromkeys(usage.kernel for usage in usages):
        mine = {usage.architecture: usage for usage in usages if usage.kernel == kernel}
        rows.append(
            [kernel]
            + [f"{mine[a].registers}, {mine[a].occupancy:.0%}" if a in mine else "missing"
               for a in ARCHITECTURES]
            + [str(max(getattr(usage, field) for usage in mine.values()))
               for field in ("spills", "stack", "shared")])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(
        cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows]
    return "\n".join([f"### {name}", "", *lines, ""])


def problems(name: str, usages: Sequence[Usage], hot: Sequence[str]) -> list[str]:
    """Return a sentence for each spill in a hot kernel (all are, unless some are named)."""
    return [f"{name}: {usage.kernel} spills {usage.spill_stores} bytes of stores and "
            f"{usage.spill_loads} of loads on {usage.architecture}"
            for usage in usages if usage.spills and (not hot or usage.kernel in hot)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the report and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m vfx.device.report", description=__doc__)
    parser.add_argument("files", nargs="*",
                        help="kernel files, such as sim/matter/step.cu (all)")
    parser.add_argument("--hot", nargs="+", default=[], metavar="KERNEL",
                        help="kernels that may not spill (all)")
    options = parser.parse_args(arguments)
    names = options.files or kernel_files()
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is None:
        print("nvcc is not here: install the CUDA toolkit to compile the kernels for GPUs",
              file=sys.stderr)
        return 3
    try:
        nvrtc = Nvrtc()
    except OSError as error:
        print(error, file=sys.stderr)
        return 3
    print(f"Registers a thread and theoretical occupancy with {THREADS_A_BLOCK} threads a block; "
          "spills, stack and shared memory in bytes, the largest of all architectures.\n")
    wrong: list[str] = []
    with ThreadPoolExecutor(max_workers=2) as pool:
        jobs = [(name, pool.submit(compile_kernels, nvcc, nvrtc, name)) for name in names]
        for name, job in jobs:
            try:
                usages = job.result()
            except RuntimeError as error:
                wrong.append(str(error))
                continue
            print(table(name, usages), flush=True)
            wrong += problems(name, usages, options.hot)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    if not wrong:
        print(f"All compile, with nvcc and with NVRTC {nvrtc.version}; no hot kernel spills.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
