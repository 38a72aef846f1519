"""The network as a USI engine, for any shogi GUI: `protocol` is pure text, `engine` plays."""
