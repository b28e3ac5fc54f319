"""Imports of solver libraries, and their failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType


def _import(module: str, name: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"This needs {name}, which cannot be imported ({error}): pip install {module}") from error


def import_cvxpy() -> ModuleType:
    """Import CVXPY, or raise an error that says how to install it."""
    return _import("cvxpy", "CVXPY")


def import_clarabel() -> ModuleType:
    """Import Clarabel, or raise an error that says how to install it."""
    return _import("clarabel", "Clarabel")


def import_pandas() -> ModuleType:
    """Import pandas, or raise an error that says how to install it."""
    return _import("pandas", "pandas")


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
