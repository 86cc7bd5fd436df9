"""How many EFA interfaces of a node FSx for Lustre uses, as the FSx User Guide's own client set-up does."""

from ...config.catalog.facts import table
from ...config.catalog.instance_type import InstanceType

_FIRST_GENERATION = 2
"""EFA of Nitro v4; FSx takes no older clients."""
_EXCLUDED = ("ml.trn2.",)


def lustre_efa_interfaces(row: InstanceType) -> int:
    """EFA interfaces for Lustre on that type; 0 where FSx takes no EFA client.

    The table names some types; of the others, those with several network cards use two and those with one use one.
    """
    if (row.efa_generation or 0) < _FIRST_GENERATION or row.name.startswith(_EXCLUDED):
        return 0
    named = {entry["type"]: int(entry["interfaces"]) for entry in table("lustre_clients")}
    return named.get(row.name, 2 if row.network_cards > 1 else 1)
