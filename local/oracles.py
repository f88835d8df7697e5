"""Other people's code as judges of ours: the gateways' own libraries, localstripe as Stripe, and
openpyxl as whoever opens our workbooks."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from pathlib import Path

from . import cargo, emulator, parts, postgres, processes, simulator, tools
from .settings import HOME, LOOPBACK

NAME = "localstripe"
# It keeps a copy of its state there, for a later start of its own; ours always begin empty.
STATE = Path("/tmp/localstripe.pickle")


def check(options: list[str]) -> int:
    """The tests of tests/oracles, or those that options name; the cargo runner's exit status."""
    return simulator.with_postgres(lambda: run(options))


def run(options: list[str]) -> int:
    with parts.part("tools"):
        tools.install("oracles")
    started = start()
    try:
        with parts.part("oracles"):
            return cargo.test(["--test", "oracles", *options], environment())
    finally:
        if started:
            stop()


def environment() -> dict[str, str]:
    """What the tests are told: the database, a Python that has the libraries, and localstripe."""
    record = processes.find(NAME)
    return dict(os.environ) | {
        "TIRADA_TEST_POSTGRES_URL": postgres.TEST.url(),
        "TIRADA_TEST_SDK_PYTHON": str(tools.binary("oracles", "python")),
        "TIRADA_TEST_LOCALSTRIPE_URL": f"http://{LOOPBACK}:{record['port']}",
    }


def start() -> bool:
    """Start localstripe on a free port, or find that it runs. True if this call started it.

    Its own program would listen on every interface.
    """
    if processes.find(NAME):
        return False
    port = processes.free_port()
    serve = ["--bind", f"{LOOPBACK}:{port}", "--worker-class", "aiohttp.GunicornWebWorker"]
    gunicorn = str(tools.binary("oracles", "gunicorn"))
    processes.start(
        NAME,
        [gunicorn, *serve, "--no-control-socket", "localstripe.server:app"],
        port=port,
        environment={k: os.environ[k] for k in emulator.KEPT if k in os.environ},
        directory=HOME,
        ready=lambda: answers(port),
    )
    return True


def stop() -> None:
    processes.stop(NAME)
    STATE.unlink(missing_ok=True)


def answers(port: int) -> bool:
    """Whether its worker serves. The listening socket stands before the worker does."""
    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        without_proxy.open(f"http://{LOOPBACK}:{port}/v1/payment_intents", timeout=2).close()
    except urllib.error.HTTPError:
        return True  # it wants a key
    except OSError:
        return False
    return True
