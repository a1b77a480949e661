"""Storms: hostile generators that prove the command line holds; see README.md beside this file."""

#: Kinds of storm, and how many cases ``make storm`` runs of each (of kills: kills).
KINDS = {"shots": 10_000, "kills": 1_000, "damage": 1_000, "meshes": 600, "images": 400,
         "folders": 400, "words": 600, "resources": 200, "concurrency": 100}
