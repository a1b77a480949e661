"""A CPU device that runs the CUDA half of the kernels, thread by thread and warp by warp.

It proves indexing, masks and the logic of lanes as a GPU would run them: every CUDA thread is a
fiber, the 32 of a warp meet at shuffles, ballots and syncwarp, and a mask that leaves out its
own lane, a lane that has left, or lanes that have diverged end the launch with kernel, block,
thread and source line. It does not prove what a compiler for GPUs makes of the text, the rounding
of approximate functions, the order of memory, or races between warps. Slow, for tests.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess

from vfx.device.bind import KernelError
from vfx.device.cpu import CpuDevice
from vfx.device.source import KERNEL_FOLDERS

_LINE = re.compile(rf"(?:{'|'.join(KERNEL_FOLDERS)})/[\w/]+\.cuh?:\d+")


class WarpDevice(CpuDevice):
    """One multiprocessor in software, on numpy arrays."""

    def __init__(self) -> None:
        super().__init__("warp")
        self.name = "warp"
        self.description = "warp: the CUDA text of the kernels, on the host"
        self._library.vfx_failure.restype = ctypes.c_char_p

    def _failure(self) -> Exception:
        text = self._library.vfx_failure().decode()
        return KernelError(re.sub(
            r"<(0x[0-9a-f]+)>", lambda match: source_lines(self._library._name, match.group(1)),
            text))


def source_lines(library: str, offset: str) -> str:
    """Return where in the kernels' source an offset of the library lies, innermost first."""
    program = shutil.which("addr2line")
    if program is None:
        return f"at {offset} (install binutils to see the source line)"
    told = subprocess.run([program, "-i", "-e", library, offset],
                          capture_output=True, text=True, check=False).stdout
    lines = list(dict.fromkeys(_LINE.findall(told)))
    return f"at {', called from '.join(lines)}" if lines else f"at {offset}"
