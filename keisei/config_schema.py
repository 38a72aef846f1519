"""The settings under the name by which users import them; keisei.config.schema is the place."""

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
