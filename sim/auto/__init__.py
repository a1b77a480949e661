"""Rigid while nothing breaks, bonds for the milliseconds of an impact, rigid again."""
