"""An option in a message: Python's spelling, and the command line's."""

from __future__ import annotations

import re

import pytest

from rkcnn.cli import main
from rkcnn.cli.output import print_error
from rkcnn.error import InputError, did_you_mean, shorten, with_flags


@pytest.mark.parametrize(
    ("python", "command_line"),
    [
        ("say `split=0.2`", "say --split 0.2"),
        ("`skip_bad=True` would leave it out", "--skip-bad would leave it out"),
        ("`skip_bad=False` given", "--no-skip-bad given"),
        (
            "name another folder with `data_dir=...` or $RKCNN_DATA",
            "name another folder with --data-dir or $RKCNN_DATA",
        ),
        ("`mirror='no address'` is no address", "--mirror 'no address' is no address"),
        ("give `again=True` or another `out=...`", "give --again or another --out"),
        ("see `rkcnn data list`", "see `rkcnn data list`"),
        ("no network `RKCNN-R-2@k=32`", "no network `RKCNN-R-2@k=32`"),
        ("no `labels` in a=b", "no `labels` in a=b"),
    ],
)
def test_an_option_has_two_spellings(python: str, command_line: str) -> None:
    assert str(InputError(python)) == python
    assert with_flags(python) == command_line


def test_the_command_line_prints_its_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object, **__: object) -> None:
        raise InputError("photos has no test set; say\n`split=0.2`")

    monkeypatch.setattr("rkcnn.cli.app", fail)
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert capsys.readouterr().err == "rkcnn: photos has no test set; say --split 0.2\n"


def test_a_misspelt_word_is_recognised() -> None:
    words = ("RKCNN", "ResNet", "")
    assert did_you_mean("rkcn", words) == " (did you mean RKCNN?)"
    assert did_you_mean("ResNet-1002", ["ResNet-1001"], cutoff=0.7) == " (did you mean ResNet-1001?)"
    assert did_you_mean("x", words) == did_you_mean("", words) == ""
    assert did_you_mean("Resn", words, cutoff=0.9) == ""


def test_a_long_name_is_shortened_in_the_middle() -> None:
    assert shorten("a" * 100) == "a" * 100
    assert shorten("a" * 40 + "b" * 5000 + "c" * 47) == "a" * 40 + "b" * 8 + " ... " + "c" * 47
    said = str(InputError(f"no network {'x' * 5000!r}; give a name"))
    assert said.startswith("no network 'xxx")
    assert said.endswith("xxx'; give a name")
    assert len(said) < 150
    path = "/".join(["folder"] * 25)
    assert str(InputError(f"{path}: can't be read")) == f"{path}: can't be read", "a path is needed whole"
    assert len(str(InputError("word " * 5000))) <= 450
    once = str(InputError(f"{'x' * 5000}/result.json: can't be read"))
    assert str(InputError(once)) == once
    assert once.endswith("x/result.json: can't be read")


def test_names_that_differ_still_differ_when_they_are_shortened() -> None:
    runs = "runs/folder~photos~size-32~split-0.2"
    one, two, three = (
        f"{runs}/{spec}@k=32/mini,classes=22ec07331e8f,epochs=3,peak_lr=0.05/seed-0"
        for spec in ("RKCNN-I-2", "RKCNN-R-2", "CliqueNet-3")
    )
    reason = (
        "their recipes (mini) differ in norm; name runs on the same data by the same recipe, as in runs/DATA/*/RECIPE"
    )
    usual = f"{one} and {two} can't be compared: {reason}"
    assert str(InputError(usual)) == usual, "names of a usual length are needed whole"
    reason = f"their recipes ({'x' * 2000}) differ in norm"
    said = str(InputError(f"{one} and '{two}' can't be compared: {reason}"))
    assert "-I-2@k=32/" in said
    assert "-R-2@k=32/" in said
    assert len(said) <= 300
    assert str(InputError(said)) == said
    same = str(InputError(f"{one}: {one} and ({one}), {reason}"))
    first, second, third = re.findall(r"runs.*?seed-0", same)
    assert first == second == third
    all_three = str(InputError(f"{one}, {two} and {three}; {reason}"))
    assert len(set(re.findall(r"runs.*?seed-0", all_three))) == 3
    letters = "a" * 2000
    for other in ("b" + letters, letters[:900] + "b" + letters, letters + "b", letters[1:]):
        assert len(str(InputError(f"{letters} and {other} differ, {letters!r}"))) <= 300, "hostile names stay short"


LONG_PATHS = {
    "deep": "/" + "/".join(["folder-of-runs"] * 60),
    "with spaces": "/" + "/".join(["my folder of runs"] * 60) + "/the last one",
    "one name": "x" * 255,
    "bytes that are no UTF-8": "/" + "/".join(["\udcff\udcfe" * 20] * 8),
}


@pytest.mark.parametrize("path", LONG_PATHS.values(), ids=LONG_PATHS)
def test_a_message_stays_short_however_often_it_names_a_long_path(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = f"{path} holds {path}, which can't be built here: no family {path!r}; give a finished run's folder"
    print_error(str(InputError(f"{path}: {reason}")))
    said = capsys.readouterr().err
    assert len(said) <= 330
    assert said.startswith(f"rkcnn: {path[:8]}" if path.isascii() else r"rkcnn: /\udcff")
    assert said.endswith("; give a finished run's folder\n")
    short = f"{path[-80:]} is of another run; remove it"
    assert str(InputError(short)) == short, "a message of the usual length is left as it is"


def test_a_long_argument_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    name = "x" * 5000
    for arguments in (["runs", "--from", name], ["describe", name], ["train", "--epochs", name], [name]):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        said = capsys.readouterr().err
        assert (end.value.code, said.count("\n")) == (2, 1)
        assert said.startswith("rkcnn: ")
        assert len(said) < 350
