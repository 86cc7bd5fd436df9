"""A project that promotes four environments, side by side in two regions in one of its stages."""

from pathlib import Path

from podwright.config.loading.project import Project

CONNECTION = "arn:aws:codeconnections:us-west-2:012345678901:connection/0e3a1b2c-1111-2222-3333-444455556666"
PIPELINE = f"""
environments: [dev, staging-west, staging-east, prod]
pipeline:
  account: "012345678901"
  region: us-west-2
  source: {{repository: acme/clusters, connection: "{CONNECTION}"}}
  tests: [pytest tests]
  notify: [oncall@example.com]
  stages:
    - environments: dev
    - environments: [staging-west, staging-east]
    - {{environments: prod, manual: true, gates: [cluster, canary]}}
"""
GITHUB = """
environments: [dev, staging-west, staging-east, prod]
pipeline:
  source: {repository: acme/clusters}
  stages:
    - environments: dev
    - environments: [staging-west, staging-east]
    - {environments: prod, manual: true}
"""
# An environment of each: account and region. staging-east is where no other is.
POSITIONS = {
    "dev": ("111122223333", "us-west-2"),
    "staging-west": ("123456789012", "us-west-2"),
    "staging-east": ("123456789012", "us-east-1"),
    "prod": ("012345670123", "us-west-2"),
}
_ENVIRONMENT = """
account: "{account}"
region: {region}
protection: destroy
network: {{zones: [{zone}-az1, {zone}-az2]}}
cluster: {{zones: [{zone}-az1, {zone}-az2]}}
storage: {{lustre: {{}}}}
instance_groups: {{system: {{instance_type: ml.m5.4xlarge, count: 2}}}}
"""


OVERRIDE = """
governance:
  teams: {research: {quota: {system: 1}}}
  overrides: {paper: {begin: 2027-01-04T08:00Z, end: 2027-02-01, teams: {research: {quota: {system: 2}}}}}
"""
"""Quotas that are others for a time, as a further part of an environment's file."""


def write_project(folder: Path, text: str = PIPELINE, more: str = "") -> Project:
    """The project in a folder, with more in the file of each environment."""
    (folder / "environments").mkdir(parents=True, exist_ok=True)
    for name, (account, region) in POSITIONS.items():
        zone = {"us-west-2": "usw2", "us-east-1": "use1"}[region]
        text_of_it = _ENVIRONMENT.format(account=account, region=region, zone=zone)
        (folder / f"environments/{name}.yaml").write_text(text_of_it + more)
    (folder / "podwright.yaml").write_text(text)
    return Project.at(folder)
