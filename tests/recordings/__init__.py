"""Long recordings of real samples, and the script that takes them."""
