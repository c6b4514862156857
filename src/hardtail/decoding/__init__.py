"""The only decoding loop, and the events it records."""
