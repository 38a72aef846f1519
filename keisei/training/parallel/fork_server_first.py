"""Imported first by the fork server, so that it dies with the learner even while still loading torch.

Do not import this elsewhere: the import itself has the effect.
"""

from keisei.training.parallel.parent_death import die_with_parent

die_with_parent()
