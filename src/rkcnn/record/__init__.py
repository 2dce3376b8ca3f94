"""Records: runs, tables and results, and their files. Imports no torch."""
