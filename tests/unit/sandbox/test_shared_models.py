"""One copy of botocore's models serves all sessions of the sandbox, and clients leave alone what its servers read."""

from concurrent.futures import ThreadPoolExecutor

import botocore.session
import moto.core.utils
import pytest
from boto3.session import Session
from botocore.client import ClientCreator
from botocore.exceptions import EndpointConnectionError

from podwright.sandbox.protocol import models

NOWHERE = "http://localhost:1"


@pytest.fixture(autouse=True)
def mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models, for this test alone."""
    monkeypatch.setattr(botocore.session, "create_loader", botocore.session.create_loader)
    monkeypatch.setattr(moto.core.utils, "create_loader", moto.core.utils.create_loader)
    monkeypatch.setattr(ClientCreator, "_create_client_class", vars(ClientCreator)["_create_client_class"])
    for remembered in (models._of_sessions, models._of_moto, moto.core.utils.get_service_model):
        remembered.cache_clear()
    models.mount()


def session() -> Session:
    return Session("sandbox", "sandbox", region_name="us-west-2")


def test_sessions_have_the_same_model_without_its_prose() -> None:
    first, second = (session()._session.get_component("data_loader") for _ in range(2))
    model = first.load_service_model("ec2", "service-2")
    assert model is second.load_service_model("ec2", "service-2")
    assert {shape.get("documentation", "") for shape in model["shapes"].values()} == {""}
    assert model["operations"]["DescribeVpcs"]["http"]["method"] == "POST"
    paths = first.search_paths
    session()
    assert first.search_paths == paths


def test_moto_has_the_same_model_where_it_adds_nothing() -> None:
    loader, of_moto = session()._session.get_component("data_loader"), moto.core.utils.create_loader()
    assert of_moto.load_service_model("eks", "service-2") is loader.load_service_model("eks", "service-2")
    operation = "BucketCORSPreflightCheck"
    assert operation in of_moto.load_service_model("s3", "service-2")["operations"]
    assert operation not in loader.load_service_model("s3", "service-2")["operations"]


def test_a_call_of_s3_leaves_the_paths_that_the_server_reads() -> None:
    """A client of S3 takes the bucket out of the path in the model itself."""
    s3 = session().client("s3", endpoint_url=NOWHERE)
    with pytest.raises(EndpointConnectionError):
        s3.head_object(Bucket="bucket", Key="key")
    assert s3.meta.service_model.operation_model("HeadObject").http["requestUri"] == "/{Key+}"
    served = moto.core.utils.get_service_model("s3").operation_model("HeadObject")
    assert served.http["requestUri"] == "/{Bucket}/{Key+}"


def test_threads_make_clients_at_the_same_time() -> None:
    services = ["ec2", "s3", "sagemaker", "iam", "eks", "lambda"] * 4

    def operations(service: str) -> int:
        return len(session().client(service, endpoint_url=NOWHERE).meta.service_model.operation_names)

    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(operations, services))
    assert counts == counts[:6] * 4
    assert min(counts) > 50


def test_clients_of_a_service_have_one_class() -> None:
    """ec2's has 750 methods, and the sandbox has a client for each account and region."""
    first, second = (session().client("ec2", region_name=region, endpoint_url=NOWHERE) for region in ("a-b-1", "c-d-1"))
    assert type(first) is type(second)
    assert first.meta.region_name != second.meta.region_name
