"""Random play with the shogi environments a Python user could pick instead of ours.

Every function plays the given number of uniformly random legal moves and returns a Turn with steps per
second. A step includes what an agent needs: observation planes, a dense mask of legal actions, a choice, the
move, the end-of-game check, and the restart. Imports, tables and compilation are not timed. One thread each.
Peers are optional and imported on use; cshogi is under the GPL and used for comparison only.
"""

import functools
import importlib
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contest import Stopwatch, Turn

CSHOGI_PLANES = 104  # 14 kinds of piece and up to 38 pieces in hand, for each side
CSHOGI_LABELS = 2187  # 27 directions and drops × 81 squares; envpool numbers them the same way
CSHOGI_MOVE = 0x7FFF  # the part of a move that determines its label: target, origin, promotion


@functools.cache
def cshogi_labels() -> tuple[list[int], list[int]]:
    """Return for each side the action of a move, indexed by the move's low 15 bits."""
    label_of = importlib.import_module("cshogi.dlshogi").make_move_label
    sides: tuple[list[int], list[int]] = ([0] * (CSHOGI_MOVE + 1), [0] * (CSHOGI_MOVE + 1))
    shared = list(range(CSHOGI_LABELS))  # one int object per label keeps the tables in the cache
    for turn, labels in enumerate(sides):
        for origin in range(81 + 7):  # a square, or past the board a kind of piece to drop
            for target in range(81):
                for promotion in range(2 if origin < 81 else 1):
                    if origin != target:
                        move = target | origin << 7 | promotion << 14
                        labels[move] = shared[label_of(move, turn)]
    return sides


def cshogi_loop(steps: int, max_moves: int, seed: int) -> Turn:
    """Play one game at a time in the fastest of several loops: cshogi's planes, a mask filled by table."""
    cshogi, np = importlib.import_module("cshogi"), importlib.import_module("numpy")
    board, choose, labels = cshogi.Board(), random.Random(seed).random, cshogi_labels()
    planes = np.zeros((CSHOGI_PLANES, 9, 9), np.float32)
    plane_bytes = planes.reshape(-1).view(np.uint8)  # np.fill is four times as fast on bytes as on floats
    write_planes = board.piece_planes, board.piece_planes_rotate  # as each side sees them; writes ones only
    mask, no_moves = bytearray(CSHOGI_LABELS), bytes(CSHOGI_LABELS)  # np.frombuffer(mask, bool) is the array
    first = board.zobrist_hash()
    seen, plies, played = {first: 1}, 0, 0
    watch = Stopwatch()
    while played < steps:
        turn = plies & 1
        plane_bytes.fill(0)
        write_planes[turn](planes)
        moves, side = [*board.legal_moves], labels[turn]
        mask[:] = no_moves
        for move in moves:
            mask[side[move & CSHOGI_MOVE]] = 1
        over = not moves
        if moves:
            board.push(moves[int(choose() * len(moves))])
            played, plies, position = played + 1, plies + 1, board.zobrist_hash()
            seen[position] = times = seen.get(position, 0) + 1
            if times == 4:  # is_draw() already reports the second, but knows whose perpetual check it was
                over = board.is_draw() != cshogi.NOT_REPETITION
            over = over or plies >= max_moves
        if over:
            board.reset()
            seen, plies = {first: 1}, 0
    return watch.turn(played)


def cshogi_dlshogi_loop(steps: int, max_moves: int, seed: int) -> Turn:
    """Play one game at a time the way dlshogi's readers do: its input features, its labels one by one."""
    cshogi, np = importlib.import_module("cshogi"), importlib.import_module("numpy")
    dlshogi = importlib.import_module("cshogi.dlshogi")
    board, choose = cshogi.Board(), random.Random(seed).random
    features = [
        np.zeros((planes, 9, 9), np.float32) for planes in (dlshogi.FEATURES1_NUM, dlshogi.FEATURES2_NUM)
    ]
    mask = np.zeros(CSHOGI_LABELS, np.bool_)
    plies, played = 0, 0
    watch = Stopwatch()
    while played < steps:
        dlshogi.make_input_features(board, *features)
        moves = list(board.legal_moves)
        mask.fill(False)
        mask[[dlshogi.make_move_label(move, board.turn) for move in moves]] = True
        if not moves or plies >= max_moves:
            board.reset()
            plies = 0
            continue
        board.push(moves[int(choose() * len(moves))])
        played, plies = played + 1, plies + 1
    return watch.turn(played)


def open_spiel_loop(steps: int, max_moves: int, seed: int) -> Turn:
    """Play one game at a time; its observer writes into one array, the mask comes from legal_actions()."""
    pyspiel = importlib.import_module("pyspiel")
    observation = importlib.import_module("open_spiel.python.observation")
    game, choose = pyspiel.load_game("shogi"), random.Random(seed).random
    observer, size = observation.make_observation(game), game.num_distinct_actions()
    mask, no_moves = bytearray(size), bytes(size)
    state, plies = game.new_initial_state(), 0
    watch = Stopwatch()
    for _ in range(steps):
        observer.set_from(state, plies & 1)
        actions = state.legal_actions()
        mask[:] = no_moves
        for action in actions:
            mask[action] = 1
        state.apply_action(actions[int(choose() * len(actions))])
        plies += 1
        if state.is_terminal() or plies >= max_moves:
            state, plies = game.new_initial_state(), 0
    return watch.turn(steps)


