"""Rules on the software of nodes: EFA, NCCL and what belongs to them."""

from ....config.catalog.facts import table
from ....config.catalog.software_matrix import NAMES, Mismatch, efa_installers, mismatches, with_contents
from ....config.findings import Level, listed
from ....config.settings.cluster import Cluster
from ....config.settings.software import COMPONENTS, KERNEL_PARTS, NodeSoftware
from ..framework.rule import ERROR, WARNING, Problem, Problems, rule


def _mismatches(software: NodeSoftware, level: Level) -> list[Mismatch]:
    return [item for item in mismatches(with_contents(dict(software.versions.items()))) if item.level == level]


def _problem(software: NodeSoftware, mismatch: Mismatch) -> Problem:
    """At the version that is given; the other one may come with the EFA installer."""
    specified = [name for name in (mismatch.needs, mismatch.component) if getattr(software.versions, name, None)]
    return Problem(("versions", *specified[:1]), mismatch.text, "choose versions that were published together")


@rule("SFT001", WARNING, on=NodeSoftware, source="")
def something_to_install(software: NodeSoftware) -> Problems:
    """Software installation without versions."""
    if software.install != "verify" and not software.versions.items() and not software.packages:
        yield Problem(
            "install",
            f"install is {software.install}, and versions is empty, so nothing is installed",
            "give versions, such as efa_installer: 1.50.0 and nccl: 2.31.2, or leave install at verify",
        )


@rule("SFT002", ERROR, on=NodeSoftware, source="ofi-nccl efa-changelog cuda-notes")
def versions_work_together(software: NodeSoftware) -> Problems:
    """Incompatible versions."""
    for item in _mismatches(software, ERROR):
        yield _problem(software, item)


@rule("SFT003", WARNING, on=NodeSoftware, source="ofi-nccl ofi-gin efa-changelog")
def versions_were_tested_together(software: NodeSoftware) -> Problems:
    """Untested combination of versions."""
    for item in _mismatches(software, WARNING):
        yield _problem(software, item)


@rule("SFT004", WARNING, on=Cluster, source="")
def pods_bring_their_own(cluster: Cluster) -> Problems:
    """Host version of software that pods bring."""
    if cluster.orchestrator != "eks":
        return
    for name in COMPONENTS:
        version = getattr(cluster.node_software.versions, name)
        if version and name not in KERNEL_PARTS:
            yield Problem(
                ("node_software", "versions", name),
                f"{name} is {version}, and with EKS only kernel modules belong on the host: pods bring {NAMES[name]}",
                "remove it, and check images with `podwright image check`",
            )


@rule("SFT005", WARNING, on=NodeSoftware, source="efa-changelog")
def known_installer(software: NodeSoftware) -> Problems:
    """EFA installer with unknown contents."""
    version, known = software.versions.efa_installer, list(efa_installers())
    if version and version not in known:
        yield Problem(
            ("versions", "efa_installer"),
            f"efa_installer is {version}; podwright knows the contents of {listed(known, 'and')}, and can check no "
            "other against NCCL",
            f"take {known[-1]}, or accept this with a reason",
        )


@rule("SFT006", WARNING, on=NodeSoftware, source="efa-cheatsheet")
def variables_that_undo_tuning(software: NodeSoftware) -> Problems:
    """Environment variable that should stay unset."""
    for row in table("fabric_variables_left_alone"):
        if value := software.variables.get(row["name"]):
            yield Problem(
                ("variables", row["name"]),
                f"{row['name']} is {value}: {row['why']}",
                "remove it unless you measured it",
            )


@rule("SFT007", WARNING, on=NodeSoftware, source="")
def packages_that_nobody_installs(software: NodeSoftware) -> Problems:
    """Packages that are never installed."""
    if software.packages and software.install == "verify":
        yield Problem(
            "packages",
            f"packages names {listed(sorted(software.packages), 'and')}, and install is verify, which installs nothing",
            "set install to ensure, or remove them",
        )
    for name, package in software.packages.items():
        rpm = package.address.endswith(".rpm")
        for system in package.systems:
            if rpm is not (system == "amzn2023"):
                yield Problem(
                    ("packages", name, "systems"),
                    f"{package.address.rpartition('/')[2]} cannot be installed on {system}",
                    "name a .rpm for amzn2023, and a .deb for Ubuntu",
                )
