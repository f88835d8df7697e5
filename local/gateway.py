"""The pretended payment gateway of the demonstration store, started and stopped."""

from __future__ import annotations

import os

from . import build, emulator, processes
from .settings import GATEWAY_PORT, HOME, LOOPBACK, api_url, gateway_url, say

NAME = "gateway"
# The demonstration store's account. Good for nothing else: the gateway runs on this machine only.
STORE = "demo"
KEY = "sk_test_demo"
WEBHOOK_SECRET = "whsec_demo"


def start() -> bool:
    """Start it, or find that it runs. True if this call started it."""
    if processes.find(NAME):
        return False
    port = processes.require_free(GATEWAY_PORT)
    say(f"- payment gateway on {LOOPBACK}:{port}")
    webhooks = f"{api_url()}/v1/webhooks/sandbox/{STORE}"
    account = f"stripe:{KEY}:{webhooks}:{WEBHOOK_SECRET}"
    command = [str(build.program("fake-gateway")), "--port", str(port), "--account", account]
    processes.start(
        NAME,
        command,
        port=port,
        environment={k: os.environ[k] for k in emulator.KEPT if k in os.environ},
        directory=HOME,
        ready=lambda: processes.listening(port),
    )
    return True


def sandbox_url() -> str:
    """Where functions find it: it speaks Stripe's language there."""
    return f"{gateway_url()}/stripe"


def environment() -> dict[str, str]:
    """What the seed program needs to give the demonstration store its account."""
    return {
        "TIRADA_SANDBOX_URL": sandbox_url(),
        "TIRADA_SANDBOX_KEY": KEY,
        "TIRADA_SANDBOX_WEBHOOK_SECRET": WEBHOOK_SECRET,
    }


def stop() -> bool:
    """Stop it; its payments were in memory and are gone."""
    return processes.stop(NAME)
