"""Machine learning for people who have to decide: Smart Predict-then-Optimize for scikit-learn."""

from .chunks import ChunkedData
from .items import StackedItems, stack_items
from .losses import AbsoluteLoss, SPOLoss, SPOPlusLoss, SquaredLoss
from .metrics import make_spo_scorer, normalized_spo_loss, spo_loss, spo_plus_loss
from .neural import SPOMLPRegressor
from .path import SPOPlusRegressorCV, spo_plus_path
from .persistence import InconsistentVersionWarning
from .regions import *  # noqa: F403
from .regions import __all__ as _regions
from .report import decision_report
from .spo_plus_regressor import SPOPlusRegressor
from .spo_regressor import SPORegressor
from .two_stage import TwoStageRegressor

__version__ = "0.2.0.dev0"

__all__ = [
    "AbsoluteLoss",
    "ChunkedData",
    "InconsistentVersionWarning",
    "SPOLoss",
    "SPOMLPRegressor",
    "SPOPlusLoss",
    "SPOPlusRegressor",
    "SPOPlusRegressorCV",
    "SPORegressor",
    "SquaredLoss",
    "StackedItems",
    "TwoStageRegressor",
    "decision_report",
    "make_spo_scorer",
    "normalized_spo_loss",
    "spo_loss",
    "spo_plus_loss",
    "spo_plus_path",
    "stack_items",
    *_regions,
]
