"""The dual method for large models; see ``solver``."""

from .solver import DualSolver

__all__ = ["DualSolver"]
