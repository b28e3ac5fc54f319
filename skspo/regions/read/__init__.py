"""Regions from models that exist already: files, and the objects of other packages.

A reader turns one kind of source into a ``Model``: a region over all variables, and the objective.  Packages of other
people are imported by the reader of their objects only.
"""

from ._read import read_region

__all__ = ["read_region"]
