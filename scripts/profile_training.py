"""Profile a training: python scripts/profile_training.py --mode parallel --workers 2 --timesteps 40960

The same as `keisei profile`; --help lists the options, docs/profiling.md explains the report.
"""

import sys

from keisei.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["profile"]
    main()
