"""Proximal bundle method."""
