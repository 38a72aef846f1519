"""AppConfig: all settings of a run, with defaults and allowed ranges, as one small model per room.

Plain data: no torch, no files. `keisei.utils.load_config` fills it from YAML and dotted overrides. Values are
checked on loading; `validated` checks them again after a field has been assigned to. A room's
`_contradictions` yields the values that do not go together, so that one error can name them all.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from keisei.config.config_errors import CONTRADICTION, ConfigError, Contradiction, problems
from keisei.config.fields import Like, kinds, rooms
from keisei.config.older_names import translated

Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Steps = Annotated[int, Field(ge=0)]
Schedule = Literal["constant", "linear", "cosine"]
Algorithm = Literal["ppo", "search"]
Numerics = Annotated[str, Like("native, native-avx2, float32, bfloat16+channels_last, auto+compile")]
Option = bool | int | float | str
Opponent = Literal[
    "random", "greedy", "material", "alphabeta-1", "alphabeta-2", "alphabeta-3", "alphabeta-4", "best"
]

OWN_NETWORK_VARIABLE = "KEISEI_OWN_NETWORK"  # names networks of one's own that checkpoints may ask for


class Room(BaseModel):
    """A section of the config; unknown keys and values out of range are errors."""

    model_config = ConfigDict(extra="forbid", validate_default=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _number(cls, value: Any, info: ValidationInfo) -> Any:
        """Reject a boolean where pydantic would read it as 0 or 1, and accept 3e6 as a whole number."""
        expected = kinds(cls.model_fields[str(info.field_name)].annotation)
        if isinstance(value, bool) and bool not in expected and expected & {int, float}:
            raise ValueError("expected a number")
        if (
            isinstance(value, str)
            and int in expected
            and re.fullmatch(r"[-+]?\d+(\.\d*)?[eE]\+?\d{1,2}", value)
        ):
            return float(value)
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        found = list(self._contradictions())
        if found:
            text = "; ".join(contradiction.message for contradiction in found)
            raise PydanticCustomError(CONTRADICTION, "{text}", {"text": text, "contradictions": found})
        return self

    def _contradictions(self) -> Iterator[Contradiction]:
        yield from ()


class EnvConfig(Room):
    """The games played in training."""

    max_moves: int = Field(256, ge=2, le=100_000, description="longer games are drawn")
    declaration: Literal["27", "24", "try", "off"] = Field("27", description="the impasse rule")
    random_plies: int = Field(0, ge=0, le=200, description="random moves at the start of a game")
    late_start_share: Fraction = Field(
        0.5, description="share of new games that start shortly before the end of a recent decisive game"
    )
    scattered_start_share: Fraction = Field(
        0.0, description="share of the other games that start with all pieces scattered, kings anywhere"
    )


def _plain(text: Any) -> Any:
    """Return the number or truth value that a text says, else what was given."""
    if not isinstance(text, str):
        return text
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[-+]?\d+", text):
        return int(text)
    number = re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text)  # not the word nan
    return float(text) if number else text


class ModelConfig(Room):
    """The network, as `model_factory` builds it."""

    name: (
        Literal["res_tower"]
        | Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"), Like("mypackage:Net")]
    ) = Field("res_tower", description="the architecture, or the import path of a network of your own")
    options: dict[str, Option] = Field({}, description="arguments for the constructor of your own network")
    blocks: int = Field(3, ge=0, le=100, description="residual blocks")
    channels: int = Field(32, ge=4, le=2048, description="width of the tower")
    norm_groups: int = Field(4, ge=1, description="groups in group normalisation; must divide channels")
    se_ratio: float = Field(0.0, ge=0, le=1, description="squeeze-and-excitation width / channels; 0 is off")
    policy_head: Literal["labels", "linear"] = Field(
        "labels", description="27 planes of 81 squares, or a linear layer to all 13,527 actions"
    )
    value_hidden: int = Field(64, ge=1, le=4096, description="width of the value head")
    piece_values: Literal["none", "learned", "textbook"] = Field(
        "textbook",
        description="the value sees the numbers of pieces, with weights that begin at 0 or as in textbooks",
    )

    @field_validator("options", mode="before")
    @classmethod
    def _values(cls, value: Any) -> Any:
        """Read numbers and true and false, which come from YAML as text."""
        return {key: _plain(one) for key, one in value.items()} if isinstance(value, Mapping) else value

    @property
    def is_own(self) -> bool:
        """Whether the network is the user's own, named by an import path."""
        return ":" in self.name

    def described(self) -> str:
        """Return the network in words: "3 blocks of 32 channels", or its import path."""
        return self.name if self.is_own else f"{self.blocks} blocks of {self.channels} channels"

    def _contradictions(self) -> Iterator[Contradiction]:
        if self.options and not self.is_own:
            yield Contradiction(
                ("options", "name"), f"options are for a network of your own, not {self.name}"
            )
        if self.channels % self.norm_groups:
            yield Contradiction(
                ("norm_groups", "channels"),
                f"norm_groups {self.norm_groups} must divide channels {self.channels}",
            )


