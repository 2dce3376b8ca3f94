"""rkcnn evaluate."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from scipy.stats import binomtest

from mounts import needs_mounts
from rkcnn.cli import main
from rkcnn.cli.evaluate import say_agreement
from rkcnn.data.load import load_data_set
from rkcnn.evaluation.weights import NetworkDescription
from rkcnn.model.create import create_model
from rkcnn.model.fused import FusedNetwork

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def test_it_says_what_was_recorded_and_more(rkcnn: Run, run: Path, digits: str) -> None:
    result = json.loads((run / "result.json").read_bytes())
    code, out, _ = rkcnn("evaluate", str(run))
    assert code == 0
    wrong = round(100 * result["error"])
    low, high = binomtest(wrong, 100).proportion_ci(0.95, method="wilson")
    assert f"network      ResNet@k=4, from {run / 'weights.safetensors'}\n" in out
    assert f"data         {digits}, test: 100 images\n" in out
    assert (
        f"error        {wrong}.00 % ({wrong} of 100 wrong), 95 % interval {100 * low:.2f} to {100 * high:.2f} %" in out
    )
    assert "calibration  NLL " in out
    assert f"recorded     {wrong}.00 % when it was trained\n" in out
    for name in ("confusion.svg", "confusion.png", "mistakes.png"):
        assert f"wrote        {run / name}\n" in out
        assert (run / name).stat().st_size > 1000
    with Image.open(run / "mistakes.png") as picture:
        assert picture.size == (4 + 8 * 136, 2 * 18 + 8 + 6 * (112 + 3 * 18 + 8)), "48 mistakes in rows of 8"


def test_json_agrees_with_the_predictions_beside_the_run(rkcnn: Run, run: Path, tmp_path: Path, digits: str) -> None:
    code, out, _ = rkcnn("evaluate", str(run / "weights.safetensors"), "--json", "-o", str(tmp_path / "pictures" / "x"))
    assert code == 0
    found = json.loads(out)
    predicted, labels = np.load(run / "predictions.npy"), load_data_set(digits)[1].labels.numpy()
    confusion = np.zeros((10, 10), int)
    np.add.at(confusion, (labels, predicted), 1)
    assert found["confusion"] == confusion.tolist()
    assert found["notes"] == []
    assert found["wrong"] == int((predicted != labels).sum()) == len(found["mistakes"])
    assert found["class_errors"][3] == pytest.approx(1 - confusion[3, 3] / confusion[3].sum())
    worst = found["mistakes"][0]
    assert (labels[worst["image"]], predicted[worst["image"]]) == (worst["label"], worst["taken_for"])
    assert sorted(path.name for path in (tmp_path / "pictures" / "x").iterdir()) == [
        "confusion.png",
        "confusion.svg",
        "mistakes.png",
    ]
    assert not (run / "mistakes.png").exists()


def test_json_has_null_where_a_number_is_not_finite(rkcnn: Run, run: Path) -> None:
    path = run / "weights.safetensors"
    torch.manual_seed(0)
    state = {name: 1e17 * torch.randn_like(value) for name, value in load_file(path).items()}  # the logits overflow
    save_file(state, path, NetworkDescription.of("ResNet@k=4", load_data_set("mnist-mini")[0]).as_metadata())
    code, out, _ = rkcnn("evaluate", str(run), "--json")
    assert code == 0

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    found = json.loads(out, parse_constant=refuse)
    assert found["nll"] is found["mistakes"][0]["probability"] is None
    assert found["wrong"] == len(found["mistakes"])


@pytest.fixture
def exactness() -> Iterator[None]:
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    yield
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.parametrize(("precision", "rounds"), [("fp32", False), ("tf32", True)])
def test_products_are_as_exact_as_in_training(
    rkcnn: Run, run: Path, exactness: None, precision: str, rounds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And afterwards those of the program that asked are as they were."""
    seen: set[tuple[bool, bool]] = set()
    compute = FusedNetwork._compute

    def watch(self: FusedNetwork, images: torch.Tensor) -> torch.Tensor:
        seen.add((torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32))
        return compute(self, images)

    monkeypatch.setattr(FusedNetwork, "_compute", watch)
    path = run / "result.json"
    result = json.loads(path.read_bytes())
    result["run"]["recipe"]["precision"] = precision
    path.write_text(json.dumps(result))
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = not rounds
    assert rkcnn("evaluate", str(run))[0] == 0
    assert seen == {(rounds, rounds)}
    assert torch.backends.cudnn.allow_tf32 is torch.backends.cuda.matmul.allow_tf32 is not rounds


