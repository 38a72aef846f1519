"""Learning, free of files, processes and console."""

import os

# Before torch is loaded, let its waiting threads spin for microseconds only; later this has no effect. By
# default they spin for milliseconds, and one other busy process on 2 cores makes training ten times slower.
# Measured on 2 cores: 5,000 turns cost nothing on a quiet machine, and half the speed beside a busy process;
# fewer slow down inference.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "5000")
