"""What a surface does with light."""
