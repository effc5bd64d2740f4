#pragma once

// Which algorithm computes a convolution, in words.
//
// Problem:   a library that finds its fastest algorithm by trying finds another one on each GPU, and ranks
//            that compute differently wait for each other; what was chosen belongs to what was measured.
// Idea:      choices are a list that is written into the measurement file, and that another rank can read and
//            follow. Algorithms are called what the library calls them.
// Errors:    EnvironmentError where a text is no such list: it came from another rank.

#include <cstdint>
#include <string>
#include <vector>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

enum class ConvolutionDirection : std::uint8_t { forward, input_gradient, weight_gradient };

struct ConvolutionChoice {
  Convolution shape;
  Type type = Type::fp32;
  ConvolutionDirection direction = ConvolutionDirection::forward;
  std::string algorithm = {};  // empty: the library has none, and matrices are multiplied
  std::string math = {};
  std::int64_t workspace_bytes = 0;
};

const char* name_of(ConvolutionDirection direction);

// A JSON list, an object a choice.
std::string to_text(const std::vector<ConvolutionChoice>& choices);
std::vector<ConvolutionChoice> convolution_choices_in(const std::string& text);

}  // namespace lockstep::harness
