"""The AWS emulator (MiniStack), started and stopped."""

from __future__ import annotations

import os
import shutil
import urllib.error
import urllib.request

from . import processes, tools
from .settings import API_PORT, CLOUD_PORT, HERE, HOME, LOOPBACK, REGION, cloud_url, say

NAME = "cloud"
STATE = HOME / "cloud"
API_ID = STATE / "api-id"
API_PORT_FILE = STATE / "api-port"
# Seconds after which an idle function process ends. Each holds a database connection, those of
# a version that a deployment has replaced too.
FUNCTION_IDLE_MAX = 30
# Taken over from the person's environment: nothing else, since functions inherit all of it.
KEPT = ("PATH", "HOME", "USER", "LANG")


def start() -> bool:
    """Start it, or find that it runs. True if this call started it."""
    if processes.find(NAME):
        return False
    port = processes.require_free(CLOUD_PORT)
    front = processes.require_free(API_PORT)
    shutil.rmtree(STATE, ignore_errors=True)
    (STATE / "tmp").mkdir(parents=True)
    API_PORT_FILE.write_text(str(front))
    say(f"- AWS emulator on {LOOPBACK}:{port}")
    launcher = [str(tools.binary("cloud", "python")), str(HERE / "emulator_launcher.py")]
    processes.start(
        NAME,
        [*launcher, str(front), str(API_ID)],
        port=port,
        environment=clean_environment(port),
        directory=STATE,
        ready=answers,
    )
    return True


def clean_environment(port: int) -> dict[str, str]:
    """Loopback only, no Docker, nothing kept outside `.local/`."""
    return {k: os.environ[k] for k in KEPT if k in os.environ} | {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": LOOPBACK,
        "AWS_ENDPOINT_URL": cloud_url(),
        "AWS_DEFAULT_REGION": REGION,
        "MINISTACK_REGION": REGION,
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LAMBDA_EXECUTOR": "local",
        "LAMBDA_STRICT": "0",
        "LAMBDA_WARM_TTL_SECONDS": str(FUNCTION_IDLE_MAX),
        "DOCKER_HOST": "unix:///nonexistent",
        "TMPDIR": str(STATE / "tmp"),
        "STATE_DIR": str(STATE / "state"),
        "S3_DATA_DIR": str(STATE / "s3"),
    }


def answers() -> bool:
    try:
        with urllib.request.urlopen(f"{cloud_url()}/_ministack/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def stop() -> bool:
    """Stop it and the functions that it runs; its state was in memory and is gone."""
    stopped = processes.stop(NAME)
    shutil.rmtree(STATE, ignore_errors=True)
    return stopped
