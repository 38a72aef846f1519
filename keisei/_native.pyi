"""Types of the native module, as defined in native/bindings*.cpp."""

from collections.abc import Callable, Sequence
from typing import final, overload

import numpy as np
import numpy.typing as npt

START_SFEN: str
PLANES: int
ACTIONS: int
PACKED_BYTES: int
MAX_LEGAL_ACTIONS: int

_Bool = npt.NDArray[np.bool_]
_Float = npt.NDArray[np.float32]
_Double = npt.NDArray[np.float64]
_Int = npt.NDArray[np.int32]
_Bytes = npt.NDArray[np.uint8]

class NotationError(ValueError): ...
class RulesError(ValueError): ...

@final
class Move:
    @staticmethod
    def from_usi(text: str) -> Move: ...
    @property
    def from_square(self) -> str | None: ...
    @property
    def to_square(self) -> str: ...
    @property
    def promotes(self) -> bool: ...
    @property
    def dropped(self) -> str | None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __getstate__(self) -> str: ...
    def __setstate__(self, state: str) -> None: ...

class Game:
    @overload
    def __init__(
        self,
        sfen: str | None = None,
        *,
        max_moves: int | None = 512,
        declaration: str = "27",
        kings: str = "both",
    ) -> None: ...
    @overload
    def __init__(self, other: Game) -> None: ...
    def legal_moves(self) -> list[Move]: ...
    def push(self, move: Move | str) -> None: ...
    def pop(self) -> Move: ...
    def is_check(self) -> bool: ...
    def can_declare(self) -> bool: ...
    def declare(self) -> None: ...
    def resign(self) -> None: ...
    def sfen(self) -> str: ...
    def piece_at(self, square: str) -> str | None: ...
    def hand(self, color: int) -> dict[str, int]: ...
    def computed_key(self) -> int: ...
    @property
    def start_sfen(self) -> str: ...
    @property
    def ply(self) -> int: ...
    @property
    def max_moves(self) -> int | None: ...
    @property
    def declaration(self) -> str: ...
    @property
    def kings(self) -> str: ...
    @property
    def history(self) -> list[Move]: ...
    @property
    def earlier_occurrences(self) -> int: ...
    @property
    def key(self) -> int: ...
    @property
    def _turn(self) -> int: ...
    def _outcome(self) -> tuple[int | None, str] | None: ...

@overload
def perft(sfen: str, depth: int, write_last: bool = False, *, kings: str = "both") -> int: ...
@overload
def perft(game: Game, depth: int) -> int: ...
def action_of(move: Move | str, turn: int) -> int: ...
def move_of(action: int, turn: int) -> Move: ...
def pack_games(games: list[Game], out: _Bytes) -> None: ...
def pack_sfens(sfens: list[str], max_moves: int | None, out: _Bytes) -> None: ...
def unpack_sfens(packed: _Bytes, threads: int) -> list[str]: ...
def encode_planes(packed: _Bytes, out: _Float, threads: int) -> None: ...
def legal_offsets(packed: _Bytes, offsets: _Int, threads: int) -> None: ...
def legal_actions(packed: _Bytes, offsets: _Int, actions: _Int, threads: int) -> None: ...
def legal_mask(packed: _Bytes, out: _Bool, threads: int) -> None: ...
def alpha_beta(
    games: Sequence[Game], depth: int, seeds: Sequence[int], threads: int = 1, *, quiet_plies: int = 6
) -> list[tuple[Move, int]]: ...
def material_moves(games: Sequence[Game], seeds: Sequence[int]) -> list[Move]: ...