class ParallelConfig(Room):
    """Self-play in worker processes."""

    enabled: bool | Literal["auto"] = Field(
        "auto", description="collect in worker processes; auto: on a CPU with two or more cores"
    )
    num_workers: Count | Literal["auto"] = Field("auto", description="processes; auto is one per core")
    episodes_per_worker: int = Field(32, ge=1, le=100_000, description="games each worker plays side by side")
    max_policy_lag: int = Field(
        0,
        ge=0,
        le=1000,
        description="updates allowed while a worker plays; 0: workers and learner take turns",
    )
    model_sync_interval: Count = Field(
        1,
        description="moves between broadcasts of the weights; 1 is after every update",
        validation_alias=AliasChoices("model_sync_interval", "sync_interval"),
    )
    worker_timeout: float = Field(
        30.0,
        ge=0.5,
        description="seconds of silence before a worker is replaced",
        validation_alias=AliasChoices("worker_timeout", "timeout_seconds"),
    )
    queue_maxsize: int = Field(
        4,
        ge=1,
        le=1000,
        description="segments a worker may have in flight",
        validation_alias=AliasChoices("queue_maxsize", "max_queue_size"),
    )
    use_shared_memory: bool = Field(True, description="send experience through shared memory, not the pipe")
    compression_enabled: bool = Field(False, description="send weights in half precision")


class RanksConfig(Room):
    """Learners on several machines, each with its own workers; torchrun sets all but the timeout."""

    address: Annotated[str, Like("10.0.0.1:29500")] | None = Field(
        None,
        pattern=r"^[^\s:]+:\d{1,5}$",
        description="host:port of rank 0, where ranks meet; null is one rank",
    )
    world_size: int = Field(1, ge=1, le=1024, description="number of ranks")
    rank: int = Field(0, ge=0, description="the number of this one; rank 0 has the run's directory")
    timeout: float = Field(
        300.0, ge=1, le=86_400, description="seconds to wait for another rank, evaluations of rank 0 included"
    )

    def _contradictions(self) -> Iterator[Contradiction]:
        if self.rank >= self.world_size:
            yield Contradiction(
                ("rank", "world_size"), f"rank {self.rank} must be below world_size {self.world_size}"
            )
        if self.world_size > 1 and self.address is None:
            yield Contradiction(
                ("world_size", "address"), f"world_size {self.world_size} needs an address where ranks meet"
            )
        if self.address is not None and int(self.address.rpartition(":")[2]) > 65_535:
            yield Contradiction(("address",), f"address {self.address} has a port above 65535")


class SearchConfig(Room):
    """Self-play that searches a part of its moves, and learning from it; for algorithm: search."""

    share: Fraction = Field(0.25, description="share of the moves that are searched; others are sampled")
    temperature: float = Field(1.0, gt=0, le=100, description="of the sampled moves; below 1: likelier moves")
    simulations: int = Field(16, ge=1, le=100_000, description="evaluations of a search, after its root's")
    candidates: int = Field(8, ge=1, le=64, description="moves that a search begins with")
    c_visit: float = Field(50.0, ge=0, le=1e6, description="a difference d in value is worth")
    c_scale: float = Field(0.5, ge=0, le=1e6, description="d * (c_visit + most visits) * c_scale in logits")
    window: int = Field(
        24_000, ge=1, le=2**26, description="the latest moves, from which minibatches are drawn"
    )
    reuse: float = Field(2.0, gt=0, le=1000, description="how often a move is learned from, on average")
    priority: Literal["none", "policy", "value"] = Field(
        "none", description="learn more often from moves that surprised the policy, or the value"
    )


