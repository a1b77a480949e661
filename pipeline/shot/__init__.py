"""The shot file: its keys, its mistakes, and what it needs."""
