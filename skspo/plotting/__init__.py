"""Pictures of decisions and fits, with the manners of scikit-learn's displays.

Each display has class methods that compute what is drawn (``from_estimator``, ``from_estimators``, ...), a method
``plot`` that draws it, again if you like, and the attributes ``ax_`` and ``figure_`` and the artists afterwards.
Matplotlib is imported when something is drawn: ``pip install skspo[plot]``.
"""

from .convergence import ConvergenceDisplay
from .decisions import DecisionDisplay
from .path import RegularizationPathDisplay
from .regret import RegretDisplay

__all__ = ["ConvergenceDisplay", "DecisionDisplay", "RegretDisplay", "RegularizationPathDisplay"]
