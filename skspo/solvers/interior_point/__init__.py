"""Interior point for polyhedra, and for polyhedra with a quadratic constraint."""

from .solver import InteriorPointSolver, is_simple, predicted_work

__all__ = ["InteriorPointSolver", "is_simple", "predicted_work"]
