"""Estimators of costs, for people who have to decide."""

from ._cv import SPOPlusRegressorCV
from ._held_out import HeldOutRisk, held_out_risk
from ._mlp import SPOMLPRegressor
from ._path import spo_plus_path
from ._report import DecisionReport, decision_report
from ._spo import SPORegressor
from ._spo_cv import SPORegressorCV
from ._spo_plus import SPOPlusRegressor
from ._stacking import SPOStackingRegressor
from ._two_stage import TwoStageRegressor

__all__ = [
    "DecisionReport",
    "HeldOutRisk",
    "SPOMLPRegressor",
    "SPOPlusRegressor",
    "SPOPlusRegressorCV",
    "SPORegressor",
    "SPORegressorCV",
    "SPOStackingRegressor",
    "TwoStageRegressor",
    "decision_report",
    "held_out_risk",
    "spo_plus_path",
]
