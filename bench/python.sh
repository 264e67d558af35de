#!/usr/bin/env bash
# Python: ours against scikit-learn's solvers. ./run bench python [DATA_DIR]; see bench/python.py.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ -x build/python-venv/bin/python ]] || ./run test python >&2
exec build/python-venv/bin/python bench/python.py "$@"
