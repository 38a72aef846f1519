"""Your own training loop over worker processes: python examples/parallel_training_example.py --workers 2

Workers play, the agent learns, the workers get the new weights. ParallelManager does the rest: supervision,
transport and accounting.
"""

import argparse

from keisei.core.agents import agent_of
from keisei.core.experience_buffer import ExperienceBuffer
from keisei.training.parallel import ParallelManager
from keisei.utils import load_config


def main() -> None:
    """Train for a few updates and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--updates", type=int, default=10, help="updates (default 10)")
    parser.add_argument("--steps", type=int, default=2048, help="moves between two updates (default 2048)")
    arguments = parser.parse_args()

    config = load_config(
        "default",
        [
            "training.minibatch_size=256",
            f"training.steps_per_epoch={arguments.steps}",
            "training.parallel.enabled=true",
            f"training.parallel.num_workers={arguments.workers}",
        ],
    )
    training = config.training
    agent = agent_of(config)

    with ParallelManager(config, agent) as manager:
        for update in range(arguments.updates):
            played = manager.collect_experiences(arguments.steps)

            buffer = ExperienceBuffer(gamma=training.gamma, gae_lambda=training.gae_lambda)
            buffer.add_batch(played)
            # Workers compute a share of each gradient; between two minibatches dead ones are replaced.
            metrics = agent.learn(
                buffer,
                progress=update / arguments.updates,
                before_minibatch=manager.supervise,
                exchange=manager.exchange,
            )
            manager.synchronize_models()

            games = sum(len(one.results) for one in played)
            print(
                f"update {update + 1}: {len(buffer)} moves, {games} games ended, "
                f"loss {metrics['loss/total']:.4f}, entropy {metrics['policy/entropy']:.3f}"
            )
        print(manager.account())
        for worker in manager.workers:
            print(f"worker {worker.worker}: {worker.steps} moves, {worker.games} games, {worker.state}")


if __name__ == "__main__":  # the workers import this file too
    main()