def test_images_loaded_in_another_way_are_refused(rkcnn: Run, tmp_path: Path, digits: str) -> None:
    """Under another split, images that were trained on would be among those to test with."""
    images = load_data_set("mnist-mini")[0]
    np.savez(tmp_path / "own.npz", x_train=images.pixels[:300, 0].numpy(), y_train=images.labels[:300].numpy())
    data, out = f"npz:{tmp_path / 'own.npz'}", tmp_path / "runs"
    with pytest.raises(SystemExit):
        main(["train", "ResNet@k=4", "--data", data, "--split", "0.3", "--set", "epochs=1", "--out", str(out)])
    run = str(next(out.rglob("result.json")).parent)
    says = "--split 0.5 given, and the run was trained with --split 0.3, so that images that the network was trained on"
    for options in ((), ("--data", data)):
        code, _, err = rkcnn("evaluate", run, *options, "--split", "0.5")
        assert code == 2
        assert err.splitlines()[-1] == f"rkcnn: {says} would be among the test images; give at most 0.3"
    code, said, _ = rkcnn("evaluate", run)  # it remembers
    assert code == 0
    assert "recorded     " in said
    assert "NOT THE SAME" not in said
    code, said, _ = rkcnn("evaluate", run, "--data", data, "--split", "0.2")
    assert code == 0
    assert "recorded" not in said
    exported = str(tmp_path / "m.safetensors")
    assert rkcnn("export", run, "-o", exported)[0] == 0
    code, said, _ = rkcnn("evaluate", exported, "--data", data)
    assert (code, "recorded     " in said, "NOT THE SAME" in said) == (0, True, False)
    assert rkcnn("evaluate", exported, "--data", data, "--split", "0.5")[0] == 2


def test_a_record_without_a_checksum_is_no_reason_to_refuse(rkcnn: Run, run: Path) -> None:
    path = run / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "data": {}}))
    assert "recorded     " in rkcnn("evaluate", str(run))[1]


def test_another_set_of_the_same_kind(rkcnn: Run, run: Path) -> None:
    code, out, _ = rkcnn("evaluate", str(run), "--data", "mnist-mini")
    assert code == 0
    assert "data         mnist-mini, test: 2,000 images" in out
    assert "recorded" not in out
    assert not (run / "mistakes.png").exists(), "the run's own pictures stay"
    for name in ("confusion.svg", "confusion.png", "mistakes.png"):
        assert f"wrote        {run / 'evaluated' / 'mnist-mini' / name}\n" in out


def test_weights_alone_need_a_set(rkcnn: Run, run: Path) -> None:
    (run / "result.json").unlink()
    code, _, err = rkcnn("evaluate", str(run / "weights.safetensors"))
    assert code == 2
    assert "say which images, as in --data 'mnist'" in err
    assert rkcnn("evaluate", str(run / "weights.safetensors"), "--data", "mnist-mini")[0] == 0


def test_a_difference_from_the_record_is_said(rkcnn: Run, run: Path) -> None:
    path = run / "result.json"
    facts = json.loads(path.read_bytes())
    facts["epochs"][-1]["held_out_error"] = facts["error"] = facts["error_best"] = 0.01
    path.write_text(json.dumps(facts))
    assert "recorded     1.00 % when it was trained: NOT THE SAME" in rkcnn("evaluate", str(run))[1]


