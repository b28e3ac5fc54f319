"""Solvers of the SPO loss itself."""

from .descent import LineSearchSolver, SPOGradientSolver
from .milp import MILPSolver

__all__ = ["LineSearchSolver", "MILPSolver", "SPOGradientSolver"]
