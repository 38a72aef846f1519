"""Parallel experience collection: worker processes that play, for one learner. README.md is the tour."""
