"""Solid, pieces, camera and light to a picture: the ray tracer and its EXR files."""
