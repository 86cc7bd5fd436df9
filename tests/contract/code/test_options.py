"""One thing has one option in all commands, and one option means one thing."""

import argparse
import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from podwright.operations.cli import parser_of
from podwright.operations.command_help import EXAMPLES, SYNONYMS, parsers
from sources import modules

FLAG = ""
OPTIONS = {
    "--account": ("ID", "the AWS account"),
    "--active": ("N", "parameters that are active for a token"),
    "--admins": ("ARN,ARN", "administrators of Kubernetes"),
    "--admission-checks": ("TIME", "duration of admission checks"),
    "--again": (FLAG, "repeat what has passed"),
    "--against": ("ENV", "the environment to compare with"),
    "--alert-manager": (FLAG, "print the definition of the alert manager"),
    "--all": (FLAG, "print also what is left out by default"),
    "--allow": ("NAME", "a resource that may be replaced, deleted, bought or shrunk"),
    "--allow-changes": (FLAG, "let agents change a cluster"),
    "--apply": (FLAG, "enforce budgets"),
    "--approve": ("STAGE", "a stage of a promotion that is approved"),
    "--architecture": ("x86_64|arm64", "the processor architecture"),
    "--archives": ("DIR", "archives that were fetched elsewhere"),
    "--assembly": ("DIR", "synthesized templates that are read"),
    "--at": ("DATE", "the date to which work is moved"),
    "--at-most": ("N", "the largest amount of a search"),
    "--batch": ("N N|P%", "nodes at a time"),
    "--benchmarks": ("FILE", "benchmark results that are read"),
    "--bill": (FLAG, "ask Cost Explorer"),
    "--bootstrap": (FLAG, "bootstrap the account for the CDK"),
    "--by-priority": (FLAG, "count by priority class"),
    "--bytes": ("N", "bytes of state for each parameter"),
    "--cdk": (FLAG, "print the CDK CLI's diff"),
    "--changes": ("FILE", "a change set that is read"),
    "--check": ("stress|connectivity|training", "one deep health check"),
    "--ci": ("github", "the CI system of new workflows"),
    "--count": ("N", "number of instances"),
    "--date": ("DATE", "the date for which a result holds"),
    "--days": ("N", "days of history to read"),
    "--defragment": ("LABEL", "the node label whose domains are freed"),
    "--delete-data": ("NAME", "a retained resource to delete"),
    "--disconnect": (FLAG, "delete the connection of workers"),
    "--drawing": (FLAG, "write the drawing alone"),
    "--dry-run": (FLAG, "show the result and change nothing"),
    "--duration": ("TIME", "length of a plan or of a job"),
    "--empty-bucket": ("NAME", "a bucket whose objects to delete"),
    "--end-before": ("DATE", "latest end"),
    "--environment": ("ENV", "the environment, where it is no positional argument"),
    "--evidence": ("PLACE", "where a gate keeps its evidence"),
    "--execution": ("ID", "the execution of a pipeline"),
    "--expert": ("N", "expert parallelism"),
    "--expert-tensor": ("N", "tensor parallelism of experts"),
    "--experts": ("N", "experts of a layer"),
    "--failures": ("RATE", "failures of a node per hour"),
    "--fault": ("KIND", "the fault that is injected"),
    "--follow": (FLAG, "print new lines of a log"),
    "--from": ("ENV OLD", "what a range or a comparison begins with"),
    "--full": (FLAG, "also synthesize, and validate the templates"),
    "--generate": ("TIME", "the span of generated work"),
    "--grace": ("TIME", "time until stopped pods have ended"),
    "--group": ("GROUP", "an instance group"),
    "--headroom": ("PERCENT", "memory that stays free"),
    "--heads": ("N", "attention heads"),
    "--idle": ("TIME", "time without requests until the sandbox stops"),
    "--idle-only": (FLAG, "skip groups with running jobs"),
    "--image": ("IMAGE", "a container image"),
    "--interactive": (FLAG, "ask for the settings of a new environment"),
    "--json": (FLAG, "print the result as JSON"),
    "--keep-going": (FLAG, "continue after a failed gate"),
    "--kind": ("pytorch|hyperpod_pytorch|train|mpi|job|sbatch", "the kind of a job"),
    "--kubeconfig": ("FILE", "a kubeconfig to connect with"),
    "--kubernetes": ("real|store", "the control plane of the sandbox"),
    "--last": (FLAG, "print the evidence of the last run"),
    "--layers": ("N", "layers of a model"),
    "--leave-blocked": (FLAG, "skip blocked stacks"),
    "--lines": ("N", "number of lines"),
    "--list": (FLAG, "list what could run"),
    "--live": (FLAG, "read the running cluster too"),
    "--load": ("PART", "generated work as a part of the quotas"),
    "--longest-wait": ("TIME", "the longest wait that a search allows"),
    "--lost": ("TIME", "work that is repeated after a stop"),
    "--manager": ("ENV", "the MultiKueue manager"),
    "--manifest": ("NAME", "the job of a printed ComputeDomain"),
    "--max-upfront": ("USD", "highest price of a purchase"),
    "--median": ("TIME", "median duration of generated jobs"),
    "--minor": ("1.33", "a minor version to install"),
    "--name": ("NAME", "name of what is created"),
    "--namespace": ("NAMESPACE", "a Kubernetes namespace"),
    "--no-preflight": (FLAG, "leave out the preflight checks"),
    "--no-runner": (FLAG, "leave out the runner inside the VPC"),
    "--node": ("NODE", "one node"),
    "--nodes": ("N", "nodes of a job"),
    "--nothing-was-bought": (FLAG, "close a purchase with an unknown outcome"),
    "--of": ("TEAM[:GROUP]", "team and group of a search"),
    "--offering": ("ID", "an offer of a training plan"),
    "--order": ("ENV,ENV", "environments in the order of promotion"),
    "--origins": (FLAG, "print file and line of each value"),
    "--out": ("FILE DIR PATH", "the file or folder that is written"),
    "--parameters": ("N", "parameters of a model"),
    "--part": (FLAG, "the schema of extended files"),
    "--pause": (FLAG, "ask before each group"),
    "--pipeline": ("N", "pipeline parallelism"),
    "--plan": ("DIGEST", "the change set that may be deployed"),
    "--policy": (FLAG, "print an IAM policy"),
    "--port": ("PORT", "local port to listen on"),
    "--previous": (FLAG, "the container before its restart"),
    "--priority": ("PRIORITY", "a priority class"),
    "--profile": ("ENV=NAME", "AWS profile of an environment"),
    "--project": ("DIR", "folder of the project"),
    "--pytorch": (FLAG, "also install PyTorch for jobs on real nodes"),
    "--prometheus": ("URL", "a Prometheus server to query"),
    "--rank": ("N", "a rank of a job"),
    "--real-nodes": ("N", "nodes of each cluster of the sandbox that are real"),
    "--reason": ("TEXT", "why a node is in quarantine"),
    "--recipes": ("DIR", "checkout of recipes"),
    "--record": ("s3://…", "where a promotion keeps its record"),
    "--region": ("REGION", "AWS region"),
    "--release": ("X.Y.Z", "release of HyperPod's image"),
    "--remove": ("NODE", "nodes to remove"),
    "--renew": (FLAG, "create new tokens"),
    "--replace": (FLAG, "replace nodes with earlier scripts"),
    "--repository": ("OWNER/NAME", "the GitHub repository"),
    "--require-approval": (FLAG, "fail without a required approval"),
    "--rollback-alarm": ("ALARM", "an alarm that starts a rollback"),
    "--rollback-batch": ("N|P%", "nodes at a time during a rollback"),
    "--rules": (FLAG, "print Prometheus rules"),
    "--run": ("COMMAND", "a command inside the VPC"),
    "--sandbox": (FLAG, "use the sandbox instead of AWS"),
    "--scenario": ("SCENARIO", "the scenario that a project starts from"),
    "--seed": ("N", "random seed"),
    "--set": ("KEY=VALUE", "a changed setting of a job"),
    "--sharding": ("optimizer|full", "what data-parallel ranks shard"),
    "--skill": ("DIR", "folder of a SKILL.md"),
    "--slowest": (FLAG, "name the slowest rank"),
    "--smallest": ("quota|borrow|nodes", "the amount to search for"),
    "--snapshot": ("FILE", "state of a cluster that is read"),
    "--source": ("UID", "the data source of dashboards"),
    "--spares": ("N", "spare instances"),
    "--stand-in": (FLAG, "use stand-ins for charts that were not fetched"),
    "--start-after": ("DATE", "earliest start"),
    "--startup": ("TIME", "time until pods are ready"),
    "--stop-jobs": (FLAG, "remove nodes with running jobs"),
    "--strict": (FLAG, "fail if a check was skipped"),
    "--team": ("TEAM", "a team"),
    "--tensor": ("N", "tensor parallelism"),
    "--throughput": ("PODS=DONE,…", "throughput of jobs by number of pods"),
    "--timeout": ("TIME", "give up after this time"),
    "--times": ("N", "number of reads"),
    "--to": ("ENV VERSION", "what a range ends with"),
    "--top-k": ("N", "experts of a token"),
    "--trace": ("WHERE", "past work that is read"),
    "--training-jobs": (FLAG, "jobs of AWS Batch queues"),
    "--type": ("TYPE", "an instance type"),
    "--ultraserver-count": ("N", "number of UltraServers"),
    "--ultraserver-type": ("TYPE", "an UltraServer type"),
    "--uncommitted": (FLAG, "promote uncommitted changes"),
    "--unprotect": ("STACK", "a stack that loses its protection"),
    "--update": (FLAG, "accept a new digest"),
    "--user": ("NAME", "a user on Slurm"),
    "--values": ("FILE", "values of deployed stacks that are read"),
    "--version": (FLAG, "print podwright's version"),
    "--wait": ("TIME", "follow the outcome for this time"),
    "--wait-between": ("TIME", "time between batches"),
    "--watch": ("TIME", "time between reads"),
    "--worker": ("NAME", "a worker of MultiKueue"),
    "--write": (FLAG, "write versions into the file"),
    "--yes": (FLAG, "do not ask for confirmation"),
    "--zone": ("ID", "one zone"),
    "--zones": ("ZONE,ZONE", "several zones"),
}
"""Each option: the name of its value, which is empty for a flag, and its meaning in every command that has it."""


