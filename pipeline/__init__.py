"""The roof: shot files, stages, caches and the command line."""
