/* cl/spectra/fit.cl -- joins the kernels that compute the next points of fits into one program, because PoCL takes
 * 0.4 s per program before it compiles the program's first kernel. With velocity.cl as a second program, the kernels of
 * a first fit take 2.8 s to compile on two cores; as six programs they took 3.4 s.
 * Defines  LANES, RUN, SPAN, NPOLY, FP64 as the included files describe them. */
#include "spectra/network.clh"
#include "spectra/template.clh"
#include "spectra/gram.clh"
#include "spectra/solve.clh"
