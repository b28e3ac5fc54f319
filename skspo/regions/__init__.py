"""Feasible regions of decisions."""

from ._rows import row_params
from .assignment import Assignment
from .balls import Ellipsoid, L1Ball, LqBall
from .base import Region, StrongConvexity
from .check import check_region
from .graphs import ShortestPath
from .image import LinearImage
from .integer import Knapsack, MixedInteger
from .level_sets import EntropySimplex, LogBarrierSimplex
from .markowitz import Markowitz
from .polyhedron import Polyhedron
from .product import Product
from .read import read_region
from .simplex import Box, Simplex, TopK
from .tours import TravellingSalesman
from .user import CvxpyRegion, OracleRegion

__all__ = [
    "Assignment",
    "Box",
    "CvxpyRegion",
    "Ellipsoid",
    "EntropySimplex",
    "Knapsack",
    "L1Ball",
    "LinearImage",
    "LogBarrierSimplex",
    "LqBall",
    "Markowitz",
    "MixedInteger",
    "OracleRegion",
    "Polyhedron",
    "Product",
    "Region",
    "ShortestPath",
    "Simplex",
    "StrongConvexity",
    "TopK",
    "TravellingSalesman",
    "check_region",
    "read_region",
    "row_params",
]
