"""Libraries that solve programs for us, and how they fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


def import_cvxpy() -> ModuleType:
    """Return CVXPY, or say how to get it."""
    try:
        import cvxpy
    except ImportError as error:
        raise ImportError(f"This needs CVXPY, which cannot be imported ({error}): pip install cvxpy") from error
    return cvxpy


def import_clarabel() -> ModuleType:
    """Return Clarabel, or say how to get it."""
    try:
        import clarabel
    except ImportError as error:
        raise ImportError(f"This needs Clarabel, which cannot be imported ({error}): pip install clarabel") from error
    return clarabel


def is_failure(error: BaseException) -> bool:
    """Whether an exception is a library's failure, rather than somebody's wish to stop the program.

    A panic in a library written in Rust, as Clarabel is, is no ``Exception``.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


@contextmanager
def suppress_failure() -> Iterator[None]:
    """Go on after a library's failure, unless it is that the library is missing."""
    try:
        yield
    except ImportError:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
