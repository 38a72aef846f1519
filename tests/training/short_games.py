"""Shared by the tests of kept and watched games: settings with which games of every kind end soon."""

GAMES_END_SOON = [
    "training.parallel.enabled=false",
    "training.total_timesteps=1536",
    "training.steps_per_epoch=256",
    "training.minibatch_size=64",
    "training.games=16",
    "env.random_plies=140",
    "env.max_moves=170",
    "env.late_start_share=0.5",
    "env.scattered_start_share=0.3",
    "evaluation.every=0",
    "evaluation.final_games=0",
    "run.checkpoint_every=256",
    "run.keep_checkpoints=100",
    "run.console=off",
    "run.loggers=[]",
    "run.threads=1",
]
WORKERS = [
    "training.parallel.enabled=true",
    "training.parallel.num_workers=2",
    "training.parallel.episodes_per_worker=8",
]
