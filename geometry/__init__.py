"""Shapes divided into elements, the data between stages, and the pieces of a frame."""
