"""rkcnn train: what it prints before, during and after, and what happens when it can't continue."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from rich.console import Console

from rkcnn.cli.progress import RunProgress
from rkcnn.data.load import load_data_set
from rkcnn.fit.recipe import find_recipe
from rkcnn.record.source import source_hash
from rkcnn.run.job import Job
from rkcnn.run.train import train

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(digits: str, tmp_path: Path) -> list[str]:
    return ["train", "ResNet@k=4", "--data", digits, "--epochs", "2", "--out", str(tmp_path)]


def only(folder: Path, name: str) -> Path:
    (found,) = folder.rglob(name)
    return found


def test_before_during_and_after(rkcnn: Run, command: list[str], digits: str, tmp_path: Path) -> None:
    code, out, _ = rkcnn(*command, "--lr", "0.05")
    assert code == 0
    head, body, end = re.split(r"\n(?=epoch 1/2)|\n\n", out)
    assert "network   ResNet@k=4, 938 parameters" in head
    assert (
        f"data      {digits}: 256 images to train on, 100 to test on, 10 classes, 28 x 28 x 1, your own images" in head
    )
    schedule = "lr rises to 0.05 at 25 % of the run and falls to 0"
    assert f"recipe    own,epochs=2,batch=16,lr=0.05,flip=False: 2 epochs of 16 steps of 16 images, {schedule}" in head
    assert "note      32 steps is little to learn from: --epochs 19 would make 304\n" in head
    assert re.search(r"device    cpu \(\d+ threads?\), fp32, eager\n", head)
    line = r"epoch \d/2  loss \d.\d{4}  train error [\d.]+ %  test error [\d.]+ %  [\d,]+ images/s  \d+:\d\d left"
    assert all(re.fullmatch(line, text) for text in body.splitlines())
    assert len(body.splitlines()) == 2
    folder = only(tmp_path, "result.json").parent
    result = json.loads((folder / "result.json").read_bytes())
    last, best = (f"{100 * result[name]:.2f} %" for name in ("error", "error_best"))
    assert f"error     {last} on the test set after the last epoch; best {best} after epoch " in end
    assert " (chosen on the test set)\n" in end
    assert f"folder    {folder}" in end
    for name in ("weights.safetensors", "result.json", "metrics.csv", "config.json", "predictions.npy", "curves.svg"):
        assert f"\n          {name} " in end
        assert (folder / name).exists()
    assert (folder / "curves.png").exists()
    assert "rkcnn evaluate " in end
    assert f"rkcnn runs --from {tmp_path}  # all results" in end
    assert re.search(r"\ntime      \d+:\d\d of training, [\d,]+ images/s, ", end)


def test_a_finished_run_says_so_and_again_repeats_it(rkcnn: Run, command: list[str], tmp_path: Path) -> None:
    rkcnn(*command)
    path = only(tmp_path, "result.json")
    weights = (path.parent / "weights.safetensors").read_bytes()
    code, out, _ = rkcnn(*command)
    assert code == 0
    assert f"seed 0 is finished already, in {path.parent}; --again repeats it\n" in out
    assert "different version" not in out
    assert "epoch 1/2" not in out
    code, _, err = rkcnn(*command, "--engine", "steam")
    assert (code, err) == (2, "rkcnn: no engine 'steam'; engines are auto, eager, compile, graph, fused\n")
    (path.parent / "weights.safetensors").unlink()
    missing = "its weights.safetensors is not there, so it can't be evaluated or used; --again trains it anew"
    assert missing in rkcnn(*command)[1]
    path.write_text(path.read_text().replace(source_hash(), "0" * 16))
    said = rkcnn(*command)[1]
    assert "  2 of its epochs were computed by a different version of the code (commit " in said
    assert f", source {'0' * 16})\n" in said
    assert "epoch 1/2" in rkcnn(*command, "--again")[1]
    assert (path.parent / "weights.safetensors").read_bytes() == weights


def test_the_settings_in_a_folder_repeat_the_run(rkcnn: Run, command: list[str], tmp_path: Path) -> None:
    rkcnn(*command, "--validation", "20", "--seed", "3")
    path, weights = only(tmp_path, "config.json"), only(tmp_path, "weights.safetensors")
    again = ["train", "--config", str(path), "--out", str(tmp_path / "again")]
    assert rkcnn(*again)[0] == 0
    assert only(tmp_path / "again", "weights.safetensors").read_bytes() == weights.read_bytes()
    assert "seed      4" in rkcnn(*again, "--seed", "4")[1]
    for given, named in (
        (("--recipe", "mini"), "--recipe"),
        (("--skip-bad",), "--skip-bad"),
        (("ResNet@k=4", "--lr", "0.2", "--set", "flip=off", "--split", "0.1"), "NAME, --set flip, --lr, --split"),
        (("--data", "mnist", "--weigh-classes", "--validation", "9"), "--data, --weigh-classes, --validation"),
    ):
        code, _, err = rkcnn(*again, *given)
        said = f"--config given with other settings of the run ({named}); leave them out, or change them in the file"
        assert (code, err) == (2, f"rkcnn: {said}\n")
    assert rkcnn("train", "--config", str(weights))[0] == 2


def test_json_is_all_of_standard_output(rkcnn: Run, command: list[str]) -> None:
    for _ in range(2):  # trained, and found
        code, out, err = rkcnn(*command, "--json")
        (result,) = json.loads(out)
        assert code == 0
        assert Path(result["folder"], "weights.safetensors").exists()
        assert result["run"]["recipe"]["epochs"] == len(result["epochs"]) == 2
        assert "epoch 2/2" in err or "finished already" in err


def test_a_precision_is_in_the_runs_name(rkcnn: Run, command: list[str], tmp_path: Path) -> None:
    code, out, _ = rkcnn(*command, "--precision", "bf16", "--json")
    assert code == 0
    (found,) = json.loads(out)
    assert found["run"]["recipe"]["precision"] == "bf16"
    assert "precision=bf16" in Path(found["folder"]).parent.name
    for words, says in {
        ("--precision", "half"): "--precision half given; it is one of fp32, tf32, bf16",
        ("--precision", "bf16", "--set", "precision=tf32"): "--precision and --set precision=tf32 given; give one of",
    }.items():
        code, out, err = rkcnn(*command, *words)
        assert (code, out) == (2, "")
        assert says in err


def test_several_seeds(rkcnn: Run, command: list[str], tmp_path: Path) -> None:
    code, out, _ = rkcnn(*command, "--seeds", "2", "--seed", "5")
    assert code == 0
    assert sorted(path.parent.name for path in tmp_path.rglob("result.json")) == ["seed-5", "seed-6"]
    assert "seed 6  epoch 2/2" in out
    assert "error     seed 5: " in out
    errors = [json.loads(path.read_bytes())["error"] for path in tmp_path.rglob("result.json")]
    assert f"mean of 2 seeds {50 * sum(errors):.2f} % ± {100 * abs(errors[0] - errors[1]) / 2**0.5:.2f} %" in out


def test_a_validation_split_is_named(rkcnn: Run, command: list[str], tmp_path: Path) -> None:
    code, out, _ = rkcnn(*command, "--validation", "50", "--set", "batch=64")
    assert code == 0
    assert "206 images to train on, 50 held out for validation" in out
    assert re.search(r"epoch 2/2 .*  validation error [\d.]+ %  ", out)
    assert "% on the validation set after the last epoch; best " in out
    assert "(chosen on the validation set)" in out
    assert "the predicted class of each validation image" in out
    assert " test " not in out.replace(str(tmp_path), "")
    assert only(tmp_path, "result.json").parts[-5].endswith("~validation-50")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_keeps_a_checkpoint_and_the_same_command_continues(
    rkcnn: Run, command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, code: int
) -> None:
    seen = []

    def steps_done(self: RunProgress, jobs: list[Job]) -> None:
        self.jobs = jobs
        seen.append(jobs)
        if len(seen) == 17:  # an epoch has 16 steps
            os.kill(os.getpid(), number)

    with monkeypatch.context() as patch:
        patch.setattr(RunProgress, "steps_done", steps_done)
        got, out, err = rkcnn(*command)
    assert got == code
    assert "epoch 1/2" in out
    name = signal.Signals(number).name
    assert err.endswith(f"rkcnn: stopped by {name}; seed 0 at epoch 2, step 2; the same command continues\n")
    assert not list(tmp_path.rglob("result.json"))
    got, out, _ = rkcnn(*command)
    assert got == 0
    assert "seed      0, continues at epoch 2, step 2" in out
    assert "epoch 2/2" in out


def leave_after(lines: int, *command: str) -> list[str]:
    """Read so many lines of a command and close its output; it must exit with 141 and print no error."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rkcnn", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stderr:
        try:
            with process.stdout:
                seen = [process.stdout.readline() for _ in range(lines)]
            assert (process.stderr.read(), process.wait(60)) == ("", 141)
        finally:
            process.kill()
    return seen


