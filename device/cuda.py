"""An NVIDIA GPU as a device: CuPy arrays, kernels compiled from the same flat text.

CuPy is an extra: ``pip install '.[cuda12]'`` or ``'.[cuda13]'`` in a clone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from vfx.device.bind import HostArray, Record
from vfx.device.launch import Device, DeviceError, Launch

THREADS_A_BLOCK = 128
NVRTC_OPTIONS = ("--std=c++17", "--fmad=false")


class CudaDevice(Device):
    """One GPU, by its number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        cupy = import_cupy()
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise DeviceError(f"no NVIDIA GPU can be used here ({error}); "
                              "use --device cpu") from None
        if number >= count:
            raise DeviceError(f"there is no cuda:{number} here, only {count} GPU(s); "
                              "use --device cpu or a lower number")
        self.name = f"cuda:{number}"
        self.xp: Any = cupy
        self._device = cupy.cuda.Device(number)
        self._device.use()
        properties = cupy.cuda.runtime.getDeviceProperties(number)
        self._processors = int(properties["multiProcessorCount"])
        model, architecture = properties["name"].decode(), self._device.compute_capability
        self.description = f"cuda {model} sm_{architecture}"

    def _load(self, name: str, text: str) -> Callable[[str], Any]:
        module = self.xp.RawModule(code=text, options=NVRTC_OPTIONS, backend="nvrtc")
        return functools.partial(_function, module)

    def owns(self, array: Any) -> bool:
        """Whether ``array`` is a CuPy array on this GPU."""
        return isinstance(array, self.xp.ndarray) and array.device == self._device

    def address(self, array: Any) -> int:
        """Return where ``array`` begins in the GPU's memory."""
        return int(array.data.ptr)

    def from_host(self, array: HostArray) -> Any:
        """Copy a host array to the GPU."""
        return self.xp.array(array, order="C")

    def to_host(self, array: Any) -> HostArray:
        """Copy a GPU array to the host."""
        result: HostArray = self.xp.asnumpy(array)
        return result

    def _run(self, launches: Sequence[Launch], repeat: int, halt: Any) -> None:
        self._enqueue(launches)
        if repeat == 1:
            return
        # The first round, above, also loads the kernels: a capture must find them loaded.
        self.xp.cuda.get_current_stream().synchronize()
        stream = self.xp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            self._enqueue(launches)
            graph = stream.end_capture()
            for _ in range(repeat - 1):
                graph.launch(stream)
        stream.synchronize()

    def _enqueue(self, launches: Sequence[Launch]) -> None:
        for launch in launches:
            threads = launch.count * launch.kernel.signature.lanes
            blocks = min(-(-threads // THREADS_A_BLOCK), 32 * self._processors)
            # CuPy passes a numpy array of one struct by value.
            arguments = tuple(argument.value if isinstance(argument, Record) else argument
                              for argument in launch.arguments)
            launch.kernel.native((max(blocks, 1),), (THREADS_A_BLOCK,), arguments)

    def synchronize(self) -> None:
        """Wait for the GPU."""
        self._device.synchronize()

    def memory(self) -> tuple[int, int]:
        """Return (free, total) bytes of the GPU's memory."""
        free, total = self._device.mem_info
        return int(free), int(total)

    @property
    def threads(self) -> int:
        """1: the host only launches."""
        return 1

    @threads.setter
    def threads(self, count: int) -> None:
        """Leave the GPU as it is: the number of host threads does not concern it."""


def _function(module: Any, kernel: str) -> Any:
    return module.get_function(kernel)


def import_cupy() -> Any:
    """Import CuPy or say how to get it."""
    try:
        import cupy
    except ImportError:
        raise DeviceError("a CUDA device needs CuPy, which is not installed: pip install "
                          "cupy-cuda12x (or cupy-cuda13x), or use --device cpu") from None
    return cupy
