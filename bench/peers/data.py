"""The data sets of the comparison: as text for spdc, as a cache of arrays for the peers."""

from __future__ import annotations

import lzma
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import shapes
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from peers.problem import Data, load, save, signs

# Names of the files, any of them, plain or .xz.
FILES = {
    "rcv1": ("rcv1v2_subsets.binary", "rcv1_train.binary"),
    "covtype": ("covtype.libsvm.binary.scale",),
    "news20": ("news20_bigram.binary", "news20", "news20.binary"),
    "dorothea": ("dorothea",),
}
BUNDLED = Path("data/a9a.xz")


@dataclass(frozen=True)
class Source:
    """A data set on disk: LIBSVM text and the cache made from it."""

    name: str
    text: Path
    cache: Path
    shape: tuple[int, int]


def find(name: str, folder: Path | None) -> Path | None:
    """The file of a known set, plain before compressed."""
    if folder is None:
        return None
    for stem in FILES[name]:
        for path in (folder / stem, folder / f"{stem}.xz"):
            if path.exists():
                return path
    return None


def unpacked(path: Path, work: Path) -> Path:
    """The plain text: reading it again and again should not cost a decompression."""
    if path.suffix != ".xz":
        return path
    plain = work / path.stem
    if not plain.exists():
        partial = plain.with_suffix(".part")
        with lzma.open(path) as packed, open(partial, "wb") as out:
            shutil.copyfileobj(packed, out, 1 << 20)
        partial.rename(plain)
    return plain


def prepare(name: str, text: Path, work: Path) -> Source:
    """Make the cache when it is not there or older than the text."""
    cache = work / f"{name}.npz"
    if not cache.exists() or cache.stat().st_mtime < text.stat().st_mtime:
        rows, targets = load_svmlight_file(str(text))
        rows = sparse.csr_matrix(rows, dtype=np.float64)
        save(cache, Data(rows, signs(targets)))
    return Source(name, text, cache, load(cache).rows.shape)


def generated(name: str, work: Path) -> Path:
    """Sets that need no download."""
    path = work / f"{name}.svm"
    if not path.exists():
        if name == "text":
            data = shapes.text(10000, 50000, 60)
        else:
            data = shapes.text(500, 20000, 200, seed=2, noise=0.1)
        shapes.write_libsvm(path, data)
    return path


def sources(folder: Path | None, names: list[str], files: list[Path], work: Path) -> list[Source]:
    """The sets asked for; without a folder the bundled one and two generated ones."""
    work.mkdir(parents=True, exist_ok=True)
    if files:
        return [prepare(path.stem, unpacked(path, work), work) for path in files]
    if folder is None:
        texts = {"a9a": unpacked(BUNDLED, work)}
        texts |= {name: generated(name, work) for name in ("text", "wide")}
    else:
        found = {name: find(name, folder) for name in FILES}
        texts = {name: unpacked(path, work) for name, path in found.items() if path}
    wanted = {name: texts[name] for name in names if name in texts} if names else texts
    missing = [name for name in names if name not in texts]
    if missing:
        raise SystemExit(f"No such data: {', '.join(missing)}. There are: {', '.join(texts)}.")
    return [prepare(name, text, work) for name, text in wanted.items()]
