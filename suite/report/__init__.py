"""What is published: figures, HTML, Markdown, all pure functions of rows."""
