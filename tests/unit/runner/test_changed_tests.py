"""`bin/test --changed` on a small repository: recorded lines, and the tests that each kind of change selects."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import changes
import coverage_map
from changes import Code
from choice import Choice, Chooser, table
from coverage_map import CoverageMap
from records import Record

ROOT = Path(__file__).resolve().parents[3]
FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["tests"]\npythonpath = [".", "tests/unit"]\n'
    'addopts = ["--import-mode=importlib", "-ra"]\n',
    ".gitignore": "__pycache__/\n.podwright/\n",
    "config/__init__.py": "",
    "config/limits.py": """from functools import cache, cached_property

LIMIT = 5


def is_over(value):
    # Values above the limit.
    if value > LIMIT:
        return "over"
    return "below"


def double(value):
    return 2 * value


def unused(value):
    return value - 1


@cache
def table():
    return [double(1)]


class Shape:
    def area(self):
        return 1

    @cached_property
    def side(self):
        return 3
""",
    "config/rows.py": """from pathlib import Path


def rows():
    return Path(__file__).with_name("rows.csv").read_text()


def columns():
    return ["name"]
""",
    "config/rows.csv": "name\na\n",
    "config/other.json": "{}\n",
    "planning/__init__.py": "",
    "planning/plan.py": "from config import (\n    limits,\n)\n\n\ndef plan():\n    return limits.LIMIT\n",
    "tests/unit/shapes.py": "from config.limits import Shape\n\n\ndef shape():\n    return Shape()\n",
    "tests/unit/test_limits.py": """from config.limits import double, is_over


def test_over():
    assert is_over(9) == "over"


def test_below():
    assert is_over(1) == "below"


def test_double():
    assert double(2) == 4
""",
    "tests/unit/test_table.py": """import pytest

from config.limits import table
from shapes import shape


@pytest.fixture(scope="module")
def area():
    return shape().area()


def test_first():
    assert table() == [2]


def test_second():
    assert table() == [2]


def test_area(area):
    assert area == 1


def test_area_again(area):
    assert area == 1


@pytest.fixture(scope="module")
def same():
    return shape()


def test_side(same):
    assert same.side == 3


def test_side_again(same):
    assert same.side == 3
""",
    "tests/unit/test_rows.py": """from config.rows import columns, rows


def test_rows():
    assert rows()


def test_columns():
    assert columns()
""",
    "tests/unit/test_plan.py": "from planning.plan import plan\n\n\ndef test_plan():\n    assert plan()\n",
    "tests/contract/code/test_style.py": "def test_style():\n    pass\n",
    "tests/contract/docs/test_pages.py": "def test_pages():\n    pass\n",
    "docs/page.md": "A page.\n",
}
STYLE = {"tests/contract/code/test_style.py": None}


class Repository:
    """A checkout with its Git repository and coverage map."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def git(self, *arguments: str) -> str:
        """Run Git as a committer whose name is fixed."""
        who = [f"{name}_{key}" for name in ("GIT_AUTHOR", "GIT_COMMITTER") for key in ("NAME", "EMAIL")]
        environment = {**os.environ, **dict.fromkeys(who, "test@example.com"), "GIT_CONFIG_GLOBAL": os.devnull}
        command = ["git", *arguments]
        return subprocess.run(
            command, cwd=self.root, env=environment, check=True, capture_output=True, text=True
        ).stdout

    def commit(self) -> str:
        """Commit everything; returns the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "change")
        return self.git("rev-parse", "HEAD").strip()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command that bin/test executes."""
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PODWRIGHT_"))
        }
        command = [sys.executable, "-P", str(ROOT / "tests/runner"), "-p", "no:cacheprovider", *arguments]
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a piece of a file that it has once."""
        text = (self.root / path).read_text()
        assert text.count(old) == 1
        (self.root / path).write_text(text.replace(old, new))

    def choose(self, base: str | None = None, durations: dict[str, Record] | None = None) -> Choice:
        """The tests of the changes."""
        recorded = CoverageMap(self.root / coverage_map.PATH)
        chooser = Chooser(self.root, recorded, durations or {})
        return chooser.choose(list(changes.changed_files(self.root, base or changes.default_base(self.root))))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose coverage is recorded."""
    repository = Repository(tmp_path_factory.mktemp("recorded"))
    for name, text in FILES.items():
        (repository.root / name).parent.mkdir(parents=True, exist_ok=True)
        (repository.root / name).write_text(text)
    repository.git("init", "--quiet", "--initial-branch", "main")
    repository.commit()
    result = repository.run("--record-coverage", "--shards", "2")
    assert result.returncode == 0, result.stdout + result.stderr
    assert ".podwright/tests/coverage.sqlite has the coverage of 6 test files" in result.stdout
    return repository.root


