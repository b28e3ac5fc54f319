"""Version stamps of pickles.

The state of every estimator and region contains the version that wrote it.  States from series ``OLDEST`` up to the
current series (0.2 for version 0.2.1) can be read, with a warning if the versions differ.  Those of later series are
refused.  ``OLDEST`` must be raised when a change makes older states wrong.
"""

from __future__ import annotations

import warnings
from inspect import Parameter, signature
from typing import Any

from .._version import __version__
from .shown import ShortRepr

#: first series whose states this version can read
OLDEST = "0.3"

#: version of a state without a stamp
UNNAMED = "an unnamed version"

_KEY = "_skspo_version"


class InconsistentVersionWarning(UserWarning):
    """An estimator or region was loaded that another version of skspo has written.

    Parameters
    ----------
    name : str
        Class of what was loaded.
    written, current : str
        Version that wrote it, and version that reads it.
    """

    def __init__(self, name: str, written: str, current: str) -> None:
        super().__init__(name, written, current)
        self.name, self.written, self.current = name, written, current

    def __str__(self) -> str:
        return (
            f"This {self.name} was written by skspo {self.written} and is read by skspo {self.current}. Predictions "
            "should be the same, but compare some with those of the version that wrote it, or fit again."
        )


class VersionedState(ShortRepr):
    """Mixin that adds the version to the state and checks it on loading; must come before BaseEstimator."""

    def __getstate__(self) -> dict[str, object]:
        state: Any = super().__getstate__()
        return {**state, _KEY: __version__}

    def __setstate__(self, state: dict[str, object]) -> None:
        state = dict(state)
        written = str(state.pop(_KEY, UNNAMED))
        if written != __version__:
            _check(type(self).__name__, written, __version__)
        # Parameters that were added later, also between two releases, get their default.
        for name, parameter in signature(type(self)).parameters.items():
            if parameter.default is not Parameter.empty:
                state.setdefault(name, parameter.default)
        super().__setstate__(state)  # type: ignore[misc]


def _check(name: str, written: str, current: str) -> None:
    """Warn if the state can be read, raise an error if not."""
    try:
        oldest, series, newest = (tuple(map(int, v.split(".")[:2])) for v in (OLDEST, written, current))
    except ValueError:
        raise ValueError(
            f"This {name} says that it was written by skspo {written!r}, which is not a version: the file is damaged."
        ) from None
    if not oldest <= series <= newest:
        wanted = ".".join(map(str, series))
        raise ValueError(
            f"This {name} was written by skspo {written} and cannot be read by skspo {current}. Read it with "
            f"skspo {wanted} (pip install 'skspo=={wanted}.*'), or fit the model again."
        )
    warnings.warn(InconsistentVersionWarning(name, written, current), stacklevel=3)
