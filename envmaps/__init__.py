"""Built-in environments: data files, and the script that makes them."""