@pytest.fixture
def repository(recorded: Path, tmp_path: Path) -> Repository:
    shutil.copytree(recorded, tmp_path / "checkout", symlinks=True)
    return Repository(tmp_path / "checkout")


def ids(file: str, *tests: str) -> dict[str, set[str]]:
    """Node ids of one file of tests/unit, as a choice has them."""
    return {f"tests/unit/{file}": {f"tests/unit/{file}::{test}" for test in tests}}


def test_nothing_changed(repository: Repository) -> None:
    assert repository.choose() == Choice()


def test_a_changed_line_selects_the_tests_that_execute_it(repository: Repository) -> None:
    repository.edit("config/limits.py", '"over"', '"above"')
    assert repository.choose().files == ids("test_limits.py", "test_over") | STYLE


def test_a_changed_function_selects_its_tests_also_through_a_cache(repository: Repository) -> None:
    """The second test of the cached table executes no line of it."""
    repository.edit("config/limits.py", "2 * value", "value * 2")
    expected = ids("test_limits.py", "test_double") | ids("test_table.py", "test_first", "test_second") | STYLE
    assert repository.choose().files == expected


def test_a_shared_fixture_counts_for_each_of_its_tests(repository: Repository) -> None:
    repository.edit("config/limits.py", "        return 1", "        return 2")
    assert repository.choose().files == ids("test_table.py", "test_area", "test_area_again") | STYLE


def test_a_cached_property_counts_for_each_test_that_reads_it(repository: Repository) -> None:
    repository.edit("config/limits.py", "        return 3", "        return 4")
    assert repository.choose().files == ids("test_table.py", "test_side", "test_side_again") | STYLE


def test_an_inserted_line_selects_the_tests_of_its_function(repository: Repository) -> None:
    repository.edit("config/limits.py", '        return "over"', '        value = 1\n        return "over"')
    assert repository.choose().files == ids("test_limits.py", "test_over", "test_below") | STYLE


def test_a_changed_head_selects_the_tests_of_its_function(repository: Repository) -> None:
    repository.edit("config/limits.py", "def is_over(value):", "def is_over(value, *, factor=1):")
    assert repository.choose().files == ids("test_limits.py", "test_over", "test_below") | STYLE


def test_a_function_that_no_test_executes_is_named(repository: Repository) -> None:
    repository.edit("config/limits.py", "value - 1", "value - 2")
    choice = repository.choose()
    assert choice.files == STYLE
    assert choice.unexecuted == ["config/limits.py:18 unused"]
    assert "No recorded test executes: config/limits.py:18 unused" in shown(repository, choice)


def shown(repository: Repository, choice: Choice) -> str:
    return table(choice, "HEAD", 1, CoverageMap(repository.root / coverage_map.PATH))


def test_a_comment_selects_no_test_of_behaviour(repository: Repository) -> None:
    repository.edit("config/limits.py", "# Values above", "# All values above")
    assert repository.choose().files == STYLE


def test_a_constant_selects_the_files_that_import_its_module(repository: Repository) -> None:
    """Directly, through a helper of tests, and through one module of the product."""
    repository.edit("config/limits.py", "LIMIT = 5", "LIMIT = 6")
    names = ("test_limits.py", "test_table.py", "test_plan.py")
    assert repository.choose().files == {f"tests/unit/{name}": None for name in names} | STYLE


