"""Write the C++ files of the host library: flat kernels plus what launches them.

Run by CMake at build time: ``python device/hostlib.py OUTPUT_FOLDER``. Every kernel gets a
packed entry that takes an array of pointers to its arguments, so that one native loop can
run any sequence of prepared launches without Python in between.
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
    arguments = ", ".join(
        f"*({p.ctype}{'*' if p.role != 'value' else ''} *)argument[{i}]"
        for i, p in enumerate(signature.parameters))
    return (f'extern "C" void vfx_packed_{signature.name}(void **argument)\n'
            f"{{\n    {signature.name}({arguments});\n}}\n")


def generate(folder: Path) -> list[Path]:
    """Write one C++ file a kernel file, and the runner; unchanged files are left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"runner.cpp": RUNNER}
    for name in source.kernel_files():
        flat = source.flatten(name)
        stem = name.removesuffix(".cu").replace("/", "_")
        entries = "".join(packed_entry(s) for s in source.signatures(flat).values())
        stamp = (f'extern "C" const char *vfx_hash_{stem}() '
                 f'{{ return "{source.text_hash(flat)}"; }}\n')
        texts[f"{stem}.cpp"] = f'{flat}\n#line 1 "{stem}.cpp"\n{entries}{stamp}'
    for stale in set(folder.glob("*.cpp")) - {folder / name for name in texts}:
        stale.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


if __name__ == "__main__":
    print(";".join(path.as_posix() for path in generate(Path(sys.argv[1]))), end="")
