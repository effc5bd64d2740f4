#pragma once

// The part of a layer that one of several ranks does.
//
// Problem:   a layer counts work, passes over memory and what backward keeps; divided by columns some of that
//            is of its input and stays whole, divided by rows some is of its output and stays whole.
// Idea:      a product knows its sides, so its counts fall apart into terms of its input and of its output;
//            each cut scales one of them. Layers without a product are scaled as a whole.
// Invariant: shares are rounded up, so that the ranks together never do less than the whole layer; where the
//            sizes divide they do exactly as much. Weights are never cut with the samples.
// Reference: Shoeybi et al. 1909.08053 section 3; Korthikanti et al. 2205.05198 sections 4.1 and 4.2.

#include <cstdint>

#include "sim/base/units.h"
#include "sim/plan/model.h"

namespace lockstep {

// Elements of a sample that a linear layer reads and writes: of all its products together.
struct LinearSides {
  GemmShape shape;
  std::int64_t input() const { return shape.batch * shape.m * shape.k; }
  std::int64_t output() const { return shape.batch * shape.m * shape.n; }
};

bool is_linear(const Layer& layer);            // a product with weights
bool is_embedding(const Layer& layer);         // rows of a table, each tensor-parallel rank a part of them
LinearSides sides_of(const Layer& layer);      // of a linear layer
bool has_bias(const Layer& layer);             // of a linear layer
std::int64_t bias_passes(const Layer& layer);  // over the output, in backward

// A part of the samples' rows: tokens.
void divide_rows(Layer& layer, std::int64_t parts);
// Rows of so many of a layer's experts, from as many ranks as there are parts: each expert sees so many more.
void take_experts(Layer& layer, std::int64_t parts);
// More or fewer rows.
void scale_rows(Layer& layer, Ratio factor);
// `columns` of a linear layer's outputs; its input stays whole, kept or not.
void take_columns(Layer& layer, std::int64_t columns);
// `width` of a linear layer's inputs; its output stays whole, and so does its bias.
void take_inputs(Layer& layer, std::int64_t width);
// What a layer keeps of its input, in so many parts.
void divide_kept(Layer& layer, std::int64_t parts);
// Heads, experts or places: everything of a layer without weights. Where there are fewer keys' heads than
// parts, each part has one.
void divide_all(Layer& layer, std::int64_t parts);

}  // namespace lockstep
