"""The study: what is trained, what is measured, what was found."""
