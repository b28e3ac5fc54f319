"""The version, which pickles carry."""

__version__ = "0.4.0"
