"""Entry points that users look for here."""

from keisei.config.files import load_config
from keisei.core.policy_output_mapper import PolicyOutputMapper

__all__ = ["PolicyOutputMapper", "load_config"]
