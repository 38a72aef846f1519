"""Everyone who can play a match, and how a player is named on the command line."""
