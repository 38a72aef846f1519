"""A profile in words: the bottleneck, what removing it would give, what changed, and what to try."""

from collections.abc import Iterator
from dataclasses import dataclass

from keisei.profiling.measurements import Profile

_IDLE = 0.6  # share of busy cores below which more processes may help: assumption, not studied
_NOISE = 0.05  # a phase that changed by less is called the same: two runs differ by that much

# What a phase does, and what to try if it is the bottleneck.
PHASES = {
    "env": (
        "rules: moves, legal moves, planes, ends of games",
        "this is native code already; check with the flame graph which part of it grows",
    ),
    "inference": (
        "the network chooses moves",
        "a smaller network (model.blocks, model.channels), more games side by side "
        "(training.parallel.episodes_per_worker or training.games), a faster format (keisei doctor), a GPU",
    ),
    "sampling": (
        "a move is drawn from the legal ones",
        "more games side by side, so that each call does more",
    ),
    "transport": (
        "weights down, messages and segments up",
        "longer segments (training.steps_per_epoch), use_shared_memory: true, fewer workers",
    ),
    "collect": (
        "hand-over, and waiting for the slowest worker",
        "longer segments (training.steps_per_epoch), no more workers than cores, "
        "training.parallel.max_policy_lag: 1 on a machine with a GPU",
    ),
    "encode": (
        "advantages, and packed positions into planes and legal moves for learning",
        "more threads (run.threads), learn less often from a move (training.ppo_epochs, "
        "training.search.reuse)",
    ),
    "update": (
        "forward, backward and optimiser",
        "a smaller network (model.blocks, model.channels), learn less often from a "
        "move (training.ppo_epochs, training.search.reuse), larger "
        "minibatches (training.minibatch_size) on many cores, all cores (run.threads: 0), a faster format "
        "(keisei doctor), a GPU; --kernels shows which of torch's kernels take the time",
    ),
    "exchange": (
        "gradient steps to the workers or other ranks, and the sum of their gradients",
        "fewer learners (training.learners) or larger minibatches (training.minibatch_size)",
    ),
    "wait": (
        "the learner has computed its share of a minibatch, and a worker not yet",
        "no other programs beside, fewer learners (training.learners), larger minibatches",
    ),
    "learning": (
        "workers' shares of the minibatches",
        "as for update, of which it is the workers' part",
    ),
    "synchronize": (
        "new weights published to the workers",
        "training.parallel.model_sync_interval, or compression_enabled",
    ),
    "evaluation": ("matches", "fewer games (evaluation.games) or rarer ones (evaluation.every)"),
    "checkpoint": ("state written to disk", "rarer checkpoints (run.checkpoint_every), a faster disk"),
    "other": ("bookkeeping between the phases", "the functions below show what it is"),
}


@dataclass(frozen=True)
class Bottleneck:
    """The longest phase of a run. share: of the wall time. limit: the speed-up if it took no time."""

    phase: str
    share: float

    @property
    def limit(self) -> float:
        """How many times as fast the run would be at most without it (Amdahl)."""
        return 1 / (1 - self.share) if self.share < 1 else float("inf")

    @property
    def halved(self) -> float:
        """How many times as fast the run would be if it took half the time."""
        return 1 / (1 - self.share / 2)


def bottleneck(profile: Profile) -> Bottleneck:
    """Return the phase that takes the most wall time."""
    phase, seconds = max(profile.timeline.items(), key=lambda item: item[1])
    return Bottleneck(phase, seconds / sum(profile.timeline.values()))


def in_words(profile: Profile) -> Iterator[str]:
    """Yield the findings, a sentence or two each, the most important first."""
    found = bottleneck(profile)
    what, advice = PHASES.get(found.phase, ("a phase of its own", "see the functions below"))
    per_move = profile.seconds / profile.moves * 1e6
    yield (
        f"The bottleneck is **{found.phase}** ({what}): {found.share:.0%} of the time, "
        f"{profile.microseconds(found.phase):,.0f} µs of the {per_move:,.0f} µs that a move takes. "
        f"Without it training would be at most ×{found.limit:.2f} as fast; at half its cost, "
        f"×{found.halved:.2f}."
    )
    yield f"To try: {advice}."
    if profile.cpu_seconds:
        busy = profile.cpu_seconds / (profile.seconds * profile.cores)
        yield f"The {profile.cores} cores were {min(busy, 1):.0%} busy with this run" + (
            "; there is room for more workers or threads, unless other programs use them."
            if busy < _IDLE
            else "."
        )
    network = sum(profile.timeline.get(phase, 0.0) for phase in ("inference", "update"))
    rules = sum(profile.timeline.get(phase, 0.0) for phase in ("env", "encode"))
    everything = sum(profile.timeline.values())
    yield (
        f"The network (inference and update) takes {network / everything:.0%} of the time; rules, legal "
        f"moves and encoding together (env and encode) {rules / everything:.0%}."
    )


def compared(old: Profile, new: Profile) -> Iterator[str]:
    """Yield how a profile differs from an earlier one, in words."""
    speed = new.moves_per_second / old.moves_per_second
    yield (
        f"{new.moves_per_second:,.0f} moves/s, earlier {old.moves_per_second:,.0f}: ×{speed:.2f}"
        f"{' (the same within the noise of two runs)' if abs(speed - 1) < _NOISE else ''}."
    )
    for phase in dict.fromkeys([*new.timeline, *old.timeline]):
        before, after = old.microseconds(phase), new.microseconds(phase)
        part = max(before, after) / (old.seconds / old.moves * 1e6)
        if part < 0.01:
            continue
        change = after / before if before else float("inf")
        verdict = "the same" if abs(change - 1) < _NOISE else "faster" if change < 1 else "slower"
        yield f"{phase}: {before:,.1f} → {after:,.1f} µs a move, ×{change:.2f}, {verdict}."
    was, now = bottleneck(old), bottleneck(new)
    if was.phase != now.phase:
        yield f"The bottleneck was {was.phase} ({was.share:.0%}), now it is {now.phase} ({now.share:.0%})."
    else:
        yield f"The bottleneck is still {now.phase}: {was.share:.0%} → {now.share:.0%} of the time."
    for what, earlier, today in (
        ("mode", f"{old.mode}, {old.workers} workers", f"{new.mode}, {new.workers} workers"),
        ("network", old.network, new.network),
        ("formats", _formats(old, new), _formats(new, old)),
        ("machine", _machine(old), _machine(new)),
    ):
        if earlier != today:
            yield f"Not the same {what}: earlier {earlier}, now {today}; times compare only roughly."


def _formats(profile: Profile, other: Profile) -> str:
    """Return a profile's numeric formats, or nothing where either profile does not know what was chosen."""
    known = all(" (" in one.numerics for one in (profile, other))
    return profile.numerics.partition(" (")[0] if known else ""


def _machine(profile: Profile) -> str:
    return f"{profile.provenance.get('cpu', 'unknown CPU')}, {profile.cores} cores"
