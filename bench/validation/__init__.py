"""Runs that compare the simulation with other people's results; see docs/validation.md."""
