"""Cases of commands: one file of a sound world is damaged, or one argument, and a command that reads it is run."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random

from fuzz import arguments
from fuzz.law import Place, list_silences, list_violations, sentences
from fuzz.mutations import Damage, damage, put
from fuzz.watched import ACCEPTED, CRASHED, Outcome, run_watched
from fuzz.world import COMMANDS, TARGETS, build_files, build_runs, copy_world, expand, prepare
from rkcnn.cli import main
from rkcnn.record.errors_by_statistics import read_errors_by_statistics
from rkcnn.record.memory import read_memory
from rkcnn.record.result import read_result
from rkcnn.record.run import read_config
from rkcnn.report.compare import find_damaged_predictions
from rkcnn.run_folder import RESULT


def read_classes_of_run(path: Path) -> None:
    """Read predictions.npy or labels.npy; InputError if it can't be read, or contradicts the result beside it."""
    for error in find_damaged_predictions([(path.parent, read_result(path.parent / RESULT))]):
        raise error


CANARY = b"not ours: 0123456789\n"
ALONE: dict[
    str, Callable[[Path], object]
] = {  # by the name of a target: what reads its file, and refuses a damaged one
    **dict.fromkeys(("result.json", "result.json of another seed", "result.json of a table"), read_result),
    **dict.fromkeys(
        ("predictions.npy", "labels.npy", "predictions.npy of a table", "labels.npy of a table"), read_classes_of_run
    ),
    "memory.json": read_memory,
    "errors-by-statistics.json": lambda path: read_errors_by_statistics(path.parent, read_result(path.parent / RESULT)),
    "config.json": read_config,
}
SHARE_OF_ARGUMENTS = 0.12  # of all cases


@dataclass(frozen=True)
class Case:
    """A command with a damaged file, or with a damaged argument."""

    reader: str
    command: str  # in COMMANDS of this folder's world.py or arguments.py
    path: str = ""  # of the damaged file, a pattern below the world; empty where an argument is damaged
    form: str = ""
    argument: str = ""


@dataclass(frozen=True)
class Verdict:
    """What became of a case."""

    case: Case
    damage: Damage
    words: list[str]  # the arguments of the command
    outcome: Outcome
    violations: list[str]

    @property
    def answer(self) -> str:
        """How the command answered."""
        if self.violations:
            return "violations"
        if self.outcome.code == 2:
            return "refused"
        said = self.outcome.code != ACCEPTED and sentences(self.outcome.err.decode("utf-8", "replace"))
        return "passed over" if said else "read"


def choose_case(random: Random) -> Case:
    """Return a case at random: every reader is equally likely, then every command of it."""
    if random.random() < SHARE_OF_ARGUMENTS:
        name = random.choice(list(arguments.COMMANDS))
        reader = arguments.COMMANDS[name][0]
        return Case(reader, name, argument=arguments.make_argument(random, reader))
    target = random.choice(TARGETS)
    return Case(target.reader, random.choice(target.commands), target.path, target.form)


