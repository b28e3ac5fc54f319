"""Proximal bundle method."""

from .solver import BundleSolver

__all__ = ["BundleSolver"]
