"""AWS's own templates, which judge endpoints."""

from types import SimpleNamespace

import pytest

from hyp_endpoints import aws_template


@pytest.fixture
def template(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """That of endpoints with a model of one's own."""
    return aws_template(monkeypatch, "hyperpod_custom_inference_template.v1_2", "hp_endpoint", "HPEndpoint")


@pytest.fixture
def jumpstart_template(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """That of endpoints with a model of JumpStart."""
    name = "hyperpod_jumpstart_inference_template.v1_2"
    return aws_template(monkeypatch, name, "hp_jumpstart_endpoint", "HPJumpStartEndpoint")
