"""Sessions of a test process share botocore's models, and each keeps its own search paths."""

import botocore.session
import pytest
from boto3.session import Session

import service_models


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models as tests share them; importing the sandbox's server into this process shares its own."""
    monkeypatch.setattr(botocore.session, "create_loader", botocore.session.create_loader)
    service_models.share()


def test_sessions_share_the_models_that_they_read() -> None:
    first, second = (Session()._session.get_component("data_loader") for _ in range(2))
    assert first is not second
    assert first.load_service_model("sts", "service-2") is second.load_service_model("sts", "service-2")
    first.search_paths.insert(0, "/nowhere")
    assert "/nowhere" not in second.search_paths
    assert first.list_available_services("service-2") == second.list_available_services("service-2")


def test_services_are_those_of_the_search_paths(tmp_path: object) -> None:
    loader = botocore.session.create_loader()
    before = loader.list_available_services("service-2")
    loader.search_paths[:] = [str(tmp_path)]
    assert loader.list_available_services("service-2") == []
    assert "sts" in before
