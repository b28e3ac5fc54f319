"""Helpers that do not depend on regions, losses or models."""
