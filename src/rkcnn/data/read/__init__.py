"""One reader a file format: bytes in, a `Part` or our own error out, in memory that the bytes are worth."""
