"""Texts for people in English and Japanese: which language is wanted, and how it says things. Never torch."""

from keisei.language.speaker import ENGLISH, JAPANESE, Speaker, padded, speaker_for

__all__ = ["ENGLISH", "JAPANESE", "Speaker", "padded", "speaker_for"]
