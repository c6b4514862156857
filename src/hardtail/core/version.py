"""The version of the package: told here once, to the build as well."""

__version__ = "0.1.0"
