"""Helpers that know nothing of regions, losses or models."""
