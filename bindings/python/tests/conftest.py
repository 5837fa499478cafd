"""The writer of the tests: crates/runtime/examples/region.rs, whose every word is known."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = os.environ.get("TICKWIRE_REGION_PROGRAM", "")


class Writer:
    """A running writer that obeys orders."""

    def __init__(self, folder: Path, levels: int = 10, records: int = 64) -> None:
        self.folder = folder
        self.levels = levels
        words = [PROGRAM, "write", str(folder), str(levels), str(levels), str(records)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.expect("ready")

    def expect(self, answer: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == answer

    def order(self, line: str) -> None:
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)
        self.expect("ok")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.close()

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process.wait(10)

    def dump(self) -> str:
        """All that the Rust reader sees."""
        return subprocess.run([PROGRAM, "dump", str(self.folder)], capture_output=True, text=True, check=True).stdout


class Writers:
    """Starts writers, and ends those that a test left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[Writer] = []

    def start(self, levels: int = 10, records: int = 64) -> Writer:
        self.started.append(Writer(self.folder, levels, records))
        return self.started[-1]


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[Writers]:
    """Starts writers in a folder of the test's own."""
    assert PROGRAM, "run by `cargo xtask bindings`, which names the writer in TICKWIRE_REGION_PROGRAM"
    writers = Writers(tmp_path)
    yield writers
    for writer in writers.started:
        writer.close()


@pytest.fixture
def writer(writers: Writers) -> Writer:
    """A writer of 10 levels and a ring of 64 records."""
    return writers.start()
