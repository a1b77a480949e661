"""What becomes of samples: pixels, passes, mattes, files."""
