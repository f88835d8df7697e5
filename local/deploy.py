"""`sam deploy` of the project's own template to the emulator, and what came out of it."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile

from . import emulator, parameters, processes, tools
from .settings import HOME, LOGS, ROOT, STACK, Failure, aws_environment

NAME = "tirada-local"  # as samconfig.toml names it


def deploy() -> None:
    """Create or update the stack. The API's port serves it from then on."""
    parameters.write_local()
    command = [str(tools.binary("deploy", "sam")), "deploy", "--config-env", "local"]
    command += ["--no-confirm-changeset", "--no-fail-on-empty-changeset", "--no-progressbar"]
    log = LOGS / "deploy.log"
    # The SAM CLI leaves its temporary folders behind.
    with log.open("w") as out, tempfile.TemporaryDirectory(dir=HOME) as folder:
        environment = aws_environment() | {"TMPDIR": folder}
        options = {"cwd": ROOT, "env": environment, "stdout": out, "stderr": out}
        try:
            processes.run(command, "sam deploy", **options)
        except Failure as failure:
            running = processes.tail(LOGS / f"{emulator.NAME}.log")
            text = f"{failure}{processes.tail(log, 40)}\nThe emulator:\n{running}"
            raise Failure(text) from None
    STACK.write_text(describe_stack())
    emulator.API_ID.write_text(stack("Outputs")["ApiId"])


def describe_stack() -> str:
    """Asked with the SAM CLI's own boto3: this package brings no AWS client."""
    code = (
        "import boto3, json;"
        f"found = boto3.client('cloudformation').describe_stacks(StackName='{NAME}')['Stacks'][0];"
        "print(json.dumps({part: found[part] for part in ('Outputs', 'Parameters')}))"
    )
    command = [str(tools.binary("deploy", "python")), "-c", code]
    options = {"env": aws_environment(), "stdout": subprocess.PIPE, "text": True}
    return processes.run(command, "outputs of the stack", **options).stdout


def stack(part: str) -> dict[str, str]:
    """`Outputs` or `Parameters` of the deployed stack, by name."""
    word = part.removesuffix("s")
    return {one[f"{word}Key"]: one[f"{word}Value"] for one in json.loads(STACK.read_text())[part]}


def queue_urls() -> dict[str, str]:
    """TIRADA_QUEUE_RESERVE_NUMBERS_URL and …_DLQ_URL, from the outputs …QueueUrl and …DlqUrl."""
    found = {}
    for name, url in stack("Outputs").items():
        words = re.fullmatch(r"(\w+)(Queue|Dlq)Url", name)
        if words:
            snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", words[1]).upper()
            dlq = "_DLQ" if words[2] == "Dlq" else ""
            found[f"TIRADA_QUEUE_{snake}{dlq}_URL"] = url
    return found


def sam(options: list[str]) -> int:
    """Any other command of the SAM CLI: with our environment it can reach only the emulator."""
    tools.install("deploy")
    command = [str(tools.binary("deploy", "sam")), *options]
    return subprocess.run(command, cwd=ROOT, env=aws_environment()).returncode


def deployable() -> int:
    """The exit status of the look for faults that otherwise only an AWS account would see."""
    tools.install("deploy")
    command = [str(tools.binary("deploy", "python")), "-m", "local.deployable"]
    return subprocess.run(command, cwd=ROOT, env=aws_environment()).returncode