def test_imports_choose_no_more_than_their_seconds(repository: Repository) -> None:
    repository.edit("config/limits.py", "LIMIT = 5", "LIMIT = 6")
    seconds = {"test_limits.py": 25, "test_table.py": 20, "test_plan.py": 4}
    choice = repository.choose(durations={f"tests/unit/{file}": Record(each, 1) for file, each in seconds.items()})
    # test_table.py is the quicker of the two that import it.
    assert choice.files == {"tests/unit/test_table.py": None, "tests/unit/test_plan.py": None} | STYLE
    assert choice.left_out == ["tests/unit/test_limits.py"]
    assert "Left out beyond 30 CPU seconds: tests/unit/test_limits.py\n  → bin/test" in shown(repository, choice)


def test_a_changed_test_file_runs_whole(repository: Repository) -> None:
    repository.edit("tests/unit/test_rows.py", "assert columns()", "assert len(columns()) == 1")
    assert repository.choose().files == {"tests/unit/test_rows.py": None} | STYLE


def test_a_changed_helper_runs_the_files_that_import_it(repository: Repository) -> None:
    repository.edit("tests/unit/shapes.py", "return Shape()", "return Shape( )")
    assert repository.choose().files == STYLE
    repository.edit("tests/unit/shapes.py", "return Shape( )", "return Shape() or None")
    assert repository.choose().files == {"tests/unit/test_table.py": None} | STYLE


def test_a_new_conftest_concerns_the_files_of_its_folder(repository: Repository) -> None:
    (repository.root / "tests/unit/conftest.py").write_text("import os\n")
    names = ("test_limits.py", "test_table.py", "test_plan.py", "test_rows.py")
    assert repository.choose().files == {f"tests/unit/{name}": None for name in names} | STYLE


def test_a_file_of_data_selects_the_tests_of_the_function_that_names_it(repository: Repository) -> None:
    (repository.root / "config/rows.csv").write_text("name\nb\n")
    assert repository.choose().files == ids("test_rows.py", "test_rows")


def test_a_file_that_no_code_names_is_listed(repository: Repository) -> None:
    (repository.root / "config/other.json").write_text("[]\n")
    choice = repository.choose()
    assert (choice.files, choice.uncovered) == ({}, ["config/other.json"])
    assert "Not covered by this choice: config/other.json\n  → bin/test" in shown(repository, choice)


def test_a_page_runs_the_tests_of_pages(repository: Repository) -> None:
    repository.edit("docs/page.md", "A page.", "The page.")
    assert repository.choose().files == {"tests/contract/docs/test_pages.py": None} | STYLE


def test_an_older_map_is_read_by_its_own_lines(repository: Repository) -> None:
    """Since the recording, lines were added above the function, in another commit."""
    repository.edit("config/limits.py", "LIMIT = 5\n", "LIMIT = 5\n" + "# A line.\n" * 6)
    repository.commit()
    repository.edit("config/limits.py", '"over"', '"above"')
    assert repository.choose().files == ids("test_limits.py", "test_over") | STYLE


def test_lines_that_were_recorded_after_the_edit_select_too(repository: Repository) -> None:
    repository.edit("config/limits.py", '        return "over"', '        value = 1\n        return "over"')
    assert repository.run("--record-coverage", "tests/unit/test_limits.py").returncode == 0
    # The inserted line is known now, and only one test executes it.
    assert ids("test_limits.py", "test_over").items() <= repository.choose().files.items()


def test_a_partial_recording_keeps_the_others(repository: Repository) -> None:
    before = {recording.file: recording for recording in coverage_map.read(repository.root / coverage_map.PATH)}
    repository.edit("tests/unit/test_rows.py", "test_columns", "test_the_columns")
    assert repository.run("--record-coverage", "tests/unit/test_rows.py").returncode == 0
    after = {recording.file: recording for recording in coverage_map.read(repository.root / coverage_map.PATH)}
    changed = "tests/unit/test_rows.py"
    assert {*after[changed].tests} == ids("test_rows.py", "test_rows", "test_the_columns")[changed]
    assert {file: each for file, each in after.items() if file != changed} == {
        file: each for file, each in before.items() if file != changed
    }


def test_files_without_a_recording_are_chosen_by_their_imports(repository: Repository) -> None:
    (repository.root / "tests/unit/test_more.py").write_text(
        "from config.limits import double\n\n\ndef test_more():\n    assert double(1)\n"
    )
    repository.commit()
    repository.edit("config/limits.py", "value - 1", "value - 2")
    assert repository.choose().files == {"tests/unit/test_more.py": None} | STYLE


