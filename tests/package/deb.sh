#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Debian packages on a machine that has nothing else: a fresh Debian in a folder installs them by apt, runs the
# first example of each command, builds a program against the library, uses the Python package, and removes them all.
#
#   tests/package/deb.sh FOLDER [SYSTEM]    FOLDER: where packaging/deb.sh put the packages
#
# SYSTEM is a folder with a Debian that debootstrap made, for many runs; it is copied. Needs root and Debian's mirror;
# takes minutes, and is no part of .ci/run.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
packages=$(cd "$1" && pwd)
system=${2:-}
if [ "$(id -u)" != 0 ]; then
    echo "SKIPPED: chroot needs root"
    exit 77
fi
# shellcheck source=packaging/packages.sh
. "$root/packaging/packages.sh"
packages_install needed "${packages_deb_test[@]}"
test=deb
# shellcheck source=tests/package/system.sh
. "$root/tests/package/system.sh"

check_commands()
{
    inside 'cd /srv
    cleave --version
    cleave probe --check
    cleave demo --quiet
    cleave selftest > /dev/null
    cleave cache > /dev/null
    cleave paco cleave-demo/paco-cube.npy cleave-demo/paco-angles.npy cleave-demo/paco-psf.npy -o planets --threshold 4
    cleave blobs cleave-demo/blobs-movie.npy --threshold-sigma 6 --link 4 -o spots.csv -T tracks.csv --overlay t.png
    cleave link spots.csv -o linked.csv --search 4 --particle again
    cleave tracks tracks.csv --pixel-size 0.1um --interval 0.05 -o motion.csv
    cleave specfit cleave-demo/specfit-coadd.fits --library cleave-demo/specfit-library -o stars.csv
    cleave bench runtime --repeats 1 --quiet > /dev/null
    zcat /usr/share/man/man1/cleave-blobs.1.gz | grep -q "^.SH OPTIONS"
    test -e /usr/share/bash-completion/completions/cleave'
    # what needs a model starts without one, and says what is missing
    local name
    for name in templates embed tokenize detokenize generate finetune search rank classify; do
        inside "cleave $name --help > /dev/null; status=0; cleave $name /none < /dev/null 2> said || status=\$?
            test \$status = 2 && grep -q cleave said" || fail "cleave $name"
    done
}

# Commands whose first example takes a model from the web or a set of model spectra: with small ones, which are made up.
check_made_up()
{
    cp "$root/tests/data/generate/tiny/tiny-float.gguf" "$jail/srv/model.gguf"
    cp -r "$root/tests/data/cross_encoder/one" "$jail/srv/reranker"
    cp "$root/tests/data/model/tiny/tokenizer.json" "$jail/srv/reranker/"
    cp "$root/tests/package/model_spectra.sh" "$jail/srv/"
    inside 'cd /srv
    cleave generate model.gguf --prompt "the star" -n 8
    echo "the star" > words.txt
    cleave tokenize model.gguf -i words.txt > ids.json
    cleave detokenize model.gguf -i ids.json
    cleave rank reranker --query "how stars form" -i words.txt --top 1
    bash model_spectra.sh
    cleave templates models.csv -o red --arm red=5050:5150:0.2 --resolving-power 11500'
}

check_model()
{
    if [ -z "${CLEAVE_MINILM_DIR:-}" ]; then
        echo "CLEAVE_MINILM_DIR is not set: the commands for texts ran without a model"
        return
    fi
    cp -rL "$CLEAVE_MINILM_DIR" "$jail/srv/minilm"
    inside 'cd /srv
    printf "a planet around a star\nbread and butter\n" > texts.txt
    cleave embed minilm -i texts.txt -o vectors.npy
    cleave tokenize minilm -i texts.txt
    cleave search vectors.npy --model minilm -i texts.txt --passages texts.txt --top 1
    printf "it shines\tgood\nit broke\tbad\n" > train.tsv
    cleave finetune minilm --data train.tsv --epochs 1 -o my-model --quiet
    cleave classify my-model -i texts.txt -o classes.tsv'
}

# shellcheck disable=SC2016 # expands in the other system
check_library()
{
    cp "$root/packaging/consumer/square.c" "$jail/srv/"
    inside 'apt-get -qq install -y --no-install-recommends gcc libc6-dev pkg-config python3 > /dev/null
    cd /srv
    cc -std=c11 square.c $(pkg-config --cflags --libs cleave) -o square
    ./square
    python3 -c "import cleave, numpy; print(cleave.__file__, cleave.matmul(numpy.eye(3), numpy.eye(3)).sum())"
    python3 -m cleave --version'
}

check_removal()
{
    inside 'apt-get -qq purge -y cleave libcleave-dev python3-cleave "libcleave0*" > /dev/null
    ! dpkg-query -W "*cleave*" 2> /dev/null | grep . && ! find /usr /etc /var/lib -name "*cleave*" | grep .' ||
        fail "purging the packages leaves files"
}

system_make "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$system"
mkdir "$jail/packages"
cp "$packages"/*.deb "$jail/packages/"
rm -f "$jail"/packages/cleave-openmpi_* "$jail"/packages/cleave-mpich_* # would bring a whole MPI
inside 'apt-get -qq update
    apt-get -qq install -y --no-install-recommends /packages/*.deb pocl-opencl-icd > /dev/null'
inside 'dpkg-query -W "*cleave*"'
check_commands
check_made_up
check_model
check_library
check_removal
echo "deb: installed, used and removed in a fresh $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$jail/etc/os-release")"
