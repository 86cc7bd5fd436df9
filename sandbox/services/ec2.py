"""Operations of EC2 that moto answers without the filters of a request, or from a list that lacks most services."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response

from ...planning.network.endpoints import GATEWAY_SERVICE, calls

_PEERING_FILTERS: Final[Mapping[str, Callable[[Any], str]]] = {
    "requester-vpc-info.vpc-id": lambda peering: peering.vpc.id,
    "accepter-vpc-info.vpc-id": lambda peering: peering.peer_vpc.id,
    "status-code": lambda peering: peering._status.code,
}
"""Reads the value of a moto peering that a filter compares."""


class Ec2(EC2Response):
    """The EC2 API with the endpoint services that podwright knows, and with filters of peerings."""

    def describe_vpc_endpoint_services(self) -> ActionResult:
        """Return the services of a region by name or by a filter of names; all without either."""
        zones = self.ec2_backend.describe_availability_zones()
        names = {f"com.amazonaws.{self.region}.{call.service}" for call in calls()}
        names &= set(self._get_param("ServiceNames") or names)
        for item in self._get_param("Filters") or []:
            if item["Name"] == "service-name":
                names &= set(item["Values"])
        zone_names, zone_ids = [zone.name for zone in zones], [zone.zone_id for zone in zones]
        kinds = {True: "Gateway", False: "Interface"}
        details = [
            {
                "ServiceName": name,
                "ServiceType": [{"ServiceType": kinds[name.endswith(f".{GATEWAY_SERVICE}")]}],
                "AvailabilityZones": zone_names,
                "AvailabilityZoneIds": zone_ids,
                "Owner": "amazon",
            }
            for name in sorted(names)
        ]
        return ActionResult({"ServiceNames": sorted(names), "ServiceDetails": details})

    def describe_vpc_peering_connections(self) -> ActionResult:
        """Return the peerings by id and by the filters of the VPCs at both ends and of the status; all without any."""
        ids = self._get_param("VpcPeeringConnectionIds", [])
        peerings: Iterable[Any] = self.ec2_backend.describe_vpc_peering_connections(vpc_peering_ids=ids)
        filters = self._filters_from_querystring()
        if unknown := filters.keys() - _PEERING_FILTERS.keys():
            raise EC2ClientError("InvalidParameterValue", f"The filter '{min(unknown)}' is invalid.")
        matches = [peering for peering in peerings if _passes(peering, filters)]
        return ActionResult({"VpcPeeringConnections": matches})


def _passes(peering: Any, filters: Mapping[str, Any]) -> bool:
    return all(_PEERING_FILTERS[name](peering) in values for name, values in filters.items())
