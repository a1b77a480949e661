"""The host as a device: numpy arrays, and the kernel library built at install time."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vfx.device.bind import HostArray, Record
from vfx.device.launch import Device, DeviceError, Launch
from vfx.device.memory import main_memory
from vfx.device.share import Share
from vfx.device.source import file_symbol, text_hash

LIBRARIES = Path(__file__).resolve().parent / "lib"
#: What x86-64-v3 adds, as /proc/cpuinfo names it ("abm" holds lzcnt).
V3_FLAGS = {"avx", "avx2", "bmi1", "bmi2", "fma", "f16c", "movbe", "abm"}
#: Runs of fewer launches take all threads of a shared machine, too: they seldom wait for others.
MANY_LAUNCHES = 16


def cpu_flags() -> set[str]:
    """Return the feature flags of this processor, as Linux names them."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            for line in lines:
                if line.startswith("flags"):
                    return set(line.split(":", 1)[1].split())
    except OSError:
        pass
    return set()


def cpu_model() -> str:
    """Return the processor's vendor and model, or the architecture where unknown."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            fields = dict(line.split(":", 1) for line in lines if ":" in line)
    except OSError:
        fields = {}
    found = {key.strip(): value.strip() for key, value in fields.items()}
    return found.get("model name", platform.machine())


def choose_isa() -> str:
    """Return the instruction set to use: VFX_ISA if set, else the best that runs here."""
    wanted = os.environ.get("VFX_ISA", "")
    if wanted == "warp":
        raise DeviceError("VFX_ISA=warp: this is no instruction set; use --device warp")
    missing = V3_FLAGS - cpu_flags()
    if wanted == "v3" and missing:
        raise DeviceError(f"VFX_ISA=v3, but this processor lacks {', '.join(sorted(missing))}; "
                          "unset VFX_ISA")
    if wanted:
        return wanted
    return "base" if missing or not (LIBRARIES / "kernels_v3.so").exists() else "v3"


class CpuDevice(Device):
    """All cores of this machine through OpenMP."""

    def __init__(self, isa: str = "") -> None:
        super().__init__()
        self.name = "cpu"
        self.xp: Any = np
        self.isa = isa or choose_isa()
        self._library = load_library(self.isa)
        self._threads = int(self._library.vfx_max_threads())
        #: What a shared machine has for us; None where somebody said how many threads to use.
        self._share: Share | None = Share(self._threads)
        self.description = f"cpu {platform.machine()}-{self.isa} {cpu_model()}"

    def _load(self, name: str, text: str) -> Callable[[str], Any]:
        try:
            stamp = getattr(self._library, f"vfx_hash_{file_symbol(name)}")
        except AttributeError:
            raise stale_library(name) from None
        stamp.restype = ctypes.c_char_p
        if stamp().decode() != text_hash(text):
            raise stale_library(name)
        return lambda kernel: getattr(self._library, f"vfx_packed_{kernel}")

    def owns(self, array: Any) -> bool:
        """Whether ``array`` is a plain numpy array."""
        return type(array) is np.ndarray

    def data(self, array: Any) -> HostArray:
        """Return the numpy array behind a device array."""
        view: HostArray = array
        return view

    def address(self, array: Any) -> int:
        """Return where the memory behind ``array`` begins."""
        return int(self.data(array).ctypes.data)

    def from_host(self, array: HostArray) -> Any:
        """Copy to a new C-contiguous array."""
        return np.array(array, order="C")

    def to_host(self, array: Any) -> HostArray:
        """Copy to a new numpy array."""
        return np.array(self.data(array), order="C")

    def writable(self, array: Any) -> bool:
        """Whether the memory behind ``array`` may be written."""
        return bool(self.data(array).flags.writeable)

    def _run(self, launches: Sequence[Launch], repeat: int, halt: Any) -> None:
        entries = (ctypes.c_void_p * len(launches))()
        packs = (ctypes.c_void_p * len(launches))()
        keep: list[Any] = []
        for position, launch in enumerate(launches):
            pack, held = self._pack(launch)
            keep += [pack, held]
            entries[position] = ctypes.cast(launch.kernel.native, ctypes.c_void_p)
            packs[position] = ctypes.cast(pack, ctypes.c_void_p)
        flag = ctypes.c_void_p(self.data(halt).ctypes.data if halt is not None else None)

        def run(threads: int, repeat: int) -> int:
            return int(self._library.vfx_run(
                ctypes.c_int(threads), ctypes.c_int(len(launches)), entries, packs,
                ctypes.c_longlong(repeat), flag))

        if self._share is not None and repeat * len(launches) >= MANY_LAUNCHES:
            rounds = self._share.run(repeat, run)
        else:
            rounds = run(self._threads, repeat)
        if rounds < 0:
            raise self._failure()

    def _failure(self) -> Exception:
        """Return the error of a library that could not run a launch; that of the CPU always can."""
        raise NotImplementedError

    def _pack(self, launch: Launch) -> tuple[Any, list[Any]]:
        """Return the array of pointers to a launch's arguments, and what it points to."""
        held: list[HostArray] = []
        for parameter, argument in zip(
                launch.kernel.signature.parameters, launch.arguments, strict=True):
            if isinstance(argument, Record):
                held.append(argument.value)
            elif parameter.role == "value":
                held.append(np.array([argument], parameter.dtype))
            else:
                held.append(np.array([self.address(argument)], np.uintp))
        return (ctypes.c_void_p * len(held))(*[cell.ctypes.data for cell in held]), held

    def synchronize(self) -> None:
        """Return at once: a host launch ends when its work is done."""

    def memory(self) -> tuple[int, int]:
        """Return (available, total) bytes of main memory, within a container's limit."""
        return main_memory()

    @property
    def threads(self) -> int:
        """Number of OpenMP threads of the next launches."""
        return self._threads

    @threads.setter
    def threads(self, count: int) -> None:
        if count < 1:
            raise DeviceError(f"{count} threads asked for; at least 1 is needed")
        self._threads, self._share = int(count), None


def load_library(isa: str) -> ctypes.CDLL:
    """Load the kernel library of an instruction set."""
    path = LIBRARIES / f"kernels_{isa}.so"
    if not path.exists():
        built = ", ".join(sorted(p.stem.removeprefix("kernels_") for p in LIBRARIES.glob("*.so")))
        raise DeviceError(f"no kernel library for the instruction set {isa!r} (built: "
                          f"{built or 'none'}); reinstall the package, or unset VFX_ISA")
    # Idle threads spin some tens of microseconds, enough to bridge two kernels, and then sleep:
    # the default of milliseconds takes the cores from everybody else on a shared machine.
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")
    library = ctypes.CDLL(str(path))
    library.vfx_run.restype = ctypes.c_longlong
    return library


def stale_library(name: str) -> DeviceError:
    """Return the error of a library that was built from other source than is installed."""
    return DeviceError(f"{name}: the kernel library was built from other source; "
                       "reinstall the package (make install)")
