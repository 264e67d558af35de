# Virtual environments for the benchmarks in Python, under build/bench/env. To be sourced.
work=$PWD/build/bench
mkdir -p "$work"

# environment NAME PACKAGE...: made once. Fails when something does not install.
environment() {
    local home=$work/env/$1
    [[ -e $home/made ]] && return
    echo "Installing ${*:2} in $home" >&2
    rm -rf "$home"
    python3 -m venv "$home" && "$home/bin/pip" install --quiet --disable-pip-version-check "${@:2}" >&2 &&
        touch "$home/made"
}

# python_with_peers ARGUMENTS...: the interpreter that has scikit-learn and the peers that install beside it.
python_with_peers() {
    environment peers numpy scipy scikit-learn==1.9.1 cyanure==1.2.2 skglm==0.5 celer==0.7.4 snapml==1.17.2 \
        liblinear-official==2.50.0 matplotlib ||
        { echo "The packages do not install: is there a network, and python3-venv?" >&2; exit 1; }
    PYTHONPATH=bench exec "$work/env/peers/bin/python" "$@"
}