class TrainingConfig(Room):
    """Collecting and learning; with the names of the PPO paper where it has them."""

    algorithm: Algorithm = Field(
        "search",
        description="learn from small searches at some of the moves, or from the outcomes of moves by PPO",
    )

    total_timesteps: int = Field(2_600_000, ge=1, le=10**15, description="moves to train on")
    max_minutes: float | None = Field(None, gt=0, description="stop after this many minutes; resumable")
    games: int = Field(64, ge=1, le=100_000, description="games played side by side, without workers")
    steps_per_epoch: int = Field(
        4096, ge=1, le=2**24, description="moves between updates, rounded up to the same number per game"
    )
    minibatch_size: int = Field(
        256, ge=2, le=2**24, description="positions per gradient step; the last may have fewer"
    )
    ppo_epochs: int = Field(1, ge=1, le=100, description="passes over the moves in an update")
    learning_rate: float = Field(1.5e-3, gt=0, le=1, description="Adam's learning rate, at the start")
    learning_rate_floor: Fraction = Field(0.1, description="share of the learning rate left at the end")
    entropy_coef: float = Field(0.01, ge=0, le=10, description="weight of the entropy bonus, at the start")
    schedule: Schedule = Field(
        "linear", description="how the learning rate and the entropy bonus fall over the run"
    )
    value_coef: float = Field(1.0, ge=0, le=10, description="weight of the value loss")
    gamma: float = Field(0.995, gt=0, le=1, description="discount per move")
    gae_lambda: Fraction = Field(0.95, description="lambda of generalised advantage estimation")
    clip_coef: float = Field(0.2, gt=0, lt=1, description="clip range of the probability ratio")
    value_clip: float | None = Field(None, gt=0, description="clip range of the value's change; null is off")
    normalize_advantages: bool = Field(True, description="per minibatch, to mean 0 and deviation 1")
    max_grad_norm: float = Field(4.0, gt=0, description="gradients are scaled down to this norm")
    target_kl: float | None = Field(None, gt=0, description="stop an update above this KL; null is never")
    learners: Count | Literal["auto"] = Field(
        "auto",
        description="processes that learn at the same time: the learner and workers; auto is as many as pay",
    )
    material_reward: float = Field(0.0, ge=0, le=1, description="reward per pawn's worth, at the start")
    length_reward: float = Field(
        0.5, ge=0, le=1, description="worth of a game of maximum length to the side that is far ahead"
    )
    search: SearchConfig = Field(default_factory=SearchConfig)
    parallel: ParallelConfig = Field(default_factory=ParallelConfig)
    ranks: RanksConfig = Field(default_factory=RanksConfig)

    def _contradictions(self) -> Iterator[Contradiction]:
        for name in ("target_kl", "value_clip"):
            if self.algorithm == "search" and getattr(self, name) is not None:
                yield Contradiction((name, "algorithm"), f"{name} is for algorithm ppo, not for search")


class EvaluationConfig(Room):
    """Matches during training, which leave its random streams untouched."""

    every: Steps = Field(250_000, description="training moves between evaluations; 0 is never")
    games: int = Field(40, ge=2, le=100_000, multiple_of=2, description="games against each opponent")
    final_games: int = Field(
        200, ge=0, le=100_000, multiple_of=2, description="games against each opponent at the end; 0 is none"
    )
    opponents: list[Opponent] = Field(
        ["random", "greedy", "alphabeta-1", "best"],
        description="the opponents; best is the best checkpoint so far",
    )
    seconds: float = Field(
        60,
        ge=0,
        le=86_400,
        description="time limit of an evaluation, raised in proportion for the last; 0 is none",
    )
    max_moves: int = Field(512, ge=2, le=100_000, description="longer games are drawn")

    def _contradictions(self) -> Iterator[Contradiction]:
        for name in sorted({name for name in self.opponents if self.opponents.count(name) > 1}):
            yield Contradiction(("opponents",), f"opponents has {name} more than once")


