"""Runs the tests: `bin/test [options] [pytest arguments]`.

Its own options: `--shards N` or `-n N` runs the tests on N processes, 0 in this process; `--record` writes
tests/durations.csv and its table in docs/measurements.md; `--record-coverage` records which test executes which line;
`--changed [BASE]` runs the tests that execute lines changed since a commit. All other arguments go to pytest.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str]) -> int:
    """Run the tests that the arguments select; returns pytest's exit code."""
    if arguments[:1] == ["--shard"]:
        import shard

        descriptor, number, basetemp, output, *remaining = arguments[1:]
        return shard.main(int(descriptor), int(number), basetemp, output, remaining)
    import controller

    parser = argparse.ArgumentParser(prog="bin/test", add_help=False, allow_abbrev=False)
    parser.add_argument("--shards", "-n", "--numprocesses", type=int)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--record-coverage", action="store_true")
    parser.add_argument("--changed", nargs="?", const="", metavar="BASE")
    options, remaining = parser.parse_known_args(arguments)
    if options.record + options.record_coverage + (options.changed is not None) > 1:
        parser.error("--record, --record-coverage and --changed: only one at a time")
    if options.record_coverage:
        return _record_coverage(parser, remaining, options.shards)
    if options.changed is not None:
        return _run_changed(parser, options.changed, remaining, options.shards)
    plugin = controller.Controller(remaining, options.shards, record=options.record, root=Path.cwd())
    code = int(pytest.main(remaining, plugins=[plugin]))
    if options.record and code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and Path.cwd() == ROOT:
        command = [sys.executable, "-P", str(ROOT / "tests/bench"), "--only", "test-files", "--write"]
        subprocess.run(command, cwd=ROOT, check=True)
    return code


def _record_coverage(parser: argparse.ArgumentParser, arguments: list[str], shards: int | None) -> int:
    """Record which test executes which line; returns pytest's exit code."""
    import controller
    import coverage_map

    if any("::" in argument or argument.startswith(("-k", "-m")) for argument in arguments):
        parser.error("--record-coverage: records whole test files (allowed: paths, --all)")
    path = Path.cwd() / coverage_map.PATH
    os.environ["PODWRIGHT_COVERAGE_MAP"] = str(path)
    plugin = controller.Controller([*arguments, "-p", "contexts"], shards, coverage=True, root=Path.cwd())
    code = int(pytest.main(arguments, plugins=[plugin]))
    files = len(coverage_map.CoverageMap(path).files)
    print(f"{coverage_map.PATH} has the coverage of {files} test files")
    return code


def _run_changed(parser: argparse.ArgumentParser, base: str, arguments: list[str], shards: int | None) -> int:
    """Run the tests that execute lines changed since a commit; returns pytest's exit code, or 0 without tests."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
    import changes
    import choice
    import controller
    import coverage_map
    import records

    root = Path.cwd()
    if any(not argument.startswith("-") and (root / argument.partition("::")[0]).exists() for argument in arguments):
        parser.error("--changed: chooses the test files itself; leave out the paths")
    try:
        commit = changes.git(root, "rev-parse", "--short", base or changes.default_base(root)).strip()
        changed = list(changes.changed_files(root, commit))
    except changes.GitError as error:
        parser.error(f"--changed {base}: {error}")
    durations = records.read(root / records.PATH.relative_to(records.ROOT))
    recorded = coverage_map.CoverageMap(root / coverage_map.PATH)
    chooser = choice.Chooser(root, recorded, durations, real_parts="--all" in arguments)
    chosen = chooser.choose(changed)
    print(choice.table(chosen, commit, len(changed), recorded), end="", flush=True)
    if not chosen.files:
        return 0
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="podwright-deselected-") as listed:
        listed.write("\n".join(sorted(chosen.deselected)))
        listed.flush()
        os.environ["PODWRIGHT_DESELECTED"] = listed.name
        arguments = [*arguments, "-p", "deselection", *sorted(chosen.files)]
        plugin = controller.Controller(arguments, shards, seconds=chosen.seconds, root=root)
        return int(pytest.main(arguments, plugins=[plugin]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
