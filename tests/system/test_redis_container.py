"""The Redis that production runs on, in a container: accepted by Crewline, and it keeps what it was told."""

from __future__ import annotations

import pytest

from coordinator.wire.connection import check_server, connect, guard
from coordinator.wire.errors import Unreachable
from tests.support.containers import RedisInContainer

pytestmark = pytest.mark.container


def test_it_keeps_everything_over_a_restart() -> None:
    with RedisInContainer() as server:
        client = connect(server.url)
        check_server(client)
        client.function_load("#!lua name=kept\nredis.register_function('answer', function() return 42 end)")
        client.set("key", "value")
        server.stop()
        with pytest.raises(Unreachable, match="cannot reach Redis"), guard(client):
            client.ping()
        server.start()
        assert client.get("key") == b"value"
        assert client.execute_command("FCALL", "answer", 0) == 42
        client.close()