def test_without_matplotlib_it_says_so(rkcnn: Run, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, _ = rkcnn("evaluate", str(run))
    assert code == 0
    assert "note         no confusion matrix drawn: matplotlib is not installed here\n" in out
    assert not (run / "confusion.png").exists()
    found = json.loads(rkcnn("evaluate", str(run), "--json")[1])
    assert found["notes"] == ["no confusion matrix drawn: matplotlib is not installed here"]


def refused(answer: tuple[int, str, str], says: str) -> None:
    code, out, err = answer
    assert (code, out) == (2, "")
    *notes, sentence = err.splitlines()
    assert sentence.startswith("rkcnn: ")
    assert says in sentence
    assert all(note.startswith("reading ") for note in notes)


def test_a_folder_without_a_result(rkcnn: Run, tmp_path: Path) -> None:
    refused(rkcnn("evaluate", str(tmp_path)), "holds no result.json; give the folder of a finished run")
    refused(rkcnn("evaluate", str(tmp_path / "no")), "doesn't exist; give the folder of a finished run")


def test_a_checkpoint(rkcnn: Run, run: Path) -> None:
    path = next(run.glob("checkpoint-*.safetensors"))
    refused(rkcnn("evaluate", str(path)), "is a checkpoint; give a finished run's folder or its weights.safetensors")


def test_weights_of_another_network(rkcnn: Run, run: Path) -> None:
    images, path = load_data_set("mnist-mini")[0], run / "weights.safetensors"
    state = load_file(path)
    save_file(state, path, NetworkDescription.of("ResNet@k=8", images).as_metadata())
    refused(rkcnn("evaluate", str(run)), "says that it holds ResNet@k=8, but its weights are of another network")
    save_file(state, path, NetworkDescription.of("ResNet@k=4", images).as_metadata())
    result = (run / "result.json").read_text()
    (run / "result.json").write_text(result.replace("ResNet@k=4", "ResNet@k=8"))
    refused(rkcnn("evaluate", str(run)), "holds ResNet@k=4, and the run beside it is of ResNet@k=8")


def test_a_run_that_diverged(rkcnn: Run, run: Path) -> None:
    path = run / "result.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "status": "diverged: at step 3"}))
    refused(rkcnn("evaluate", str(run)), "holds no weights: the run diverged: at step 3")


@pytest.mark.parametrize(
    ("shape", "classes", "says"),
    [
        ((32, 32, 1), 10, "it has images of 32 x 32, and the network was trained on images of 28 x 28"),
        ((28, 28, 1), 4, "it has 4 classes, and the network was trained on 10 classes"),
    ],
)
def test_a_set_that_does_not_fit(
    rkcnn: Run, run: Path, tmp_path: Path, shape: tuple[int, ...], classes: int, says: str
) -> None:
    pixels, labels = np.zeros((20, *shape), np.uint8), np.arange(20) % classes
    pixels[:, 0, 0] = 200
    np.savez(tmp_path / "other.npz", x_train=pixels, y_train=labels, x_test=pixels, y_test=labels)
    refused(rkcnn("evaluate", str(run), "--data", f"npz:{tmp_path / 'other.npz'}"), says)


def test_a_class_that_the_network_doesnt_know_is_named(rkcnn: Run, run: Path, tmp_path: Path) -> None:
    for name in ("7", "eel"):
        (tmp_path / "more" / name).mkdir(parents=True)
        Image.new("L", (28, 28)).save(tmp_path / "more" / name / "1.png")
    code, _, err = rkcnn("evaluate", str(run), "--data", f"folder:{tmp_path / 'more'}")
    assert code == 2
    assert "it has the class 'eel', and the network was trained on '0', '1', '2', '3', '4', ..." in err


def test_all_of_a_file_in_the_channels_of_the_network(rkcnn: Run, run: Path, tmp_path: Path) -> None:
    pixels = np.random.RandomState(0).randint(0, 256, (20, 28, 28, 3), np.uint8)
    np.savez(tmp_path / "other.npz", x_train=pixels, y_train=np.arange(20) % 10)
    command = ("evaluate", str(run), "--data", f"npz:{tmp_path / 'other.npz'}")
    code, out, err = rkcnn(*command, "-o", str(tmp_path))
    assert (code, "test: 20 images" in out) == (0, True), err
    assert "other.npz has no test set of its own: all of its 20 images are test images" in err
    code, out, err = rkcnn(*command, "--channels", "3")
    assert (code, out) == (2, "")
    assert "it has 3 channels, and the network was trained on 1 channel" in err.splitlines()[-1]


def test_a_device_that_is_not_there(rkcnn: Run, run: Path) -> None:
    refused(rkcnn("evaluate", str(run), "--device", "cuda:99"), "device 'cuda:99' can't be used here")


def test_a_place_that_cant_be_written(rkcnn: Run, run: Path) -> None:
    refused(rkcnn("evaluate", str(run), "-o", "/dev/null/x"), "name another folder with -o")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"data": {"own": {"size": [28]}}}, "field `own`'s size is of type list"),
        ({"data": {"own": {"colour": "red"}}}, "own images have no option 'colour'"),
        ({"data": {"classes": "0123456789"}}, "data's classes is of type str"),
        ({"run": {"data": "mnist-mini~validation-xyz"}}, "which has an option that this version doesn't know"),
        ({"run": {"data": f"mnist-mini~validation-{'9' * 5000}"}}, "which has an option that this version"),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_record_of_other_kinds_is_one_sentence(
    rkcnn: Run, run: Path, command: str, change: dict[str, dict[str, object]], says: str
) -> None:
    facts = json.loads((run / "result.json").read_bytes())
    for name, inner in change.items():
        facts[name] |= inner
    (run / "result.json").write_text(json.dumps(facts))
    code, out, err = rkcnn(command, str(run), *([str(run)] if command == "predict" else []))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert says in err
    assert len(err) < 450


