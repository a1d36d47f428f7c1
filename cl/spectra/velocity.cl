/* cl/spectra/velocity.cl -- the kernels along velocity, for start values and scans, in one program: see fit.cl.
 * Defines  LANES, RUN, NPOLY, FP64, TILE, BLOCKS as the included files describe them. */
#include "spectra/ccf.clh"
#include "spectra/scan.clh"
