"""A mutated copy of samconfig.toml or template.yaml for each kind of fault, and its finding."""

import contextlib
import json
import logging
import tempfile
import unittest
from pathlib import Path

from local import deployable, parameters, settings

SAMCONFIG = Path("samconfig.toml")
TEMPLATE = Path(settings.TEMPLATE.name)
TYPE = "Type: Canary10Percent5Minutes"
RESOURCES = """
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties:
      Runtime: provided.al2023
      Handler: bootstrap
      CodeUri: target
      AutoPublishAlias: live
      DeploymentPreference: { Enabled: false, Type: PLACE }
"""
FUNCTION = f"Transform: AWS::Serverless-2016-10-31\nParameters: {{}}\n{RESOURCES}"
CONFIG = """
  Slow:
    Type: AWS::CodeDeploy::DeploymentConfig
    Properties: { ComputePlatform: Lambda }
"""
GLOBALS = """
Globals:
  Function:
    DeploymentPreference: { Enabled: false, Type: Slowly }
"""
# The alias waits for its deployment group, the group for its alarm, the alarm for the alias.
CIRCLE = (
    FUNCTION.replace("PLACE", "AllAtOnce, Alarms: [!Ref Alarm]")
    + """
  Alarm:
    Type: AWS::CloudWatch::Alarm
    Properties:
      Namespace: N
      MetricName: M
      Statistic: Sum
      Period: 60
      EvaluationPeriods: 1
      Threshold: 0
      ComparisonOperator: GreaterThanThreshold
      Dimensions: [{ Name: Resource, Value: !Ref FAliaslive }]
"""
)


def setUpModule() -> None:  # noqa: N802 (unittest's name)
    logging.disable(logging.WARNING)


class Copied(unittest.TestCase):
    """Works on copies, in a folder of its own."""

    def setUp(self) -> None:
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(deployable.inside(folder))
        deployable.prepare(folder)

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new))

    def expect(self, finding: str, environment: str) -> None:
        """This finding and no other."""
        found = set(deployable.findings(environment))
        self.assertEqual(len(found), 1, found)
        self.assertIn(finding, found.pop())


class Samconfig(Copied):
    """Against the parameters and rules of template.yaml, with one function instead of all."""

    def setUp(self) -> None:
        super().setUp()
        head, _ = TEMPLATE.read_text().split("\nConditions:\n")
        TEMPLATE.write_text(head + RESOURCES.replace("PLACE", "AllAtOnce"))

    def test_a_bare_false_is_not_the_string_false(self) -> None:
        self.edit(SAMCONFIG, 'CanaryEnabled = "false"', "CanaryEnabled = false")
        self.expect(
            "CanaryEnabled = 'False', as the SAM CLI gives it; allowed: true, false", "prod"
        )

    def test_a_name_that_the_template_does_not_have(self) -> None:
        self.edit(SAMCONFIG, "TokenIssuer =", "TokenIsuer =")
        self.expect("TokenIsuer = 'tirada-dev': template.yaml has no such parameter", "dev")

    def test_an_included_name_that_the_template_does_not_have(self) -> None:
        place = parameters.AWS.relative_to(settings.ROOT)
        values = json.loads(place.read_text()) | {"Migrations": "0"}
        place.write_text(json.dumps(values))
        self.expect("Migrations = '0': template.yaml has no such parameter", "staging")

    def test_an_included_file_that_no_build_writes(self) -> None:
        self.edit(SAMCONFIG, "file://target/parameters.yaml", "file://target/others.yaml")
        self.expect("file://target/others.yaml was not found", "prod")

    def test_a_missing_value(self) -> None:
        parameters.AWS.relative_to(settings.ROOT).write_text("{}")
        self.expect("MigrationsHash has no value and no default", "dev")

    def test_a_number_below_the_minimum(self) -> None:
        self.edit(SAMCONFIG, "DatabaseConnectionsMax = 400", "DatabaseConnectionsMax = 100")
        self.expect("DatabaseConnectionsMax = '100'", "prod")

    def test_a_text_that_the_pattern_refuses(self) -> None:
        self.edit(SAMCONFIG, '"prx-00000000000000000"', '"proxy"')
        self.expect("DatabaseProxyResourceId = 'proxy'", "dev")

    def test_a_rule_of_the_template(self) -> None:
        self.edit(SAMCONFIG, 'Stage = "prod"', 'Stage = "prod"\nPhonesFile = "phones.jsonl"')
        self.expect("the rule AwsNeedsProxyAndSecrets is broken: PhonesFile is for", "prod")

    def test_a_missing_capability(self) -> None:
        self.edit(SAMCONFIG, "CAPABILITY_IAM ", "")
        self.expect("needs CAPABILITY_IAM", "staging")

    def test_what_sam_does_not_expand(self) -> None:
        self.edit(TEMPLATE, "AutoPublishAlias: live", "AutoPublishAlias: 'a live one'")
        self.expect("SAM does not expand template.yaml", "dev")

    def test_a_named_role(self) -> None:
        role = "  R:\n    Type: AWS::IAM::Role\n    Properties: { RoleName: catalog }\n"
        self.edit(TEMPLATE, "\nResources:\n", f"\nResources:\n{role}")
        self.expect("R has a name and needs CAPABILITY_NAMED_IAM", "dev")

    def test_every_environment_is_looked_at(self) -> None:
        self.assertEqual(deployable.names(), ["local", "sam-local", "dev", "staging", "prod"])


