"""`bin/test` on several processes: one report, one closing line, and no failure that is lost."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import records
from records import Record
from waiting import CEILING_SECONDS, until

ROOT = Path(__file__).resolve().parents[3]
PASSING = "def test_{0}():\n    pass\n"


class Suite:
    """A folder of synthetic tests and the runner's command on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "pyproject.toml").write_text(
            '[tool.pytest.ini_options]\ntestpaths = ["tests"]\naddopts = ["--import-mode=importlib", "-ra"]\n'
        )

    def add(self, name: str, text: str = PASSING) -> str:
        """Write a test file; returns its path."""
        path = self.root / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(path.stem) if text is PASSING else text)
        return f"tests/{name}"

    def command(self, *arguments: str) -> list[str]:
        """The command that bin/test executes."""
        return [sys.executable, "-P", str(ROOT / "tests/runner"), "-p", "no:cacheprovider", *arguments]

    def run(self, *arguments: str, spare_seconds: float | None = None) -> subprocess.CompletedProcess[str]:
        """Run the tests; `spare_seconds` replaces records.SPARE_SECONDS."""
        command = self.command(*arguments)
        if spare_seconds is not None:
            program = str(ROOT / "tests/runner")
            code = f"import runpy, sys; sys.path.insert(0, {program!r}); import records; "
            code += f"records.SPARE_SECONDS = {spare_seconds}; runpy.run_path({program!r}, run_name='__main__')"
            command[2:3] = ["-c", code]
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, env=self.environment())

    def environment(self) -> dict[str, str]:
        """The shell's variables, without those of the pytest that runs this test. Pytest loads no plugins by itself."""
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        return variables | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    # Programs started by a process that ignores interrupts ignore them too, as in a shell's background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield Suite(tmp_path)
    signal.signal(signal.SIGINT, before)


def test_shards_report_as_one_pytest(suite: Suite) -> None:
    for name in "abc":
        suite.add(f"test_{name}.py")
    suite.add("test_skipped.py", "import pytest\n\n@pytest.mark.skip(reason='no GPU')\ndef test_one():\n    pass\n")
    result = suite.run("--shards", "2")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "4 test files on 2 shards" in result.stdout
    assert re.fullmatch(r"=+ 3 passed, 1 skipped in [0-9.]+s =+", result.stdout.splitlines()[-1])
    assert "SKIPPED [1] tests/test_skipped.py:3: no GPU" in result.stdout


def test_named_folders_keep_the_fixtures_of_their_conftest_files(suite: Suite) -> None:
    for folder in "ab":
        suite.add(f"{folder}/conftest.py", f"import pytest\n\n@pytest.fixture\ndef {folder}():\n    return 1\n")
        suite.add(f"{folder}/test_{folder}.py", f"def test_one({folder}):\n    assert {folder} == 1\n")
    result = suite.run("--shards", "1", "tests/a", "tests/b")
    assert result.returncode == 0, result.stdout


def test_each_file_is_collected_once_and_one_without_a_record_is_named(suite: Suite) -> None:
    marker = "import os\nfrom pathlib import Path\n\nPath(f'{__file__}.{os.getpid()}').touch()\n\n"
    for name in "abcd":
        suite.add(f"test_{name}.py", marker + PASSING.format(name))
    records.write({"tests/test_a.py": Record(0.3, 1)}, suite.root / "tests/durations.csv")
    result = suite.run("--shards", "2")
    assert result.returncode == 0
    assert len(list(suite.root.glob("tests/*.py.*"))) == 4
    assert "→ Record them: bin/test --record tests/test_b.py tests/test_c.py tests/test_d.py" in result.stdout


def test_session_fixtures_last_as_long_as_their_shard(suite: Suite) -> None:
    suite.add(
        "conftest.py",
        "import pytest\n\n@pytest.fixture(scope='session')\ndef started(tmp_path_factory):\n"
        "    print('made')\n    yield []\n    open('ended', 'a').write('.')\n",
    )
    for name in "abc":
        suite.add(
            f"test_{name}.py",
            "def test_one(started):\n    started.append(1)\n    open('lengths', 'a').write(str(len(started)))\n",
        )
    assert suite.run("--shards", "1", "--record").returncode == 0
    assert (suite.root / "lengths").read_text() == "123"
    assert (suite.root / "ended").read_text() == "."


