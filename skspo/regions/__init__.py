"""Feasible regions: where decisions live."""

from .balls import Ellipsoid, L1Ball, LqBall
from .base import CertifiedFloat, Region, StrongConvexity, check_region
from .graphs import Assignment, ShortestPath
from .integer import Knapsack, MixedInteger
from .level_sets import EntropySimplex, LogBarrierSimplex
from .modelled import CvxpyRegion, Markowitz, OracleRegion
from .polyhedron import Polyhedron
from .rows import row_params
from .simplex import Box, Simplex, TopK

__all__ = [
    "Assignment",
    "Box",
    "CertifiedFloat",
    "CvxpyRegion",
    "Ellipsoid",
    "EntropySimplex",
    "Knapsack",
    "L1Ball",
    "LogBarrierSimplex",
    "LqBall",
    "Markowitz",
    "MixedInteger",
    "OracleRegion",
    "Polyhedron",
    "Region",
    "ShortestPath",
    "Simplex",
    "StrongConvexity",
    "TopK",
    "check_region",
    "row_params",
]
