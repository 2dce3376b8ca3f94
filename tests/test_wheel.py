"""The wheel works by itself: with its requirements and nothing else, away from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from rkcnn import __version__
from rkcnn.record.tables import list_models

ROOT = Path(__file__).parents[1]


def needed(root: Distribution) -> dict[str, Distribution]:
    """Return what an installation without extras needs, as it is installed here: pip would take 50 s to install it."""
    found: dict[str, Distribution] = {}
    waiting = [root]
    while waiting:
        for requirement in map(Requirement, waiting.pop().requires or ()):
            if requirement.name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
                continue
            here = found[requirement.name] = distribution(requirement.name)
            assert requirement.specifier.contains(here.version, prereleases=True), f"{requirement}: {here.version}"
            waiting.append(here)
    return found


def test_the_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    away = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}

    def call(*command: str | Path, cwd: Path = tmp_path) -> str:
        done = subprocess.run(command, cwd=cwd, env=away, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, cwd=ROOT)
    (wheel,) = tmp_path.glob("rkcnn-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    assert any(name.endswith("licenses/LICENSE") for name in packed)
    assert all(name.startswith("rkcnn") for name in packed), "the wheel holds more than the package"
    files = [path for path in (ROOT / "src" / "rkcnn").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    ours = {path.relative_to(ROOT / "src").as_posix(): path.read_bytes() for path in files}
    assert {name: content for name, content in packed.items() if name.startswith("rkcnn/")} == ours

    empty = tmp_path / "empty"
    call(sys.executable, "-m", "venv", "--without-pip", empty)
    call(sys.executable, "-m", "pip", "--python", empty / "bin" / "python", "install", "--no-deps", "--no-index", wheel)
    (site,) = empty.glob("lib/python*/site-packages")
    (installed,) = site.glob("rkcnn-*.dist-info")
    brought = needed(PathDistribution(installed))
    assert "torch" in brought
    for name in {file.parts[0] for other in brought.values() for file in other.files or ()} - {"..", "__pycache__"}:
        (site / name).symlink_to(Path(str(brought["torch"].locate_file(name))))
    python, command = empty / "bin" / "python", empty / "bin" / "rkcnn"
    where, *names = call(python, "-c", "import rkcnn; print(rkcnn.__file__, *rkcnn.list_models(), sep='\\n')").split()
    assert Path(where).is_relative_to(site)
    assert names == list(list_models())
    assert call(command, "--version").strip() == __version__
    assert "RKCNN-I-2@k=32: " in call(command, "describe", "RKCNN-I-2@k=32")
    short = ("--set", "epochs=1", "--set", "max_steps_per_epoch=5")
    trained = json.loads(call(command, "train", "ResNet@k=4", *short, "--json"))
    assert trained[0]["data"]["verified"], "on the digits that come with it"
