"""The stages from a shot file to its frames."""