def test_a_run_that_diverged_is_not_among_those_that_continue(
    rkcnn: Run, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def steps_done(self: RunProgress, jobs: list[Job]) -> None:
        self.jobs = jobs
        self.ended.add(0)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(RunProgress, "steps_done", steps_done)
    code, _, err = rkcnn(*command)
    assert code == 143
    assert err.endswith("rkcnn: stopped by SIGTERM; the same command continues\n")


@pytest.mark.parametrize("lines", [0, 8])
def test_a_closed_pipe_stops_a_run_with_a_checkpoint(digits: str, tmp_path: Path, lines: int) -> None:
    """As in `rkcnn train | head -1`."""
    load_data_set(digits)  # else a note that the file is read would appear on standard error
    more = ("--set", "epochs=15000", "--out", str(tmp_path))
    seen = leave_after(lines, "train", "ResNet@k=4", "--data", digits, *more)
    kept = json.loads(sorted(tmp_path.rglob("checkpoint-*.json"))[-1].read_bytes())
    done = [line for line in seen if line.startswith("epoch ")]
    assert len(done) == (3 if lines else 0)
    at = (kept["epoch"], kept["step"])
    assert at > (len(done), 0) if lines else at == (0, 0), "kept after the line that nobody read; first the network's"


def test_a_closed_pipe_when_the_run_is_finished_already(digits: str, trained: Path) -> None:
    out = str(trained.parents[3])
    leave_after(0, "train", "ResNet@k=4", "--data", digits, "--set", "epochs=1", "--out", out)


def test_ctrl_c_before_the_first_step(rkcnn: Run, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rkcnn.run.train.load_data_set", interrupt)
    assert rkcnn(*command) == (130, "", "rkcnn: stopped by SIGINT; the same command continues\n")


def test_a_run_that_diverges(rkcnn: Run, command: list[str], tmp_path: Path) -> None:
    bad = (*command, "--lr", "10000", "--set", "weight_decay=1000", "--batch", "32", "--set", "schedule=steps")
    code, out, _ = rkcnn(*bad)
    assert code == 1
    assert re.search(r"DIVERGED  the loss is not finite at epoch 1, step \d, lr 10000\n", out)
    kept = only(tmp_path, "checkpoint-00000-000000.safetensors")
    assert f"last good checkpoint: {kept}; a lower lr may help" in out
    assert "rkcnn evaluate" not in out
    code, out, _ = rkcnn(*bad)
    assert code == 1
    assert "seed 0 diverged already" in out
    assert rkcnn(*bad, "--json")[0] == 1


def test_without_matplotlib_a_note_says_so(
    rkcnn: Run, command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, _ = rkcnn(*command)
    assert code == 0
    assert out.count("no curves: matplotlib is not installed here") == 1
    assert not list(tmp_path.rglob("curves.*"))
    assert "curves.svg" not in out


def test_only_the_first_rank_prints(rkcnn: Run, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    assert rkcnn(*command)[:2] == (0, "")


@pytest.mark.parametrize("several", [False, True])
def test_a_terminal_of_80_columns_shows_everything(
    digits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: bool
) -> None:
    monkeypatch.setattr("rkcnn.cli.progress.REFRESH", 0.0)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80, color_system=None)
    with RunProgress(console, several) as shown:
        train(
            "ResNet@k=4",
            digits,
            replace(find_recipe("mini"), epochs=20),
            (0, 1)[: 1 + several],
            out=tmp_path,
            observer=shown,
        )
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    last = [line for line in re.split(r"[\r\n]+", text) if "epoch 20/20" in line][-1]
    assert re.search(r" epoch 20/20 loss \d\.\d{4} train [\d.]+ % test [\d.]+ % [\d,]+ img/s 0:00 left", last), last
    assert ("seed 1 " in last) is several
    assert several or "━" in last, "with a seed's name its words may fill the line"
    assert len(last) <= 80


BAD = {
    "--validation 0.2": "--validation: 0.2 is not a whole number",
    "--seed 0.9": "--seed: 0.9 is not a whole number",
    "--seeds 1.9": "--seeds: 1.9 is not a whole number",
    "--set epoch=3": "a recipe has no field 'epoch' (did you mean epochs?)",
    "--set epochs": "--set epochs given; it takes FIELD=VALUE",
    "--set =3": "FIELD=VALUE",
    "--set epochs=": "FIELD=VALUE",
    "--set lr=1 --set lr=2": "--set lr given twice, as 1 and 2",
    "--set lr=fast": "it must be a number",
    "--set epochs=0": "epochs=0 given; it must be from 1 to",
    "--recipe minni": "did you mean mini?",
    "--seed -1": "a seed is a whole number from 0",
    f"--seed {1 << 64}": "a seed is a whole number from 0",
    "--seeds 0": "--seeds 0 given",
    "--seeds 100000": "train 1 to 1000",
    "--device tpu": "device 'tpu' can't be used here",
    "--device cuda:99": "device 'cuda:99' can't be used here; use cpu",
    "--device meta": "can't compute on 'meta'",
    "--device hpu": "can't compute on 'hpu'; devices are cpu, cuda and cuda:N",
    "--device xla:0": "can't compute on 'xla:0'",
    "--device cpu:-1": "device 'cpu:-1' can't be used here",
    "--engine warp": "engines are auto, eager, compile, graph",
    "--validation -3": "can't be set apart",
    "--validation 256": "give 1 to 255",
    "--set batch=1000": "a batch of 1000",
    "here there": "rkcnn train does not take 'here'; rkcnn train --help shows what it takes",
    "--learning-rate 0.1": "there is no option --learning-rate; did you mean --lr?",
    "--epoch 3": "there is no option --epoch; did you mean --epochs?",
    "--momentum 0.5": "--momentum is a field of the recipe and no option; change it by --set momentum=VALUE",
    "--weight-decay=1": "change it by --set weight_decay=VALUE",
    "--no-flip": "did you mean --set flip=VALUE?",
    "--epochs 3 --set epochs=4": "--epochs and --set epochs=4 given; give one of them",
    "--epochs 1.5": "--epochs: 1.5 is not a whole number",
    "--lr fast": "--lr",
    "--head-only": "--head-only given without trained weights; name a run or file, as in --init-from",
    "--init-from nowhere": "nowhere holds no trained network; give the folder of a finished run",
    "--keys x_train=a": "has no array a; it holds x_train, y_train, x_test, y_test",
    "--split 0.2": "has a test set of its own; leave --split 0.2 out",
    "--size large": "--size",
}


@pytest.mark.parametrize("options", BAD)
def test_bad_input_is_one_sentence_and_code_two(rkcnn: Run, digits: str, tmp_path: Path, options: str) -> None:
    code, out, err = rkcnn("train", "ResNet@k=4", "--data", digits, "--out", str(tmp_path / "r"), *options.split())
    assert (code, out) == (2, "")
    *notes, sentence = err.splitlines()
    assert sentence.startswith("rkcnn: ")
    assert BAD[options] in sentence
    assert all(note.startswith("reading ") for note in notes)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"]


@pytest.mark.parametrize(
    ("network", "data", "says"),
    [
        ("ResNet@k=4_4_4_4,stem=odenet", "mnist-mini", "mnist-mini doesn't fit the network: "),
        ("RKCN-R-2@k=4", "mnist-mini", "did you mean RKCNN?"),
        ("ResNet@k=4", "mnits", "did you mean mnist?"),
        ("ResNet@k=4", ".", "no data set is called '.'; for your own images there give --data folder:."),
    ],
)
def test_a_set_and_a_network_that_do_not_fit(rkcnn: Run, network: str, data: str, says: str, tmp_path: Path) -> None:
    code, out, err = rkcnn("train", network, "--data", data, "--out", str(tmp_path))
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_folder_that_cant_be_written(rkcnn: Run, digits: str) -> None:
    code, out, err = rkcnn("train", "ResNet@k=4", "--data", digits, "--out", "/dev/null/runs")
    assert (code, out) == (2, "")
    assert "can't write to /dev/null/runs" in err
    assert "name another --out" in err


def test_a_result_of_other_images_is_not_taken_for_this_one(rkcnn: Run, command: list[str], tmp_path: Path) -> None:
    rkcnn(*command)
    path = only(tmp_path, "result.json")
    result = json.loads(path.read_bytes())
    result["data"]["train_sha256"] = "0" * 64
    path.write_text(json.dumps(result))
    code, out, err = rkcnn(*command)
    assert (code, out) == (2, "")
    assert "holds a result of other images; name another --out or give --again" in err


@pytest.mark.skipif(torch.cuda.is_available(), reason="where there is no GPU")
def test_a_gpu_that_is_not_there(rkcnn: Run) -> None:
    assert "device 'cuda' can't be used here; use cpu or auto" in rkcnn("train", "--device", "cuda")[2]


def test_under_torchrun_the_first_rank_prints_and_all_exit_with_0(tmp_path: Path) -> None:
    command = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "rkcnn", "train", "ResNet@k=4"]
    done = subprocess.run(
        [sys.executable, *command, "--set", "epochs=1", "--set", "sync_norm=on", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("after the last epoch") == 1
    assert len(list(tmp_path.rglob("result.json"))) == 1


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Forty noisy pictures of two classes, as large as none of the published sets."""
    for number in range(40):
        path = tmp_path / "photos" / ("cat", "dog")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.effect_noise((40, 50), 90 * (1 + number % 2)).save(path)
    return tmp_path / "photos"


def test_a_folder_of_pictures_at_two_sizes(rkcnn: Run, photos: Path, tmp_path: Path) -> None:
    command = ("train", "--data", f"folder:{photos}", "--split", "0.2", "--epochs", "1", "--out", str(tmp_path / "r"))
    code, out, _ = rkcnn(*command, "--size", "auto")
    assert code == 0
    facts = re.search(r"~split-0\.2: (\d+) images to train on, (\d+) to test on, 2 classes, 40 x 40 x 1, your own", out)
    assert facts is not None
    assert sum(map(int, facts.groups())) == 40
    assert "little to learn from: --epochs" in out
    first = only(tmp_path / "r", "result.json").parent
    code, out, _ = rkcnn(*command, "--init-from", str(first), "--head-only", "--weigh-classes")
    assert code == 0, out
    recipe = json.loads(max((tmp_path / "r").rglob("result.json"), key=lambda path: len(str(path))).read_bytes())["run"]
    assert (recipe["data"].partition("~")[2], recipe["recipe"]["head_only"]) == ("size-40~split-0.2", True)
    assert rkcnn(*command, "--size", "12")[0] == 0
    assert len({path.parts[-5] for path in (tmp_path / "r").rglob("result.json")}) == 2
    assert f" {facts[2]} images" in rkcnn("evaluate", str(first), "-o", str(tmp_path))[1]
    assert "~size-12~split-0.2" in rkcnn("runs", "--from", str(tmp_path / "r"))[1]


def make_empty(photos: Path) -> None:
    for path in list(photos.rglob("*.png")):
        path.unlink()


def remove_classes(photos: Path) -> None:
    shutil.rmtree(photos)
    photos.mkdir()


def keep_one_cat(photos: Path) -> None:
    for path in sorted((photos / "cat").iterdir())[1:]:
        path.unlink()


def keep_five(photos: Path) -> None:
    for path in [*sorted((photos / "cat").iterdir())[2:], *sorted((photos / "dog").iterdir())[3:]]:
        path.unlink()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (shutil.rmtree, "is not a folder"),
        (make_empty, "cat: is a class with no image"),
        (remove_classes, "has no subfolders"),
        (keep_one_cat, "class cat has one image, and a split needs two or more"),
        (keep_five, " images to train on; give at least 10"),
        (lambda photos: shutil.rmtree(photos / "cat"), "has 1 class to train on"),
    ],
)
def test_folders_that_no_network_can_learn(
    rkcnn: Run, photos: Path, tmp_path: Path, change: Callable[[Path], object], says: str
) -> None:
    change(photos)
    code, out, err = rkcnn("train", "--data", f"folder:{photos}", "--split", "0.2", "--out", str(tmp_path / "r"))
    assert (code, out) == (2, "")
    assert says in err
    assert not (tmp_path / "r").exists()


def test_upper_case_names_are_the_same_data(rkcnn: Run, tmp_path: Path) -> None:
    code, _, _ = rkcnn("train", "ResNet@k=4", "--data", "MNIST-mini", "--recipe", "smoke", "--out", str(tmp_path))
    assert code == 0
    assert only(tmp_path, "result.json").parts[-5] == "mnist-mini"
