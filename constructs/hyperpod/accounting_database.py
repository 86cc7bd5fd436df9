"""The database in which Slurm keeps its accounts: jobs, usage, associations and QOS."""

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from ...config.settings.slurm import AccountingDatabase
from ...planning.rules import check
from ..common.arguments import checked
from ..common.protection import Protection, removal_policy
from ..network.traffic import Ports, Traffic

_PORT = 3306
_USER = "slurm"
# The time that slurmdbd asks for beside its own default of 50, or it warns at each start and fails in large roll-ups.
# Source: Slurm documentation, "Accounting and resource limits", 2026-11.
_PARAMETERS = {"innodb_lock_wait_timeout": "900"}
# Not the general log, which holds every statement.
_LOGS = ["audit", "error", "slowquery"]
_UNLIKE_OTHERS = {
    "RDS6": "slurmdbd logs in by name and password; it knows no IAM tokens.",
    "RDS11": "The port is private to one security group, and HyperPod's default for it.",
    "RDS14": "Backtracking rewinds in place; daily backups and restores by time keep accounts as well.",
}


class SlurmAccounting(Construct):
    """Aurora MySQL (serverless v2) for slurmdbd, with a secret that holds its user; or an existing database.

    Decided for you: encrypted with the given key; reached by the clients' security group on one port and by nobody
    else; no public address. The user `slurm` may make the schema, which slurmdbd does when it first starts. Its
    password is made by Secrets Manager, from letters and digits, and not rotated: slurmdbd reads it when it starts, so
    a rotation would end accounting. With protection `retain` cluster, secret and group survive their stack and refuse
    deletion. Of an existing database only the way from the clients is opened, if its security group is given.

    Example:
        from podwright.config.settings.slurm import AccountingDatabase
        from podwright.constructs.hyperpod.accounting_database import SlurmAccounting
        SlurmAccounting(stack, "Accounting", settings=AccountingDatabase(), vpc=vpc, subnets=vpc.private_subnets,
                        clients=clients, key=key, protection="retain")
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: AccountingDatabase,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        clients: ec2.ISecurityGroup,
        key: kms.IKey,
        protection: Protection,
    ) -> None:
        """Defines the database.

        Args:
            scope: Parent construct.
            construct_id: Id within the parent.
            settings: The database.
            vpc: The VPC.
            subnets: Subnets in two zones at least, of those that outlive the stack.
            clients: Security group of the nodes.
            key: Encrypts database and secret.
            protection: Whether it survives its stack.

        Raises:
            InvalidSettings: settings that cannot be built.
        """
        super().__init__(scope, construct_id)
        check(settings)

        existing = settings.existing
        if existing:
            if existing.security_group:
                group = ec2.SecurityGroup.from_security_group_id(self, "Existing", existing.security_group)
                self._open(clients, group, existing.port)
            self.host, self.port, self.user = existing.endpoint, existing.port, existing.user
            self.secret_arn = existing.secret
        else:
            secret = self._secret(key, protection)
            cluster = self._cluster(settings, vpc, subnets, clients, key, secret, protection)
            self.host, self.port, self.user = cluster.attr_endpoint_address, _PORT, _USER
            self.secret_arn = secret.ref

        self.host: str
        """Host name."""
        self.port: int
        """Port."""
        self.user: str
        """User that the secret holds."""
        self.secret_arn: str
        """ARN of the secret with `username` and `password`."""
        self.key = None if existing else key
        """Key that decrypts the secret; unknown of an existing one."""

    def _open(self, clients: ec2.ISecurityGroup, group: ec2.ISecurityGroup, port: int) -> list[cdk.CfnResource]:
        """Open the port to clients; returns the rules."""
        ports, reason = [Ports("tcp", port, port)], "slurmdbd on controllers"
        return Traffic(self, "FromClients", source=clients, target=group, ports=ports, description=reason).rules

    def _secret(self, key: kms.IKey, protection: Protection) -> secretsmanager.CfnSecret:
        """The database's user with a generated password of 32 characters, which no template shows."""
        secret = secretsmanager.CfnSecret(
            self,
            "Secret",
            description="User of Slurm's accounting database",
            kms_key_id=key.key_arn,
            generate_secret_string=secretsmanager.CfnSecret.GenerateSecretStringProperty(
                secret_string_template=f'{{"username": "{_USER}"}}',
                generate_string_key="password",
                # slurmdbd.conf has no quoting, so signs in a password would end it.
                exclude_punctuation=True,
                password_length=32,
            ),
        )
        secret.apply_removal_policy(removal_policy(protection))
        _acknowledge(secret, "SMG4", "slurmdbd reads the password when it starts; a rotation would end accounting.")
        return secret

    def _cluster(
        self,
        settings: AccountingDatabase,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        clients: ec2.ISecurityGroup,
        key: kms.IKey,
        secret: secretsmanager.CfnSecret,
        protection: Protection,
    ) -> rds.CfnDBCluster:
        """The Aurora cluster with a writer and, if asked for, a standby; only `clients` reach it."""
        lasting = removal_policy(protection)
        group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, allow_all_outbound=False, description="Slurm accounting database"
        )
        rules = self._open(clients, group, _PORT)
        locations = rds.CfnDBSubnetGroup(
            self,
            "Subnets",
            db_subnet_group_description="Nodes of the cluster",
            subnet_ids=[subnet.subnet_id for subnet in subnets],
        )
        parameters = rds.CfnDBClusterParameterGroup(
            self, "Parameters", family="aurora-mysql8.0", description="What slurmdbd asks for", parameters=_PARAMETERS
        )
        cluster = rds.CfnDBCluster(
            self,
            "Resource",
            engine="aurora-mysql",
            engine_version=settings.version,
            master_username=_USER,
            # CloudFormation reads it when it deploys; the template holds only the reference.
            master_user_password=f"{{{{resolve:secretsmanager:{secret.ref}:SecretString:password}}}}",
            db_subnet_group_name=locations.ref,
            db_cluster_parameter_group_name=parameters.ref,
            vpc_security_group_ids=[group.security_group_id],
            port=_PORT,
            storage_encrypted=True,
            kms_key_id=key.key_arn,
            serverless_v2_scaling_configuration=rds.CfnDBCluster.ServerlessV2ScalingConfigurationProperty(
                min_capacity=settings.min_capacity, max_capacity=settings.max_capacity
            ),
            backup_retention_period=settings.backup_days,
            copy_tags_to_snapshot=True,
            # While this is on nobody deletes the database by hand either.
            deletion_protection=protection == "retain",
            enable_cloudwatch_logs_exports=_LOGS,
        )
        # Whoever is made after the database finds it open, and what still writes when all of it goes is not cut off.
        for rule in rules:
            cluster.add_resource_dependency(rule)
        writer = self._instance("Writer", cluster)
        if settings.standby:
            # Whichever instance is made first becomes the writer.
            self._instance("Standby", cluster).add_resource_dependency(writer)
        for resource in (group, locations, parameters, cluster):
            resource.apply_removal_policy(lasting)
        for rule, reason in _UNLIKE_OTHERS.items():
            _acknowledge(cluster, rule, reason)
        if protection == "destroy":
            _acknowledge(cluster, "RDS10", "The environment is one that may be destroyed.")
        cdk.Tags.of(self).add("Name", self.node.path)
        return cluster

    def _instance(self, construct_id: str, cluster: rds.CfnDBCluster) -> rds.CfnDBInstance:
        return rds.CfnDBInstance(
            self,
            construct_id,
            db_cluster_identifier=cluster.ref,
            db_instance_class="db.serverless",
            engine="aurora-mysql",
            publicly_accessible=False,
            auto_minor_version_upgrade=True,
        )


def _acknowledge(resource: Construct, rule: str, reason: str) -> None:
    cdk.Validations.of(resource).acknowledge(cdk.Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))
