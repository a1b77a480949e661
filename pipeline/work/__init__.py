"""The work folder: files that are whole or not there, and what they were made from."""
