"""`sam local` with this repository's template: functions in containers, on a throw-away Postgres.

It owns one run: an engine and an image, a migrated and seeded database, the SAM CLI's commands with
their time limits, and the removal of all of it. There are no queues: a send fails at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import (
    build,
    cloud,
    doctor,
    engine,
    forward,
    gateway,
    parameters,
    postgres,
    processes,
    sam_image,
    tools,
)
from .settings import (
    BOOTSTRAPS,
    HOME,
    ROOT,
    Failure,
    aws_environment,
    say,
    show,
)

API = "sam-local-api"
ISSUER = "tirada-sam-local"
# Seconds. The Timeout of each function that is invoked is shorter.
COMMAND_TIMEOUT = 90
RUN_TIMEOUT = 600


@dataclass(frozen=True)
class Run:
    """What the steps of one run share."""

    environment: dict[str, str]
    image: str
    store: str
    product: str
    token: str

    def sam(self, *options: str) -> list[str]:
        sam = [str(tools.binary("deploy", "sam")), "local", *options]
        return [*sam, "--config-env", "sam-local", "--invoke-image", self.image]

    def invoke(self, function: str, event: dict) -> dict:
        """A function's answer. The exit status of the SAM CLI is 0 even if the function failed."""
        path = Path(self.environment["TMPDIR"]) / "event.json"
        path.write_text(json.dumps(event))
        command = self.sam("invoke", function, "--event", str(path))
        say(f"- sam local invoke {function}")
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=COMMAND_TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            raise Failure(f"{function} did not answer within {COMMAND_TIMEOUT} s.") from None
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = None
        if done.returncode != 0 or not isinstance(answer, dict) or "errorType" in answer:
            raise Failure(f"{function} failed: {done.stdout}\n{done.stderr[-4000:]}")
        return answer


def by_hand(options: list[str], from_aws: bool) -> int:
    """A command of `sam local` in the same environment; its exit status is passed on."""
    with environment(from_aws, limit=0) as run:
        show(f"STORE={run.store}\nPRODUCT={run.product}\nTOKEN={run.token}")
        return subprocess.run(run.sam(*options), cwd=ROOT, env=run.environment).returncode


@contextlib.contextmanager
def environment(from_aws: bool, limit: int = RUN_TIMEOUT) -> Iterator[Run]:
    """Everything that a command needs; stopped and removed at the end, however that comes."""
    doctor.check()
    engine.require()
    tools.install()
    with contextlib.ExitStack() as stack:
        stack.enter_context(alone())
        prepare_files(from_aws)
        stack.enter_context(ending(limit))
        stop()
        docker = stack.enter_context(engine.running())
        image = sam_image.ensure(docker, from_aws)
        stack.callback(docker.remove_containers, image)
        seeded = stack.enter_context(database(docker))
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=HOME))
        # The SAM CLI asks STS for the account. There is no STS here, so one attempt is enough.
        own = {"DOCKER_HOST": docker.url, "TMPDIR": folder, "AWS_MAX_ATTEMPTS": "1"}
        yield Run(aws_environment() | own, image, **seeded)


def stop() -> list[str]:
    """Stops what a killed run left behind, and names it."""
    left = {
        "sam local": processes.stop(API),
        "its Postgres": postgres.stop(postgres.SAM_LOCAL),
        "its container engine": engine.stop(),
    }
    parameters.SAM_LOCAL.unlink(missing_ok=True)
    return [name for name, was_running in left.items() if was_running]


def prepare_files(from_aws: bool) -> None:
    """This machine's build; its programs only, if the functions that `make package` left are
    wanted."""
    build.build(lay_out=not from_aws)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One run at a time in a checkout: a second run would stop the servers of the first."""
    with open(HOME / "sam-local.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure("sam-local runs already in this checkout.") from None
        yield


@contextlib.contextmanager
def ending(limit: int) -> Iterator[None]:
    """A time limit in seconds (0: none), and SIGTERM, end the block with an error: it cleans up."""

    def give_up(number: int, _frame: object) -> None:
        if number == signal.SIGALRM:
            raise Failure(f"sam-local did not end within {limit} s.")
        raise KeyboardInterrupt

    before = {one: signal.signal(one, give_up) for one in (signal.SIGALRM, signal.SIGTERM)}
    signal.alarm(limit)
    try:
        yield
    finally:
        signal.alarm(0)
        for one, handler in before.items():
            signal.signal(one, handler)


@contextlib.contextmanager
def database(docker: engine.Engine) -> Iterator[dict[str, str]]:
    """A Postgres that containers reach, with a store, a product on sale and a buyer's token."""
    server = postgres.SAM_LOCAL
    device, address = docker.bridge()
    postgres.start(server)
    try:
        postgres.prepare_database(server)
        parameters.write_sam_local(server, address, ISSUER)
        owner = server.url(postgres.OWNER, postgres.DATABASE)
        variables = {
            "TIRADA_OWNER_DATABASE_URL": owner,
            "TIRADA_APP_PASSWORD": server.password(postgres.APP),
        }
        command = [str(BOOTSTRAPS / "migrate" / "bootstrap")]
        options = {"env": aws_environment() | variables, "stdout": subprocess.PIPE, "text": True}
        processes.run(command, "migrations", **options)
        variables = {
            "TIRADA_DATABASE_URL": server.url(postgres.APP, postgres.DATABASE),
            "TIRADA_TOKEN_ISSUER": ISSUER,
        }
        seeded = cloud.run_seed(aws_environment() | gateway.environment() | variables)
        with forward.forwarding(device, address, processes.find(server.name)["port"]):
            yield json.loads(seeded)
    finally:
        postgres.stop(server)
        parameters.SAM_LOCAL.unlink(missing_ok=True)
