/* cl/spectra/fit.cl -- from points to the next ones, in one program: PoCL takes 0.4 s for a program before it compiles
 * the first kernel of it. With velocity.cl beside it, kernels of a first fit take 2.8 s to compile on two cores, where
 * six programs took 3.4 s.
 * Defines  LANES, RUN, SPAN, NPOLY, FP64 as the files below have them. */
#include "spectra/network.clh"
#include "spectra/template.clh"
#include "spectra/gram.clh"
#include "spectra/solve.clh"
