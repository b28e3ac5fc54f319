"""Errors and warnings that a user may want to catch.

Each one also derives from the matching class of Python or scikit-learn.
"""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning


class SkspoError(Exception):
    """Base class of the errors of this package that are not about a single argument."""


class SolverError(SkspoError, RuntimeError):
    """A solver, such as HiGHS or Clarabel, failed, or returned something that is not a solution."""


class InfeasibleRegionError(SkspoError, ValueError):
    """A feasible region is empty: no decision satisfies all of its constraints."""


class UnboundedRegionError(SkspoError, ValueError):
    """A feasible region is unbounded, so that some costs have no best decision."""


class NotCertifiedWarning(ConvergenceWarning):
    """A fit ended with a model that is not proved to be optimal within ``tol``."""


# Tracebacks and pickles show the public name.
for _class in (SkspoError, SolverError, InfeasibleRegionError, UnboundedRegionError, NotCertifiedWarning):
    _class.__module__ = "skspo"
