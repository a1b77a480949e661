"""Shapes divided into elements, the data between stages, and the fragments of a frame."""
