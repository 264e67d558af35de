#!/usr/bin/env bash
# auto against the best engine on many shapes of data: ./run bench robust [--quick]; --help lists the options.
set -euo pipefail
source bench/environment.sh
python_with_peers bench/robust.py "$@"
