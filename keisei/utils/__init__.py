"""Doors to what users look for here."""

from keisei.core.policy_output_mapper import PolicyOutputMapper

__all__ = ["PolicyOutputMapper"]
