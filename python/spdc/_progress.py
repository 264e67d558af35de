"""One line that says how far a run is, in terminals and in notebooks."""

from __future__ import annotations

import math
import sys
import time


class Progress:
    """Shows the points of a run: ``gap 1.3e-03 → 1e-04 |██████    | 12 passes, 0.8 s``."""

    def __init__(self, tolerance: float, stream=None):
        self.tolerance = tolerance
        self.stream = stream or sys.stderr
        self.first = None
        self.shown_at = -math.inf
        self.width = 0

    def show(self, point) -> None:
        if self.first is None and 0 < point.relative_gap < math.inf:
            self.first = point.relative_gap
        now = time.monotonic()
        if now - self.shown_at < 0.1:
            return
        self.shown_at = now
        self._write(self._line(point.relative_gap, point.passes, point.seconds))

    def close(self, relative_gap: float, passes: float, seconds: float, reason: str) -> None:
        self._write(f"{self._line(relative_gap, passes, seconds)}, {reason}")
        self.stream.write("\n")
        self.stream.flush()

    def _line(self, gap: float, passes: float, seconds: float) -> str:
        done = 1.0 if gap <= self.tolerance else 0.0
        if self.first and self.tolerance < gap < self.first:
            done = math.log(self.first / gap) / math.log(self.first / self.tolerance)
        bar = "█" * round(20 * done)
        return f"spdc: gap {gap:.1e} of {self.tolerance:.1e} |{bar:<20}| {passes:.4g} passes, {seconds:.1f} s"

    def _write(self, line: str) -> None:
        self.stream.write("\r" + line.ljust(self.width))
        self.stream.flush()
        self.width = len(line)
