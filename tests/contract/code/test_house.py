"""The layout of the checkout: rooms, folders, names."""

import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PYTHON_FOLDERS = ("config", "planning", "constructs", "cdk8s_charts", "stacks", "operations", "sandbox", "bin")
FOLDERS = (*PYTHON_FOLDERS, "lifecycle_scripts", "environments", "docs", "tests")
MOST_MODULES = {"tests": 21}
"""In the folders of a room; 20 in all others."""
# In the folders of helpers, but nobody imports them.
PROGRAMS = ("conftest.py", "run_steps.py", "__main__.py")


def files() -> list[Path]:
    return [
        file
        for folder in (*FOLDERS, ".ci")
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    ]


def test_nothing_else_holds_code() -> None:
    others = [
        entry.name
        for entry in ROOT.iterdir()
        if entry.is_dir() and not entry.name.startswith(".") and entry.name not in FOLDERS and any(entry.rglob("*.py"))
    ]
    assert [name for name in others if name not in ("build", "cdk.out")] == []
    assert list(ROOT.glob("*.py")) == []


def test_constructs_is_no_package_of_its_own() -> None:
    """With an __init__.py and the checkout on sys.path, `import aws_cdk` would find our room for PyPI's constructs."""
    assert not (ROOT / "constructs/__init__.py").exists()
    program = "import aws_cdk, constructs; print(constructs.__file__)"
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert "site-packages" in result.stdout, result.stderr


def test_rooms_are_typed() -> None:
    assert [folder for folder in PYTHON_FOLDERS if not (ROOT / folder / "py.typed").is_file()] == []


def test_no_folder_holds_more_than_a_person_reads_at_once() -> None:
    modules = Counter(
        file.parent
        for layer in (*PYTHON_FOLDERS, "lifecycle_scripts", "tests")
        for file in (ROOT / layer).rglob("*.py")
        if file.name != "__init__.py"
    )
    counts = {folder.relative_to(ROOT): count for folder, count in modules.items()}
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES.get(folder.parts[0], 20)} == {}


def test_no_module_is_a_drawer_for_anything() -> None:
    assert [file for file in files() if file.stem in ("utils", "util", "helpers", "misc")] == []


def test_test_files_have_names_of_their_own() -> None:
    """pytest's importlib mode has no packages: two files of one name would be told apart by folder alone."""
    names = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_helpers_stand_beside_their_tests() -> None:
    """They are imported by bare name, so pytest and the type checker look for them in the same folders."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    folders = set(tools["pytest"]["ini_options"]["pythonpath"])
    assert [folder for folder in folders if not list((ROOT / folder).glob("*.py"))] == []
    assert folders < set(tools["pyrefly"]["search-path"])
    helpers = Counter(
        file.name for folder in folders for file in (ROOT / folder).glob("*.py") if not file.name.startswith("test_")
    )
    assert [name for name, count in helpers.items() if count > 1 and name not in PROGRAMS] == []
    assert [file.name for file in (ROOT / "tests").glob("*.py")] == ["conftest.py"]
    assert list((ROOT / "tests").rglob("__init__.py")) == []
