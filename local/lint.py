"""Every look at the tree that runs none of it, in order; the first that finds something ends it."""

from __future__ import annotations

import os
import subprocess

from . import deploy, parts, supply, tools
from .settings import HERE, REGION, ROOT, say

TEMPLATES = ["template.yaml", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("infra/*.yaml"))]


def lint() -> int:
    with parts.part("tools"):
        tools.install("deploy", "checkov", "supply")
    for name, command in commands().items():
        say(f"- {name}")
        with parts.part(f"lint: {name}"):
            failed = subprocess.run(command, cwd=ROOT, env=environment()).returncode
        if failed:
            return failed
    with parts.part("lint: deployable"):
        failed = deploy.deployable()
    if failed:
        return failed
    with parts.part("lint: cargo-deny"):
        return supply.check(advisories=False)


def commands() -> dict[str, list[str]]:
    deploying = {name: str(tools.binary("deploy", name)) for name in ("cfn-lint", "sam", "python")}
    ruff, settings = str(tools.binary("deploy", "ruff")), str(HERE / "ruff.toml")
    checkov = [str(tools.binary("checkov", "checkov")), "--framework", "cloudformation"]
    checkov += ["--skip-download", "--quiet", "--compact"]
    checkov += [part for path in TEMPLATES for part in ("-f", path)]
    clippy = ["cargo", "clippy", "--workspace", "--locked"]
    strict = ["--", "-D", "warnings"]
    # By name, because a search that finds none is no failure for every Python.
    tests = [f"local.tests.{path.stem}" for path in sorted(HERE.glob("tests/test_*.py"))]
    return {
        "rustfmt": ["cargo", "fmt", "--all", "--check"],
        "clippy": [*clippy, "--all-targets", *strict],
        # The other command leaves out the targets that run only when they are named.
        "clippy of named tests": [*clippy, "--test", "*", *strict],
        "cfn-lint": [deploying["cfn-lint"], *TEMPLATES],
        "sam validate": [deploying["sam"], "validate", "--lint"],
        "checkov": checkov,
        "ruff": [ruff, "check", "--config", settings, "local", "tests"],
        "ruff format": [ruff, "format", "--config", settings, "--check", "local", "tests"],
        "tests of local/": [deploying["python"], "-m", "unittest", *tests],
    }


def environment() -> dict[str, str]:
    return os.environ | {"AWS_DEFAULT_REGION": REGION, "SAM_CLI_TELEMETRY": "0"}
