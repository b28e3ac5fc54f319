"""Plots of decisions and fits, with the Display API of scikit-learn.

Each display has class methods that compute what is drawn (``from_estimator``, ``from_estimators``, ...) and a method
``plot`` that draws it and sets the attributes ``ax_``, ``figure_`` and the artists.  Matplotlib is imported when
something is drawn: ``pip install skspo[plot]``.
"""

from .convergence import ConvergenceDisplay
from .decisions import DecisionDisplay
from .loss import LossDisplay
from .path import RegularizationPathDisplay
from .region import RegionDisplay
from .regret import RegretDisplay
from .stacking import StackingDisplay

__all__ = [
    "ConvergenceDisplay",
    "DecisionDisplay",
    "LossDisplay",
    "RegionDisplay",
    "RegretDisplay",
    "RegularizationPathDisplay",
    "StackingDisplay",
]
