"""Interior point for polyhedra, and for polyhedra with a quadratic constraint."""

from .solver import InteriorPointSolver, predicted_work

__all__ = ["InteriorPointSolver", "predicted_work"]