class Use(NamedTuple):
    """An option of a command."""

    command: str
    option: str
    value: str
    """What its value is called; nothing for a flag."""
    help: str


def uses(name: str, parser: argparse.ArgumentParser) -> Iterator[Use]:
    """Every option of a command and of the verbs below it."""
    for command, below in parsers(name, parser):
        for action in below._actions:
            if isinstance(action, argparse._HelpAction):
                continue
            value = FLAG if action.nargs == 0 else action.metavar or "|".join(action.choices or ())
            yield from (Use(command.strip(), option, str(value), action.help or "") for option in action.option_strings)


def odd(actual: list[Use]) -> list[str]:
    """What of some options is not as the table has it."""
    lines = []
    for use in actual:
        if use.option in SYNONYMS:
            lines.append(f"{use.command} {use.option}: say {SYNONYMS[use.option]}")
        elif use.option not in OPTIONS:
            lines.append(f"{use.command} {use.option}: is it another word for one of the table? Else add it there")
        elif use.value != FLAG and use.value not in OPTIONS[use.option][0].split():
            lines.append(
                f"{use.command} {use.option} {use.value}: it is {OPTIONS[use.option][0] or 'a flag'} elsewhere"
            )
        elif use.value == FLAG and OPTIONS[use.option][0] != FLAG:
            lines.append(f"{use.command} {use.option}: it has a value elsewhere, {OPTIONS[use.option][0]}")
    return lines


