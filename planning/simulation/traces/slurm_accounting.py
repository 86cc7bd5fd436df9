"""Traces as Slurm has them: what `sacct --parsable2` prints, with its header."""

import re
from collections.abc import Mapping
from typing import Final

from ....config.errors import InvalidValue
from .comma_separated import negative
from .times import NO_ZONE, duration, timestamp
from .trace import Trace, TracedJob, TraceProblem, UnreadableTrace, traced

SACCT: Final = (
    "sacct --allusers --allocations --parsable2 --starttime=now-30days "
    "--format=JobID,Account,Submit,ElapsedRaw,State,NNodes,AllocTRES,ReqTRES,QOS,Partition"
)
"""The command whose output is read. Source: Slurm 25.05 manual, sacct."""
_REQUIRED: Final = ("JobID", "Account", "Submit")
_ALTERNATIVES: Final = (("ElapsedRaw", "Elapsed"), ("AllocTRES", "ReqTRES"))
_MEMORY: Final = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")
_GIB: Final = {"K": 2**-20, "": 2**-10, "M": 2**-10, "G": 1.0, "T": 2.0**10, "P": 2.0**20}
_UNFINISHED: Final = ("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING")


def read_sacct(text: str) -> Trace:
    """The jobs of sacct's output, accounts as teams. Steps of jobs are no jobs. Raises UnreadableTrace."""
    lines = text.splitlines()
    names = lines[0].split("|") if lines else []
    missing = [name for name in _REQUIRED if name not in names]
    missing += [" or ".join(pair) for pair in _ALTERNATIVES if not set(pair) & set(names)]
    if missing:
        raise UnreadableTrace(1, f"sacct's header lacks {', '.join(missing)}", f"print it with `{SACCT}`")
    jobs, problems = list[TracedJob](), list[TraceProblem]()
    for line, row in enumerate(lines[1:], 2):
        fields = row.split("|")
        if not row.strip() or "." in fields[0]:
            continue
        if len(fields) != len(names):
            message = f"the row has {len(fields)} fields, and the header {len(names)}"
            problems.append(TraceProblem(line, "unreadable", message))
            continue
        values = dict(zip(names, fields, strict=True))
        state, job = values.get("State", "").partition(" ")[0], values["JobID"]
        try:
            read = _job(values, line)
        except InvalidValue as error:
            problems.append(TraceProblem(line, "unreadable", f"{job}: {error}"))
            continue
        if state in _UNFINISHED:
            problems.append(TraceProblem(line, "no duration", f"{job} is {state.lower()}, so nobody knows how long"))
        elif read.seconds < 0:
            problems.append(negative(read))
        elif read.seconds == 0:
            problems.append(TraceProblem(line, "no duration", f"{job} never ran: {state.lower() or 'no time elapsed'}"))
        else:
            jobs.append(read)
    return traced("Slurm's accounting", jobs, problems, assumptions=[NO_ZONE, "accounts of Slurm are teams"])


def _job(values: Mapping[str, str], line: int) -> TracedJob:
    """The job of a row: a pod for each node of it. Raises InvalidValue."""
    resources = _resources(values.get("AllocTRES") or values.get("ReqTRES") or "")
    nodes = _whole(resources.get("node") or values.get("NNodes") or "1", "node")
    if nodes < 1:
        raise InvalidValue("it has no nodes")
    # With types beside it (gres/gpu:h100=8) the sum stands there as well.
    devices = _whole(resources.get("gres/gpu", "0"), "gres/gpu")
    cpus = resources.get("cpu")
    memory = resources.get("mem")
    return TracedJob(
        line=line,
        name=values["JobID"],
        team=values["Account"],
        submitted=timestamp(values["Submit"]),
        seconds=duration(values.get("ElapsedRaw") or values.get("Elapsed") or ""),
        pods=nodes,
        accelerators=-(-devices // nodes),
        vcpu=_whole(cpus, "cpu") / nodes if cpus else None,
        memory_gib=_gib(memory) / nodes if memory else None,
        priority=values.get("QOS", ""),
    )


def _resources(text: str) -> dict[str, str]:
    """`cpu=96,mem=1T,node=2,gres/gpu=16` by name."""
    parts = (part.partition("=") for part in text.split(",") if part)
    return {name: amount for name, _, amount in parts}


def _whole(text: str, name: str) -> int:
    if not text.isdecimal():
        raise InvalidValue(f"{name} is {text!r}; it is a whole number")
    return int(text)


def _gib(text: str) -> float:
    matched = _MEMORY.fullmatch(text)
    if not matched:
        raise InvalidValue(f"mem is {text!r}; it is such as 512G")
    return float(matched[1]) * _GIB[matched[2]]
