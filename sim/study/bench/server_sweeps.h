#pragma once

// Whose attention a server's benchmark timed, told by the order of its rows.
//
// Problem:   tables of servers' attention hold the sweeps of several servers one after another, and no column says
//            which: the same shape stands there twice, a fifth apart. TensorRT-LLM runs kernels of its own, which turn
//            the queries as well, others run FlashAttention and fill their cache in a kernel beside it.
// Idea:      a sweep is a walk. Causal ones go from many heads down to few, so where heads rise the next begins, and
//            at each number of heads from long sequences to short. Its sizes tell the collector's list:
//            TensorRT-LLM's goes up to 96 heads and begins at 16 tokens; vLLM's never passes 64 heads. Those that
//            are not causal go from short to long and ask for no shape twice, so the next begins where one comes
//            again; two or three stand in the same order of servers, TensorRT-LLM's first, and a lone one, if
//            long enough that it is no two, is FlashAttention's.
// Invariant: times decide nothing; a sweep is one server's as a whole. Rows in no such order (shuffled, read from
//            their end, sorted, mixed, or too few to tell) are said to be of an unknown library.
// Cost:      one sort a sweep.
// Reference: ai-dynamo/aiconfigurator, collector/cases/base_ops/attention_context.yaml and
//            collector/vllm/collect_attn.py (heads and lengths that are walked, and in which order).

#include <span>

#include "sim/study/bench/kernel_case.h"

namespace lockstep {

// Says of each server's attention whose it is. In the table's order.
void tell_servers_apart(std::span<KernelCase> kernels);

}  // namespace lockstep
