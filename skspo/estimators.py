"""Where models of version 0.1 say that they come from; without it their pickles could not be read."""

from .spo_plus_regressor import SPOPlusRegressor
from .two_stage import TwoStageRegressor

__all__ = ["SPOPlusRegressor", "TwoStageRegressor"]
