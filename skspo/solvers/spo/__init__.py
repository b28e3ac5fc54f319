"""Solvers of the SPO loss itself."""