def test_an_option_is_the_same_in_every_command() -> None:
    lines = odd(list(uses("", parser_of())))
    assert not lines, "\n".join(lines)


def test_the_table_has_no_option_that_is_gone_and_no_meaning_twice() -> None:
    assert set(OPTIONS) == {use.option for use in uses("", parser_of())}
    assert [meaning for meaning, count in Counter(means for _, means in OPTIONS.values()).items() if count > 1] == []


def test_another_spelling_and_another_kind_of_value_are_seen() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", metavar="FILE")
    parser.add_argument("--yes", metavar="ANSWER")
    parser.add_argument("--group", action="store_true")
    parser.add_argument("--novel")
    lines = odd(list(uses("new", parser)))
    assert [line.partition(":")[0] for line in lines] == [
        "new --output",
        "new --yes ANSWER",
        "new --group",
        "new --novel",
    ]


def test_the_environment_is_the_first_argument() -> None:
    """At most a verb precedes it. A command has it as an argument or as an option, and not as both."""
    wrong = []
    for name, parser in parsers("", parser_of()):
        positional = [action for action in parser._actions if not action.option_strings]
        named = [action.metavar for action in positional if not action.choices]
        if "ENV" in named[1:]:
            wrong.append(f"{name}: ENV is not the first argument of {named}")
        if "ENV" in named and "--environment" in parser._option_string_actions:
            wrong.append(f"{name}: ENV and --environment")
    assert not wrong, "\n".join(wrong)


def test_each_command_and_verb_has_two_examples() -> None:
    assert set(EXAMPLES) == {name.strip() for name, _ in parsers("", parser_of())} - {""}
    assert {name: len(lines) for name, lines in EXAMPLES.items() if len(set(lines)) != 2} == {}


def test_tools_of_agents_call_options_that_there_are() -> None:
    called = {
        (source.path, match[0])
        for source in modules("operations")
        if source.path.startswith("operations/agents/")
        for node in source.nodes(ast.Constant)
        if isinstance(node.value, str)
        for match in re.finditer(r"^--[a-z][a-z-]*", node.value)
    }
    assert len(called) > 20
    unknown = [f"{path}: {option}" for path, option in sorted(called) if option not in OPTIONS]
    assert not unknown, "\n".join(unknown)
