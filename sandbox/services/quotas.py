# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""Service Quotas, with synthetic quota codes and with values that a user of the sandbox can change.

By default all values are high. `PUT /podwright/quotas` with `{"sagemaker": {"ml.p5.48xlarge for cluster usage": 0}}`
changes one, which HyperPod then applies. `GET` returns the changed values.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any, ClassVar

from moto.core.responses import ActionResult
from moto.servicequotas.responses import ServiceQuotasResponse
from pydantic import NonNegativeFloat, TypeAdapter, ValidationError
from werkzeug.wrappers import Request, Response

from ...config.catalog.instance_types import catalog
from ...config.catalog.service_quotas import quotas
from ..protocol.json_objects import JsonObject
from ..protocol.known_names import check_known
from ..protocol.service import refuse

PATH = "/podwright/quotas"
_PLENTY = 100_000.0
_VALUES = TypeAdapter(dict[str, dict[str, NonNegativeFloat]])


class Quotas:
    """Changed values by service code and name, for all regions."""

    def __init__(self) -> None:
        self.values: dict[str, dict[str, float]] = {}

    def of(self, service: str) -> dict[str, float]:
        """Return the value of each quota of a service."""
        instance_types = [row.name for row in catalog()]
        known = {
            quota.named(instance_type)
            for quota in quotas().values()
            if quota.service == service
            for instance_type in (instance_types if "{type}" in quota.name else [""])
        }
        return dict.fromkeys(sorted(known), _PLENTY) | self.values.get(service, {})

    def limit(self, service: str, name: str) -> float | None:
        """Return a changed value; None for a default."""
        return self.values.get(service, {}).get(name)

    def serve(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve one request to PATH."""
        request = Request(environ)
        if request.method == "PUT":
            try:
                values = _VALUES.validate_json(request.get_data())
                _check(values)
            except (ValidationError, ValueError) as error:
                return Response(f"{error}\n", 400)(environ, start_response)
            self.values = values
        return Response(json.dumps(self.values), content_type="application/json")(environ, start_response)


class QuotasResponse(ServiceQuotasResponse):
    """The Service Quotas API, with podwright's quotas, and moto's defaults for other services."""

    service: ClassVar[Quotas]

    def list_service_quotas(self) -> ActionResult:
        return self._page(self._applied())

    def list_aws_default_service_quotas(self) -> Any:
        defaults = self._defaults()
        return self._page(defaults) if defaults else super().list_aws_default_service_quotas()

    def get_service_quota(self) -> Any:
        result = self._applied()
        return self._one(result) if result else super().get_service_quota()

    def get_aws_default_service_quota(self) -> ActionResult:
        return self._one(self._defaults())

    def _request(self) -> JsonObject:
        return json.loads(self.body)

    def _applied(self) -> list[JsonObject]:
        code = self._request()["ServiceCode"]
        return [
            _quota(self.current_account, self.region, code, name, value)
            for name, value in self.service.of(code).items()
        ]

    def _defaults(self) -> list[JsonObject]:
        return [quota | {"Value": _PLENTY} for quota in self._applied()]

    def _page(self, result: list[JsonObject]) -> ActionResult:
        request = self._request()
        if not result:
            raise refuse(
                "NoSuchResourceException", f"The sandbox knows no quotas of {request['ServiceCode']} (sandbox)"
            )
        size, start = request.get("MaxResults", 100), int(request.get("NextToken", 0))
        more = {"NextToken": str(start + size)} if len(result) > start + size else {}
        return ActionResult({"Quotas": result[start : start + size], **more})

    def _one(self, result: list[JsonObject]) -> ActionResult:
        code = self._request()["QuotaCode"]
        for quota in result:
            if quota["QuotaCode"] == code:
                return ActionResult({"Quota": quota})
        raise refuse("NoSuchResourceException", f"The sandbox knows no quota {code} (sandbox)")


def _check(values: dict[str, dict[str, float]]) -> None:
    """Raise ValueError for the name of an unknown service or quota."""
    check_known("service", values, sorted({quota.service for quota in quotas().values()}))
    types = [row.name for row in catalog()]
    for service, named in values.items():
        patterns = [quota.name for quota in quotas().values() if quota.service == service]
        names = {pattern.format(type=each) for pattern in patterns for each in types}
        if unknown := next((name for name in named if name not in names), None):
            raise ValueError(
                f"unknown quota {unknown} of {service}; known are {', '.join(patterns)}, where {{type}} is one of "
                f"{', '.join(types)}"
            )


def _code(name: str) -> str:
    return f"L-{hashlib.sha256(name.encode()).hexdigest()[:8].upper()}"


def _quota(account: str, region: str, service: str, name: str, value: float) -> JsonObject:
    return {
        "ServiceCode": service,
        "ServiceName": service,
        "QuotaArn": f"arn:aws:servicequotas:{region}:{account}:{service}/{_code(name)}",
        "QuotaCode": _code(name),
        "QuotaName": name,
        "Value": value,
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }
