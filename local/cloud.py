"""The whole local cloud: `up`, `down` and `status`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

from . import (
    build,
    deploy,
    doctor,
    emulator,
    gateway,
    parameters,
    parts,
    postgres,
    processes,
    tools,
)
from .settings import (
    API_PORT,
    CLOUD_PORT,
    GATEWAY_PORT,
    HOME,
    LOGS,
    LOOPBACK,
    MAILS,
    PHONES,
    SEALING_KEYS,
    SEEDED,
    STACK,
    Failure,
    api_url,
    aws_environment,
    cloud_url,
    gateway_url,
    say,
    show,
)


def up(*, release: bool = False) -> None:
    """From nothing to a running, seeded system; on a running one, deploy what changed.

    With `release` the functions are those that are delivered.
    """
    doctor.check()
    with parts.part("tools"):
        tools.install()
    again = bool(processes.find(emulator.NAME))
    if again:
        say("Already up: building and deploying what changed.")
        require_same_ports()
    else:
        # Now and not after minutes of building.
        processes.require_free(CLOUD_PORT)
        processes.require_free(API_PORT)
        if not processes.find(gateway.NAME):
            processes.require_free(GATEWAY_PORT)
    postgres.start(postgres.CLOUD)
    postgres.prepare_database()
    build.build()
    if release:
        build.build_release()
    with parts.part("deployment"):
        emulator.start()
        gateway.start()
        deploy.deploy()
        if not (again and SEEDED.exists()):
            seed()
    describe()


def require_same_ports() -> None:
    """A second `up` with other ports would deploy addresses that nobody listens on."""
    record = processes.find(emulator.NAME)
    if not record:
        return
    there = [str(record["port"]), emulator.API_PORT_FILE.read_text()]
    here = [str(CLOUD_PORT.number), str(API_PORT.number)]
    payments = processes.find(gateway.NAME)
    if payments:
        there.append(str(payments["port"]))
        here.append(str(GATEWAY_PORT.number))
    if there != here:
        raise Failure(
            f"The local cloud runs on ports {', '.join(there)}: `make down` before a move."
        )


def environment() -> dict[str, str]:
    """What the programs that run beside the local cloud are given."""
    return (
        aws_environment()
        | deploy.queue_urls()
        | gateway.environment()
        | {
            "TIRADA_LOCAL_CLOUD": "1",
            "TIRADA_STAGE": "local",
            "TIRADA_API_URL": api_url(),
            "TIRADA_DATABASE_URL": postgres.CLOUD.url(postgres.APP, postgres.DATABASE),
            "TIRADA_OWNER_DATABASE_URL": postgres.CLOUD.url(postgres.OWNER, postgres.DATABASE),
            "TIRADA_TOKEN_ISSUER": deploy.stack("Parameters").get("TokenIssuer", ""),
            "TIRADA_SEALING_KEYS": parameters.compact(SEALING_KEYS),
            "TIRADA_PHONES_FILE": str(PHONES),
        }
    )


def seed() -> None:
    SEEDED.write_text(run_seed(environment()))


def run_seed(variables: dict[str, str]) -> str:
    """A store, a product on sale and a buyer, as the seed program prints them."""
    program = [str(build.program("seed"))]
    options = {"env": variables, "stdout": subprocess.PIPE, "text": True}
    printed = processes.run(program, "seed data", **options).stdout
    try:
        found = json.loads(printed)
        missing = {"store", "product", "token"} - found.keys()
    except (ValueError, AttributeError):
        missing = {"JSON"}
    if missing:
        raise Failure(f"seed did not print {', '.join(sorted(missing))}:\n{printed}")
    return printed


def describe() -> None:
    """How to talk to it."""
    seeded = json.loads(SEEDED.read_text())
    product = f"{api_url()}/v1/products/{seeded['product']}"
    show(f"API       {api_url()}")
    show(f"AWS       {cloud_url()}")
    show(f"Gateway   {gateway_url()}")
    show(f"Postgres  {postgres.CLOUD.url(postgres.OWNER, postgres.DATABASE)}")
    show(f"Store     {seeded['store']}")
    show("\nA buyer's token, and what to do with it:\n")
    show(f"TOKEN={seeded['token']}")
    show(f"curl -s {product}")
    show(
        f"curl -si {product}/orders"
        ' -H "Authorization: Bearer $TOKEN"'
        ' -H "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid)"'
        " -H 'Content-Type: application/json' -d '{\"quantity\": 3}'"
    )
    show(f'curl -s {api_url()}/v1/orders -H "Authorization: Bearer $TOKEN"')
    store = f"{api_url()}/v1/stores/{seeded['store']}"
    as_json = "-H 'Content-Type: application/json'"
    show("\nTo log in as somebody else: the message with the code is in a file.\n")
    show(f'curl -s {store}/login-codes {as_json} -d \'{{"phone": "+5511900000001"}}\'')
    show(f"tail -n 1 {os.path.relpath(PHONES)}")
    show(
        f"curl -s {store}/sessions {as_json}"
        ' -d "{\\"asking_session\\": \\"$ASKING\\", \\"code\\": \\"$CODE\\"}"'
    )
    show("\nTo sign in as staff, with an app for one-time passwords at hand, or with oathtool.\n")
    show(
        f"python3 -m local run tirada staff invite --store {seeded['store']}"
        " --email you@example.org --role owner"
    )
    show(f'curl -s {api_url()}/v1/staff/enrolments {as_json} -d "{{\\"link\\": \\"$LINK\\"}}"')
    show("SECRET=the secret in the answer")
    show('PASSWORD=$(oathtool --totp --base32 "$SECRET")')
    show(
        f"curl -s {api_url()}/v1/staff/sessions {as_json}"
        ' -d "{\\"link\\": \\"$LINK\\", \\"one_time_password\\": \\"$PASSWORD\\"}"'
    )
    show("\nTo pay an order: the answer has the address of a page with a button.\n")
    show("ORDER=the id of a reserved order")
    show(
        f"curl -s {api_url()}/v1/orders/$ORDER/payments"
        ' -H "Authorization: Bearer $TOKEN"'
        ' -H "Idempotency-Key: $(cat /proc/sys/kernel/random/uuid)"'
        " -H 'Content-Type: application/json'"
        f' -d \'{{"method": "checkout", "return_url": "{product}"}}\''
    )
    show("\nmake down stops everything.")


def run(program: str, options: list[str]) -> int:
    """A program of this build, beside the local cloud; its exit status is passed on."""
    binary = build.program(program)
    if not binary.exists() or not processes.find(emulator.NAME):
        raise Failure(f"{program} needs the local cloud: make up")
    return subprocess.run([str(binary), *options], env=environment()).returncode


def down(already: list[str]) -> None:
    """Stop what was started and remove its data. Tools, builds and logs stay. `already` names what
    the caller stopped."""
    stopped = already + [
        name
        for name, was_running in (
            ("AWS emulator", emulator.stop()),
            ("payment gateway", gateway.stop()),
            ("Postgres", postgres.stop(postgres.CLOUD)),
            ("test Postgres", postgres.stop(postgres.TEST)),
            ("bench Postgres", postgres.stop(postgres.BENCH)),
        )
        if was_running
    ]
    for left in (SEEDED, STACK, PHONES, MAILS, parameters.LOCAL):
        left.unlink(missing_ok=True)
    shutil.rmtree(HOME / "sam", ignore_errors=True)
    say(f"Stopped: {', '.join(stopped)}." if stopped else "Nothing was running.")


def status() -> int:
    """One line per process; exit status 1 if the local cloud is not up."""
    for name in (emulator.NAME, gateway.NAME, postgres.CLOUD.name, postgres.TEST.name):
        record = processes.find(name)
        running = f"pid {record['pid']}, {LOOPBACK}:{record['port']}" if record else "not running"
        show(f"{name:14} {running}")
    show(f"logs           {os.path.relpath(LOGS)}")
    needed = (emulator.NAME, gateway.NAME, postgres.CLOUD.name)
    return 0 if all(processes.find(name) for name in needed) else 1
