"""What the stack of storage tells nodes about itself."""

from ..constructs.hyperpod.lifecycle_publication.construct import archives_uri
from ..planning.node.environment_facts import Addresses, DatabaseAddress
from .storage import StorageStack


def storage_addresses(storage: StorageStack, cluster: str, *, region: str, dns_suffix: str) -> Addresses:
    """The addresses as tokens.

    Args:
        storage: The stack.
        cluster: Name of the HyperPod cluster, whose scripts and archives lie below it.
        region: Name of the region.
        dns_suffix: Domain of AWS's services in the region's partition.
    """
    database = storage.accounting
    return Addresses(
        region=region,
        dns_suffix=dns_suffix,
        lustre=storage.lustre_values,
        home=storage.home.dns_name if storage.home else None,
        database=DatabaseAddress(database.host, database.port, database.user, database.secret_arn)
        if database
        else None,
        scripts_bucket=storage.lifecycle_bucket.bucket_name,
        archives_uri=archives_uri(storage.lifecycle_bucket, cluster),
    )
