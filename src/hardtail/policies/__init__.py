"""Decoding policies: which hidden cell is committed next."""
