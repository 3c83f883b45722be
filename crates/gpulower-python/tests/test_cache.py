"""What machines share, on a real Redis."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpulower
from conftest import SAXPY, kernel, run


@pytest.fixture
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server on a socket: no port has to be free."""
    program = shutil.which("redis-server")
    assert program, "this test needs redis-server: apt-get install redis-server"
    place = tmp_path_factory.mktemp("redis") / "socket"
    command = [program, "--port", "0", "--unixsocket", str(place), "--save", "", "--dir", str(place.parent)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            while not _listens(place):
                assert server.poll() is None, "redis-server ended"
                time.sleep(0.01)
            yield f"redis+unix://{place}"
        finally:
            server.terminate()


def _listens(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(place)) == 0


def _machine(place: Path, url: str, **more: object) -> gpulower.Compiler:
    """A compiler whose own cache is empty. A deadline is what a test may take on a machine with other things to do."""
    return gpulower.Compiler(cache=gpulower.Cache(directory=place, remote=f"{url}?deadline=60s", **more))  # type: ignore[arg-type]


def test_machines_share_results(tmp_path: Path, redis: str) -> None:
    one, other = (_machine(tmp_path / name, redis) for name in ("one", "other"))
    made = one.compile(SAXPY, "gfx942")
    one.finish_cache()
    filled = one.cache_statistics()
    assert filled is not None
    assert filled.remote_hits == 0
    assert filled.remote_uploads == filled.stored > 0
    assert other.compile(SAXPY, "gfx942") == made
    taken = other.cache_statistics()
    assert taken is not None
    assert (taken.remote_hits, taken.remote_misses, taken.stored) == (1, 0, 0)


def test_what_is_not_signed_is_not_taken(tmp_path: Path, redis: str) -> None:
    key = tmp_path / "key"
    public = run("gpulower", "cache", "keygen", key).stdout.strip()
    for name, signed in (("stranger", {}), ("signer", {"sign_key": key})):
        filler = _machine(tmp_path / name, redis, **signed)
        filler.compile(SAXPY, "gfx942")
        filler.finish_cache()
        reader = _machine(tmp_path / f"after-{name}", redis, accept_keys=(public,))
        reader.compile(SAXPY, "gfx942")
        found = reader.cache_statistics()
        assert found is not None
        assert (found.remote_hits > 0) == (name == "signer"), name
        assert (found.remote_refused > 0) == (name == "stranger"), name
        run("redis-cli", "-s", redis.removeprefix("redis+unix://"), "flushall")


def test_an_outage_costs_a_warning(tmp_path: Path) -> None:
    compiler = _machine(tmp_path, "redis://127.0.0.1:1/0")
    told = [warning.message for number in range(3) for warning in compiler.compile(kernel(number), "gfx942").warnings]
    assert ["is out, and is done without for now" in message for message in told] == [True]
    counts = compiler.cache_statistics()
    assert counts is not None
    assert counts.remote_failures > 0
    assert counts.remote_hits == counts.remote_misses == 0


def test_an_address_is_refused_without_its_password() -> None:
    with pytest.raises(gpulower.Error) as raised:
        gpulower.Compiler(cache=gpulower.Cache(remote="nowhere://me:hunter2@host/0")).compile(SAXPY, "gfx942")
    assert "nowhere" in str(raised.value)
    assert "hunter2" not in str(raised.value) + repr(raised.value)
