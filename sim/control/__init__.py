"""What a shot does to its bodies: weakening, regions, cracks, colliders, projectiles."""
