"""The scripts of docs/gallery run and draw."""

import os
import pathlib
import subprocess
import sys

import pytest

SCRIPTS = sorted((pathlib.Path(__file__).parents[2] / "docs" / "gallery").glob("*.py"))


def test_there_are_scripts():
    assert len(SCRIPTS) >= 5


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script, tmp_path):
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    subprocess.run([sys.executable, "-W", "error::UserWarning", script], check=True, cwd=tmp_path, env=environment, timeout=120)
    assert (tmp_path / f"{script.stem}.png").stat().st_size > 5000
