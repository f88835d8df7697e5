"""Each bound of a parameter, and the rules of a template."""

import unittest

from local.stack_values import broken_rules, refused, unfit

# A parameter, a value that it takes, one that it refuses, and what the finding says.
KINDS = [
    ({"Type": "String", "AllowedValues": ["true", "false"]}, "false", "False", "true, false"),
    ({"Type": "String", "AllowedValues": [True, False]}, "true", "True", "true, false"),
    ({"Type": "Number", "AllowedValues": [1, 3]}, "3", "2", "1, 3"),
    ({"Type": "String", "AllowedPattern": "a+"}, "aa", "aab", "what matches a+"),
    ({"Type": "CommaDelimitedList", "AllowedPattern": "a+"}, "a, aa", "a,b", "what matches a+"),
    ({"Type": "CommaDelimitedList", "AllowedValues": ["a"]}, "a", "a,b", "a"),
    ({"Type": "String", "MinLength": 2}, "ab", "a", "2 characters or more"),
    ({"Type": "String", "MaxLength": "2"}, "ab", "abc", "2 characters or less"),
    ({"Type": "String"}, "a" * 4096, "a" * 4097, "4096 bytes or less"),
    ({"Type": "Number", "MinValue": 132}, "132", "131", "132 or more"),
    ({"Type": "Number", "MaxValue": 5}, "-0.5", "5.1", "5 or less"),
    ({"Type": "Number"}, "1.5", "True", "a number"),
    ({"Type": "List<Number>"}, "1, 2", "1,two", "a number"),
]
TEMPLATE = {
    "Parameters": {
        "Stage": {"Type": "String", "Default": "dev"},
        "Key": {"Type": "String", "Default": "", "NoEcho": True, "AllowedPattern": "[a-z]*"},
        "Count": {"Type": "Number"},
    },
    "Rules": {
        "NeedsKey": {
            "RuleCondition": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Stage"}, "local"]}]},
            "Assertions": [
                {
                    "Assert": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Key"}, ""]}]},
                    "AssertDescription": "Needs Key.",
                }
            ],
        }
    },
}


class Values(unittest.TestCase):
    def test_a_default_is_held_to_its_own_bounds(self):
        declared = {"Port": {"Type": "Number", "Default": "x5432"}}
        self.assertEqual(
            list(unfit(declared, {})), ["Port = 'x5432', its default; allowed: a number"]
        )
        self.assertEqual(list(unfit(declared, {"Port": "5432"})), [])

    def test_each_kind_of_bound(self) -> None:
        for parameter, taken, not_taken, allowed in KINDS:
            with self.subTest(parameter=parameter):
                self.assertEqual(list(refused(parameter, taken)), [])
                self.assertEqual(list(refused(parameter, not_taken)), [allowed])

    def test_secrets_are_not_shown(self) -> None:
        [line] = unfit(TEMPLATE["Parameters"], {"Key": "S3CRET", "Count": "1"})
        self.assertNotIn("S3CRET", line)

    def test_names(self) -> None:
        self.assertEqual(
            list(unfit(TEMPLATE["Parameters"], {"Kount": "1"})),
            [
                "Kount = '1': template.yaml has no such parameter",
                "Count has no value and no default",
            ],
        )

    def test_rules(self) -> None:
        self.assertEqual(list(broken_rules(TEMPLATE, {"Key": "a"})), [])
        self.assertEqual(list(broken_rules(TEMPLATE, {"Stage": "local"})), [])
        self.assertEqual(
            list(broken_rules(TEMPLATE, {})), ["the rule NeedsKey is broken: Needs Key."]
        )
