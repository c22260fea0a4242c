"""What other tools measured, as evidence ``imported``: their logs and files become rows, with what is missing said."""
