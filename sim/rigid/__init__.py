"""Rigid bodies that fly, collide, slide and settle, by the engine rapier."""