class Laboratory:
    """A folder with a sound world, in which cases are run one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.template, self.world = folder, folder / "template", folder / "world"
        for name in ("outside", "home", "temporary", "cwd", "captured"):
            (folder / name).mkdir(parents=True)
        self.outside = folder / "outside" / "file"
        self.outside.write_bytes(CANARY)
        self.environment = {
            "HOME": str(folder / "home"),
            "XDG_CACHE_HOME": str(folder / "home"),
            "TMPDIR": str(folder / "temporary"),
            "RKCNN_DATA": str(self.world / "data"),
            "TORCHINDUCTOR_CACHE_DIR": str(folder / "home"),
            "MPLCONFIGDIR": str(folder / "home"),
            "COLUMNS": "200",
            "RKCNN_MAX_PARAMS": "20000000",  # a larger network is valid, but takes more memory
        }
        self._sound: dict[str, Outcome] = {}
        self._listed, self._imported = folder / "captured" / "modules", set(sys.modules)
        self._listed.touch()
        for build in (partial(build_files, self.world), partial(build_runs, self.world, self._run_sound)):
            done = self._watch(build)
            if done.code != 0:
                raise RuntimeError(f"the sound files can't be made: {done.err.decode()}")
        shutil.copytree(self.world, self.template, symlinks=True)

    def run_case(self, random: Random, case: Case) -> Verdict:
        """Damage a file, or take the damaged argument, run the command, and judge what it did."""
        if case.path:
            sound = next(self.template.glob(case.path)).read_bytes()
            return self.run_damaged(case, damage(random, sound, case.form))
        return self.run_damaged(case, Damage("argument", case.argument.encode("utf-8", "surrogatepass")))

    def run_damaged(self, case: Case, damaged: Damage) -> Verdict:
        """Put this damage into a sound world, run the command, and judge what it did."""
        warm = case.command in self._sound
        verdict = self._run_once(case, damaged)
        if verdict.violations and not warm:  # its imports took time and memory, which those on sound files did not
            self.measure(case.command)
            verdict = self._run_once(case, damaged)
        return verdict

    def _run_once(self, case: Case, damaged: Damage) -> Verdict:
        copy_world(self.template, self.world)
        if case.path:
            put(next(self.world.glob(case.path)), damaged, self.outside)
        words, size = self._words(case), len(damaged.content or b"") if case.path else 0
        outcome = self._watch(partial(_run_main, words, self._listed))
        self._import_what_it_imported()
        folders = (self.world, self.folder / "temporary", self.folder / "home", self._listed)
        place = Place(self.folder, folders, {self.outside: CANARY})
        left = [*(self.folder / "cwd").iterdir(), *(self.folder / "temporary").iterdir()]
        violations = [f"left in the current folder or among temporary files: {path.name}" for path in left]
        violations += list_violations(outcome, partial(self.measure, case.command), size, place)
        refused = (
            outcome.code == 0
            and case.reader in ALONE
            and damaged.about != "missing"  # then nobody can know that it was there
            and self._is_refused(case)  # before the world is replaced
        )
        self._clean()
        if outcome.code == 0 and case.path:
            violations += list_silences(outcome, self.measure(case.command), refused)
        return Verdict(case, damaged, words, outcome, violations)

    def _is_refused(self, case: Case) -> bool:
        """Whether the reader of the damaged file refuses it, without a command."""
        path = self.world / next(self.template.glob(case.path)).relative_to(self.template)  # it may be gone
        return self._watch(lambda: ALONE[case.reader](path)).code == CRASHED

    def keep(self, verdict: Verdict, seed: int, folder: Path) -> Path:
        """Keep the damaged file of a violation, and what was seen, so that it can be run again."""
        kept = folder / f"{seed}"
        kept.mkdir(parents=True, exist_ok=True)
        facts = {
            "seed": seed,
            "violations": verdict.violations,
            "case": asdict(verdict.case),
            "damage": verdict.damage.about,
            "is_kind": verdict.damage.content is None,
            "words": verdict.words,
        }
        (kept / "case.json").write_text(json.dumps(facts, indent=1))
        (kept / "err").write_bytes(verdict.outcome.err)
        (kept / "out").write_bytes(verdict.outcome.out)
        if verdict.damage.content is not None:
            (kept / "file").write_bytes(verdict.damage.content)
        return kept

    def replay(self, kept: Path) -> Verdict:
        """Run a kept case again, with the file that was kept."""
        facts = json.loads((kept / "case.json").read_text())
        case = Case(**facts["case"])
        if not case.path:
            return self.run_case(Random(0), case)
        content = None if facts["is_kind"] else (kept / "file").read_bytes()
        return self.run_damaged(case, Damage(facts["damage"], content))

    def measure(self, name: str) -> Outcome:
        """Return what a command does on sound files; it must succeed. Its imports are kept for all cases after it."""
        if name not in self._sound:
            case = Case(
                "", name, argument="" if name in COMMANDS else arguments.SOUND["F=V" if "--set" in name else "N"]
            )
            for _ in range(2):  # the second time without imports
                copy_world(self.template, self.world)
                found = self._watch(partial(_run_main, self._words(case), self._listed))
                if found.code not in (0, ACCEPTED):
                    raise RuntimeError(f"{name} fails on sound files: {found.code}, {found.err.decode()[-2000:]}")
                self._import_what_it_imported()
            self._sound[name] = found
            self._clean()
        return self._sound[name]

    def _import_what_it_imported(self) -> None:
        """Import what the last child has imported, so that the next one need not."""
        for module in self._listed.read_text().split():
            if module not in self._imported:
                self._imported.add(module)
                with suppress(Exception):  # some only exist in the child
                    import_module(module)

    def _words(self, case: Case) -> list[str]:
        if case.command in COMMANDS:
            return expand(COMMANDS[case.command], self.world)
        words = expand(arguments.COMMANDS[case.command][1], self.world)
        return [case.argument if word in arguments.SOUND else word for word in words]

    def _run_sound(self, command: str) -> None:
        try:
            main(expand(command, self.world))
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{command} ended with {end.code}") from None

    def _watch(self, work: Callable[[], object]) -> Outcome:
        return run_watched(work, self.folder / "captured", self.environment, self.folder / "cwd")

    def _clean(self) -> None:
        for name in ("cwd", "temporary"):
            for path in (self.folder / name).iterdir():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        self.outside.write_bytes(CANARY)


def _run_main(words: list[str], listed: Path) -> None:
    """Run a command in a child, and list what it has imported."""
    prepare()
    try:
        main(words)
    finally:
        listed.write_text("\n".join(sorted(sys.modules)))
