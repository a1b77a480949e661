"""From a closed surface to a solid of elements: cubes, shells of tetrahedra, Voronoi cells."""
