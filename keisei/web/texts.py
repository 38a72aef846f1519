"""All texts of the pages in both languages: each view's own, and how games end, from keisei.language."""

from collections.abc import Mapping
from types import MappingProxyType

from keisei.language.speaker import CODES
from keisei.language.texts import TEXTS as SPOKEN
from keisei.shogi import Reason
from keisei.web import texts_games, texts_live, texts_play, texts_shell

TEXTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        **{str(reason): SPOKEN[str(reason)] for reason in Reason},
        **texts_shell.TEXTS,
        **texts_live.TEXTS,
        **texts_games.TEXTS,
        **texts_play.TEXTS,
    }
)


def texts_in(code: str) -> dict[str, str]:
    """Return every text in one language."""
    number = CODES.index(code)
    return {key: both[number] for key, both in TEXTS.items()}