@pytest.mark.parametrize("is_empty", [False, True], ids=["missing", "killed recording"])
def test_without_a_map_imports_choose(repository: Repository, is_empty: bool) -> None:
    (repository.root / coverage_map.PATH).unlink()
    if is_empty:
        (repository.root / coverage_map.PATH).touch()
    repository.edit("config/limits.py", "2 * value", "value * 2")
    choice = repository.choose()
    names = ("test_limits.py", "test_table.py", "test_plan.py")
    assert choice.files == {f"tests/unit/{name}": None for name in names} | STYLE
    assert "→ bin/test --record-coverage" in shown(repository, choice)


def test_a_deleted_module_selects_the_files_that_import_it(repository: Repository) -> None:
    (repository.root / "config/rows.py").unlink()
    assert repository.choose().files == {"tests/unit/test_rows.py": None} | STYLE


def test_committed_changes_count_since_main_or_a_base(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--create", "feature")
    repository.edit("config/rows.py", '["name"]', '["name", "id"]')
    repository.commit()
    repository.edit("config/limits.py", '"over"', '"above"')
    both = ids("test_limits.py", "test_over") | ids("test_rows.py", "test_columns") | STYLE
    assert repository.choose().files == both
    assert repository.choose("HEAD").files == ids("test_limits.py", "test_over") | STYLE
    assert repository.choose("main").files == both


def test_the_command_runs_the_chosen_tests(repository: Repository) -> None:
    repository.edit("config/limits.py", '"over"', '"above"')
    result = repository.run("--changed")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "  config/limits.py  executed: is_over: 1 test in 1 file\n" in result.stdout
    assert "\n2 tests in 2 files, about " in result.stdout
    assert "FAILED tests/unit/test_limits.py::test_over" in result.stdout
    assert "1 failed, 1 passed, 2 deselected" in result.stdout


def test_the_command_runs_many_tests_on_shards(repository: Repository) -> None:
    repository.edit("config/limits.py", "2 * value", "value * 2")
    result = repository.run("--changed", "HEAD", "--shards", "2")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "3 test files on 2 shards" in result.stdout
    assert "4 passed, 6 deselected" in result.stdout


def test_a_new_test_of_a_chosen_file_runs_and_a_deleted_one_is_no_error(repository: Repository) -> None:
    repository.edit("tests/unit/test_limits.py", "def test_over", "def test_above")
    repository.commit()
    repository.edit("config/limits.py", "2 * value", "value * 2")
    result = repository.run("--changed", "HEAD", "tests/unit/test_limits.py")
    assert result.returncode == 2
    assert "leave out the paths" in result.stderr
    result = repository.run("--changed", "HEAD", "-v")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "tests/unit/test_limits.py::test_above PASSED" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--changed", "nothing"], "--changed nothing: "),
        (["--record-coverage", "tests/unit/test_rows.py::test_rows"], "records whole test files"),
        (["--record-coverage", "--changed"], "only one at a time"),
    ],
)
def test_wrong_arguments_are_refused(repository: Repository, arguments: list[str], message: str) -> None:
    result = repository.run(*arguments)
    assert result.returncode == 2
    assert message in result.stderr


def test_a_changed_tree_without_tests_is_a_success(repository: Repository) -> None:
    (repository.root / "config/other.json").write_text("[]\n")
    result = repository.run("--changed")
    assert result.returncode == 0
    assert "0 tests in 0 files" in result.stdout


def test_statements_and_functions_of_lines() -> None:
    code = Code(
        "A = [\n    1,\n]\n\n\nclass B:\n    @property\n    def c(self):\n        if self:\n            # Why.\n"
        "            return (\n                1\n            )\n        # The rest.\n        return 2\n"
    )
    assert [code.statement(line) for line in (2, 4, 7, 9, 12, 14)] == [
        range(1, 4), None, range(7, 8), range(9, 11), range(11, 14), None,
    ]  # fmt: skip
    assert [each.name for each in code.enclosing(11)] == ["B.c"]
    assert code.enclosing(7) == []
