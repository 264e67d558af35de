"""Processes: a peer's worker with a time limit, and the spdc program, on the same cores."""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers.problem import SPDC_LOSS, Cell
from peers.registry import Peer

ONE_THREAD = ("OMP", "OPENBLAS", "MKL", "NUMBA", "BLIS", "VECLIB")


@dataclass(frozen=True)
class Machine:
    """Where things are and how many cores a run may use."""

    work: Path
    spdc: Path
    threads: int
    cores: frozenset[int] = field(default_factory=frozenset)
    clock: str = "seconds"

    def environment(self) -> dict[str, str]:
        """Thread counts for every runtime that reads them from the environment."""
        counts = {f"{name}_NUM_THREADS": str(self.threads) for name in ONE_THREAD}
        return os.environ | counts | {"PYTHONPATH": str(Path(__file__).parents[1])}

    def pin(self) -> None:
        """Called in the child: the same cores for everybody."""
        os.sched_setaffinity(0, self.cores)

    def python(self, environment: str) -> Path:
        """The interpreter of a virtual environment."""
        return self.work / "env" / environment / "bin" / "python"

    def has(self, peer: Peer) -> bool:
        """Whether the peer was installed."""
        made = (self.work / "env" / peer.environment / "made").exists()
        return made and (peer.program is None or shutil.which(peer.program) is not None)


def cores_for(threads: int) -> frozenset[int]:
    """The last cores of the process: the first ones serve interrupts."""
    return frozenset(sorted(os.sched_getaffinity(0))[-threads:])


class Worker:
    """A peer with one data set in memory; started when needed, killed when too slow."""

    def __init__(self, machine: Machine, peer: Peer, cache: Path, loss: str) -> None:
        self.machine, self.peer, self.cache, self.loss = machine, peer, cache, loss
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def start(self, patience: float = 300.0) -> dict[str, Any]:
        """Load libraries and data; no clock runs yet."""
        peer = self.peer
        arguments = [self.cache, peer.module, peer.name, self.loss, self.machine.threads]
        log = open(self.machine.work / "workers.log", "ab")
        with log:
            self.process = subprocess.Popen(
                [self.machine.python(peer.environment), "-m", "peers.worker", *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.machine.environment(),
                preexec_fn=self.machine.pin,
            )
        return self.reply(patience)

    def reply(self, patience: float) -> dict[str, Any]:
        """The next answer, or why there is none."""
        assert self.process is not None and self.process.stdout is not None
        begin, ready = self.now(), []
        hopeless = time.perf_counter() + 20 * patience  # a worker that sleeps uses no CPU time
        while not ready and self.now() - begin < patience and time.perf_counter() < hopeless:
            ready, _, _ = select.select([self.process.stdout], [], [], 0.1)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.stop()
            return {"error": "the process ended"} if ready else {"killed": patience}
        return json.loads(line)

    def now(self) -> float:
        """The clock by which the worker is judged: its own CPU time on a busy machine."""
        if self.machine.clock == "seconds":
            return time.perf_counter()
        assert self.process is not None
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii")
        user, system = stat.rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def fit(self, cell: Cell, tolerance: float, patience: float) -> dict[str, Any]:
        """One fit: seconds, cpu and primal; or `killed`, or `error`."""
        if self.process is None:
            answer = self.start()
            if "ready" not in answer:
                return {"tolerance": tolerance, "error": "does not start: see workers.log"}
        assert self.process is not None and self.process.stdin is not None
        request = {"peer": self.peer.name, "loss": cell.loss, "strength": cell.strength}
        request |= {"tolerance": tolerance, "threads": self.machine.threads}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return {"tolerance": tolerance} | self.reply(patience)


def run_spdc(
    machine: Machine,
    cell: Cell,
    file: Path,
    penalty: float,
    tolerance: float,
    seconds: float,
    model: Path | None = None,
) -> dict[str, Any]:
    """spdc's own result; `seconds` is everything after reading, `cpu` the same in CPU time."""
    arguments = ["train", "--json", "--quiet", "--best-effort", "--threads", machine.threads]
    arguments += ["--loss", SPDC_LOSS.get(cell.loss, cell.loss)]
    arguments += ["--l1" if cell.is_l1 else "--l2", repr(penalty)]
    arguments += ["--tolerance", tolerance, "--max-seconds", seconds, file]
    arguments += [model] if model else []
    wall, before = time.perf_counter(), children_cpu()
    done = subprocess.run(
        [machine.spdc, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=machine.environment(),
        preexec_fn=machine.pin,
    )
    if done.returncode != 0:
        return {"error": done.stderr.strip()}
    wall, cpu = time.perf_counter() - wall, children_cpu() - before
    result = json.loads(done.stdout)
    result["cpu"] = result.get("seconds_cpu", result["seconds"] * cpu / wall)
    return result


def children_cpu() -> float:
    """CPU seconds of the processes waited for so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
