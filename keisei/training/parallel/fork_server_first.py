"""What the fork server imports first, so that it ends with the learner even while it still loads torch.

Nobody else is to import this: it does its work when it is imported.
"""

from keisei.training.parallel.parent_death import die_with_parent

die_with_parent()
