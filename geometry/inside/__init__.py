"""Where a point is: inside a closed surface, how far from it, what lies above."""
