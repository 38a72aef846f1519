"""USI engines of other programs: their processes, options and limits."""
