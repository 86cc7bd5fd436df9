# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""Services that VPC endpoints can lead to: those that podwright knows of, in every zone of a region.

moto has a list of its own, which lacks most of them, and takes no filters as clients send them.
"""

from moto.core.responses import ActionResult
from moto.ec2.responses import EC2Response

from ...planning.network.endpoints import GATEWAY_SERVICE, calls


class EndpointServices(EC2Response):
    """The EC2 API, with the endpoint services of AWS."""

    def describe_vpc_endpoint_services(self) -> ActionResult:
        zones = self.ec2_backend.describe_availability_zones()
        names = {f"com.amazonaws.{self.region}.{call.service}" for call in calls()}
        names &= set(self._get_param("ServiceNames") or names)
        for item in self._get_param("Filters") or []:
            if item["Name"] == "service-name":
                names &= set(item["Values"])
        details = [
            {
                "ServiceName": name,
                "ServiceType": [{"ServiceType": "Gateway" if name.endswith(f".{GATEWAY_SERVICE}") else "Interface"}],
                "AvailabilityZones": [zone.name for zone in zones],
                "AvailabilityZoneIds": [zone.zone_id for zone in zones],
                "Owner": "amazon",
            }
            for name in sorted(names)
        ]
        return ActionResult({"ServiceNames": sorted(names), "ServiceDetails": details})
