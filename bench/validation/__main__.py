"""``python -m vfx.bench.validation NAME ...``: the same as ``vfx bench validate``."""

from __future__ import annotations

import sys

from vfx.bench.validation.run import VALIDATIONS, run_validations

if __name__ == "__main__":
    asked = sys.argv[1:] or list(VALIDATIONS)
    unknown = [name for name in asked if name not in VALIDATIONS]
    if unknown:
        sys.exit(f"unknown validation {unknown[0]!r}; there are {', '.join(VALIDATIONS)}")
    sys.exit(0 if run_validations(asked)[1] else 1)
