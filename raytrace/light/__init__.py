"""Where light comes from: environments, key light, panels."""
