"""Shell completion, in a home folder of its own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder; nothing in the environment leads to another one."""
    for name in ("ZSH", "ZSH_CUSTOM", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    return folder


def test_bash_completes_commands_and_options(rkcnn: Run, home: Path) -> None:
    (home / ".bashrc").write_text("mine=1\n")
    code, said, err = rkcnn("--install-completion", "--shell", "bash")
    script = home / ".local" / "share" / "bash-completion" / "completions" / "rkcnn"
    assert (code, said, err) == (0, f"wrote {script}; open a new shell\n", "")
    startup = (home / ".bashrc").read_text()
    assert startup.startswith("mine=1\n")
    assert str(script) in startup
    rkcnn("--install-completion", "--shell", "bash")
    assert (home / ".bashrc").read_text() == startup, "the line is added once"
    if (bash := shutil.which("bash")) is None:
        pytest.fail("bash is not installed")
    function = next(line.split()[-2] for line in script.read_text().splitlines() if line.startswith("complete "))
    for words, wanted in ((("rkcnn", "tr"), "train"), (("rkcnn", "train", "--rec"), "--recipe")):
        ask = f"""source {script}; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}
            COMP_LINE="{" ".join(words)}"; COMP_POINT=${{#COMP_LINE}}; {function} rkcnn {words[-1]} {words[-2]}
            echo "${{COMPREPLY[@]}}" """
        done = subprocess.run([bash, "-c", ask], capture_output=True, text=True, check=True, timeout=60)
        assert wanted in done.stdout.split(), done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish", "powershell"])
def test_other_shells_get_a_script_too(rkcnn: Run, home: Path, tmp_path: Path, shell: str) -> None:
    file = tmp_path / f"completion.{shell}"
    code, said, err = rkcnn("--install-completion", "--shell", shell, "-o", str(file))
    assert (code, err) == (0, "")
    assert said.startswith(f"wrote {file}; open a new shell that loads it")
    assert "reproduce" in file.read_text(encoding="utf-8")
    assert not list(home.iterdir()), "a file that is named is all that is written"


def test_what_cant_be_done_is_one_sentence(
    rkcnn: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cyclopts.completion import detect

    def fail() -> None:
        raise detect.ShellDetectionError

    monkeypatch.setattr(detect, "detect_shell", fail)
    code, said, err = rkcnn("--install-completion")
    assert (code, said) == (2, "")
    assert err == "rkcnn: can't tell which shell this is; name it, as in --shell bash\n"
    (tmp_path / "file").write_text("")
    code, _, err = rkcnn("--install-completion", "--shell", "fish", "-o", str(tmp_path / "file" / "script"))
    assert code == 2
    assert err.endswith("name another file with -o\n")
    assert rkcnn("--install-completion", "--shell", "cmd")[0] == 2
    assert not list(home.iterdir())
