"""What is refused before any route: foreign hosts, origins and sites, forms, big bodies, no token."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from web_server import Web, web

JSON = {"content-type": "application/json"}
NAVIGATION = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8765", "127.0.0.1", "127.0.0.1:1", "127.1.2.3:99", "[::1]:9000", "[::1]"]
)
def test_loopback_names_are_let_in_with_any_port(site: Web, host: str) -> None:
    assert site.ask("GET", "/api/site", headers={"host": host}).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:8765",
        "",
        "0.0.0.0",
        "localhost:8765@evil.example",
        "10.0.0.1",
        "127.0.0.1:8765, evil.example",
        "[::2]",
    ],
)
def test_other_hosts_are_refused(site: Web, host: str) -> None:
    for path in ("/", "/api/site", "/static/app.css"):
        answer = site.ask("GET", path, headers={"host": host})
        assert answer.status in (400, 403), path  # 400: the server itself finds it malformed
        assert b"runs" not in answer.body


def test_two_hosts_are_refused(site: Web) -> None:
    connection = site.connection()
    connection.putrequest("GET", "/api/site", skip_host=True)
    connection.putheader("host", "localhost")
    connection.putheader("host", "evil.example")
    connection.endheaders()
    assert connection.getresponse().status in (400, 403)
    connection.close()


def test_the_own_origin_may_write_and_no_other(site: Web) -> None:
    host = f"localhost:{site.port}"
    body = json.dumps({"opponent": "0"}).encode()
    for origin, status in {
        f"http://{host}": 404,  # let in: there is no such player
        f"https://{host}": 404,  # a proxy with a certificate
        f"http://localhost:{site.port + 1}": 403,
        f"http://127.0.0.1:{site.port}": 403,
        "http://evil.example": 403,
        "null": 403,
        "": 403,
    }.items():
        headers = {"host": host, "origin": origin, **JSON}
        assert site.ask("POST", "/api/tables", body, headers).status == status, origin


@pytest.mark.parametrize("site_said", ["cross-site", "same-site", "nonsense"])
def test_what_another_page_loads_is_refused_but_not_its_links(site: Web, site_said: str) -> None:
    def status(path: str, **headers: str) -> int:
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        return site.ask("GET", path, headers={"sec-fetch-site": site_said, **said}).status

    assert status("/", sec_fetch_mode="no-cors", sec_fetch_dest="script") == 403
    assert status("/", sec_fetch_mode="navigate", sec_fetch_dest="iframe") == 403
    assert status("/api/site", sec_fetch_mode="cors", sec_fetch_dest="empty") == 403
    assert status("/api/site", sec_fetch_mode="navigate", sec_fetch_dest="document") == 403
    assert status("/static/shell.js", sec_fetch_mode="navigate", sec_fetch_dest="document") == 403
    assert status("/play", sec_fetch_mode="navigate", sec_fetch_dest="document") == 200
    headers = {"sec-fetch-site": site_said, **NAVIGATION, **JSON}
    assert site.ask("POST", "/api/tables", b"{}", headers).status == 403


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "text/json"],
)
def test_a_form_cannot_write(site: Web, kind: str) -> None:
    assert site.ask("POST", "/api/tables", b"{}", {"content-type": kind}).status == 415
    assert site.ask("POST", "/api/tables", b"{}").status == 415


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_are_refused(site: Web, method: str) -> None:
    answer = site.ask(method, "/api/site")
    assert answer.status == 405
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"3", 400),
        (b"\xff\xfe", 400),
        (b"[" * 50_000, 400),
        (b'{"a": "' + b"x" * 70_000 + b'"}', 413),
    ],
)
def test_a_body_is_a_small_json_object(site: Web, body: bytes, status: int) -> None:
    answer = site.ask("POST", "/api/tables", body, JSON)
    assert answer.status == status
    assert set(answer.json()) == {"error"}


def test_a_body_in_chunks_has_the_same_limit(site: Web) -> None:
    connection = site.connection()
    chunks = (b"x" * 10_000 for _ in range(1000))
    try:
        connection.request("POST", "/api/tables", chunks, JSON, encode_chunked=True)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it was refused before all of it was sent
    else:
        assert connection.getresponse().status == 413
    connection.close()
    assert site.get("/api/site")["version"]


@pytest.mark.parametrize(
    "path", ["/", "/games", "/play", "/ladder", "/api/site", "/static/app.css", "/nowhere"]
)
def test_every_answer_forbids_inline_script_and_frames(site: Web, path: str) -> None:
    headers = site.ask("GET", path).headers
    policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["form-action"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["referrer-policy"] == "no-referrer"
    assert not {name for name in headers if name.startswith("access-control-")}


TOKEN = "a-secret-of-this-test"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """A server that asks for a token."""
    with web(tmp_path_factory.mktemp("guarded"), "--token", TOKEN) as server:
        assert server.query == f"token={TOKEN}"
        yield server


def test_without_the_token_nothing_is_told(guarded: Web) -> None:
    for path in ("/", "/api/site", "/static/app.css", "/?token=", "/?token=wrong-secret-of-this"):
        for headers in ({}, {"cookie": "keisei-token=wrong"}, {"authorization": f"Bearer {TOKEN}x"}):
            answer = guarded.ask("GET", path, headers=headers)
            assert (answer.status, answer.headers.get("set-cookie")) == (401, None)
            assert answer.body.startswith(b"this page needs its token")
    assert guarded.ask("POST", f"/api/tables?token={TOKEN}", b"{}", JSON).status == 401


def test_the_token_in_the_address_becomes_a_cookie(guarded: Web) -> None:
    answer = guarded.ask("GET", f"/play?game=abc&token={TOKEN}&ply=3")
    assert (answer.status, answer.headers["location"]) == (303, "/play?game=abc&ply=3")
    cookie, *flags = [part.strip().lower() for part in answer.headers["set-cookie"].split(";")]
    assert cookie == f"keisei-token={TOKEN}"
    assert {"httponly", "samesite=strict"} <= set(flags)
    assert guarded.ask("GET", "/api/site", headers={"cookie": f"a=b; {cookie}"}).status == 200
    assert guarded.ask("GET", "/api/site", headers={"authorization": f"Bearer {TOKEN}"}).status == 200
    headers = {"cookie": cookie, "sec-fetch-site": "cross-site"}
    assert guarded.ask("GET", "/api/site", headers=headers).status == 403


@pytest.mark.parametrize("path", ["//evil.example/", "/%2f/evil.example", "//evil.example/%2e%2e"])
def test_the_token_leads_to_no_other_host(guarded: Web, path: str) -> None:
    there = guarded.ask("GET", f"{path}?token={TOKEN}").headers["location"]
    assert there.startswith("/")
    assert not there.startswith("//")


def test_with_a_token_any_host_name_will_do(guarded: Web) -> None:
    headers = {"host": "keisei.example:8765", "authorization": f"Bearer {TOKEN}"}
    assert guarded.ask("GET", "/api/site", headers=headers).status == 200
    assert guarded.ask("GET", "/api/site", headers={**headers, "origin": "http://evil.example"}).status == 403


def test_beyond_loopback_there_is_always_a_token(tmp_path: Path) -> None:
    with web(tmp_path, "--host", "0.0.0.0") as server:
        assert server.query.startswith("token=")
        assert len(server.query) > 30
        assert server.ask("GET", "/api/site").status == 401
        assert server.ask("GET", f"/?{server.query}").status == 303
