"""A stand-in for torchrun, hyperpodrun, mpirun and a script of Python: prints the ranks of a job's pods as JSON.

It reads arguments and variables as torchrun does (PyTorch 2.11, `torch/distributed/run.py`): an argument, else the
variable PET_ with the argument's name, else a default. Pods are processes with a loopback address each; PODS maps
their names to addresses. It needs no third-party package, so that it starts quickly.
"""

import argparse
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

_DEFAULTS = {
    "nnodes": "1:1",
    "nproc-per-node": "1",
    "rdzv-backend": "static",
    "rdzv-endpoint": "",
    "rdzv-id": "none",
    "rdzv-conf": "",
    "max-restarts": "0",
    "node-rank": "0",
    "master-addr": "127.0.0.1",
    "master-port": "29500",
    "tee": "0",
    "log-dir": "",
    "shutdown-timeout": "15",
}
_OWN = "127.0.0.1"
_HOSTS = "OMPI_MCA_orte_default_hostfile"


def main(program: str, words: list[str]) -> None:
    """Meet the other pods and print what torchrun would tell its processes."""
    if program == "mpirun":
        print(json.dumps(mpirun(words)))
        return
    if program.startswith("python"):
        if words[:2] != ["-m", "torch.distributed.run"]:
            print(json.dumps(alone(words)))
            return
        words = words[2:]
    args = _parser().parse_args(words)
    if not args.module and not Path(args.script).is_file():
        sys.exit(f"there is no Python script {args.script}")
    print(json.dumps(meet(args, program)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    for name, default in _DEFAULTS.items():
        value = os.environ.get("PET_" + name.upper().replace("-", "_"), default)
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}", default=value)
    for flag in ("standalone", "module", "inprocess-restart"):
        short = ["-m"] if flag == "module" else []
        parser.add_argument(*short, f"--{flag}", action="store_true")
    parser.add_argument("script")
    parser.add_argument("words", nargs=argparse.REMAINDER)
    return parser


def meet(args: argparse.Namespace, program: str) -> dict[str, Any]:
    """Ranks of this pod's processes, and of how many."""
    processes, (least, _, most) = int(args.nproc_per_node), args.nnodes.partition(":")
    if args.standalone:
        return {"ranks": list(range(processes)), "world": processes, "script": args.script}
    if program == "hyperpodrun":
        # The operator tells the agent: rank of the pod, and where the first one is.
        started = json.loads(os.environ["OPERATOR"])
        endpoint, number = started["master"], started["rank"]
    elif args.rdzv_backend == "static":
        endpoint, number = args.rdzv_endpoint or f"{args.master_addr}:{args.master_port}", int(args.node_rank)
    else:
        endpoint, number = args.rdzv_endpoint, None
    host, _, port = endpoint.rpartition(":")
    pods, own = json.loads(os.environ["PODS"]), os.environ["POD_IP"]
    address = own if host == _OWN else pods.get(host)
    if address is None:
        sys.exit(f"{host} is not a known name; there are {', '.join(pods)}")
    member = {"number": number, "name": os.environ["POD_NAME"], "processes": processes}
    # Of a static rendezvous number 0 listens; of c10d the pod that the endpoint names.
    leads = number == 0 if number is not None else address == own
    where = (own if leads else address, int(port))
    members = _lead(where, member, int(least)) if leads else _follow(where, member)
    first = 0
    for each in members:
        if each == member:
            break
        first += each["processes"]
    total = sum(each["processes"] for each in members)
    return {"ranks": list(range(first, first + processes)), "world": total, "script": args.script, "most": most}


def alone(words: list[str]) -> dict[str, Any]:
    """The rank of a script that reads PyTorch's own variables, as `init_process_group` does without an address."""
    pods, number, total = json.loads(os.environ["PODS"]), int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    where = (pods[os.environ["MASTER_ADDR"]], int(os.environ["MASTER_PORT"]))
    member = {"number": number, "name": os.environ["POD_NAME"], "processes": 1}
    members = _lead(where, member, total) if number == 0 else _follow(where, member)
    return {"ranks": [members.index(member)], "world": len(members), "script": words[0]}


def _lead(where: tuple[str, int], member: dict[str, Any], nodes: int) -> list[dict[str, Any]]:
    """Wait for the other pods, number them, and tell all of them."""
    members, connections = [member], []
    with socket.create_server(where) as server:
        server.settimeout(_seconds())
        while len(members) < nodes:
            try:
                connection, _ = server.accept()
            except TimeoutError:
                sys.exit(f"{len(members)}/{nodes} clients joined")
            connections.append(connection)
            with connection.makefile() as lines:
                members.append(json.loads(lines.readline()))
        numbers = [each["number"] for each in members]
        if member["number"] is not None and sorted(numbers) != list(range(nodes)):
            sys.exit(f"pods have the numbers {sorted(numbers)}")
        members.sort(key=lambda each: (each["number"] or 0, each["name"]))
        for connection in connections:
            connection.sendall(json.dumps(members).encode() + b"\n")
            connection.close()
    return members


def _follow(where: tuple[str, int], member: dict[str, Any]) -> list[dict[str, Any]]:
    """Tell the first pod who this one is, and hear of all."""
    until = time.monotonic() + _seconds()
    while True:
        try:
            with socket.create_connection(where) as connection, connection.makefile() as lines:
                connection.sendall(json.dumps(member).encode() + b"\n")
                if answer := lines.readline():
                    return json.loads(answer)
                sys.exit(f"{where} hung up")
        except ConnectionRefusedError:
            if time.monotonic() > until:
                sys.exit(f"nothing listens at {where}")
            time.sleep(0.02)


def _seconds() -> float:
    return float(os.environ["LONGEST"])


def mpirun(words: list[str]) -> dict[str, Any]:
    """Ranks that mpirun starts: as many as -np says, else one for each slot of the file of hosts."""
    hosts = [line.split(" slots=") for line in os.environ[_HOSTS].splitlines()]
    slots = sum(int(count) for _, count in hosts)
    known = json.loads(os.environ["PODS"])
    if unknown := [host for host, _ in hosts if host not in known]:
        sys.exit(f"{unknown} are no known names")
    count = int(words[words.index("-np") + 1]) if "-np" in words else slots
    if count > slots:
        sys.exit(f"there are not enough slots for {count} processes")
    return {"ranks": list(range(count)), "world": slots}


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2:])
    except (ConnectionError, json.JSONDecodeError) as error:
        # Another pod has given up in the middle of a line.
        sys.exit(f"another pod hung up: {error!r}")
