"""`make fuzz MINUTES=30`: damages files at random, runs every reader and every command that reads, and counts.

Each case follows from its seed. A violation is printed with its seed, and its file is kept, so that `make fuzz
REPLAY=FOLDER` runs it again.
"""

from __future__ import annotations

import argparse
import json
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import torch

from fuzz.commands import Laboratory, choose_case
from fuzz.readers import Reader, list_readers, run_readers

READER_SHARE = 0.15  # of the time; a case of a reader takes about a millisecond, one of a command a fifth of a second
BLOCK = 40  # seeds of readers at a time
KEPT_OF_A_KIND = 3  # violations that look alike
ANSWERS = ("read", "refused", "passed over", "violations")
STATUS_INTERVAL = 15.0  # seconds between two lines of progress


@dataclass
class Counts:
    """Cases by reader, by command and by damage, each with its answer, and the most that a case has taken."""

    by_reader: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_command: Counter[tuple[str, str]] = field(default_factory=Counter)
    direct: Counter[tuple[str, str]] = field(default_factory=Counter)  # of readers, without a command
    violations: Counter[str] = field(default_factory=Counter)  # those that look alike are one
    minutes: float = 0.0
    slowest: float = 0.0  # seconds of CPU of a refusal
    largest: int = 0  # bytes of memory of a refusal

    def add_to(self, path: Path) -> None:
        """Add these counts to those in a file."""
        facts = json.loads(path.read_text()) if path.exists() else {}
        for name in ("by_reader", "by_command", "direct"):
            rows = facts.setdefault(name, {})
            for (what, answer), number in getattr(self, name).items():
                rows.setdefault(what, {})[answer] = rows.get(what, {}).get(answer, 0) + number
        for name, number in self.violations.items():
            facts.setdefault("violations", {})[name] = facts.get("violations", {}).get(name, 0) + number
        facts["minutes"] = facts.get("minutes", 0.0) + self.minutes
        facts["slowest"] = max(facts.get("slowest", 0.0), self.slowest)
        facts["largest"] = max(facts.get("largest", 0), self.largest)
        path.write_text(json.dumps(facts, indent=1) + "\n")


class Campaign:
    """Cases one after the other, with counts and kept violations."""

    def __init__(self, folder: Path, kept: Path) -> None:
        self.laboratory, self.kept, self.counts = Laboratory(folder / "laboratory"), kept, Counts()
        self.folder = folder
        self.readers: dict[str, Reader] = list_readers(self.laboratory.template)

    def run_command(self, seed: int) -> None:
        """Run one case of a command."""
        random = Random(seed)
        case = choose_case(random)
        verdict = self.laboratory.run_case(random, case)
        self.counts.by_reader[case.reader, verdict.answer] += 1
        self.counts.by_command[case.command, verdict.answer] += 1
        if verdict.answer == "refused":
            self.counts.slowest = max(self.counts.slowest, verdict.outcome.seconds)
            self.counts.largest = max(self.counts.largest, verdict.outcome.peak)
        if verdict.violations and self._is_new(f"{case.command}: {verdict.violations[0]}"):
            where = self.laboratory.keep(verdict, seed, self.kept)
            print(
                f"VIOLATION seed {seed}, {case.reader}, {verdict.damage.about}: rkcnn {' '.join(verdict.words)}"[:600]
            )
            print(
                "".join(f"    {violation}\n" for violation in verdict.violations) + f"    kept in {where}", flush=True
            )

    def run_readers(self, first: int) -> None:
        """Run a block of cases of each reader."""
        counts, troubles = run_readers(self.readers, range(first, first + BLOCK), self.folder / "readers")
        self.counts.direct += counts
        for trouble in troubles:
            if self._is_new(f"{trouble.reader}: {trouble.violation}"):
                where = self.kept / f"{trouble.seed}-reader"
                where.mkdir(parents=True, exist_ok=True)
                (where / self.readers[trouble.reader].name).write_bytes(trouble.content)
                print(
                    f"VIOLATION seed {trouble.seed}, reader {trouble.reader}: {trouble.violation}\n    kept in {where}"
                )

    def _is_new(self, violation: str) -> bool:
        """Count a violation; return whether it shall be shown and kept, as one of the first of its kind."""
        kind = re.sub(r"[0-9]+|'[^']*'", "#", violation.replace(str(self.folder), ""))
        kind = re.sub(r"(characters: .{20}).*|(Warning: ).*", r"\1\2", kind)[:160]
        self.counts.violations[kind] += 1
        return self.counts.violations[kind] <= KEPT_OF_A_KIND

    def run_cases(self, number: int, seed: int) -> None:
        """Run a block of cases of each reader, and so many of commands."""
        self.run_readers(seed)
        for each in range(seed, seed + number):
            self.run_command(each)

    def run(self, minutes: float, seed: int) -> None:
        """Run cases for so many minutes; print how it goes."""
        start, shown, on_readers = time.monotonic(), 0.0, 0.0
        while (past := time.monotonic() - start) < 60 * minutes:
            if on_readers <= READER_SHARE * past:
                self.run_readers(seed)
                on_readers += time.monotonic() - start - past
                seed += BLOCK
            else:
                self.run_command(seed)
                seed += 1
            if past - shown > STATUS_INTERVAL:
                shown = past
                print(f"fuzz  {self._status(past, 60 * minutes)}", flush=True)
        self.counts.minutes = (time.monotonic() - start) / 60

    def _status(self, past: float, whole: float) -> str:
        clocks = [f"{int(each) // 60}:{int(each) % 60:02d}" for each in (past, whole, whole - past)]
        cases = f"{self.counts.by_command.total():,} commands, {self.counts.direct.total():,} readers"
        return f"{clocks[0]} of {clocks[1]}, {clocks[2]} left; {cases}; {self.counts.violations.total()} violations"