def envpool_loop(steps: int, _max_moves: int, seed: int, envs: int = 16) -> Turn:
    """Play a synchronous pool with one worker thread; games end at its own limit of 512 moves."""
    envpool, np = importlib.import_module("envpool"), importlib.import_module("numpy")
    pool = envpool.make("Shogi-v1", env_type="gymnasium", num_envs=envs, num_threads=1, seed=seed)
    choose, restarts = np.random.default_rng(seed), 0
    mask, rounds = pool.reset()[1]["legal_action_mask"], max(1, steps // envs)
    watch = Stopwatch()
    for _ in range(rounds):
        legal, counts = np.flatnonzero(mask), np.count_nonzero(mask, axis=1)
        picks = counts.cumsum() - counts + (choose.random(envs) * counts).astype(np.intp)
        _, _, terminated, truncated, info = pool.step((legal[picks] % mask.shape[1]).astype(np.int32))
        mask = info["legal_action_mask"]
        restarts += np.count_nonzero(terminated | truncated)  # their next step plays no move
    return watch.turn(float(rounds * envs - restarts))


@functools.cache
def pgx_play(envs: int, max_moves: int) -> tuple[Any, Any]:
    """Return compiled functions: fresh states from a seed, and a step with choice and restart."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("NPROC", "1")  # XLA's threads; read once, when jax starts
    jax, pgx = importlib.import_module("jax"), importlib.import_module("pgx")
    jnp, env = jax.numpy, pgx.make("shogi")

    def play(state: Any, fresh: Any, key: Any) -> tuple[Any, Any]:
        key, now = jax.random.split(key)
        legal = jnp.cumsum(state.legal_action_mask, axis=1, dtype=jnp.int32)
        picks = jax.random.randint(now, (envs,), 0, legal[:, -1])
        state = jax.vmap(env.step)(state, jnp.argmax(legal > picks[:, None], axis=1))
        over = state.terminated | state.truncated | (state._step_count >= max_moves)

        def restart(new: Any, old: Any) -> Any:
            return jnp.where(over.reshape((envs,) + (1,) * (old.ndim - 1)), new, old)

        return jax.tree.map(restart, fresh, state), key

    def fresh(seed: int) -> Any:
        return jax.vmap(env.init)(jax.random.split(jax.random.PRNGKey(seed), envs))

    return jax.jit(fresh), jax.jit(play)


def pgx_loop(steps: int, max_moves: int, seed: int, envs: int = 8) -> Turn:
    """Play a compiled batch on the CPU, where bigger ones are slower; at most 512 moves per game."""
    init, play = pgx_play(envs, max_moves)
    jax = importlib.import_module("jax")
    fresh, rounds = init(seed), max(1, steps // envs)
    state, key = jax.block_until_ready(play(fresh, fresh, jax.random.PRNGKey(seed)))  # compiles
    watch = Stopwatch()
    for _ in range(rounds):
        state, key = play(state, fresh, key)
        jax.block_until_ready(state)
    return watch.turn(rounds * envs)


@dataclass(frozen=True)
class Peer:
    """Somebody else's environment: its name in settings.KNOWN, how to run it, what its figure covers."""

    name: str
    play: Callable[[int, int, int], Turn]  # steps, max_moves, seed
    steps: int  # about a second's worth on one core
    output: str
    rules: str


PEERS: dict[str, Peer] = {
    "cshogi with dlshogi's features": Peer(
        "cshogi", cshogi_dlshogi_loop, 50_000,
        "119×9×9 float32, 2,187 actions",
        "mate and length; not asked about repetition and declarations",
    ),
    "cshogi, the fastest loop we found": Peer(
        "cshogi", cshogi_loop, 150_000,
        "104×9×9 float32, 2,187 actions",
        "mate, fourfold repetition with perpetual check, length; not asked about declarations",
    ),
    "OpenSpiel": Peer(
        "open_spiel", open_spiel_loop, 50_000,
        "45×9×9 float32, 13,689 actions",
        "mate, fourfold repetition with perpetual check, length, its own entering-king rules",
    ),
    "EnvPool": Peer(
        "envpool", envpool_loop, 2_000,
        "9×9×119 bool for each of the two players, 2,187 actions",
        "mate and its own limit of 512 moves; no repetition, no declaration",
    ),
    "pgx": Peer(
        "pgx", pgx_loop, 800,
        "9×9×119 bool, 2,187 actions",
        "mate and length, at most 512 moves; no repetition, no declaration",
    ),
}  # fmt: skip
