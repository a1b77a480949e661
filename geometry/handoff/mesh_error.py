"""What is wrong with a mesh or its file, in words."""

from __future__ import annotations


class MeshError(ValueError):
    """A mesh that cannot become a solid; the text says what is wrong, where, and what to do.

    It reads on from the name of the mesh. ``report`` is what was found of it, if that far.
    """

    def __init__(self, message: str, report: object = None) -> None:
        super().__init__(message)
        self.report = report


def unreadable(suffix: str) -> str:
    """Return the sentence on a file that is not what its name says."""
    return (f"cannot be read as {suffix.upper()}: it is damaged, cut short, or of another kind "
            "than its name says; export it again, or name it by its kind")


def no_triangles(suffix: str) -> str:
    """Return the sentence on a file without a mesh."""
    return (f"holds no triangles that can be read as {suffix.upper()}, only points, curves or "
            "text, if anything; export it again, with its faces, or name it by its kind")
