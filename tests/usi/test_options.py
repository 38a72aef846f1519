import pytest

from keisei.usi.options import OptionError, Options, option_lines, options_from, with_option


@pytest.mark.parametrize(
    ("name", "value", "changed"),
    [
        ("USI_Ponder", "true", Options(ponder=True)),
        ("USI_Hash", "1", Options(hash_mb=1)),
        ("MultiPV", "600", Options(multipv=600)),
        ("Visits", "+5", Options(visits=5)),
        ("Policy", "true", Options(policy=True)),
        ("Temperature", "0.25", Options(temperature=0.25)),
        ("Threads", "2", Options(threads=2)),
        ("Batch", "16", Options(batch=16)),
        ("NetworkDelay", "0", Options(network_delay=0)),
        ("MaxMoves", "320", Options(max_moves=320)),
        ("EnteringKingRule", "try", Options(entering_king="try")),
        ("ResignValue", "7", Options(resign_value=7)),
    ],
)
def test_an_option_is_set(name: str, value: str, changed: Options) -> None:
    assert with_option(Options(), name, value) == changed == options_from({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("usi_ponder", "true"),
        ("", ""),
        ("USI_Ponder", "True"),
        ("USI_Ponder", None),
        ("USI_Hash", "0"),
        ("USI_Hash", "١"),
        ("USI_Hash", "9" * 5000),
        ("MultiPV", "1.0"),
        ("Temperature", "-0.1"),
        ("Temperature", "inf"),
        ("Temperature", "nan"),
        ("Temperature", "cold"),
        ("Temperature", "0" * 5000),
        ("EnteringKingRule", ""),
    ],
)
def test_a_bad_name_or_value_is_an_option_error(name: str, value: str | None) -> None:
    with pytest.raises(OptionError, match="expected") as error:
        with_option(Options(), name, value)
    assert len(str(error.value)) < 300


def test_every_setting_can_be_set_and_is_declared_with_its_default() -> None:
    lines = option_lines(Options())
    assert len(lines) == len(Options.__slots__)
    assert "option name Temperature type string default 0" in lines
    assert "option name Temperature type string default 0.5" in option_lines(Options(temperature=0.5))
