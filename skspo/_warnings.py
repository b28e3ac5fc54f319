"""Warnings that point at the user's own line, however deep in the package they are raised."""

from __future__ import annotations

import sys
import warnings


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn as if from the innermost line of code outside the package."""
    package = __name__.partition(".")[0]
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
