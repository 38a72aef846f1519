"""Learning, without files, processes or console."""
