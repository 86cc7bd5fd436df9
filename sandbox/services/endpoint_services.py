"""Services that VPC endpoints can lead to: those that podwright knows of, in every zone of a region.

moto has a list of its own, which lacks most of them, and takes no filters as clients send them.
"""

from moto.core.responses import ActionResult
from moto.ec2.responses import EC2Response

from ...planning.network.endpoints import GATEWAY_SERVICE, calls


class EndpointServices(EC2Response):
    """The EC2 API, with the endpoint services of AWS."""

    def describe_vpc_endpoint_services(self) -> ActionResult:
        """The services that are asked for, by name or by a filter of names; all without either."""
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
