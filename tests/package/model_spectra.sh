#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes models.csv and the spectra that it names here: a grid of 16 made-up models with one line each, for
# `cleave templates models.csv`.
set -euo pipefail
echo FILE,TEFF,LOGG,FEH,ALPHA > models.csv
for teff in 5000 6000; do
    for logg in 3.5 4.5; do
        for feh in -0.5 0; do
            for alpha in 0 0.4; do
                file=model_${teff}_${logg}_${feh}_$alpha.txt
                awk -v teff=$teff -v width=$logg 'BEGIN {
                    print "wavelength flux"
                    for (i = 0; i <= 5000; ++i) {
                        w = 5000 + i / 25
                        print w, teff / 5000 * (1 - 0.5 * exp(-((w - 5100) / width) ^ 2))
                    }
                }' > "$file"
                echo "$file,$teff,$logg,$feh,$alpha" >> models.csv
            done
        done
    done
done
