"""Write the list of all settings into docs/configuration.md: python scripts/write_settings.py

Run it after a change to keisei/config/schema.py; a test fails until then. The list is the last section.
"""

from pathlib import Path

from keisei.config.fields import reference
from keisei.config.schema import AppConfig

PAGE = Path(__file__).resolve().parents[1] / "docs" / "configuration.md"
HEADING = "\n## All settings\n\n"


def with_settings(page: str) -> str:
    """Return the page with its last section made anew from the schema."""
    text, heading, _ = page.partition(HEADING)
    if not heading:
        raise ValueError(f"the page has no section {HEADING.strip()!r}")
    return f"{text}{heading}{reference(AppConfig)}"


if __name__ == "__main__":
    PAGE.write_text(with_settings(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
