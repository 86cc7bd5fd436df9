"""No secret gets into a bundle, wherever it stands, and what doctor needs to read stays."""

import json
from collections.abc import Iterator

import pytest

from doctor_corpus import bundle, labels
from doctor_secrets import HARMLESS, SECRETS
from podwright.config.redact import redact
from podwright.operations.doctor.bundle import Bundle
from podwright.operations.doctor.diagnose import diagnose

TIME = "2026-11-21T10:00:00.000Z"
WHOLE = bundle("quiet")


def _places(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Where a text may stand in a bundle."""
    log = "".join(f"{TIME} {line}\n" for line in text.splitlines())
    for path in (
        "logs/LifecycleConfig/train/i-1.log",
        "kubernetes/logs/ns/pod/main.log",
        "logs/DeepHealthCheckResults/1.log",
    ):
        yield path, {path: log}
    event = {"items": [{"message": f"Error: {text}"}]}
    yield "event of Kubernetes", {"kubernetes/events.json": json.dumps(event)}
    container = {"args": ["-c", text], "env": [{"name": "SETTINGS", "value": text}]}
    yield "pod", {"kubernetes/pods.json": json.dumps({"items": [{"spec": {"containers": [container]}}]})}
    reason = {"prod-cluster": [{"ResourceStatusReason": f"Received response status [FAILED]: {text}"}]}
    yield "event of a stack", {"stack-events.json": json.dumps(reason)}


@pytest.mark.parametrize(("kind", "text", "secret"), SECRETS, ids=[kind for kind, _, _ in SECRETS])
def test_a_secret_is_taken_out_wherever_it_stands(kind: str, text: str, secret: str) -> None:
    del kind
    for location, planted in _places(text):
        retained, counts = redact(planted)
        assert retained.keys() == planted.keys()
        assert not [path for path, content in retained.items() if secret in content], location
        assert counts.total() > 0, location
        assert all(json.loads(content) for path, content in retained.items() if path.endswith(".json")), location


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    for location, planted in _places(text):
        retained, _ = redact(planted)
        assert [content for content in retained.values() if text in content], location


def test_a_variable_whose_name_says_secret_is_taken_out_whatever_its_value() -> None:
    pods = json.loads(WHOLE["kubernetes/pods.json"])
    names = ("DB_PASSWORD", "HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "SLURM_JWT_TOKEN")
    variables = [{"name": name, "value": "plain-words-of-" + name[::-1].lower()} for name in names]
    pods["items"][0]["spec"]["containers"][0]["env"] = variables
    retained, _ = redact({"kubernetes/pods.json": json.dumps(pods)})
    assert not [each for each in variables if each["value"] in retained["kubernetes/pods.json"]]
    assert all(name in retained["kubernetes/pods.json"] for name in names)


def test_a_cluster_without_secrets_loses_nothing() -> None:
    retained, counts = redact(WHOLE)
    assert not counts
    assert {path: json.loads(text) if path.endswith(".json") else text for path, text in retained.items()} == {
        path: json.loads(text) if path.endswith(".json") else text for path, text in WHOLE.items()
    }


@pytest.mark.parametrize("name", [label.name for label in labels()[::14]])
def test_doctor_says_the_same_of_a_bundle_whose_secrets_were_taken_out(name: str) -> None:
    files = bundle(name)
    retained, _ = redact(files)
    assert diagnose(Bundle.of(retained)).classes == diagnose(Bundle.of(files)).classes
