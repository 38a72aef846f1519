"""Matches between two players, their results on disk, and tournaments."""
