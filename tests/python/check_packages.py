"""Checks of the packages in a folder: the wheel needs no library beside glibc's and libstdc++, the source archive has every source.

    python tests/python/check_packages.py [--sdist] FOLDER      --sdist: only makes the archive

Run by ./run test python and ./run wheel, in an environment with scikit-build-core and auditwheel.
"""

import os
import pathlib
import subprocess
import sys
import tarfile

from scikit_build_core.build import build_sdist

SOURCES = ("CMakeLists.txt", "LICENSE", "README.md", "cli", "cmake", "include", "pyproject.toml", "python", "src")


def check_wheel(wheel):
    """auditwheel grants a manylinux tag only to a wheel whose libraries all come with it or with every Linux."""
    audit = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True)
    text = " ".join(audit.stdout.split())
    if audit.returncode != 0 or 'platform tag: "manylinux_' not in text:
        sys.exit(f"{wheel.name} is not self-contained:\n{audit.stdout}{audit.stderr}")
    print(wheel.name, "is self-contained:", text[text.index('platform tag: "') + 15 :].split('"')[0])


def check_archive(archive):
    """Every file that a build needs is in it."""
    files = [path for source in map(pathlib.Path, SOURCES) for path in (source, *source.rglob("*")) if path.is_file()]
    wanted = {path.as_posix() for path in files if path.suffix != ".pyc"}
    with tarfile.open(archive) as tar:
        packed = {name.partition("/")[2] for name in tar.getnames()}
    missing = sorted(wanted - packed)
    if not wanted or missing:
        sys.exit(f"{archive.name} lacks {', '.join(missing) or 'everything'}")
    print(archive.name, "has all", len(wanted), "sources")


def main():
    folder = pathlib.Path(sys.argv[-1])
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / build_sdist(os.fspath(folder))
    check_archive(archive)
    if "--sdist" in sys.argv:
        return
    (wheel,) = folder.glob("*.whl")
    check_wheel(wheel)


if __name__ == "__main__":
    main()
