"""Learning, without files, processes or console: the policy's numbers so far."""
