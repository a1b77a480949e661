"""What people look at: pictures, plots, pages and reports."""
