"""The web page of Keisei: runs as they learn, their games, and a board to play at. Needs the extra `web`."""