class VectorGames:
    @overload
    def __init__(
        self,
        count: int,
        *,
        threads: int,
        seed: int,
        max_moves: int | None,
        declaration: str,
        starts: list[str] | None,
        random_plies: int,
        scattered_share: float,
        first_number: int,
        stride: int | None,
    ) -> None: ...
    @overload
    def __init__(self, saved: bytes, *, threads: int) -> None: ...
    def __len__(self) -> int: ...
    def _step(
        self,
        chosen: _Int,
        rewards: _Float | None,
        ended: _Bool | None,
        packed: _Bytes | None,
        planes: _Float | None,
        offsets: _Int | None,
        actions: _Int | None,
        mask: _Bool | None,
    ) -> list[tuple[int, int, tuple[int | None, str], int, bool, str, list[Move], bytes]]: ...
    def _observe(
        self,
        packed: _Bytes | None,
        planes: _Float | None,
        offsets: _Int | None,
        actions: _Int | None,
        mask: _Bool | None,
    ) -> None: ...
    def _restart(self, seed: int, first_number: int) -> None: ...
    def _copy_game(self, slot: int) -> Game: ...
    def _set_late_starts(self, sfens: list[str], share: float) -> None: ...
    def save(self) -> bytes: ...
    @property
    def numbers(self) -> list[int]: ...
    @property
    def threads(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def max_moves(self) -> int | None: ...
    @property
    def declaration(self) -> str: ...

class SearchTrees:
    def __init__(
        self,
        games: list[Game],
        *,
        c_puct: float,
        fpu: float,
        leaves: int,
        max_nodes: int,
        repetition_draws: bool,
        threads: int,
        candidates: int,
        planned_visits: int,
        c_visit: float,
        c_scale: float,
    ) -> None: ...
    def __len__(self) -> int: ...
    def _select(self, visits: int, planes: _Float, offsets: _Int, actions: _Int) -> int: ...
    def _expand(self, priors: _Float, values: _Float) -> None: ...
    def _result(
        self, index: int, multipv: int
    ) -> tuple[list[tuple[Move, int, float, float, int, list[Move]]], int, int]: ...
    def _advance(self, index: int, moves: list[Move]) -> bool: ...
    def _answered(self) -> bool: ...
    def _finished(self, visits: int) -> bool: ...

class SelfPlaySearch:
    def __init__(
        self,
        games: int,
        *,
        share: float,
        temperature: float,
        simulations: int,
        candidates: int,
        c_visit: float,
        c_scale: float,
        c_puct: float,
        fpu: float,
        length_reward: float,
        threads: int,
    ) -> None: ...
    def __len__(self) -> int: ...
    def _begin(self, games: VectorGames) -> None: ...
    def _select(self, planes: _Float, offsets: _Int, actions: _Int) -> int: ...
    def _expand(self, priors: _Float, values: _Float) -> None: ...
    def _decide(
        self,
        games: VectorGames,
        actions: _Int,
        log_probs: _Float,
        values: _Float,
        surprise: _Float,
        tried: npt.NDArray[np.int16],
        gains: _Float,
    ) -> None: ...

def find_mate(
    game: Game, max_nodes: int, seconds: float | None, should_stop: Callable[[], object] | None = None
) -> tuple[str, list[Move]]: ...

class Tower:
    def __init__(
        self,
        *,
        blocks: int,
        channels: int,
        groups: int,
        excitation: int,
        value_hidden: int,
        pieces: bool,
        linear_head: bool,
        kernels: str,
        threads: int,
    ) -> None: ...
    def _load(self, weights: _Float, learning: bool) -> None: ...
    def _evaluate(
        self, planes: _Float, offsets: _Int, moves: _Int, logits: _Float, values: _Float, kept: _Float | None
    ) -> None: ...
    def _gradients(
        self,
        planes: _Float,
        offsets: _Int,
        moves: _Int,
        kept: _Float,
        d_logits: _Float,
        d_values: _Float,
        d_weights: _Float,
    ) -> None: ...
    def _memory_of(self, positions: int) -> int: ...
    @property
    def parameters(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def kernels(self) -> str: ...

def tower_kernels() -> list[str]: ...
def move_probabilities(offsets: _Int, logits: _Float, kernels: str, out: _Float) -> None: ...
def choose_moves(
    offsets: _Int,
    logits: _Float,
    chances: _Double,
    temperature: float,
    kernels: str,
    columns: _Int,
    log_probs: _Float,
) -> None: ...
def ppo_gradients(
    *,
    offsets: _Int,
    logits: _Float,
    values: _Float,
    columns: _Int,
    log_probs: _Float,
    old_values: _Float,
    advantages: _Float,
    returns: _Float,
    minibatch: int,
    clip: float,
    value_clip: float,
    value_coef: float,
    entropy_coef: float,
    kernels: str,
    d_logits: _Float,
    d_values: _Float,
) -> tuple[float, float, float, float, float]: ...
def search_gradients(
    *,
    offsets: _Int,
    logits: _Float,
    values: _Float,
    legal: _Int,
    tried: npt.NDArray[np.int16],
    gains: _Float,
    returns: _Float,
    weights: _Float,
    minibatch: int,
    targets: int,
    value_coef: float,
    entropy_coef: float,
    kernels: str,
    d_logits: _Float,
    d_values: _Float,
) -> tuple[float, float, float, float, float]: ...
