"""python bench/run.py [--quick] [--only env,rules]: all benchmarks, against every peer that is installed.

rules      perft, random play from Python, copies
env        steps of environments: ours, other shogi environments, and ours in other people's processes
collect    moves of self-play with the default network: serially, by workers, by peers
train      collecting and learning: serially, with workers, with max_policy_lag 1, by peers
transport  what it costs to get a move from a worker to the learner
recovery   a worker killed with SIGKILL: ours, to the bit; and what peers do
strength   score against a fixed opponent and time per move, with more and more search

Peers are optional: pip install --constraint constraints.txt --requirement bench/requirements-peers.txt, and
Debian's fairy-stockfish. A missing one is named in the report. Results: build/bench/bench.md, .json and .png.
"""

import collect
import command_line
import env
import recovery
import rules
import strength
import train
import transport

SUITES: dict[str, command_line.Suite] = {
    "rules": rules.contests,
    "env": env.contests,
    "collect": collect.contests,
    "train": train.contests,
    "transport": transport.contests,
    "recovery": recovery.contests,
    "strength": strength.contests,
}

if __name__ == "__main__":
    command_line.main(SUITES, __doc__)
