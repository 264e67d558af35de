#!/usr/bin/env bash
# Time against rows, features, non-zeros and threads: ./run bench scaling [--quick]; --help lists the options.
set -euo pipefail
source bench/environment.sh
python_with_peers bench/scaling.py "$@"
