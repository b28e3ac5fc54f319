"""Calibration and risk bounds: from surrogate risks to the quality of decisions.

The theory of Liu and Grigas, *Risk Bounds and Calibration for a Smart Predict-then-Optimize Method*, as functions.
``docs/theory.md`` says what computes each numbered result; the steps of the proofs are in ``tests/calibration``.  Where
the paper has a misprint the corrected statement is implemented; ``docs/errata.md`` lists them with counter-examples.
"""

from .certificate import RiskCertificate, risk_certificate
from .display import CalibrationDisplay
from .empirical import EmpiricalCalibration, ExcessRisks, empirical_calibration, excess_risks
from .functions import (
    CalibrationFunction,
    LeastSquaresCalibration,
    PolyhedralCalibration,
    StronglyConvexCalibration,
    excess_spo_risk,
    radial_calibration_constant,
)
from .generalization import (
    Estimate,
    SampleComplexity,
    generalization_bound,
    rademacher_bound,
    rademacher_monte_carlo,
    spo_plus_range,
)
from .geometry import CertifiedFloat, Geometry, diameter, region_geometry, relative_width, strong_convexity
from .symmetry import SymmetryTest, symmetry_test

__all__ = [
    "CalibrationDisplay",
    "CalibrationFunction",
    "CertifiedFloat",
    "EmpiricalCalibration",
    "Estimate",
    "ExcessRisks",
    "Geometry",
    "LeastSquaresCalibration",
    "PolyhedralCalibration",
    "RiskCertificate",
    "SampleComplexity",
    "StronglyConvexCalibration",
    "SymmetryTest",
    "diameter",
    "empirical_calibration",
    "excess_risks",
    "excess_spo_risk",
    "generalization_bound",
    "rademacher_bound",
    "rademacher_monte_carlo",
    "radial_calibration_constant",
    "region_geometry",
    "relative_width",
    "risk_certificate",
    "spo_plus_range",
    "strong_convexity",
    "symmetry_test",
]