def describe(counts: Counts) -> str:
    """Return the counts as tables."""
    lines = []
    named = {"file, read by a command": counts.by_reader, "command": counts.by_command, "reader alone": counts.direct}
    for title, numbers in named.items():
        lines.append(f"{title:34}" + "".join(f"{answer:>13}" for answer in ANSWERS))
        names = sorted({name for name, _ in numbers})
        lines += [f"{name:34}" + "".join(f"{numbers[name, answer]:13,}" for answer in ANSWERS) for name in names]
        lines.append("")
    lines += [f"{number:6}  {kind}" for kind, number in counts.violations.most_common()]
    worst = f"slowest refusal {counts.slowest:.1f} s of CPU, largest {counts.largest >> 20} MB"
    lines.append(f"{counts.minutes:.1f} minutes; {worst}; {counts.violations.total()} violations")
    return "\n".join(lines)


def main() -> int:
    """Run a campaign, or one case again; return 1 where there were violations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--cases", type=int, help="run so many cases of commands instead, however long they take")
    parser.add_argument("--seed", type=int, help="the first seed; by default a random one")
    parser.add_argument("--replay", type=Path, help="the folder of a kept case, which is run again")
    parser.add_argument("--kept", type=Path, default=Path("fuzz-kept"), help="where files of violations are kept")
    parser.add_argument("--counts", type=Path, help="a JSON file that the counts are added to")
    given = parser.parse_args()
    torch.set_num_threads(1)  # a fork of a process with threads would wait for them forever
    folder = Path(tempfile.mkdtemp(prefix="rkcnn-fuzz-"))
    try:
        campaign = Campaign(folder, given.kept.absolute())
        if given.replay is not None:
            verdict = campaign.laboratory.replay(given.replay)
            sys.stdout.write(
                verdict.outcome.out.decode(errors="replace") + verdict.outcome.err.decode(errors="replace")
            )
            print("\n".join(verdict.violations) or f"holds: {verdict.answer}, exit code {verdict.outcome.code}")
            return 1 if verdict.violations else 0
        seed = secrets.randbelow(1 << 40) if given.seed is None else given.seed
        print(f"fuzz  seeds from {seed} on", flush=True)
        if given.cases is not None:
            campaign.run_cases(given.cases, seed)
        else:
            campaign.run(given.minutes, seed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(describe(campaign.counts))
    if given.counts is not None:
        campaign.counts.add_to(given.counts)
    return 1 if campaign.counts.violations else 0


if __name__ == "__main__":
    sys.exit(main())
