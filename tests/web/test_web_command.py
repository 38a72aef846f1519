"""`keisei web` on the command line: which runs, which port, which language, and mistakes in one line."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from made_runs import made_run
from web_server import KEISEI, PATIENCE, free_port, web

from keisei.cli.app import load_command
from keisei.web.address import PORT, is_loopback, listen


def keisei_web(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [KEISEI, "web", *arguments], cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def test_it_finds_runs_by_itself_or_shows_those_named(tmp_path: Path) -> None:
    first, other = made_run(tmp_path / "runs" / "first"), made_run(tmp_path / "elsewhere" / "other")
    for arguments, names in (
        ((), ["first"]),
        (("--directory", "elsewhere"), ["other"]),
        (("first",), ["first"]),
        ((str(first), str(other)), ["first", "other"]),
        (("latest",), ["first"]),
    ):
        with web(tmp_path, *arguments) as server:
            assert server.address == f"http://127.0.0.1:{server.port}/"
            assert sorted(run["name"] for run in server.get("/api/site")["runs"]) == names
            assert server.process.poll() is None


def test_a_run_that_begins_later_appears(tmp_path: Path) -> None:
    with web(tmp_path) as server:
        assert server.get("/api/site")["runs"] == []
        assert server.player("shipped")
        made_run(tmp_path / "runs" / "later")
        assert [run["name"] for run in server.get("/api/site")["runs"]] == ["later"]


def test_the_help_says_that_browsers_choose_the_language() -> None:
    defaults = {option.name: option.show_default for option in load_command("web").params}
    assert defaults["lang"] == "as each browser says"  # not the locale, as in the terminal


def test_the_language_of_the_command_line_is_told(tmp_path: Path) -> None:
    with web(tmp_path) as server:
        assert server.get("/api/site")["lang"] is None
        assert server.get("/api/texts?lang=ja")["resignation"] == "投了"
        assert server.get("/api/texts?lang=de", 400)["error"] == "lang: expected en or ja"
    with web(tmp_path, "--lang", "ja") as server:
        assert server.get("/api/site")["lang"] == "ja"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nowhere",), "no run at nowhere: expected a run's path, or its name in runs"),
        (("--lang", "de"), "--lang is de, expected en or ja"),
        (("--port", "0"), "--port is 0, expected at least 1"),
        (("--token", "short"), "the token must have at least 12 characters, without spaces and quotes"),
        (
            ("--token", "with a space in it"),
            "the token must have at least 12 characters, without spaces and quotes",
        ),
        (
            ("--host", "192.0.2.1"),
            "cannot listen at ports 8765 to 8784 of 192.0.2.1: Cannot assign requested address",
        ),
        (("--host", "no such host"), "cannot listen at ports 8765 to 8784 of no such host: "),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = keisei_web(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"keisei: {says}")


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = keisei_web("--port", str(port), cwd=tmp_path)
    assert done.stderr == f"keisei: cannot listen at port {port} of 127.0.0.1: Address already in use\n"


def test_without_a_port_the_next_free_one_is_taken() -> None:
    taken: list[socket.socket] = []
    try:
        taken += [listen("127.0.0.1", None) for _ in range(3)]
        ports = [one.getsockname()[1] for one in taken]
        assert ports == sorted(ports)
        assert ports[0] >= PORT
        assert len(set(ports)) == 3
    finally:
        for one in taken:
            one.close()


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("example.org", False),
    ],
)
def test_loopback_is_told_from_other_hosts(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_one_line_says_what_to_install(missing: str, tmp_path: Path) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['keisei', 'web']\n"
        "from keisei.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"keisei: the page needs {missing}, which is not installed: "
        "pip install '.[web]' in Keisei's source directory\n"
    )


def test_it_opens_a_browser_if_asked(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n', encoding="utf-8")
    browser.chmod(0o755)
    port = free_port()
    environment = {**os.environ, "BROWSER": f"{browser} %s"}
    command = [KEISEI, "web", "--open", "--port", str(port)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        while not (tmp_path / "opened").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 143
    assert (tmp_path / "opened").read_text(encoding="utf-8").strip() in (address, "")
