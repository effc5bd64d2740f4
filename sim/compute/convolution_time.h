#pragma once

// How long a convolution takes.
//
// Problem:   written out as a matrix its patches would be read nine times for a 3 x 3 filter; no library does.
// Idea:      an implicit product: forward has a row for each output point and a column for each filter, by
//            data a row for each input point, by weights a row for each filter and as much depth as there are
//            points. Operands cross memory once as they are. On vector lanes a filter of stride 1 may go by
//            Winograd's transform (3 x 3 and 5 x 5) or Fourier's (above 3 x 3), with fewer FLOPs. A depthwise
//            convolution has no product worth its name: vector lanes visit tap after tap of its filters, and a
//            gradient of the filters reads both maps for each tap (a judgement by published figures of single
//            kernels: nobody's tables hold one).
// Invariant: integers; rounded up.
// Cost:      one product, four where transforms are tried.
// Reference: Chetlur et al., "cuDNN", arXiv 1410.0759; Lavin and Gray, arXiv 1509.09308; Vasilache et al.,
//            arXiv 1412.7580.

#include "sim/compute/product_time.h"

namespace lockstep {

// Forward, by data or by weights.
Duration convolution_time(const ProductUnit& unit, const ConvolutionConstants& constants,
                          const ConvolutionShape& shape, KernelDirection direction);

}  // namespace lockstep
