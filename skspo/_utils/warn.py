"""Warnings that are shown once per call of the user, at the line of that call.

Python shows a warning once per line, but forgets which ones it has shown whenever the filters change.  scikit-learn
changes them in every fit, so that a search over forty folds would give forty warnings.
"""

from __future__ import annotations

import os
import sys
import warnings
from weakref import WeakKeyDictionary

import joblib
import sklearn

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
    shown once per line.

    Parameters
    ----------
    message : str
    category : type of Warning
    about : object, optional
        Warn only once about this object, at any line.
    topic : str
        Identifies the warning about the object if the text varies.
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
