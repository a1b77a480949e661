"""The tree in which rays find their hits."""
