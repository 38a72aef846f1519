"""The public import path of the settings, which are defined in keisei.config.schema."""

from keisei.config.schema import (
    AppConfig,
    EnvConfig,
    EvaluationConfig,
    ModelConfig,
    ParallelConfig,
    RunConfig,
    TrainingConfig,
    validated,
)

__all__ = [
    "AppConfig",
    "EnvConfig",
    "EvaluationConfig",
    "ModelConfig",
    "ParallelConfig",
    "RunConfig",
    "TrainingConfig",
    "validated",
]
