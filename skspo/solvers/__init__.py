"""Solvers of the training problem, by name.

=================  =========================================  ==========================================
name               what it asks of a region                   when to use it
=================  =========================================  ==========================================
``lbfgs``          ``strong_convexity``, ``repair``           exact; strongly convex regions, any n
``newton``         ``smoothed``, ``repair``                   exact; the same, and Markowitz; no l1 penalty
``intervals``      ``blocks``, ``standard_form``, ``repair``  exact; boxes, any n; no l1 penalty
``interior-point`` ``standard_form``, ``repair``              exact; polyhedral regions (and ``quadratic_form``), any n
``conic``          ``support_epigraph``, ``repair``           exact; any region in cone form, small n
``bundle``         nothing but ``argmin``                     exact where it converges; any region, few passes
``dual``           nothing but ``argmin``                     exact; many coefficients, any region
``sgd``            nothing but ``argmin``                     approximate; everything else
=================  =========================================  ==========================================

With ``auto`` they take turns, in the order of their estimates (``skspo.solvers.driver``).  Products of regions are
split before, whatever the solver (``skspo.solvers.product``).
"""

from .auto import SOLVERS, choose_solvers, make_solvers
from .base import Estimate, Result, Solver, Status, check_solver_serves, history_of
from .bundle.solver import BundleSolver
from .conic import ConicSolver
from .dual.solver import DualSolver
from .interior_point.intervals import IntervalSolver
from .interior_point.solver import InteriorPointSolver
from .lbfgs import LBFGSSolver
from .newton import NewtonSolver
from .sgd import SGDSolver

__all__ = [
    "SOLVERS",
    "BundleSolver",
    "ConicSolver",
    "DualSolver",
    "Estimate",
    "InteriorPointSolver",
    "IntervalSolver",
    "LBFGSSolver",
    "NewtonSolver",
    "Result",
    "SGDSolver",
    "Solver",
    "Status",
    "check_solver_serves",
    "choose_solvers",
    "history_of",
    "make_solvers",
]
