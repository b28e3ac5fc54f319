"""Interior point for polyhedra, and for polyhedra with a quadratic constraint."""
