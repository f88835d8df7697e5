"""What our dependencies may be (deny.toml), and a list of what is delivered."""

from __future__ import annotations

import subprocess

from . import processes, tools
from .settings import ROOT, say

SBOM = ROOT / "target" / "sbom.cdx.json"
# AWS runs them there; what only another machine would build is not delivered.
PLATFORM = "aarch64-unknown-linux-gnu"
OFFLINE = ("bans", "licenses", "sources")


def check(*, advisories: bool) -> int:
    """cargo-deny's exit status. Advisories are fetched from the internet."""
    tools.install("supply")
    command = [str(tools.binary("supply", "cargo-deny")), "--locked", "check"]
    command += ["--hide-inclusion-graph", "-D", "unmatched-skip", "-D", "unnecessary-skip"]
    command += ["advisories", *OFFLINE] if advisories else OFFLINE
    return subprocess.run(command, cwd=ROOT).returncode


def sbom() -> None:
    """Writes the bill of materials, CycloneDX as JSON."""
    tools.install("supply")
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    command += ["--filter-platform", PLATFORM]
    quiet = {"cwd": ROOT, "stdout": subprocess.PIPE, "text": True}
    tree = processes.run(command, "what cargo knows of the tree", **quiet).stdout
    script = [str(tools.binary("supply", "python")), "-m", "local.sbom"]
    text = processes.run(script, "the bill of materials", input=tree, **quiet).stdout
    SBOM.parent.mkdir(exist_ok=True)
    SBOM.write_text(text)
    say(f"Ready: {SBOM.relative_to(ROOT)}")
