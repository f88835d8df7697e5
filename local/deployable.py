"""Looks for faults of a deployment that otherwise only an AWS account would see.

Run by the Python that has the SAM CLI (`deploy.deployable`). For every environment the CLI's own
code reads samconfig.toml, and the SAM translator expands template.yaml as CloudFormation would.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import click
from cfnlint.api import ManualArgs, lint
from samcli.commands.deploy.command import cli as sam_deploy
from samcli.commands.local.invoke.cli import cli as sam_invoke
from samcli.commands.validate.lib.exceptions import InvalidSamDocumentException
from samcli.lib.config.samconfig import DEFAULT_ENV, SamConfig
from samcli.lib.translate.sam_template_validator import SamTemplateValidator
from samcli.yamlhelper import yaml_parse
from samtranslator.model.preferences.deployment_preference_collection import (
    CODEDEPLOY_PREDEFINED_CONFIGURATIONS_LIST as DEPLOYMENT_TYPES,
)

from . import package, parameters, stack_values
from .settings import REGION, ROOT, TEMPLATE, say

# CloudFormation wants a stronger capability for resources of IAM that have these names.
NAMES = {
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
}
CONFIG = "AWS::CodeDeploy::DeploymentConfig"
# The one environment of samconfig.toml that nobody deploys.
SAM_LOCAL = "sam-local"


@dataclass(frozen=True)
class Deployment:
    """The parts of a call of `sam deploy --config-env …` that CloudFormation judges. An environment
    of `sam local` is never deployed and has no capabilities."""

    values: dict[str, str]
    capabilities: list[str] | None
    region: str


def main() -> int:
    # The translator logs for those who run it as a service.
    logging.disable(logging.WARNING)
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as name, inside(Path(name)):
        prepare(Path(name))
        environments = names()
        for environment in environments:
            for finding in dict.fromkeys(findings(environment)):
                found.setdefault(finding, []).append(environment)
        if not found:
            # The expanded templates differ in a few values only: one stands for all.
            last = environments[-1]
            found = {finding: [last] for finding in linted(read(last))}
    for finding, where in found.items():
        print(f"{', '.join(where)}: {finding}")
    if not found:
        say(f"Deployable, as far as it shows without an account: {', '.join(environments)}.")
    return 1 if found else 0


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """The CLI looks for its files in the working directory."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def prepare(folder: Path) -> None:
    """Copies the files that `sam deploy` reads, and writes those that a build would write."""
    for path in (ROOT / "samconfig.toml", TEMPLATE):
        shutil.copy(path, folder)
    # Only the running database knows the real ones.
    url = "postgres://example@127.0.0.1/example"
    local = parameters.local_values(url=url, owner_url=url, password="example")
    written = {
        parameters.LOCAL: local,
        parameters.SAM_LOCAL: parameters.sam_local_values(local, "example"),
        parameters.AWS: parameters.aws_values(package.DEFAULT),
    }
    for path, values in written.items():
        place = folder / path.relative_to(ROOT)
        place.parent.mkdir(exist_ok=True)
        place.write_text(parameters.text(values))


def names() -> list[str]:
    """The environments of samconfig.toml."""
    found = SamConfig(Path.cwd()).get_stage_configuration_names()
    return [name for name in found if name != DEFAULT_ENV]


def findings(environment: str) -> Iterator[str]:
    """Faults of the files in the working directory."""
    try:
        deployment = read(environment)
    except click.ClickException as error:
        yield f"the SAM CLI does not take samconfig.toml: {error.format_message()}"
        return
    template = read_template()
    yield from stack_values.unfit(template["Parameters"], deployment.values)
    yield from stack_values.broken_rules(template, deployment.values)
    for canary in (False, True):
        try:
            text = expand(deployment, canary=canary)
        except InvalidSamDocumentException as error:
            yield f"SAM does not expand template.yaml: {error}"
            return
        resources = yaml_parse(text)["Resources"]
        yield from unknown_deployments(resources)
        if deployment.capabilities is not None:
            yield from lacking(resources, deployment.capabilities)