def test_every_kind_of_failure_is_shown_and_the_other_files_run(suite: Suite) -> None:
    suite.add("test_fails.py", "def test_one():\n    value = 41\n    assert value == 42\n")
    suite.add("test_broken.py", "raise RuntimeError('broken')\n")
    suite.add(
        "test_killed.py", "import os\n\ndef test_first():\n    pass\n\ndef test_dies():\n    os.kill(os.getpid(), 9)\n"
    )
    suite.add("test_exits.py", "import os\n\ndef test_exits():\n    os._exit(0)\n")
    for name in "abc":
        suite.add(f"test_{name}.py")
    result = suite.run("--shards", "2")
    assert result.returncode == 1
    assert "assert 41 == 42" in result.stdout
    assert "FAILED tests/test_fails.py::test_one" in result.stdout
    assert "RuntimeError: broken" in result.stdout
    assert "ended with signal SIGKILL while it ran tests/test_killed.py::test_dies" in result.stdout
    assert "ended with exit code 0 while it ran tests/test_exits.py::test_exits" in result.stdout
    assert "3 failed, 4 passed, 1 error" in result.stdout


def test_a_warning_at_import_fails_as_in_one_process(suite: Suite) -> None:
    for name in "abc":
        suite.add(
            f"test_{name}.py", "import warnings\n\nwarnings.warn('old', stacklevel=1)\n\ndef test_one():\n    pass\n"
        )
    result = suite.run("--shards", "1", "--record", "-W", "error")
    assert result.returncode == 1
    assert "3 errors" in result.stdout


def test_an_interrupt_ends_the_shards_and_their_fixtures(suite: Suite) -> None:
    suite.add(
        "conftest.py",
        "import os, pytest\nfrom pathlib import Path\n\n@pytest.fixture\ndef server():\n"
        "    name = f'server-{os.getpid()}'\n    Path(name).touch()\n    yield\n"
        "    Path(name).rename(f'ended-{os.getpid()}')\n",
    )
    for name in "ab":
        suite.add(f"test_{name}.py", "import time\n\ndef test_waits(server):\n    time.sleep(600)\n")
    process = subprocess.Popen(
        suite.command("--shards", "2"), cwd=suite.root, env=suite.environment(), stdout=subprocess.PIPE, text=True
    )
    started = until(lambda: len(names := list(suite.root.glob("server-*"))) == 2 and names, "both shards run a test")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=CEILING_SECONDS)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "KeyboardInterrupt" in output
    pids = [int(path.name.partition("-")[2]) for path in started]
    assert sorted(path.name for path in suite.root.glob("ended-*")) == sorted(f"ended-{pid}" for pid in pids)
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_the_first_failure_ends_the_run_if_asked(suite: Suite) -> None:
    suite.add("test_a.py", "def test_fails():\n    assert False\n")
    suite.add("test_b.py", "import time\n\ndef test_waits():\n    time.sleep(600)\n")
    result = suite.run("--shards", "2", "-x")
    assert result.returncode == 1
    assert "stopping after 1 failures" in result.stdout


def test_nothing_selected_is_no_success(suite: Suite) -> None:
    suite.add("test_a.py")
    suite.add("test_b.py")
    result = suite.run("--shards", "2", "-k", "nothing")
    assert result.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "2 deselected" in result.stdout


def test_a_file_without_selected_tests_is_passed_over(suite: Suite) -> None:
    for name in "abc":
        suite.add(f"test_{name}.py")
    result = suite.run("--shards", "1", "--record", "-k", "test_c")
    assert result.returncode == 0
    assert "1 passed, 2 deselected" in result.stdout


@pytest.mark.parametrize(
    "selection", [("tests/test_a.py",), ("tests/test_a.py::test_test_a", "tests/test_b.py"), ("-s",)]
)
def test_a_small_selection_runs_in_one_process(suite: Suite, selection: tuple[str, ...]) -> None:
    suite.add("test_a.py")
    suite.add("test_b.py")
    result = suite.run("--shards", "2", *selection)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "shards" not in result.stdout


def test_a_recording_counts_processes_that_nothing_waits_for(suite: Suite) -> None:
    busy = "import time\nend = time.process_time() + 0.8\nwhile time.process_time() < end: pass\n"
    suite.add(
        "test_a.py",
        "import subprocess, sys, time\nfrom pathlib import Path\n\ndef test_daemon():\n"
        f"    program = {busy + 'open(chr(100), chr(119)).close()'!r}\n"
        "    start = f'import subprocess, sys; subprocess.Popen([sys.executable, \"-c\", {program!r}])'\n"
        "    subprocess.run([sys.executable, '-c', start], check=True)\n"
        "    while not Path('d').exists():\n        time.sleep(0.05)\n",
    )
    suite.add("test_b.py")
    result = suite.run("--record")
    assert result.returncode == 0, result.stdout
    recorded = records.read(suite.root / "tests/durations.csv")
    assert recorded["tests/test_a.py"].seconds >= 0.7
    assert recorded["tests/test_b.py"].seconds < recorded["tests/test_a.py"].seconds
    assert {file: record.tests for file, record in recorded.items()} == {"tests/test_a.py": 1, "tests/test_b.py": 1}


