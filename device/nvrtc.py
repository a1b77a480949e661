"""Compile kernel text with NVRTC, as CuPy does at run time; no GPU is needed for it.

NVRTC has no host headers, so text that compiles with nvcc may still fail here. The library
comes with CUDA or from the package index (``pip install nvidia-cuda-nvrtc``).
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.util
import os
from collections.abc import Iterator, Sequence
from pathlib import Path


def library_files() -> Iterator[str]:
    """Yield the NVRTC libraries that may be here: of Python packages, then of the system."""
    package = importlib.util.find_spec("nvidia")
    for place in (package.submodule_search_locations or []) if package else []:
        yield from sorted(map(str, Path(place).glob("*/lib/libnvrtc.so.*")), reverse=True)
    for home in (os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""),
                 "/usr/local/cuda"):
        if home:
            yield from sorted(map(str, Path(home).glob("lib*/libnvrtc.so.*")), reverse=True)
    found = ctypes.util.find_library("nvrtc")
    if found:
        yield found


class Nvrtc:
    """The loaded library. Raises OSError where there is none."""

    def __init__(self) -> None:
        for path in library_files():
            try:
                self._library = ctypes.CDLL(path)
                break
            except OSError:
                continue
        else:
            raise OSError("NVRTC is not here: pip install nvidia-cuda-nvrtc")
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            reason = self._library.nvrtcGetErrorString(status).decode()
            raise RuntimeError(f"{name}: {reason}")

    def compile(self, name: str, text: str, options: Sequence[str]) -> str:
        """Return the compiler's complaints about ``text``; empty where it compiles."""
        program = ctypes.c_void_p()
        self._call("nvrtcCreateProgram", ctypes.byref(program), text.encode(), name.encode(),
                   ctypes.c_int(0), None, None)
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        try:
            self._call("nvrtcCompileProgram", program, ctypes.c_int(len(options)), words)
        except RuntimeError as error:
            size = ctypes.c_size_t()
            self._call("nvrtcGetProgramLogSize", program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            self._call("nvrtcGetProgramLog", program, log)
            return f"{error}\n{log.value.decode(errors='replace')}"
        finally:
            self._call("nvrtcDestroyProgram", ctypes.byref(program))
        return ""