class RunConfig(Room):
    """Where a run lives, what it writes and what it runs on."""

    directory: str = Field("runs", min_length=1, description="the directory that holds the runs")
    name: str | None = Field(
        None, min_length=1, description="name of the run's directory; null is the date and time"
    )
    seed: int = Field(1, ge=0, lt=2**63, description="seed of everything random")
    device: (
        Literal["auto", "cpu", "mps", "cuda"] | Annotated[str, Field(pattern=r"^cuda:\d+$"), Like("cuda:0")]
    ) = Field("auto", description="what the network runs on")
    threads: int = Field(0, ge=0, le=1024, description="CPU threads; 0 is one per core")
    numerics: Numerics = Field(
        "auto",
        pattern=r"^(native(-(avx512|avx2|neon|portable))?|(auto|float32|bfloat16)(\+channels_last)?(\+compile)?)$",
        description="how the network is computed: native by our own kernels for the CPU, others by torch; "
        "auto takes the fastest, auto+compile tries torch.compile too, which takes a minute",
    )
    checkpoint_every: Steps = Field(250_000, description="moves between checkpoints; 0: only at the end")
    keep_checkpoints: Count = Field(
        3, description="keep this many of the latest, the best, and ten of the whole run"
    )
    keep_games: int = Field(
        0, ge=0, lt=2**63, description="keep every n-th training game in the run's games/; 0 is none"
    )
    console: Literal["auto", "rich", "plain", "off"] = Field("auto", description="auto is rich on a terminal")
    loggers: list[Literal["tensorboard", "wandb", "wandb-offline"]] = Field(
        ["tensorboard"], description="where metrics go besides metrics.jsonl and the console"
    )

    def _contradictions(self) -> Iterator[Contradiction]:
        if not self.directory.isprintable():
            yield Contradiction(("directory",), f"directory {self.directory!r} must be printable text")
        name = self.name or ""
        if not name.isprintable() or set(name) & set("/\\") or name in (".", ".."):
            yield Contradiction(("name",), f"name {self.name!r} must be the name of one directory")
        elif name.startswith((".", "-")):  # hidden, or taken for an option
            yield Contradiction(("name",), f"name {self.name!r} must not begin with a dot or a hyphen")
        for name in sorted({name for name in self.loggers if self.loggers.count(name) > 1}):
            yield Contradiction(("loggers",), f"loggers has {name} more than once")
        if {"wandb", "wandb-offline"} <= set(self.loggers):
            yield Contradiction(("loggers",), "loggers has wandb and wandb-offline, expected only one")


class AppConfig(Room):
    """All settings of a run."""

    env: EnvConfig = Field(default_factory=EnvConfig)
    model: ModelConfig = Field(default_factory=ModelConfig)
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    evaluation: EvaluationConfig = Field(default_factory=EvaluationConfig)
    run: RunConfig = Field(default_factory=RunConfig)

    @model_validator(mode="before")
    @classmethod
    def _from_older_names(cls, data: Any) -> Any:
        return translated(data) if isinstance(data, Mapping) else data


R = TypeVar("R", bound=Room)


def config_from(data: Mapping[str, Any]) -> AppConfig:
    """Return the config in nested data, such as a checkpoint's; ConfigError names all that is wrong."""
    try:
        return AppConfig.model_validate(data)
    except ValidationError as error:
        raise ConfigError(*problems(AppConfig, data)) from error


def validated(config: R) -> R:
    """Return an equal copy, checked again; a bad value assigned after loading raises ConfigError."""
    kind = type(config)
    data = config.model_dump(warnings=False)
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        path = next((path for path, room in rooms(AppConfig) if room is kind), None)
        if path is None:
            raise ConfigError(*problems(kind, data)) from error
        for name in reversed(path.split(".")):
            data = {name: data}
        raise ConfigError(*problems(AppConfig, data)) from error
