"""From a mesh file to a closed surface: read, inspect, repair, shade."""
