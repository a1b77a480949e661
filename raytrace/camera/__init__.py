"""Where the camera stands, and what moves while its shutter is open."""
