"""Pieces and dust for other programs."""