READ_ONLY = """
import sys
from rkcnn.cli import main
for words in (["evaluate", sys.argv[1]], ["runs", "--from", sys.argv[1]], sys.argv[2:]):
    try:
        main(words)
    except SystemExit as end:
        print("code", end.code)
"""


@needs_mounts
def test_a_finished_run_on_a_read_only_disk_shows_its_result(trained: Path, digits: str) -> None:
    out = trained.parents[3]
    train = ["train", "ResNet@k=4", "--data", digits, "--set", "epochs=1", "--out", str(out)]
    mount = f"mount --make-rprivate / && mount --bind {out} {out} && mount -o remount,bind,ro {out}"
    inside = ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh", sys.executable, "-c", READ_ONLY]
    done = subprocess.run([*inside, str(trained), *train], capture_output=True, text=True, check=False)
    assert done.stdout.count("code 0") == 3, done.stderr
    assert "note         no pictures: can't write to" in done.stdout
    assert "it is on a read-only file system" in done.stdout
    assert f"seed 0 is finished already, in {trained}" in done.stdout
    assert "error     " in done.stdout


@pytest.fixture
def ode(tmp_path: Path, digits: str) -> tuple[str, ...]:
    """The weights of an untrained RKNet, and the option that names images."""
    torch.manual_seed(0)
    description = NetworkDescription.of("RKNet-euler@k=4", load_data_set("mnist-mini")[0])
    path = tmp_path / "weights.safetensors"
    save_file(create_model("RKNet-euler@k=4", 10, 1).state_dict(), path, description.as_metadata())
    return str(path), "--data", digits


def test_other_solvers_stand_below_the_trainings(rkcnn: Run, ode: tuple[str, ...]) -> None:
    choices = ("--with", "method=dopri5,tol=1e-2", "--with", "method=rk4,steps=2")
    code, out, _ = rkcnn("evaluate", *ode, *choices)
    assert code == 0
    _, _, head, *rows = out.splitlines()
    assert head.split()[:2] == ["solver", "error"]
    assert [row.partition("  ")[0] for row in rows] == ["euler, 1 step", "dopri5, tol 0.01", "rk4, 2 steps"]
    assert "as trained" in rows[0]
    found = json.loads(rkcnn("evaluate", *ode, *choices, "--json")[1])["solvers"]
    assert [each["solver"] for each in found] == ["euler, 1 step", "dopri5, tol 0.01", "rk4, 2 steps"]
    assert [found[0]["evaluations"], found[2]["evaluations"]] == [1, 8]
    assert found[0]["metrics"]["images"] == 100


