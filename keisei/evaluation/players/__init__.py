"""The players of a match, and how they are named on the command line."""
