"""Decoders, one file for each format: bytes in, `LabelledPixels` or an `InputError` out, in bounded memory."""
