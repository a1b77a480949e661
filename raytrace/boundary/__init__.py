"""From pieces to the triangles that can be seen."""
