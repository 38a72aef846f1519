"""Where the time of a training goes: phases, functions, stacks and memory of the learner and every worker."""
