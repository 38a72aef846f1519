"""External USI engines: their processes, options and limits."""
