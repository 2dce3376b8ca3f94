"""A report's tables as text, Markdown and CSV."""
