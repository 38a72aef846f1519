"""Learning, free of files, processes and console."""
