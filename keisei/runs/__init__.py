"""What a run is on disk: its directory, its checkpoints, and how they are found, loaded and exported."""
