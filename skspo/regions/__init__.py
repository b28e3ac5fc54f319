"""Feasible regions: where decisions live."""

from .base import CertifiedFloat, Region, StrongConvexity, check_region
from .simplex import Box, Simplex, TopK

__all__ = ["Box", "CertifiedFloat", "Region", "Simplex", "StrongConvexity", "TopK", "check_region"]
