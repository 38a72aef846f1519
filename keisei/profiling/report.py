"""The report of a profile: Markdown for people, and a picture of phases and memory."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from keisei.profiling.findings import PHASES, compared, in_words
from keisei.profiling.measurements import Profile

_COLOURS = {
    "env": "#e07a5f",
    "inference": "#3d5a80",
    "sampling": "#81b29a",
    "transport": "#f2cc8f",
    "collect": "#b8c0c8",
    "encode": "#c77dff",
    "update": "#1b263b",
    "learning": "#415a77",
    "exchange": "#d4a373",
    "synchronize": "#ffb703",
    "evaluation": "#8d99ae",
    "checkpoint": "#9c6644",
    "wait": "#edf0f2",
    "other": "#6c757d",
}


def markdown(profile: Profile, against: Profile | None, files: Mapping[str, str]) -> str:
    """Return the report; files: the name of each file beside it and what it is."""
    parts = [
        f"# Where the time goes: {profile.mode}"
        + (f", {profile.workers} workers" if profile.workers else "")
        + f", {profile.moves_per_second:,.0f} moves/s",
        "\n".join(f"- {line}" for line in in_words(profile)),
    ]
    if against is not None:
        when = against.provenance.get("time", "an earlier time")
        parts += [
            f"## Against the profile of {when}",
            "\n".join(f"- {line}" for line in compared(against, profile)),
        ]
    parts += [
        "## Wall time of the run",
        _timeline_table(profile),
        "## Each process",
        "Wall and CPU seconds. More CPU than wall seconds is several threads; `wait` is time without work.",
        _process_table(profile),
    ]
    if profile.memory:
        parts += ["## Memory", _memory_table(profile)]
    for process, functions in profile.functions.items():
        table = _table(
            ("own s", "with callees s", "calls", "function"),
            [
                (f"{row.own_seconds:.2f}", f"{row.total_seconds:.2f}", f"{row.calls:,}", f"`{row.name}`")
                for row in functions
            ],
        )
        parts += [f"## Functions: {process}", "By cProfile, which slows down Python calls.", table]
    parts += ["## How it was measured", _how(profile)]
    if files:
        parts += [
            "## Files",
            _table(("file", "what it is"), [(f"`{name}`", what) for name, what in files.items()]),
        ]
    return "\n\n".join(parts) + "\n"


def _timeline_table(profile: Profile) -> str:
    everything = sum(profile.timeline.values())
    rows = [
        (
            phase,
            f"{seconds:.2f}",
            f"{seconds / everything:.1%}",
            f"{profile.microseconds(phase):,.1f}",
            f"×{everything / (everything - seconds):.2f}" if seconds < everything else "–",
            PHASES.get(phase, ("",))[0],
        )
        for phase, seconds in profile.timeline.items()
    ]
    return _table(("phase", "s", "share", "µs a move", "without it", "what it is"), rows)


def _process_table(profile: Profile) -> str:
    phases = list(dict.fromkeys(phase for process in profile.processes for phase in process.wall))
    phases.sort(key=lambda phase: list(_COLOURS).index(phase) if phase in _COLOURS else len(_COLOURS))
    rows = []
    for process in profile.processes:
        for kind, seconds in (("wall", process.wall), ("CPU", process.cpu)):
            if seconds:
                figures = [f"{seconds[phase]:.2f}" if phase in seconds else "" for phase in phases]
                rows.append((process.name, kind, *figures, f"{sum(seconds.values()):.2f}"))
    return _table(("process", "", *phases, "all"), rows)


def _memory_table(profile: Profile) -> str:
    rows = [
        (memory.name, *(f"{size / 1e6:,.0f} MB" for size in (sizes[0], max(sizes), sizes[-1])))
        for memory in profile.memory
        if (sizes := [size for _, size in memory.samples])
    ]
    return _table(("process", "first", "peak", "last"), rows)


def _how(profile: Profile) -> str:
    origin = profile.provenance
    git = origin.get("git") or {}
    commit = f"{git['commit'][:12]}{', changed' if git['dirty'] else ''}" if git else "unknown"
    lines = [
        f"`{' '.join(origin['command'])}`",
        f"{profile.moves:,} moves in {profile.updates} update{'' if profile.updates == 1 else 's'}, "
        f"{profile.seconds:.1f} s"
        + (f"; start-up ({profile.start_seconds:.1f} s) is left out." if profile.start_seconds else ".")
        + (" So is the first update." if profile.skipped else ""),
        f"{profile.network}; {profile.numerics}.",
        f"{origin.get('cpu', 'unknown CPU')}, {profile.cores} cores, load {origin.get('load', '?')} before; "
        f"{origin['platform']}; commit {commit}; {origin['time']}.",
        *(
            f"The pass for {name.replace('_', ' ')} ran at ×{speed / profile.moves_per_second:.2f} of this."
            for name, speed in profile.speeds.items()
            if name != "phases" and "evaluation" not in profile.timeline  # which only this pass has
        ),
        *profile.notes,
    ]
    return "\n".join(f"- {line}" for line in lines)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; columns whose cells are figures are aligned right."""
    figures = [
        all(row[i][:1].isdigit() or row[i][:1] in ("", "×", "–") for row in rows) and bool(rows)
        for i in range(len(head))
    ]
    lines = [head, ["---:" if right else "---" for right in figures], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(profile: Profile) -> Figure:
    """Draw the phases of each process, and memory over time."""
    rows = [("run", profile.timeline)]
    rows += [(process.name, process.wall) for process in profile.processes if process.wall]
    height = 1.6 + 0.45 * len(rows)
    figure = Figure(figsize=(8, height + (2.6 if profile.memory else 0)), layout="constrained", dpi=150)
    ratios = [height, 2.6] if profile.memory else [height]
    axes = figure.subplots(len(ratios), 1, squeeze=False, gridspec_kw={"height_ratios": ratios})[:, 0]
    shown: dict[str, Patch] = {}
    for number, (_, seconds) in enumerate(rows):
        left = 0.0
        for phase in sorted(seconds, key=lambda one: list(_COLOURS).index(one) if one in _COLOURS else 99):
            bars = axes[0].barh(
                number, seconds[phase], left=left, color=_COLOURS.get(phase, "#999999"), edgecolor="white"
            )
            shown.setdefault(phase, bars.patches[0])
            left += seconds[phase]
    axes[0].set_yticks(range(len(rows)), [name for name, _ in rows])
    axes[0].invert_yaxis()
    axes[0].set(xlabel="wall seconds", title=f"{profile.mode}: {profile.moves_per_second:,.0f} moves/s")
    axes[0].spines[["top", "right"]].set_visible(False)
    figure.legend(list(shown.values()), list(shown), loc="outside upper center", ncols=6, frameon=False)
    if profile.memory:
        for memory in profile.memory:
            axes[1].plot(
                [seconds for seconds, _ in memory.samples],
                [size / 1e6 for _, size in memory.samples],
                label=memory.name,
            )
        axes[1].set(xlabel="seconds since the start", ylabel="memory, MB", ylim=(0, None))
        axes[1].spines[["top", "right"]].set_visible(False)
        axes[1].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure
