"""Machine learning for people who have to decide: Smart Predict-then-Optimize for scikit-learn."""

from ._utils.errors import (
    InfeasibleRegionError,
    NotCertifiedWarning,
    SkspoError,
    SolverError,
    UnboundedRegionError,
)
from ._utils.versioning import InconsistentVersionWarning
from ._version import __version__
from .data import ChunkedData, ItemTransformer, StackedItems, stack_items
from .estimators import (
    CostSensitiveClassifier,
    PartialFeedbackRegressor,
    SPOMLPRegressor,
    SPOPlusRegressor,
    SPOPlusRegressorCV,
    SPORegressor,
    SPORegressorCV,
    SPOStackingRegressor,
    TwoStageRegressor,
    chosen,
    cross_val_decide,
    decide,
    decision_report,
    estimated_cost,
    held_out_risk,
    spo_plus_path,
)
from .losses import AbsoluteLoss, SPOLoss, SPOPlusLoss, SquaredLoss
from .metrics import make_spo_scorer, mean_cost, normalized_spo_loss, spo_loss, spo_plus_loss
from .regions import *  # noqa: F403
from .regions import __all__ as _regions

__all__ = [
    "AbsoluteLoss",
    "ChunkedData",
    "CostSensitiveClassifier",
    "InconsistentVersionWarning",
    "InfeasibleRegionError",
    "ItemTransformer",
    "NotCertifiedWarning",
    "PartialFeedbackRegressor",
    "SPOLoss",
    "SPOMLPRegressor",
    "SPOPlusLoss",
    "SPOPlusRegressor",
    "SPOPlusRegressorCV",
    "SPORegressor",
    "SPORegressorCV",
    "SPOStackingRegressor",
    "SkspoError",
    "SolverError",
    "SquaredLoss",
    "StackedItems",
    "TwoStageRegressor",
    "UnboundedRegionError",
    "__version__",
    "chosen",
    "cross_val_decide",
    "decide",
    "decision_report",
    "estimated_cost",
    "held_out_risk",
    "make_spo_scorer",
    "mean_cost",
    "normalized_spo_loss",
    "spo_loss",
    "spo_plus_loss",
    "spo_plus_path",
    "stack_items",
    *_regions,
]
