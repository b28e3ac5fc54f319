"""Errors and warnings that a user may want to catch, failures of libraries, and warnings that are shown once.

Each error also derives from the matching class of Python or scikit-learn.

Python shows a warning once per line, but forgets which ones it has shown whenever the filters change.  scikit-learn
changes them in every fit, so that a search over forty folds would give forty warnings: ``warn_once`` gives one, at the
line of the user's call.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import ModuleType
from weakref import WeakKeyDictionary

import joblib
import sklearn
from sklearn.exceptions import ConvergenceWarning

# -- errors and warnings -----------------------------------------------------------------------------------------------


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


# -- libraries ---------------------------------------------------------------------------------------------------------


def import_optional(module: str, name: str, *, who: str = "This", install: str = "", more: str = "") -> ModuleType:
    """Import a package, or raise an error that says what needs it and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        install = install or module
        raise ImportError(
            f"{who} needs {name}, which cannot be imported ({error}): pip install {install}{more}"
        ) from error


import_cvxpy = partial(import_optional, "cvxpy", "CVXPY")
import_clarabel = partial(import_optional, "clarabel", "Clarabel")
import_pandas = partial(import_optional, "pandas", "pandas")


def is_failure(error: BaseException) -> bool:
    """Whether an exception is a failure of a library, and not a request to stop the program.

    A panic in a library written in Rust, such as Clarabel, does not derive from ``Exception``.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


@contextmanager
def suppress_failure() -> Iterator[None]:
    """Ignore a failure of a library, unless the library is missing."""
    try:
        yield
    except ImportError:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise


@contextmanager
def errors_note(text: str) -> Iterator[None]:
    """Add a note to the errors of a ``with`` block."""
    try:
        yield
    except Exception as error:
        error.add_note(text)
        raise


# -- warnings once per call of the user --------------------------------------------------------------------------------

#: folders of this package, and of libraries that may call it
_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_LIBRARIES = (_OURS, *(os.path.join(os.path.dirname(os.path.abspath(m.__file__)), "") for m in (sklearn, joblib)))

#: messages that were shown, with file and line
_shown: set[tuple[str, str, int]] = set()

#: topics of the warnings about each object
_shown_about: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()


def warn_once(message: str, category: type[Warning] = UserWarning, *, about: object = None, topic: str = "") -> None:
    """Warn at the line of the user's code that led here.

    If scikit-learn or joblib is in between, one call of the user may lead here many times: the same message is then
    shown once per line.  With ``about``, there is one warning about this object and ``topic``, at any line.
    """
    frame, level, repeated = sys._getframe(0), 1, False
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        repeated = repeated or not frame.f_code.co_filename.startswith(_OURS)
        frame, level = frame.f_back, level + 1
    key = (message, frame.f_code.co_filename, frame.f_lineno)
    if (repeated and key in _shown) or (about is not None and topic in _shown_about.get(about, ())):
        return
    warnings.warn(message, category, stacklevel=level)
    # Not reached if the warning was turned into an error, which is then raised every time.
    _shown.add(key)
    if about is not None:
        _shown_about.setdefault(about, set()).add(topic)


def forget_warnings() -> None:
    """Show all warnings again."""
    _shown.clear()
    _shown_about.clear()
