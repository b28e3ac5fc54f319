"""Warnings that are given once for one call of the user, at the line of this call.

Python shows a warning once per line by itself, but forgets which it has shown whenever the filters change, and
scikit-learn changes them all the time: one search over forty folds gives forty warnings.
"""

from __future__ import annotations

import os
import sys
import warnings
from weakref import WeakKeyDictionary

import joblib
import sklearn

#: folders of this package, and of those that may stand between it and the user
_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_LIBRARIES = (_OURS, *(os.path.join(os.path.dirname(os.path.abspath(m.__file__)), "") for m in (sklearn, joblib)))

#: what was said, and at which line
_said: set[tuple[str, str, int]] = set()

#: what was said about which object
_said_about: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()


def warn_once(message: str, category: type[Warning] = UserWarning, *, about: object = None, topic: str = "") -> None:
    """Warn at the line of the user's code that led here.

    Where scikit-learn or joblib stands between, one call of the user may lead here many times: the same message is
    given once for each line.

    Parameters
    ----------
    message : str
    category : type of Warning
    about : object, optional
        For each object the warning is given only once, wherever it is used.
    topic : str
        What is said about the object, if the message differs from place to place.
    """
    frame, level, repeated = sys._getframe(0), 1, False
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        repeated = repeated or not frame.f_code.co_filename.startswith(_OURS)
        frame, level = frame.f_back, level + 1
    key = (message, frame.f_code.co_filename, frame.f_lineno)
    if (repeated and key in _said) or (about is not None and topic in _said_about.get(about, ())):
        return
    warnings.warn(message, category, stacklevel=level)
    # Not if the warning was turned into an error: it is one the next time, too.
    _said.add(key)
    if about is not None:
        _said_about.setdefault(about, set()).add(topic)


def forget_warnings() -> None:
    """Give every warning again."""
    _said.clear()
    _said_about.clear()
