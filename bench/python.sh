#!/usr/bin/env bash
# Python: ours against scikit-learn's solvers. ./run bench python [DATA_DIR]; see bench/python.py.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ -x build/python-venv/bin/python ]] || ./run test python >&2
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 # the table is of one thread; BLAS would take all for its vectors
exec build/python-venv/bin/python bench/python.py "$@"
