"""Training: the loop, and the files that a run leaves behind."""