def read(environment: str) -> Deployment:
    """The options of the command, as the command itself makes them of samconfig.toml."""
    chosen = ["--config-env", environment]
    if environment != SAM_LOCAL:
        context = sam_deploy.make_context("deploy", chosen)
        capabilities = list(context.params["capabilities"] or [])
    else:
        context = sam_invoke.make_context("invoke", [*chosen, "any"])
        capabilities = None
    region = context.obj.region or REGION
    return Deployment(context.params["parameter_overrides"], capabilities, region)


def read_template() -> dict:
    return yaml_parse(Path(TEMPLATE.name).read_text())


def expand(deployment: Deployment, *, canary: bool) -> str:
    """Plain CloudFormation. `canary` switches every gradual deployment on."""
    template = read_template()
    places = [one.get("Properties", {}) for one in template["Resources"].values()]
    for place in [*places, *template.get("Globals", {}).values()]:
        if canary and "DeploymentPreference" in place:
            place["DeploymentPreference"]["Enabled"] = True
    # Managed policies are named by the account; ours are written out.
    offline = SimpleNamespace(load=dict)
    validator = SamTemplateValidator(
        template, offline, region=deployment.region, parameter_overrides=dict(deployment.values)
    )
    return validator.get_translated_template_if_valid()


def unknown_deployments(resources: dict) -> Iterator[str]:
    """CodeDeploy knows its own configurations and those of the stack."""
    known = {f"CodeDeployDefault.Lambda{name}" for name in DEPLOYMENT_TYPES}
    for name, one in resources.items():
        if one["Type"] == CONFIG:
            known |= {json.dumps({"Ref": name}), one["Properties"].get("DeploymentConfigName")}
    users: dict[str, list[str]] = {}
    for name, one in resources.items():
        if one["Type"] == "AWS::CodeDeploy::DeploymentGroup":
            for config in configs(one["Properties"]["DeploymentConfigName"]):
                users.setdefault(config, []).append(name)
    allowed = f"{', '.join(DEPLOYMENT_TYPES)}, and each {CONFIG} of template.yaml"
    for config in [config for config in users if config not in known]:
        groups = ", ".join(users[config])
        yield f"DeploymentPreference: Type = {config!r} ({groups}); allowed: {allowed}"


def configs(name: str | dict) -> list[str]:
    """Each name that an expression can become; what is not plain is given as JSON."""
    if isinstance(name, str):
        return [name]
    if "Fn::If" in name:
        return [config for branch in name["Fn::If"][1:] for config in configs(branch)]
    if isinstance(name.get("Fn::Sub"), list):
        text, values = name["Fn::Sub"]
        for key, value in values.items():
            text = text.replace(f"${{{key}}}", str(value))
        return [text]
    return [json.dumps(name)]


def lacking(resources: dict, capabilities: list[str]) -> Iterator[str]:
    """CloudFormation changes IAM only for a caller who acknowledges it."""
    iam = {name: one for name, one in resources.items() if one["Type"].startswith("AWS::IAM::")}
    named = [
        name for name, one in iam.items() if NAMES.get(one["Type"]) in one.get("Properties", {})
    ]
    if "CAPABILITY_NAMED_IAM" in capabilities:
        return
    given = " ".join(capabilities)
    if named:
        yield f"capabilities = {given!r}: {named[0]} has a name and needs CAPABILITY_NAMED_IAM"
    elif iam and "CAPABILITY_IAM" not in capabilities:
        yield f"capabilities = {given!r}: {next(iter(iam))} needs CAPABILITY_IAM"


def linted(deployment: Deployment) -> Iterator[str]:
    """Errors of cfn-lint about the resources of canaries: a `false` hides them in template.yaml."""
    text = expand(deployment, canary=True)
    for match in lint(text, config=ManualArgs(regions=[deployment.region])):
        if match.rule.severity == "error":
            where = "/".join(str(part) for part in match.path or [])
            yield f"with every canary, {where}: {match.rule.id} {match.message}"


if __name__ == "__main__":
    sys.exit(main())
