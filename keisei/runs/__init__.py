"""A run on disk: its directory and its checkpoints, and how they are found, loaded and exported."""
