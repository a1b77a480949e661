"""From the motion of particles to pieces: who belongs to which, and how it moves."""
