"""Write the C++ files of the host libraries: flat kernels plus what launches them.

Run by CMake at build time: ``python device/hostlib.py FOLDER host`` (or ``warp``, for the
library that runs the CUDA half of the text). Every kernel gets a packed entry that takes an
array of pointers to its arguments, so that one native loop can run any sequence of prepared
launches without Python in between.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING or __package__:
    from vfx.device import source
else:  # run by the build: nothing is installed yet, but this folder is on the path
    import source

RUNNER = r"""
#include <omp.h>
typedef void (*Entry)(void **);

// Run the prepared launches in order, `repeat` times; stop when *halt becomes non-zero.
// OpenMP keeps the number of threads for each calling thread apart: set it every time.
extern "C" long long vfx_run(int n_threads, int n_launches, Entry *entry, void ***argument,
                             long long repeat, const int *halt)
{
    omp_set_num_threads(n_threads);
    for (long long r = 0; r < repeat; ++r) {
        for (int l = 0; l < n_launches; ++l) entry[l](argument[l]);
        if (halt != nullptr && *halt != 0) return r;
    }
    return repeat;
}

extern "C" int vfx_max_threads() { return omp_get_max_threads(); }
"""


def packed_entry(signature: source.Signature) -> str:
    """Return the C++ text of a kernel's packed entry."""
    return (f'extern "C" void vfx_packed_{signature.name}(void **argument)\n'
            f"{{\n    {call(signature)}\n}}\n")


def warp_entry(signature: source.Signature) -> str:
    """Return the same for a library that runs the kernel in warps."""
    name, count = signature.name, signature.parameters[0].ctype
    return (f"static void body_{name}(void **argument)\n{{\n    {call(signature)}\n}}\n"
            f'extern "C" void vfx_packed_{name}(void **argument)\n'
            f'{{\n    warp::launch("{name}", *({count} *)argument[0], {signature.lanes}, '
            f"body_{name}, argument);\n}}\n")


def call(signature: source.Signature) -> str:
    """Return the call of a kernel with what `argument` points to."""
    arguments = ", ".join(
        f"*({p.ctype}{'*' if p.role != 'value' else ''} *)argument[{i}]"
        for i, p in enumerate(signature.parameters))
    return f"{signature.name}({arguments});"


def library_text(name: str, flat: str, processor: str) -> str:
    """Return the C++ text of a kernel file: its flat text, the entries, and its hash."""
    # Behind this header the CUDA half of the text takes the host for a GPU.
    head = '#include "warp.h"\n' if processor == "warp" else ""
    stem, kernels = source.file_symbol(name), source.signatures(flat).values()
    entries = "".join(map(warp_entry if processor == "warp" else packed_entry, kernels))
    stamp = f'extern "C" const char *vfx_hash_{stem}() {{ return "{source.text_hash(flat)}"; }}\n'
    return (f'{head}{flat}\n#line 1 "{stem}.cpp"\n'
            f"{source.layout_checks(kernels)}{entries}{stamp}")


def generate(folder: Path, processor: str = "host") -> list[Path]:
    """Write a C++ file for each kernel file; unchanged files are left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"runner.cpp": RUNNER} if processor == "host" else {}
    for name in source.kernel_files():
        texts[f"{source.file_symbol(name)}.cpp"] = library_text(
            name, source.flatten(name), processor)
    for stale in set(folder.glob("*.cpp")) - {folder / name for name in texts}:
        stale.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


if __name__ == "__main__":
    print(";".join(path.as_posix() for path in generate(Path(sys.argv[1]), sys.argv[2])),
          end="")
