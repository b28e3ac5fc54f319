"""Estimators of costs, for people who have to decide."""

from ._classifier import CostSensitiveClassifier
from ._cv import SPOPlusRegressorCV
from ._decide import chosen, cross_val_decide, decide
from ._estimated_cost import EstimatedCost as EstimatedCost
from ._estimated_cost import estimated_cost
from ._feedback import PartialFeedbackRegressor
from ._held_out import HeldOutRisk as HeldOutRisk
from ._held_out import held_out_risk
from ._mlp import SPOMLPRegressor
from ._path import spo_plus_path
from ._report import DecisionReport as DecisionReport
from ._report import decision_report
from ._spo import SPORegressor
from ._spo_cv import SPORegressorCV
from ._spo_plus import SPOPlusRegressor
from ._stacking import SPOStackingRegressor
from ._two_stage import TwoStageRegressor

__all__ = [
    "CostSensitiveClassifier",
    "PartialFeedbackRegressor",
    "SPOMLPRegressor",
    "SPOPlusRegressor",
    "SPOPlusRegressorCV",
    "SPORegressor",
    "SPORegressorCV",
    "SPOStackingRegressor",
    "TwoStageRegressor",
    "chosen",
    "cross_val_decide",
    "decide",
    "decision_report",
    "estimated_cost",
    "held_out_risk",
    "spo_plus_path",
]
