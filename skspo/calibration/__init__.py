"""Calibration and risk bounds: from surrogate risks to the quality of decisions.

The theory of Liu and Grigas, *Risk Bounds and Calibration for a Smart Predict-then-Optimize Method*, as functions:
every numbered result has one, and ``docs/theory.md`` says which.  Where the paper has a misprint the corrected
statement is implemented; ``docs/errata.md`` lists them with counter-examples.
"""

from ._checks import Geometry, Sides, region_geometry
from .certificate import RiskCertificate, risk_certificate
from .display import CalibrationDisplay
from .empirical import EmpiricalCalibration, ExcessRisks, empirical_calibration, excess_risks
from .examples import DoubleCone, NegativeExample, TightnessExample
from .functions import (
    CalibrationFunction,
    LeastSquaresCalibration,
    PolyhedralCalibration,
    StronglyConvexCalibration,
    excess_spo_risk,
)
from .generalization import (
    Estimate,
    SampleComplexity,
    generalization_bound,
    rademacher_bound,
    rademacher_monte_carlo,
    spo_plus_range,
)
from .polyhedral_steps import (
    Transitions,
    conditional_excess_bound,
    delta_bound,
    direction_excess_bound,
    power_sum_bound,
    transition_sum_bound,
    transitions,
)
from .rotational import (
    least_risky_length,
    mean_cosine,
    mean_cosine_bound,
    mean_norm,
    radial_calibration_constant,
    surrogate_lower_risk,
)
from .strongly_convex import (
    angle_bound,
    decision_cost_bounds,
    decision_distance_bounds,
    gradient_bounds,
    optimality_bound,
    spo_plus_term_bound,
)
from .symmetry import SymmetryTest, symmetry_test

__all__ = [
    "CalibrationDisplay",
    "CalibrationFunction",
    "DoubleCone",
    "EmpiricalCalibration",
    "Estimate",
    "ExcessRisks",
    "Geometry",
    "LeastSquaresCalibration",
    "NegativeExample",
    "PolyhedralCalibration",
    "RiskCertificate",
    "SampleComplexity",
    "Sides",
    "StronglyConvexCalibration",
    "SymmetryTest",
    "TightnessExample",
    "Transitions",
    "angle_bound",
    "conditional_excess_bound",
    "decision_cost_bounds",
    "decision_distance_bounds",
    "delta_bound",
    "direction_excess_bound",
    "empirical_calibration",
    "excess_risks",
    "excess_spo_risk",
    "generalization_bound",
    "gradient_bounds",
    "least_risky_length",
    "mean_cosine",
    "mean_cosine_bound",
    "mean_norm",
    "optimality_bound",
    "power_sum_bound",
    "rademacher_bound",
    "rademacher_monte_carlo",
    "radial_calibration_constant",
    "region_geometry",
    "risk_certificate",
    "spo_plus_range",
    "spo_plus_term_bound",
    "surrogate_lower_risk",
    "symmetry_test",
    "transition_sum_bound",
    "transitions",
]
