#!/usr/bin/env bash
# spdc against other solvers: ./run bench peers [DATA_DIR] [OPTIONS]; --help lists them.
set -euo pipefail
source bench/environment.sh
# Apart, because adelie needs an old numpy and liblinear-multicore a module of liblinear's name.
environment adelie adelie==1.1.52 || echo "adelie does not install and is left out." >&2
environment multicore liblinear-multicore==2.50.0 scipy || echo "liblinear-multicore does not install and is left out." >&2
python_with_peers -m peers "$@"