def test_a_file_over_its_budget_fails_a_whole_run_only(suite: Suite) -> None:
    loop = "    end = time.process_time() + 0.8\n    while time.process_time() < end:\n        pass\n"
    suite.add("test_a.py", f"import time\n\ndef test_busy():\n{loop}")
    suite.add("test_b.py")
    records.write(
        {"tests/test_a.py": Record(0.3, 1), "tests/test_b.py": Record(0.3, 1)}, suite.root / "tests/durations.csv"
    )
    result = suite.run("--shards", "2", spare_seconds=0.3)
    assert result.returncode == 1, result.stdout
    assert "CPU seconds are more than 2 times its record of 0.3" in result.stdout
    assert "→ Make the file cheaper, or record it again: bin/test --record tests/test_a.py" in result.stdout
    named = suite.run("--shards", "2", "tests/test_b.py", "tests/test_a.py", spare_seconds=0.3)
    assert named.returncode == 0, named.stdout


def test_a_file_over_its_budget_that_keeps_it_alone_fails_no_run(suite: Suite) -> None:
    suite.add(
        "test_a.py",
        "import pathlib, time\n\ndef test_busy():\n    first = not pathlib.Path('ran').exists()\n"
        "    pathlib.Path('ran').touch()\n    end = time.process_time() + 0.8 * first\n"
        "    while time.process_time() < end:\n        pass\n",
    )
    suite.add("test_b.py")
    records.write(
        {"tests/test_a.py": Record(0.3, 1), "tests/test_b.py": Record(0.3, 1)}, suite.root / "tests/durations.csv"
    )
    result = suite.run("--shards", "2", spare_seconds=0.3)
    assert result.returncode == 0, result.stdout
    assert "over their budget, so run again alone: tests/test_a.py" in result.stdout
    assert "2 passed" in result.stdout


def test_a_second_measurement_reports_no_test_twice(suite: Suite) -> None:
    busy = "import os, pathlib, time\n\ndef test_busy():\n    again = pathlib.Path(f'{__file__}.ran').exists()\n"
    busy += "    pathlib.Path(f'{__file__}.ran').touch()\n    end = time.process_time() + 0.8 * (not again)\n"
    busy += "    while time.process_time() < end:\n        pass\n"
    suite.add(
        "conftest.py",
        "def pytest_collection_modifyitems(config, items):\n"
        "    others = [item for item in items if item.name == 'test_other']\n"
        "    items[:] = [item for item in items if item not in others]\n"
        "    config.hook.pytest_deselected(items=others)\n",
    )
    files = [
        suite.add("test_dies.py", f"{busy}    if again:\n        os.kill(os.getpid(), 9)\n"),
        suite.add("test_fails.py", f"{busy}    assert False\n"),
        suite.add("test_slow.py", f"{busy}\ndef test_other():\n    pass\n"),
    ]
    records.write({file: Record(0.3, 1) for file in files}, suite.root / "tests/durations.csv")
    result = suite.run("--shards", "2", spare_seconds=0.3)
    assert result.returncode == 1, result.stdout
    assert "over their budget, so run again alone: tests/test_dies.py, tests/test_slow.py\n" in result.stdout
    assert "ended with signal SIGKILL while it ran tests/test_dies.py::test_busy" in result.stdout
    assert "2 failed, 2 passed, 1 deselected" in result.stdout
    # The first measurement alone is over the budget of each.
    assert "test files over their budget" not in result.stdout


def test_a_file_that_fails_keeps_its_record(suite: Suite) -> None:
    suite.add("test_a.py", "def test_fails():\n    assert False\n")
    suite.add("test_b.py")
    records.write({"tests/test_a.py": Record(70, 5)}, suite.root / "tests/durations.csv")
    result = suite.run("--record")
    assert result.returncode == 1
    assert "not recorded, because a test failed" in result.stdout
    recorded = records.read(suite.root / "tests/durations.csv")
    assert recorded["tests/test_a.py"] == Record(70, 5)
    assert recorded["tests/test_b.py"].tests == 1
