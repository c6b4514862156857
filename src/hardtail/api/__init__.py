"""What `import hardtail` offers: load, evaluate, decode, diagnose and report in one line each.

Everything here is a short way to the packages below, which take every choice as an argument. `hardtail/__init__.py`
exports these names and imports them when they are first used.
"""
