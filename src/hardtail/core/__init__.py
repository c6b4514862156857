"""What all packages build on: instances and traces as arrays, named randomness, vocabulary, registries, files, errors.

Nothing here knows a task, a model or a paper. Only `noise` needs torch; `import hardtail` does not load it.
"""
