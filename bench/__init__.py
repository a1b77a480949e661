"""Measurements against the paper, other programs and the machine: ``vfx bench``."""
