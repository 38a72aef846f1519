"""The loop, its files and its console."""
