"""config: show and check the settings of a run."""

from typing import Annotated

import typer

from keisei.config.fields import reference
from keisei.config.files import load_config, to_yaml
from keisei.config.schema import AppConfig


def config(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE|SETTING=VALUE",
            help="A YAML file, or default, ppo, gpu or tiny; then overrides.",
        ),
    ] = None,
    describe: Annotated[bool, typer.Option("--describe", help="Explain every setting, in tables.")] = False,
) -> None:
    """Check a config and print it in full, as YAML.

    keisei config tiny training.learning_rate=1e-3 run.name=first

    keisei config --describe
    """
    if describe:
        if arguments:
            raise typer.BadParameter(f"--describe takes no arguments, got {arguments[0]}")
        print(reference(AppConfig), end="")
    else:
        print(to_yaml(load_config(*_source_and_overrides(arguments or []))), end="")


def _source_and_overrides(arguments: list[str]) -> tuple[str | None, list[str]]:
    """Split the arguments: those with an equals sign are overrides, the other one is the source."""
    sources = [argument for argument in arguments if "=" not in argument]
    if len(sources) > 1:
        raise typer.BadParameter(f"two configs, {sources[0]} and {sources[1]}; an override is setting=value")
    return next(iter(sources), None), [argument for argument in arguments if "=" in argument]