class Template(Copied):
    def test_a_deployment_type_that_sam_does_not_know(self) -> None:
        self.edit(TEMPLATE, TYPE, "Type: LambdaCanary10Percent5Minutes")
        self.expect("DeploymentPreference: Type = 'LambdaCanary10Percent5Minutes'", "prod")


class Deployments(Copied):
    """Of a template with one function, whose canary is switched off."""

    def setUp(self) -> None:
        super().setUp()
        self.deployment = deployable.Deployment({}, ["CAPABILITY_IAM"], settings.REGION)

    def unknown(self, kind: str, more: str = "") -> list[str]:
        TEMPLATE.write_text(FUNCTION.replace("PLACE", kind) + more)
        text = deployable.expand(self.deployment, canary=True)
        return list(deployable.unknown_deployments(deployable.yaml_parse(text)["Resources"]))

    def test_each_type_of_sam_exists(self) -> None:
        for kind in deployable.DEPLOYMENT_TYPES:
            self.assertEqual(self.unknown(kind), [])

    def test_a_configuration_of_the_stack_exists(self) -> None:
        self.assertEqual(self.unknown("!Ref Slow", CONFIG), [])
        named = CONFIG.replace("{ ", "{ DeploymentConfigName: slow, ")
        self.assertEqual(self.unknown("slow", named), [])
        self.assertIn("Slow", self.unknown("!Ref Slow")[0])

    def test_every_branch_is_looked_at(self) -> None:
        condition = "\nConditions: { Fast: !Equals [!Ref AWS::Region, us-east-1] }\n"
        self.assertEqual(self.unknown("!If [Fast, AllAtOnce, !Ref Slow]", CONFIG + condition), [])
        found = self.unknown("!If [Fast, AllAtOnce, Fast]", condition)
        self.assertIn("Type = 'Fast' (FDeploymentGroup)", found[0])

    def test_a_preference_of_all_functions(self) -> None:
        TEMPLATE.write_text(FUNCTION.replace("      DeploymentPreference:", "      # ") + GLOBALS)
        text = deployable.expand(self.deployment, canary=True)
        found = deployable.unknown_deployments(deployable.yaml_parse(text)["Resources"])
        self.assertIn("Type = 'Slowly'", next(found))

    def test_cfn_lint_sees_what_a_false_hides(self) -> None:
        TEMPLATE.write_text(CIRCLE)
        self.assertTrue(any("E3004" in line for line in deployable.linted(self.deployment)))
