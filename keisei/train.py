"""`python keisei/train.py --total-timesteps=2048`: same as `keisei train`."""

import sys

from keisei.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["train"]
    main()
