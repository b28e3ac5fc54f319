"""Machine learning for people who have to decide: Smart Predict-then-Optimize for scikit-learn."""

from ._utils.errors import InfeasibleRegionError, NotCertifiedWarning, SkspoError, SolverError, UnboundedRegionError
from ._utils.versioning import InconsistentVersionWarning
from ._version import __version__
from .data import ChunkedData, ItemTransformer, StackedItems, stack_items
from .estimators import *  # noqa: F403
from .estimators import __all__ as _estimators
from .losses import AbsoluteLoss, SPOLoss, SPOPlusLoss, SquaredLoss
from .metrics import make_spo_scorer, mean_cost, normalized_spo_loss, spo_loss, spo_plus_loss
from .regions import *  # noqa: F403
from .regions import __all__ as _regions

__all__ = [
    "AbsoluteLoss",
    "ChunkedData",
    "InconsistentVersionWarning",
    "InfeasibleRegionError",
    "ItemTransformer",
    "NotCertifiedWarning",
    "SPOLoss",
    "SPOPlusLoss",
    "SkspoError",
    "SolverError",
    "SquaredLoss",
    "StackedItems",
    "UnboundedRegionError",
    "__version__",
    "make_spo_scorer",
    "mean_cost",
    "normalized_spo_loss",
    "spo_loss",
    "spo_plus_loss",
    "stack_items",
    *_estimators,
    *_regions,
]
