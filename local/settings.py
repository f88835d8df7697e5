"""Where things are and which ports they take: the only place that reads this package's settings.

Owns names, never processes. Every port can be moved by an environment variable.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "local"
HOME = ROOT / ".local"
LOGS = HOME / "logs"
STATE = HOME / "state.json"
SEEDED = HOME / "seeded.json"
STACK = HOME / "stack.json"
TEMPLATE = ROOT / "template.yaml"
TOKEN_KEYS = ROOT / "shared" / "edge" / "development" / "jwks.json"
SIGNING_KEYS = ROOT / "shared" / "edge" / "development" / "signing-keys.json"
LOGIN_KEYS = ROOT / "shared" / "edge" / "development" / "login-keys.json"
SEALING_KEYS = ROOT / "shared" / "edge" / "development" / "sealing-keys.json"
# What would go to phones: a line per message.
PHONES = HOME / "phones.jsonl"
# What would go to mailboxes of staff.
MAILS = HOME / "mails.jsonl"
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
BOOTSTRAPS = ROOT / "target" / "lambda"

LOOPBACK = "127.0.0.1"
REGION = "us-east-1"
# Of this machine, as the template's parameter names it.
ARCHITECTURE = "x86_64" if platform.machine() == "x86_64" else "arm64"
CI = bool(os.environ.get("CI"))

# Those of the template, named as their packages.
FUNCTIONS = tuple(re.findall(r"CodeUri: target/lambda/([\w-]+)", TEMPLATE.read_text()))


class Failure(Exception):
    """Something the person at the keyboard can mend; the text says how. Shown without a trace."""


def say(text: str) -> None:
    """Progress, on standard error: standard output carries only results."""
    print(text, file=sys.stderr, flush=True)


def show(text: str) -> None:
    """A result, on standard output. Whoever reads it may have read enough."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@dataclass(frozen=True)
class Port:
    """A port of ours and the environment variable that moves it."""

    variable: str
    default: int

    @property
    def number(self) -> int:
        text = os.environ.get(self.variable, "") or str(self.default)
        if not text.isdigit() or not 0 < int(text) < 65536:
            raise Failure(f"{self.variable} is {text!r}, which is no port number.")
        return int(text)


CLOUD_PORT = Port("TIRADA_CLOUD_PORT", 4566)
API_PORT = Port("TIRADA_API_PORT", 4567)
GATEWAY_PORT = Port("TIRADA_GATEWAY_PORT", 4568)
POSTGRES_PORT = Port("TIRADA_POSTGRES_PORT", 54320)
TEST_POSTGRES_PORT = Port("TIRADA_TEST_POSTGRES_PORT", 54321)
BENCH_POSTGRES_PORT = Port("TIRADA_BENCH_POSTGRES_PORT", 54322)


def cloud_url() -> str:
    """The AWS endpoint of the emulator."""
    return f"http://{LOOPBACK}:{CLOUD_PORT.number}"


def api_url() -> str:
    """Tirada's own API, as a buyer's browser would see it."""
    return f"http://{LOOPBACK}:{API_PORT.number}"


def gateway_url() -> str:
    """The pretended payment gateway, as a buyer's browser would see it."""
    return f"http://{LOOPBACK}:{GATEWAY_PORT.number}"


def aws_environment() -> dict[str, str]:
    """The environment for AWS clients of the emulator.

    Whatever AWS profile, key or region the person has is taken out first: nothing here can reach
    a real account.
    """
    mine = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    return mine | {
        "AWS_ENDPOINT_URL": cloud_url(),
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "SAM_CLI_TELEMETRY": "0",
        "__SAM_CLI_APP_DIR": str(HOME / "sam"),
        "NO_PROXY": f"{LOOPBACK},localhost",
        "no_proxy": f"{LOOPBACK},localhost",
    }
