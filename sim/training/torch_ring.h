#pragma once

// Ring attention as PyTorch's context parallelism runs it.
//
// Problem:   flash attention knows one block of keys and values. What several blocks come to is put together by
//            operators of PyTorch: outputs are merged in fp32 by their log-sums, keys and values copied to be sent,
//            gradients added up in fp32, copied and sent to the next rank. On long sequences these pass over more
//            bytes than attention does.
// Idea:      beside each block's attention a layer of what stands before its backward and after its forward, counted
//            operator by operator; the same as torch.compile fuses it, which also drops copies that nobody reads and
//            awaits a message where it is issued. A rank with more blocks behind it than before has more to merge, so
//            the last rank's operators are counted, whom all others wait for.
// Invariant: all queries' heads are sent: keys and values are repeated for them before attention. Log-sums, one for
//            each query of a head, are left out.
// Cost:      two layers a step.
// Reference: torch/distributed/tensor/experimental/_attention.py (_templated_ring_attention and its backward,
//            _SDPAMerger, _AllGatherRotater, _AllToAllRotater), torch/distributed/_functional_collectives.py
//            (_maybe_wrap_tensor: traced, a message is awaited at once), torchtitan models/llama/model.py (repeat_kv).

#include <vector>

#include "sim/training/parallel_model.h"
#include "sim/training/sliced_layer.h"

namespace lockstep {

// `attention` counts what one rank does; its shape still has the whole sequence.
std::vector<SlicedLayer> torch_ring_steps(const Layer& attention, const ParallelDegrees& degrees);

}  // namespace lockstep
