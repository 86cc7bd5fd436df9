"""Built benchmark programs in the templates: copied beside the scripts, and named in node.json."""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from podwright.config.loading.artifacts import LockedArchive
from podwright.operations.artifacts.stand_ins import stand_ins
from podwright.planning.node.archives import LockedFile, digest_of
from podwright.planning.node.kernels import driver_minimum, programs
from podwright.planning.resolved import resolve
from podwright.stacks.feature_flags import FEATURE_FLAGS
from podwright.stacks.stage import TrainingStage
from synthesis import assembly_folder, environment_of

FILE = """
account: '111122223333'
region: us-west-2
network: {zones: [usw2-az1, usw2-az2]}
instance_groups:
  system: {instance_type: ml.m5.4xlarge, count: 2}
  h200: {instance_type: ml.p5en.48xlarge, count: 4, zone: usw2-az1}
"""


def publication(*archives: LockedFile) -> tuple[dict[str, Any], dict[str, Any]]:
    """Properties of the publication, and the benchmarks of its node.json."""
    app = cdk.App(outdir=assembly_folder(), context=FEATURE_FLAGS)
    environment = environment_of(FILE)
    resolved = resolve(environment, charts=stand_ins(environment), node_archives=archives)
    stage = TrainingStage(app, "test", resolved=resolved)
    app.synth()
    assert stage.cluster
    resources = json.loads((Path(app.outdir) / "assembly-test" / stage.cluster.template_file).read_text())["Resources"]
    (properties,) = [item["Properties"] for item in resources.values() if item["Type"] == "Custom::PodwrightLifecycle"]
    parts = properties["NodeFacts"]["Fn::Join"][1]
    text = "".join(part if isinstance(part, str) else "REFERENCE" for part in parts)
    return properties, json.loads(text)["benchmarks"]


def test_nodes_learn_where_the_programs_are(tmp_path: Path) -> None:
    (tmp_path / "built").write_bytes(b"programs")
    digest = digest_of(tmp_path / "built")
    item = programs("x86_64")
    locked = LockedArchive(address=item.address, sha256=digest, bytes=8)
    properties, facts = publication(LockedFile(item, tmp_path / "built", locked))
    assert [source["Name"] for source in properties["Archives"]] == [f"archives/{digest}/{item.name}"]
    assert facts["archives"] == [{"file": f"{digest}/{item.name}", "sha256": digest, "architecture": "x86_64"}]
    assert facts["archives_uri"] == "s3://REFERENCE/test/archives"
    assert (facts["programs"], facts["driver_minimum"]) == ("shipped", driver_minimum())


def test_what_was_not_built_is_not_named() -> None:
    properties, facts = publication()
    assert "Archives" not in properties
    assert (facts["archives"], facts["archives_uri"]) == ([], "")