def test_corruptions_are_printed_where_they_cant_be_drawn(rkcnn: Run, trained: Path, tmp_path: Path) -> None:
    """What took 21 evaluations is not lost to a folder in the picture's place."""
    copy = shutil.copytree(trained, tmp_path / "run")
    (copy / "corruptions.svg").mkdir()
    code, out, _ = rkcnn("evaluate", str(copy), "--corrupt")
    assert code == 0
    assert "  noise " in out
    assert "note         no pictures: " in out
    (tmp_path / "named" / "corruptions.svg").mkdir(parents=True)
    code, _, err = rkcnn("evaluate", str(copy), "--corrupt", "-o", str(tmp_path / "named"))
    assert code == 2
    assert "corruptions.svg" in err


def test_corruptions_are_printed_and_drawn(rkcnn: Run, trained: Path, tmp_path: Path) -> None:
    code, out, _ = rkcnn("evaluate", str(trained), "--corrupt", "-o", str(tmp_path / "new"))
    assert code == 0
    rows = [line.split() for line in out.splitlines() if line.startswith("  ")]
    assert [row[0] for row in rows] == ["noise", "blur", "contrast", "shift"]
    for _, *grades, mean in rows:
        assert float(mean) == pytest.approx(sum(map(float, grades)) / 5, abs=0.01)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["corruptions.png", "corruptions.svg"]
    found = json.loads(rkcnn("evaluate", str(trained), "--corrupt", "-o", str(tmp_path / "new"), "--json")[1])
    assert f"error        {100 * found['clean']:.2f} % of the clean images" in out
    assert [f"{100 * error:.2f}" for error in found["corrupted"]["noise"]] == rows[0][1:6]


def test_bad_input_gets_one_sentence(rkcnn: Run, trained: Path, ode: tuple[str, ...]) -> None:
    for arguments, says in (
        ((str(trained), "--with", "method=rk4"), "ResNet@k=4 has no f that another method could solve"),
        ((*ode, "--with", "method=rk5"), "no method 'rk5'"),
        ((*ode, "--with", "rk4"), "as in --with method=dopri5,tol=1e-3"),
        ((*ode, "--with", "method=rk4", "--corrupt"), "--with and --corrupt given; give one of the two at a time"),
        ((str(trained), "--corrupt", "-o", "/dev/null/x"), "name another folder with -o"),
    ):
        code, out, err = rkcnn("evaluate", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert says in err


@pytest.mark.parametrize(
    ("difference", "precision", "said"),
    [
        (0.0, "fp32", ""),
        (0.0001, "fp32", ": NOT THE SAME"),
        (0.0001, "bf16", ": the same up to rounding in bf16"),
        (0.01, "bf16", ": NOT THE SAME"),
    ],
)
def test_rounding_is_told_from_another_error(difference: float, precision: str, said: str) -> None:
    assert say_agreement(difference, 10_000, precision) == said


def test_pretrained_weights_by_name(rkcnn: Run, pretrained: str, shipped: Path, tmp_path: Path) -> None:
    code, out, _ = rkcnn("evaluate", pretrained)
    assert code == 0
    assert "data         mnist-mini, test: 2,000 images\n" in out
    assert "NOT THE SAME" not in out
    assert "note         no pictures: name a folder for them with -o\n" in out
    assert [path.name for path in (shipped / "weights").iterdir()] == [f"{pretrained}.safetensors"]
    code, out, _ = rkcnn("evaluate", pretrained, "-o", str(tmp_path))
    assert code == 0
    assert (tmp_path / "confusion.svg").exists()
    code, _, err = rkcnn("evaluate", "RKCNN-E-2@k=4.svhn")
    assert (code, err) == (
        2,
        "rkcnn: there are no weights of RKCNN-E-2@k=4 trained on svhn; there are some trained on mnist-mini\n",
    )
