#pragma once

// Which convolutions are timed: every distinct one of ResNet-50 and VGG-16.
//
// Idea:      a network's convolutions follow from its depths; distinct ones are timed once, forward, by data
//            and by weights, each network as it is usually trained first.
// Invariant: the first layer has no gradient by data: images need none. Padding keeps the side at stride 1.
// Reference: torchvision's resnet.py (v1.5) and vgg.py.

#include <cstdint>
#include <string>
#include <vector>

#include "validate/harness/device/device.h"
#include "validate/harness/gpu_bench/measurement_table.h"

namespace lockstep::harness {

enum class ConvolutionPass : std::uint8_t { forward, by_data, by_weight };

struct ConvolutionCase {
  std::string precision;
  Convolution shape;
  ConvolutionPass pass = ConvolutionPass::forward;
};

std::vector<Convolution> resnet50_convolutions(std::int64_t batch);
std::vector<Convolution> vgg16_convolutions(std::int64_t batch);
std::vector<ConvolutionCase> convolution_cases();

TableLayout convolution_table_layout();
Cells key_cells(const ConvolutionCase& convolution);

}  // namespace lockstep::harness
