"""PyTorch's environment is installed whole or not at all, by pip from any index. Small wheels stand for it here."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from podwright.config.errors import CommandError
from podwright.sandbox.control_plane import pytorch
from podwright.sandbox.control_plane.cache import Cache, State
from podwright.sandbox.control_plane.pytorch import GIGABYTES, PyTorch


def add_wheel(folder: Path, name: str, version: str, program: str = "") -> None:
    """Write a wheel of a module that says its version, with a program if one is named."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"def main():\n    print({version!r})\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{program} = {name}:main\n" if program else "",
    }
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"]))


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index: a folder of wheels."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    add_wheel(folder, "torch", "2.0.0", "torchrun")
    add_wheel(folder, "torch", "2.1.0", "torchrun")
    add_wheel(folder, "agent", "1.0.0", "hyperpodrun")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """The user's cache, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Cache.of_user()


def pin(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
    """Let podwright pin other packages."""
    file = folder / "pins.txt"
    file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(pytorch, "PINS", file)


def output(program: str) -> str:
    """What an installed program prints."""
    return subprocess.check_output([PyTorch.of_user().programs / program], text=True).strip()


def test_it_is_installed_in_the_users_cache_with_byte_code(
    cache: Cache, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pin(monkeypatch, tmp_path, "# Pins.\ntorch==2.0.0\nagent==1.0.0\n")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    made = PyTorch.of_user()
    assert (made.state, made.version) == (State.MISSING, "2.0.0")
    made.install(cache)
    assert made.state is State.INSTALLED
    assert made.folder == tmp_path / f"cache/podwright/training-{sys.implementation.cache_tag}"
    assert (output("torchrun"), output("hyperpodrun")) == ("2.0.0", "1.0.0")
    assert [file.name for file in made.folder.rglob("torch.*.pyc")] == [f"torch.{sys.implementation.cache_tag}.pyc"]
    assert made.python_home == Path(sys.executable).resolve().parent.parent
    assert "pytorch 2.0.0: installing 4.1 GB" in capsys.readouterr().err
    made.install(cache)
    assert "pytorch 2.0.0 is installed" in capsys.readouterr().err


def test_other_pins_install_what_changed(
    cache: Cache, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(monkeypatch, tmp_path, "torch==2.0.0\nagent==1.0.0\n")
    made = PyTorch.of_user()
    made.install(cache)
    pin(monkeypatch, tmp_path, "# Another comment.\ntorch==2.0.0\nagent==1.0.0\n")
    assert made.state is State.INSTALLED
    pin(monkeypatch, tmp_path, "torch==2.1.0\nagent==1.0.0\n")
    assert made.state is State.OUTDATED
    # What stays the same is not fetched again.
    (wheels / "agent-1.0.0-py3-none-any.whl").unlink()
    made.install(cache)
    assert (made.state, output("torchrun"), output("hyperpodrun")) == (State.INSTALLED, "2.1.0", "1.0.0")


def test_a_failed_installation_leaves_nothing(
    cache: Cache, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(monkeypatch, tmp_path, "torch==2.0.0\nabsent==1.0.0\n")
    with pytest.raises(CommandError, match=r"could not install PyTorch: .*absent==1\.0\.0") as failed:
        PyTorch.of_user().install(cache)
    assert "pip reaches a package index" in failed.value.hint
    assert PyTorch.of_user().state is State.MISSING


def test_an_interrupted_installation_leaves_nothing(
    cache: Cache, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(monkeypatch, tmp_path, "torch==2.0.0\n")

    def interrupt(*_: object) -> None:
        assert PyTorch.of_user().state is State.HALF_BUILT
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "copyfile", interrupt)
    with pytest.raises(KeyboardInterrupt):
        PyTorch.of_user().install(cache)
    assert PyTorch.of_user().state is State.MISSING


def test_what_a_killed_installation_left_is_made_again(
    cache: Cache, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(monkeypatch, tmp_path, "torch==2.0.0\n")
    made = PyTorch.of_user()
    (made.folder / "lib").mkdir(parents=True)
    (made.folder / "lib/left").touch()
    assert made.state is State.HALF_BUILT
    made.install(cache)
    assert (made.state, (made.folder / "lib/left").exists()) == (State.INSTALLED, False)


def test_a_full_disk_is_said_before(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: _Usage())
    with pytest.raises(CommandError, match=r"has 1.0 GB left, and PyTorch takes up to 6.7 GB") as refused:
        PyTorch.of_user().install(cache)
    assert "XDG_CACHE_HOME" in refused.value.hint


class _Usage:
    free = 1_000_000_000


def test_only_linux_has_real_nodes_that_need_it(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(CommandError, match="real nodes, which need Linux"):
        PyTorch.of_user().install(cache)


def test_another_installation_goes_first(cache: Cache, wheels: Path) -> None:
    with cache.locked(), pytest.raises(CommandError, match="another `podwright sandbox kubernetes`"):
        PyTorch.of_user().install(cache)


@pytest.mark.parametrize("page", ["docs/cli.md", "docs/operator.md", "docs/decisions/0070-real-nodes.md"])
def test_pages_state_the_size(page: str) -> None:
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    assert set(re.findall(r"(\d\.\d) GB", text)) >= {str(GIGABYTES)}
