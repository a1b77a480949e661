"""The bonds of levine-2014: brittle bodies whose cracks are simulated."""
