"""Meshes that the project makes itself."""
