"""Files of somebody's checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rkcnn.bench.peers.checkout import import_file
from rkcnn.bench.plan import PeerChoice
from rkcnn.error import InputError


def write(folder: Path, text: str) -> PeerChoice:
    (folder / "package").mkdir()
    (folder / "package" / "file.py").write_text(text)
    (folder / "package" / "utils.py").write_text("VALUE = 3\n")
    return PeerChoice("authors", folder)


def test_a_file_sees_its_package_and_nothing_else_changes(tmp_path: Path) -> None:
    before = list(sys.path)
    module = import_file(write(tmp_path, "from .utils import VALUE\n"), "package/file.py")
    assert module.VALUE == 3
    assert sys.path == before
    assert not {"package", "utils", "file"} & sys.modules.keys()


def test_two_checkouts_in_one_process(tmp_path: Path) -> None:
    for value in (3, 4):
        folder = tmp_path / str(value)
        folder.mkdir()
        peer = write(folder, "from .utils import VALUE\n")
        (folder / "package" / "utils.py").write_text(f"VALUE = {value}\n")
        assert value == import_file(peer, "package/file.py").VALUE


def test_a_folder_that_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no checkout of ZhuMai/RKCNN: it has no package/file\.py"):
        import_file(PeerChoice("authors", tmp_path), "package/file.py")


@pytest.mark.parametrize("text", ["for i in xrange(3): pass\n", "def f(:\n", "import nothing_of_that_name\n"])
def test_a_file_that_can_not_be_imported_is_one_sentence(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"file\.py can't be imported \(\w+Error: ") as error:
        import_file(write(tmp_path, text), "package/file.py")
    assert "\n" not in str(error.value)
    assert not [name for name in sys.modules if name.startswith("_rkcnn_peer_authors")]
